#!/usr/bin/env python3
"""lock_django.py HOST:PORT KEY: takes a lock of Pawl with Django's cache over memcached, and says
which fencing token it has."""

import socket
import sys

import django.conf


def main(address, key):
    # In an application the settings say this.
    django.conf.settings.configure(CACHES={"default": {
        "BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache", "LOCATION": address}})
    from django.core.cache import cache
    me = socket.gethostname()
    if not cache.add(key, me, 10):
        sys.exit("somebody else has it")
    _, token = cache._cache.gets(cache.make_key(key))
    print("mine, with token %d" % int(token))
    cache.touch(key, 10)  # 10 s from now
    cache.delete(key)


if __name__ == "__main__":
    main(*sys.argv[1:])
