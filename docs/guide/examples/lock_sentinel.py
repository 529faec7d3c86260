#!/usr/bin/env python3
"""lock_sentinel.py HOST:PORT,HOST:PORT,... KEY: holds a lock of Pawl with redis-py for as long as
there are lines to read, and renews it with each line, at whichever node serves."""

import sys

import redis
from redis.sentinel import Sentinel


def main(addresses, key):
    nodes = [tuple(address.rsplit(":", 1)) for address in addresses.split(",")]
    sentinel = Sentinel(nodes, socket_timeout=2)  # every node of Pawl is one
    r = sentinel.master_for("mymaster", socket_timeout=2)
    with r.lock(key, timeout=10) as lock:
        for line in sys.stdin:
            try:
                lock.extend(10, replace_ttl=True)
                print("renewed:", line.strip(), flush=True)
            except redis.exceptions.LockError:
                raise  # somebody else may have the key
            except redis.exceptions.RedisError as error:
                # The next try goes to another node, or comes when the masters agree again.
                print("once more:", error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
