"""Locks of Django's caches: django_locks.py redis|memcached PORT. With Redis cache.lock of
django-redis, whose package carries no tests; with memcached cache.add, get, touch and delete."""

import sys
import time
import unittest
import uuid

import django.conf

PATIENCE_S = 20


class Redis(unittest.TestCase):
    def setUp(self):
        self.key = str(uuid.uuid4())

    def test_a_lock_excludes(self):
        with cache.lock(self.key, timeout=10):
            self.assertFalse(cache.lock(self.key, timeout=10).acquire(blocking=False))
        lock = cache.lock(self.key, timeout=10)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertTrue(lock.owned())
        lock.release()

    def test_a_lock_without_an_end(self):
        with cache.lock(self.key):
            self.assertFalse(cache.lock(self.key).acquire(blocking=False))

    def test_a_lock_ends(self):
        cache.lock(self.key, timeout=1).acquire()
        self.assertTrue(cache.lock(self.key, timeout=1, blocking_timeout=PATIENCE_S).acquire())

    def test_a_lock_is_extended_and_taken_again(self):
        with cache.lock(self.key, timeout=5) as lock:
            lock.extend(5)
            lock.reacquire()

    def test_versions_are_other_locks(self):
        with cache.lock(self.key, timeout=5):
            with cache.lock(self.key, version=2, timeout=5):
                pass


class Memcached(unittest.TestCase):
    def setUp(self):
        self.key = str(uuid.uuid4())
        self.addCleanup(cache.delete, self.key)

    def test_add_excludes(self):
        self.assertTrue(cache.add(self.key, "me", 10))
        self.assertFalse(cache.add(self.key, "other", 10))
        self.assertEqual(cache.get(self.key), "me")
        self.assertTrue(cache.delete(self.key))
        self.assertFalse(cache.delete(self.key))
        self.assertTrue(cache.add(self.key, "other", 10))

    def test_a_lock_ends(self):
        cache.add(self.key, "me", 1)
        end = time.monotonic() + PATIENCE_S
        while not cache.add(self.key, "other", 1):
            self.assertLess(time.monotonic(), end)

    def test_a_lock_is_renewed(self):
        cache.add(self.key, "me", 5)
        self.assertTrue(cache.touch(self.key, 20))
        self.assertFalse(cache.add(self.key, "other", 5))
        self.assertFalse(cache.touch(self.key + "-free", 20))

    def test_a_lock_without_an_end(self):
        self.assertTrue(cache.add(self.key, "me", None))
        self.assertFalse(cache.add(self.key, "other", None))

    def test_several_are_read(self):
        cache.add(self.key, "me", 10)
        self.assertEqual(cache.get_many([self.key, self.key + "-free"]), {self.key: "me"})


if __name__ == "__main__":
    kind, port = sys.argv[1], sys.argv[2]
    backend, location = {
        "redis": ("django_redis.cache.RedisCache", "redis://127.0.0.1:%s/1" % port),
        "memcached": ("django.core.cache.backends.memcached.PyMemcacheCache",
                      "127.0.0.1:%s" % port)}[kind]
    django.conf.settings.configure(CACHES={"default": {"BACKEND": backend, "LOCATION": location}})
    from django.core.cache import cache
    unittest.main(argv=[sys.argv[0], kind.capitalize()], verbosity=2)
