"""An attack by a master that lies: what it sends is well-formed, and comes from the identity that
the configuration has for its name. See attacks.py."""

import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402
from sending import connect  # noqa: E402

# Numbers of messages, and flags of FOLLOW (cluster/message_kinds.h, message.h).
PONG, FOLLOW, SNAPSHOT = 35, 48, 28
STAGING, ACCEPT_ISOLATED = 32768, 131072
VOTING = 1
# The messages in a large frame, which has some 5 MB.
MANY = 60000


def packet(body):
    return struct.pack(">I", len(body)) + body


def greet(address, name, identity):
    """Connects under this name, and returns the connection, the hello of the node there, and the
    first frame after it. Without an identity it has one of its own, and hears only the hello."""
    s = connect(address, 1)[0]
    s.settimeout(60)
    s.sendall(packet(pawltest.pack({"pawl": [1, 1], "features": 0, "cluster": "test", "node": name,
                                    "id": identity or b"stranger".ljust(16), "boot": 1000})))
    data, heard, wanted = b"", [], 2 if identity else 1
    while len(heard) < wanted:
        more = s.recv(1 << 16)
        if not more:
            raise ConnectionResetError
        data += more
        while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack(">I", data[:4])[0]):
            heard.append(pawltest.Unpacker(data[4:4 + size]).value())
            data = data[4 + size:]
    return (s, *heard[:wanted])


def identity_of(address):
    """Returns the identity that the node at the address says."""
    s, hello = greet(address, "stranger", None)
    s.close()
    return hello["id"]


def frame(head, identity, flags, messages, count):
    """`head` is what stands in front of the messages in a frame of the other side."""
    body = pawltest.pack([head[0], head[1], identity, 1000, head[4], flags])
    return packet(b"\xdd" + struct.pack(">I", 7) + body[5:] + b"\xdd" + struct.pack(">I", count)
                  + messages)


def attack_member(address, identity):
    """A master that changes its vote in each frame, and asks for the feed and for snapshots"""
    while True:
        try:
            s, _, head = greet(address, "c", identity)
            pong = pawltest.pack([PONG, 1, 0])
            s.sendall(frame(head, identity, VOTING, pong, 1))
            yield
            follow = pawltest.pack([FOLLOW, 1, STAGING | ACCEPT_ISOLATED, 0, 0, 0, 1, 0])
            s.sendall(frame(head, identity, VOTING, follow * MANY, MANY))
            snapshot = pawltest.pack([SNAPSHOT, 1, 0, head[0]])
            s.sendall(frame(head, identity, VOTING, snapshot * MANY, MANY))
            while True:
                s.sendall(b"".join(frame(head, identity, i % 2, b"", 0) for i in range(1000)))
        except OSError:
            time.sleep(0.05)
        yield
