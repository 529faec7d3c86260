"""Attacks with many who wait for a key to be held. See attacks.py."""

import itertools
import os
import select
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402
from sending import acquire_all, connect, id_of, request  # noqa: E402

# Those who wait for a key to be held, over how many connections.
CLOSING, SHOWN, CONNECTIONS = 39000, 20000, 10
# The size of that value in bytes.
VALUE = 60000
# Locks of one key, which fewer than 1,000 may hold (holders_per_key).
HOLDERS = 950


def wait_held(address, count, key):
    """Lets `count` requests wait for the key to be held, and returns their connections when all
    have been handed over."""
    made = connect(address, CONNECTIONS)
    for s in made:
        s.sendall(request("wait", key=key, **{"for": "held"}) * (count // CONNECTIONS)
                  + request("ping"))
    for s in made:
        s.recv(1 << 20)
    return made


def attack_closing(address):
    """39,000 that wait for a key to be held, whose 950 locks in lock delay are released"""
    for number in itertools.count():
        key, lease = "abuse/%d" % number, 4
        # A lock_id that was released cannot acquire again.
        locks = [id_of((6 << 32) + number * HOLDERS + i) for i in range(HOLDERS)]
        with pawltest.Client(address, timeout=60) as c:
            acquire_all(c, (dict(key=key, mode="shared", lock_id=lock, lease_ms=1000 * lease,
                                 lock_delay_ms=50000, wait_ms=10000) for lock in locks), 50)
            time.sleep(lease + 0.3)
            made = wait_held(address, CLOSING, key)
            yield
            for lock in locks:
                c.call("release", key=key, lock_id=lock)
                time.sleep(0.004)
                yield
        for s in made:
            s.close()


def attack_shown(address):
    """20,000 that wait for a key to be held and are shown its value of 60 KB, again and again"""
    with pawltest.Client(address, timeout=60) as c:
        while True:
            made = wait_held(address, SHOWN, "abuse/0")
            yield
            lock = pawltest.lock_id()
            c.call("acquire", key="abuse/0", lock_id=lock, lease_ms=60000, value=b"x" * VALUE)
            end = time.monotonic() + 1
            while time.monotonic() < end:
                for s in select.select(made, [], [], 0.1)[0]:
                    s.recv(1 << 20)
            c.call("release", key="abuse/0", lock_id=lock)
            for s in made:
                s.close()
