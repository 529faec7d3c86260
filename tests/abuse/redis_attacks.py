"""The attacks of abuse.py that come from clients of Redis. `address` is where a node listens for
these."""

import os
import select
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from rediscluster import command  # noqa: E402
from sending import connect  # noqa: E402

# Nearly as many as one command may name, and nearly as much as one reply may show.
KEYS = 63
SIZE = 65000
KEY_NAMES = ["abuse/%d" % i for i in range(KEYS)]


def hold(address):
    s, = connect(address, 1)
    value = b"x" * SIZE
    for key in KEY_NAMES:
        s.sendall(command("SET", key, value, "NX", "PX", 50000))
        answer = s.recv(100)
        assert answer == b"+OK\r\n", answer
    s.close()


def attack_mget(address):
    """16 connections of a client of Redis that pipeline MGET of 63 values of 64 KiB"""
    hold(address)
    return {s: command("MGET", *KEY_NAMES) * 4 for s in connect(address, 16)}


def attack_mget_unread(address):
    """64 connections of a client of Redis that ask for 63 values of 64 KiB, and read none"""
    hold(address)
    made = {}
    yield
    while True:
        while len(made) < 64:
            s, = connect(address, 1)
            s.sendall(command("MGET", *KEY_NAMES) * 8)
            made[s.fileno()] = s
        closed = select.poll()
        for number in made:
            closed.register(number, select.POLLRDHUP)
        for number, _ in closed.poll(1):
            made.pop(number).close()
        yield
        time.sleep(0.001)
