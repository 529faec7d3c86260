#!/usr/bin/env python3
"""lock_redis.py HOST:PORT KEY: takes a lock of Pawl with redis-py, and says which fencing token it
has."""

import sys

import redis


def main(address, key):
    host, port = address.rsplit(":", 1)
    r = redis.Redis(host, int(port), socket_timeout=5)
    lock = r.lock(key, timeout=10)
    try:
        if not lock.acquire(blocking=False):
            sys.exit("somebody else has it")
        token = r.execute_command("PAWL.TOKEN", key, lock.local.token)
        print("mine, with token %d" % token)
        lock.extend(10, replace_ttl=True)  # 10 s from now
        lock.release()
    except redis.exceptions.LockNotOwnedError:
        sys.exit("lost: the work took too long")
    except redis.exceptions.RedisError as e:
        sys.exit("not known: %s" % e)  # no quorum, for example; this is not "somebody else"


if __name__ == "__main__":
    main(*sys.argv[1:])
