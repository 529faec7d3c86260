"""redis_py.py PORT: locks of redis-py, sync and asyncio, whose package in Debian has no tests."""

import asyncio
import sys
import threading
import time
import unittest
import uuid

import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError

PATIENCE_S = 20


class Blocking(unittest.TestCase):
    def setUp(self):
        self.client = redis.Redis(port=PORT)
        self.addCleanup(self.client.close)
        self.key = str(uuid.uuid4())

    def lock(self, timeout=10, **options):
        return self.client.lock(self.key, timeout=timeout, sleep=0.02, **options)

    def steal(self):
        self.client.delete(self.key)
        self.client.set(self.key, "thief", px=10000)

    def test_a_lock_without_an_end(self):
        lock = self.lock(None)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertEqual(self.client.get(self.key), lock.local.token)
        self.assertEqual(self.client.ttl(self.key), -1)
        lock.release()
        self.assertIsNone(self.client.get(self.key))

    def test_a_lock_without_an_end_is_not_extended(self):
        with self.lock(None) as lock:
            with self.assertRaises(LockError):
                lock.extend(10)
            with self.assertRaises(LockError):
                lock.reacquire()

    def test_a_token_of_ones_own(self):
        lock = self.lock()
        self.assertTrue(lock.acquire(token="mine"))
        self.assertEqual(self.client.get(self.key), b"mine")
        lock.release()

    def test_locked_and_owned(self):
        lock = self.lock()
        self.assertFalse(lock.locked())
        lock.acquire()
        self.assertTrue(lock.locked())
        self.assertTrue(lock.owned())
        self.assertFalse(self.lock().owned())
        lock.release()

    def test_others_are_refused(self):
        with self.lock():
            self.assertFalse(self.lock().acquire(blocking=False))
            began = time.monotonic()
            self.assertFalse(self.lock(blocking_timeout=0.3).acquire())
            self.assertGreater(time.monotonic() - began, 0.2)
            with self.assertRaises(LockError):
                with self.lock(blocking_timeout=0.1):
                    pass

    def test_one_who_waits_gets_the_lock(self):
        lock, waiter = self.lock(), self.lock(thread_local=False)
        lock.acquire()
        got = threading.Thread(target=waiter.acquire)
        got.start()
        lock.release()
        got.join(PATIENCE_S)
        self.assertTrue(waiter.owned())
        waiter.release()

    def test_the_timeout(self):
        lock = self.lock(timeout=8)
        lock.acquire()
        self.assertTrue(5 < self.client.ttl(self.key) <= 8)
        lock.release()
        lock = self.lock(timeout=9.5)
        lock.acquire()
        self.assertTrue(8000 < self.client.pttl(self.key) <= 9500)
        lock.release()

    def test_a_lock_ends(self):
        lock = self.lock(timeout=0.2)
        lock.acquire()
        self.assertTrue(self.lock(blocking_timeout=PATIENCE_S).acquire())
        with self.assertRaises(LockNotOwnedError):
            lock.release()

    def test_a_released_lock_is_not_released_again(self):
        lock = self.lock()
        lock.acquire()
        lock.release()
        with self.assertRaises(LockError):
            lock.release()

    def test_what_was_stolen(self):
        for act in ("release", "reacquire", "extend"):
            lock = self.lock()
            lock.acquire()
            self.steal()
            with self.assertRaises(LockNotOwnedError):
                getattr(lock, act)(*[5] * (act == "extend"))
            self.assertEqual(self.client.get(self.key), b"thief")
            self.client.delete(self.key)

    def test_extending(self):
        with self.lock(timeout=10) as lock:
            lock.extend(10)
            self.assertTrue(17000 < self.client.pttl(self.key) <= 20000)
            lock.extend(30, replace_ttl=True)
            self.assertTrue(27000 < self.client.pttl(self.key) <= 30000)
            lock.extend(0.5)
            self.assertTrue(27000 < self.client.pttl(self.key) <= 30500)

    def test_reacquiring(self):
        with self.lock(timeout=10) as lock:
            self.client.pexpire(self.key, 9000)
            lock.reacquire()
            self.assertTrue(9000 < self.client.pttl(self.key) <= 10000)

    def test_scripts_that_were_forgotten(self):
        with self.lock(timeout=10) as lock:
            self.client.script_flush()
            lock.extend(10)

    def test_many_threads(self):
        inside, turns = [], []

        def work():
            client = redis.Redis(port=PORT)
            with client.lock(self.key, timeout=10, sleep=0.01):
                inside.append(1)
                turns.append(len(inside))
                inside.pop()
            client.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE_S)
        self.assertEqual(turns, [1] * 8)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = redis.asyncio.Redis(port=PORT)
        self.addAsyncCleanup(self.client.close)
        self.key = str(uuid.uuid4())

    def lock(self, timeout=10, **options):
        return self.client.lock(self.key, timeout=timeout, sleep=0.02, **options)

    async def test_a_lock(self):
        lock, other = self.lock(), self.lock()
        self.assertTrue(await lock.acquire())
        self.assertTrue(await lock.locked())
        self.assertTrue(await lock.owned())
        self.assertFalse(await other.acquire(blocking=False))
        await lock.release()
        self.assertFalse(await lock.locked())

    async def test_a_lock_without_an_end(self):
        async with self.lock(None):
            self.assertEqual(await self.client.ttl(self.key), -1)
        self.assertIsNone(await self.client.get(self.key))

    async def test_extending_and_reacquiring(self):
        async with self.lock(timeout=10) as lock:
            await lock.extend(10)
            self.assertGreater(await self.client.pttl(self.key), 17000)
            await lock.extend(30, replace_ttl=True)
            self.assertGreater(await self.client.pttl(self.key), 27000)
            self.assertTrue(await lock.reacquire())

    async def test_one_who_waits_gets_the_lock(self):
        lock, waiter = self.lock(), self.lock()
        await lock.acquire()
        turn = asyncio.ensure_future(waiter.acquire())
        await lock.release()
        self.assertTrue(await turn)
        await waiter.release()

    async def test_a_lock_ends(self):
        lock = self.lock(timeout=0.2)
        await lock.acquire()
        self.assertTrue(await self.lock(blocking_timeout=PATIENCE_S).acquire())
        with self.assertRaises(LockNotOwnedError):
            await lock.release()

    async def test_what_was_stolen(self):
        lock = self.lock()
        await lock.acquire()
        await self.client.delete(self.key)
        await self.client.set(self.key, "thief", px=10000)
        for act in (lambda: lock.extend(5), lock.reacquire, lock.release):
            with self.assertRaises(LockNotOwnedError):
                await act()
        self.assertEqual(await self.client.get(self.key), b"thief")

    async def test_many_tasks(self):
        inside, turns = [], []

        async def work():
            async with self.lock(timeout=10):
                inside.append(1)
                turns.append(len(inside))
                await self.client.get(self.key)
                inside.pop()
        await asyncio.gather(*[work() for _ in range(8)])
        self.assertEqual(turns, [1] * 8)


if __name__ == "__main__":
    PORT = int(sys.argv.pop(1))
    unittest.main(verbosity=2)
