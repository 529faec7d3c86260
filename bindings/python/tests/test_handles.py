"""Tests that a client has one truth for each lock: whatever the program does with a lock_id by hand
counts for its lock objects as well; and that renewals fit what nodes read and allow."""

import asyncio
import unittest

import pawl
from nodes import AsyncCase
from pawl._env import clock
from pawl._link.msgpack import pack
from pawl._lock.extension import batches
from pawl._lock.leased import LeasedLock
from scripted import GRANT, Refuse, Script, ScriptedCase


class ByLockId(AsyncCase):
    async def asyncSetUp(self):
        self.client = pawl.aio.connect(self.endpoints)
        self.addAsyncCleanup(self.client.close)
        self.told = []

    async def lock(self):
        return await self.client.lock(self.key, on_lost=lambda lock, error: self.told.append(error))

    async def test_a_release_by_lock_id_ends_the_lock_object_of_the_client(self):
        lock = await self.lock()
        self.assertTrue(await self.client.release(self.key, lock.lock_id))
        self.assertEqual((lock.valid, type(lock.error)), (0.0, pawl.LostError))
        self.assertIn("by its lock_id", str(lock.error))
        self.assertIs(await lock.wait_lost(), lock.error)
        await asyncio.sleep(0)
        self.assertEqual(self.told, [lock.error])
        with self.assertRaises(pawl.LostError):
            lock.check()
        self.assertFalse(await lock.release())

    async def test_the_object_hears_before_any_node_does(self):
        for lock_id in (lambda it: it.upper(), bytes.fromhex):
            lock = await self.lock()
            task = asyncio.ensure_future(self.client.call("release", key=self.key,
                                                          lock_id=lock_id(lock.lock_id)))
            await asyncio.sleep(0)
            self.assertEqual((lock.held, task.done()), (False, False))
            await task

    async def test_a_transfer_by_lock_id_ends_it_too_whatever_comes_of_it(self):
        lock = await self.lock()
        with self.assertRaises(pawl.NotFoundError):
            await self.client.call("transfer", key=self.key, lock_id=lock.lock_id, to="nobody")
        self.assertEqual((lock.valid, type(lock.error)), (0.0, pawl.LostError))
        await lock.release()

    async def test_a_downgrade_by_lock_id_makes_the_object_a_shared_lock(self):
        lock = await self.lock()
        await self.client.call("downgrade", key=self.key, lock_id=lock.lock_id)
        self.assertEqual((lock.mode, lock.held), ("shared", True))
        await lock.release()

    async def test_a_transfer_by_the_object_that_finds_nobody_leaves_it_as_it_was(self):
        lock = await self.lock()
        with self.assertRaises(pawl.NotFoundError):
            await lock.transfer("nobody")
        self.assertTrue(lock.held and lock.error is None)
        await lock.release()

    async def test_the_body_of_a_block_is_canceled(self):
        with self.assertRaises(pawl.LostError):
            async with self.client.lock(self.key) as lock:
                await self.client.release(self.key, lock.lock_id)
                await asyncio.sleep(60)

    async def test_an_acquire_by_hand_that_is_given_up_ends_the_object_of_its_lock_id(self):
        lock = await self.lock()
        task = asyncio.ensure_future(self.client.call("acquire", key=self.key, lease_ms=1000,
                                                      lock_id=lock.lock_id))
        while not self.client._calls._flight:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.assertEqual(lock.held, task.done() and not task.cancelled())

    async def test_an_acquire_by_hand_without_a_lock_id_can_be_canceled(self):
        task = asyncio.ensure_future(self.client.call("acquire", key=self.key, lease_ms=1000))
        while not self.client._calls._flight:
            await asyncio.sleep(0)
        task.cancel()
        self.assertIsInstance((await asyncio.gather(task, return_exceptions=True))[0],
                              asyncio.CancelledError)
        await self.client.lock(self.key, wait=0.5)  # It is not held for its lease.


class OfNodesOfRelease020(ScriptedCase):
    async def test_a_release_that_expects_a_value_is_refused_and_the_lock_is_not_trusted(self):
        node = Script(acquire=lambda p: GRANT, release=lambda p: Refuse(
            "bad_request", field="expect") if "expect" in p else {"released": True})
        client = await self.client(node)
        lock = await client.lock("k", value="v")
        with self.assertRaises(pawl.BadRequestError) as caught:
            await client.call("release", key="k", lock_id=lock.lock_id, expect=b"v")
        self.assertEqual((caught.exception.field, lock.held), ("expect", False))
        await lock.release()
        self.assertEqual(["expect" in p for p in node.of("release")], [True, False])


def objects(value):
    """Counts the objects of a message as a node does."""
    if isinstance(value, dict):
        return 1 + sum(objects(k) + objects(v) for k, v in value.items())
    return 1 + sum(map(objects, value)) if isinstance(value, list) else 1


class Renewals(ScriptedCase):
    async def test_a_request_to_extend_is_no_larger_than_a_node_reads(self):
        permits = dict(GRANT, mode="permits", slots=list(range(128)), valid_ms=50000)
        node = Script(acquire=lambda p: permits, extend=lambda p: {
            "locks": [{"valid_ms": 50000, "token": 5} for _ in p["locks"]]})
        client = await self.client(node)
        locks = [client.lock("%d/" % i + "k" * 1000, lease=50, permits=128, of=128)
                 for i in range(600)]
        await asyncio.gather(*[lock.acquire() for lock in locks])
        for lock in locks:
            client._keeper._schedule(lock, True)
        client._keeper._renew_due(clock.now())
        await self.until(lambda: sum(len(p["locks"]) for p in node.of("extend")) >= 600)
        self.assertTrue(all(objects([0, 1, "extend", [p]]) <= 65536 for p in node.of("extend")))
        self.assertTrue(all(lock.held for lock in locks))

    def test_batches_are_bounded_by_locks_objects_and_bytes(self):
        def locks(count, key, slots):
            made = [LeasedLock(b"k" * key, 1000, 100, True) for _ in range(count)]
            for lock in made:
                lock._slots = tuple(range(slots))
            return made

        for count, key, slots in ((2500, 4, 0), (1000, 1024, 128), (1000, 65536, 0), (1, 10, 128),
                                  (999, 4, 53), (0, 0, 0)):
            found = list(batches(locks(count, key, slots)))
            self.assertEqual(sum(map(len, found)), count)
            for batch in found:
                said = [{"key": lock._key, "lock_id": "0" * 32, "lease_ms": 1 << 40,
                         "bond": 1 << 32, "token": 1 << 60, "slots": list(lock._slots)}
                        for lock in batch]
                message = [0, 1 << 31, "extend", [{"locks": said, "deadline_kept": True,
                                                   "party": b"p" * 16, "trace": "t" * 55}]]
                self.assertLessEqual(objects(message), 65536)
                self.assertLessEqual(len(pack(message)), 4 << 20)

    async def test_locks_stay_held_while_the_cluster_allows_shorter_leases(self):
        refused = {"locks": [{"error": {"code": "too_long", "message": "no", "limit_ms": 600}}]}

        def extend(params):
            (lock,) = params["locks"]
            return refused if lock["lease_ms"] > 600 else {"locks": [{"valid_ms": 590, "token": 5}]}

        node = Script(acquire=lambda p: dict(GRANT, valid_ms=900), extend=extend)
        client = await self.client(node)
        lock = await client.lock("k", lease=1)
        await self.until(lambda: len(node.of("extend")) >= 4 or lock.error)
        self.assertEqual([p["locks"][0]["lease_ms"] for p in node.of("extend")][:4],
                         [1000, 600, 600, 600])
        self.assertTrue(lock.held and lock.error is None)
        self.assertEqual((lock._lease, lock._warn), (600 * clock.MS, 100 * clock.MS))

    async def test_a_lock_that_is_denied_ends_no_other_one(self):
        def extend(params):
            if b"k3" in [bytes(lock["key"]) for lock in params["locks"]]:
                return Refuse("denied")
            return {"locks": [{"valid_ms": 900, "token": 5} for _ in params["locks"]]}

        node = Script(acquire=lambda p: dict(GRANT, valid_ms=900), extend=extend)
        client = await self.client(node)
        locks = [await client.lock("k%d" % i, lease=1) for i in range(7)]
        self.assertIsInstance(await locks.pop(3).wait_lost(), pawl.DeniedError)
        asked = len(node.of("extend"))
        await self.until(lambda: len(node.of("extend")) >= asked + 8)
        self.assertEqual([lock.error for lock in locks], [None] * 6)
        self.assertEqual(len(node.of("extend")[-1]["locks"]), 6)

    async def test_a_refusal_that_names_no_shorter_lease_is_an_ordinary_failure(self):
        for limit in ({}, {"limit_ms": 0}, {"limit_ms": 5000}):
            node = Script(acquire=lambda p: dict(GRANT, valid_ms=400),
                          extend=lambda p: Refuse("too_long", **limit))
            client = await self.client(node)
            lock = await client.lock("k", lease=0.5, warn=0.1)
            self.assertIsInstance(await lock.wait_lost(), pawl.TooLongError)


if __name__ == "__main__":
    unittest.main()
