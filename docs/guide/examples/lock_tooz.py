#!/usr/bin/env python3
"""lock_tooz.py HOST:PORT KEY: takes a lock of Pawl with tooz over memcached, and says which fencing
token it has."""

import sys

from tooz import coordination


def main(address, key):
    coordinator = coordination.get_coordinator("memcached://" + address, b"worker-1")
    coordinator.start(start_heart=True)  # renews the locks
    try:
        lock = coordinator.get_lock(key.encode())
        if not lock.acquire(blocking=False):
            sys.exit("somebody else has it")
        _, token = coordinator.client.gets(lock.name)
        print("mine, with token %d" % int(token))
        lock.release()
    finally:
        coordinator.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
