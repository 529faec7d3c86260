"""What the attacks send, and how they connect."""

import itertools
import os
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402


def request(method, **params):
    return pawltest.pack([0, 1, method, [params]])


def id_of(number):
    return number.to_bytes(16, "big")


def connect(address, count, source=None):
    made = []
    for _ in range(count):
        s = socket.create_connection(pawltest.split(address),
                                     source_address=(source, 0) if source else None)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.append(s)
    return made


def clients(address, count, piece=64):
    """Connections that have made a request: a node keeps only some of those that have not."""
    made = []
    while len(made) < count:
        fresh = connect(address, min(piece, count - len(made)))
        for s in fresh:
            s.sendall(request("ping"))
        for s in fresh:
            s.recv(1 << 16)
        made += fresh
    return made


def acquire_pieces(client, locks, piece=500, may_refuse=False):
    """Acquires the locks, each of which is given by the parameters of its request. The requests of
    a piece are sent together; yields when all of a piece are answered."""
    locks = iter(locks)
    while sent := [client.send("acquire", **lock) for lock in itertools.islice(locks, piece)]:
        for msgid in sent:
            try:
                client.answer(msgid)
            except pawltest.Refused:
                if not may_refuse:
                    raise
        yield


def acquire_all(client, locks, piece=500):
    for _ in acquire_pieces(client, locks, piece):
        pass
