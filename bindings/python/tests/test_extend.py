"""Tests what a program does with a lock just before a write: it extends the lock at once, and asks
whether the write may be sent."""

import asyncio
import unittest

import pawl
from nodes import AsyncCase, Case
from scripted import GRANT, Refuse, Script, ScriptedCase

EXTENDED = {"lock_id": "0" * 32, "token": 5, "valid_ms": 9900}


def extends(*outcomes):
    """A node whose extensions have these outcomes, one after the other."""
    said = iter(outcomes)
    return Script(acquire=lambda p: GRANT, extend=lambda p: {"locks": [next(said)]})


class Late(Script):
    """A node that keeps where a silent answer belongs."""

    def __init__(self, **answers):
        super().__init__(**answers)
        self.kept = []

    def answer(self, writer, msgid, said):
        if said == self.SILENT:
            self.kept.append((writer, msgid))
        super().answer(writer, msgid, said)


class Extending(ScriptedCase):
    async def test_an_extension_counts_from_its_sending_and_may_be_for_longer(self):
        node = extends({**EXTENDED, "token": 6, "valid_ms": 19900})
        lock = await (await self.client(node)).lock("k", lease=10)
        before = asyncio.get_running_loop().time()
        await lock.extend(20)
        spent = asyncio.get_running_loop().time() - before
        self.assertTrue(19.9 - spent <= lock.valid <= 19.9, lock.valid)
        self.assertEqual(lock.token, 6)
        self.assertEqual([p["locks"][0]["lease_ms"] for p in node.of("extend")], [20000])

    async def test_a_lease_that_the_cluster_does_not_allow_leaves_the_lock_as_it_was(self):
        node = extends({"lock_id": "0" * 32, "error": {"code": "too_long", "limit_ms": 60000}},
                       EXTENDED)
        lock = await (await self.client(node)).lock("k", lease=10)
        with self.assertRaises(pawl.TooLongError) as caught:
            await lock.extend(100)
        self.assertEqual(caught.exception.limit, 60)
        lock.check()
        await lock.extend()
        self.assertEqual([p["locks"][0]["lease_ms"] for p in node.of("extend")], [100000, 10000])

    async def test_an_extension_that_finds_the_lock_lost_raises_the_cause_and_tells_it_once(self):
        told = []
        node = extends({"lock_id": "0" * 32, "error": {"code": "lost"}})
        lock = await (await self.client(node)).lock(
            "k", lease=10, on_lost=lambda lock, error: told.append(error))
        with self.assertRaises(pawl.LostError):
            await lock.extend()
        self.assertEqual(lock.valid, 0)
        with self.assertRaises(pawl.LostError):
            await lock.extend()
        await asyncio.sleep(0)
        self.assertEqual(len(told), 1)

    async def test_an_extension_that_fails_for_now_leaves_the_lock_held(self):
        node = extends({"lock_id": "0" * 32, "error": {"code": "unsure"}}, EXTENDED)
        lock = await (await self.client(node)).lock("k", lease=10)
        with self.assertRaises(pawl.UnsureError):
            await lock.extend()
        lock.check()
        self.assertGreater(lock.valid, 5)

    async def test_a_shortening_overtakes_an_extension_whose_answer_counts_no_more(self):
        node = Late(acquire=lambda p: GRANT, extend=lambda p: {"valid_ms": 1900, "token": 5}
                    if "shorten" in p else Script.SILENT)
        lock = await (await self.client(node)).lock("k", lease=10)
        task = asyncio.ensure_future(lock.extend(20))
        await self.until(lambda: node.kept)
        await lock.shorten(2)
        node.answer(*node.kept[0], {"locks": [{**EXTENDED, "valid_ms": 19900}]})
        with self.assertRaises(pawl.BusyError):
            await task
        self.assertTrue(lock.held)
        self.assertLess(lock.valid, 2)
        await lock.release()

    async def test_a_lock_that_is_not_held_is_not_extended(self):
        node = Script(acquire=lambda p: GRANT)
        lock = await (await self.client(node)).lock("k", lease=10)
        await lock.release()
        with self.assertRaises(pawl.LostError):
            await lock.extend()
        for lease in (0, -1, "10"):
            with self.assertRaises((ValueError, TypeError)):
                await lock.extend(lease)
        self.assertEqual(node.of("extend"), [])


class Gates(ScriptedCase):
    async def test_a_write_gets_the_token_while_there_is_time_for_it(self):
        lock = await (await self.client(Script(acquire=lambda p: GRANT))).lock("k", lease=10)
        self.assertEqual((lock.gate(), lock.gate(5)), (5, 5))
        with self.assertRaisesRegex(pawl.LostError, "the write needs 10000 ms"):
            lock.gate(10)
        await lock.release()
        with self.assertRaises(pawl.LostError):
            lock.gate()

    async def test_no_write_is_let_through_once_the_loss_was_told(self):
        node = Script(acquire=lambda p: {**GRANT, "valid_ms": 600},
                      extend=lambda p: Refuse("no_quorum"))
        lock = await (await self.client(node)).lock("k", lease=0.6, warn=0.3)
        self.assertIsInstance(await lock.wait_lost(), pawl.PawlError)
        self.assertGreater(lock.valid, 0)
        with self.assertRaises(pawl.PawlError):
            lock.gate()


class Parties(ScriptedCase):
    async def test_a_lock_may_be_for_a_party_of_its_own(self):
        node = Script(acquire=lambda p: GRANT)
        client = await self.client(node)
        await client.lock("k", party=b"p" * 16)
        self.assertEqual(node.of("acquire")[0]["party"], b"p" * 16)
        for party in (b"p", "p" * 16):
            with self.assertRaisesRegex(ValueError, "party: give 16 bytes"):
                client.lock("k", party=party)


class Blocking(Case):
    def test_a_lock_is_extended_at_once_and_lets_writes_through(self):
        with pawl.connect(self.endpoints) as client:
            with client.lock(self.key, lease=2, party=b"p" * 16) as lock:
                lock.extend(20)
                self.assertGreater(lock.valid, 15)
                self.assertEqual(lock.gate(10), lock.token)
            with self.assertRaises(pawl.LostError):
                lock.gate()


class RealNodes(AsyncCase):
    async def test_a_lock_that_ends_with_the_connection_is_extended_at_once(self):
        async with pawl.aio.connect(self.endpoints) as client:
            async with client.lock(self.key, lease=2, release_on_disconnect=True) as lock:
                await lock.extend(20)
                self.assertGreater(lock.valid, 15)


if __name__ == "__main__":
    unittest.main()
