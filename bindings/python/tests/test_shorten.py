"""Tests that a lease is shortened: the client trusts the lock for less before any node hears of it,
and no answer to an earlier request changes that."""

import asyncio
import unittest

import pawl
from nodes import AsyncCase, Case
from pawl._env import clock
from scripted import GRANT, Refuse, Script, ScriptedCase

SHORT = {"valid_ms": 1900, "token": 5}


def renewals(valid_ms):
    """Answers shortenings, and requests to extend any number of locks."""
    return lambda p: SHORT if "shorten" in p else {
        "locks": [{"valid_ms": valid_ms, "token": 5} for _ in p["locks"]]}


def shortenings(node):
    return [p for p in node.of("extend") if "shorten" in p]


def items(node):
    """Returns what renewals said of the first of their locks, with their deadline_kept."""
    return [{**p["locks"][0], "deadline_kept": p["deadline_kept"]} for p in node.of("extend")
            if "locks" in p]


class Shortening(ScriptedCase):
    async def lock(self, node, **options):
        self.it = await self.client(node)
        return await self.it.lock("k", **{"lease": 10, **options})

    async def test_trust_falls_before_a_node_hears_of_it_and_is_over_whatever_is_answered(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: Script.SILENT)
        lock = await self.lock(node)
        task = asyncio.ensure_future(lock.shorten(2))
        await asyncio.sleep(0)
        self.assertTrue(1 < lock.valid < 1.8)
        await self.until(lambda: shortenings(node))
        said = shortenings(node)[0]
        self.assertEqual([said[n] for n in ("lease_ms", "order", "shorten", "deadline_kept")],
                         [2000, 1, True, True])
        with self.assertRaises(pawl.PawlError):
            await task
        self.assertFalse(lock.held)

    async def test_what_is_asked_afterwards_names_the_greatest_order(self):
        node = Script(acquire=lambda p: GRANT, extend=renewals(590))
        lock = await self.lock(node)
        await lock.shorten(2)
        await lock.shorten(0.6)
        await self.until(lambda: items(node))
        self.assertEqual([p["order"] for p in shortenings(node)], [1, 2])
        item = items(node)[0]
        self.assertEqual((item["order"], item["lease_ms"], "shorten" in item), (2, 600, False))

    async def test_the_late_answer_of_an_extension_makes_nothing_later(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: SHORT if "shorten" in p
                      else Script.LATER)
        lock = await self.lock(node)
        extending = asyncio.ensure_future(lock.extend(20))
        await self.until(lambda: node.late)
        await lock.shorten(2)
        node.answer_late({"locks": [{"valid_ms": 19900, "token": 9}]})
        with self.assertRaisesRegex(pawl.UnsureError, "shortened meanwhile"):
            await extending
        self.assertTrue(1 < lock.valid < 2)
        self.assertEqual((lock.error, lock._lease), (None, 2 * clock.SECOND))

    async def test_the_late_answer_of_a_renewal_makes_nothing_later(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: SHORT if "shorten" in p
                      else Script.LATER)
        lock = await self.lock(node)
        for outcome in ({"valid_ms": 9900, "token": 9}, {"error": {"code": "lost"}}):
            self.it._keeper._schedule(lock, True)
            self.it._keeper._renew_due(clock.now())
            await self.until(lambda: node.late)
            await lock.shorten(2)
            node.answer_late({"locks": [outcome]})
            await self.it.ping()  # Its answer comes after that one.
            self.assertTrue(1 < lock.valid < 2 and lock.error is None, outcome)
            self.assertIsNotNone(lock._renew_at)

    async def test_a_lock_that_no_node_can_shorten_stays_held(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: Refuse("bad_request", field="order")
                      if "order" in p or "order" in p["locks"][0]
                      else {"locks": [{"valid_ms": 1900, "token": 5}]})
        lock = await self.lock(node)
        with self.assertRaises(pawl.BadRequestError):
            await lock.shorten(2)
        await self.until(lambda: lock.valid > 1.8)

    async def test_after_an_error_the_lock_is_renewed_under_the_order(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: Refuse("no_quorum")
                      if "shorten" in p else {"locks": [{"valid_ms": 1900, "token": 5}]})
        lock = await self.lock(node)
        with self.assertRaises(pawl.NoQuorumError):
            await lock.shorten(2)
        await self.until(lambda: lock.valid > 1.8)
        self.assertEqual(items(node)[0]["order"], 1)

    async def test_a_shortening_that_is_canceled_leaves_the_lock_held_and_renewed(self):
        node = Script(acquire=lambda p: GRANT, extend=lambda p: Script.SILENT if "shorten" in p
                      else {"locks": [{"valid_ms": 1900, "token": 5}]})
        lock = await self.lock(node)
        task = asyncio.ensure_future(lock.shorten(2))
        await self.until(lambda: shortenings(node))
        task.cancel()
        await self.until(lambda: lock.valid > 1.8)
        self.assertEqual(items(node)[0]["order"], 1)

    async def test_what_cannot_be_shortened_is_as_it_was(self):
        node = Script(acquire=lambda p: GRANT, transfer=lambda p: Script.SILENT)
        lock = await self.lock(node)
        for lease in (0, 10.001, -1):
            with self.assertRaises(ValueError):
                await lock.shorten(lease)
        lock._claiming = True
        with self.assertRaisesRegex(pawl.BusyError, "bound to another connection"):
            await lock.shorten(2)
        lock._claiming = False
        transfer = asyncio.ensure_future(lock.transfer("x"))
        await self.until(lambda: node.of("transfer"))
        with self.assertRaises(pawl.PawlError):
            await lock.shorten(2)
        transfer.cancel()
        self.assertEqual((node.of("extend"), lock._order), ([], 0))


class Bound(ScriptedCase):
    async def lock(self, *scripts):
        self.it = await self.client(*scripts, silence=0.2)
        return await self.it.lock("k", lease=10, release_on_disconnect=True)

    async def test_connections_and_shortenings_are_counted_together(self):
        one = Script(acquire=lambda p: GRANT, extend=renewals(9900))
        two = Script(extend=renewals(1900))
        lock = await self.lock(one, two)
        await lock.shorten(8)
        await lock.extend()
        said = shortenings(one)[0]
        self.assertEqual([said.get(n) for n in ("bond", "order", "deadline_kept", "shorten")],
                         [2, None, True, True])
        self.assertEqual([items(one)[0].get(n) for n in ("bond", "order", "deadline_kept")],
                         [2, None, True])
        one.writers[0].close()
        await self.until(lambda: lock._binding == 2)
        # Over the second connection, after one shortening.
        self.assertEqual([items(two)[0].get(n) for n in ("bond", "order", "deadline_kept")],
                         [3, None, True])
        await lock.shorten(5)
        self.assertEqual(shortenings(two)[0]["bond"], 4)
        self.assertTrue(lock.held and lock.error is None)

    async def test_a_shortened_lock_is_not_acquired_again_after_an_unsure_extension(self):
        answers = iter([{"locks": [{"error": {"code": "unsure"}}]}])
        one = Script(acquire=lambda p: GRANT, extend=renewals(9900))
        two = Script(extend=lambda p: next(answers, {"locks": [SHORT]}))
        lock = await self.lock(one, two)
        await lock.shorten(8)
        one.writers[0].close()
        await self.until(lambda: lock._binding == 2)
        self.assertEqual(len(items(two)), 2)
        self.assertEqual(two.of("acquire"), [])

    async def test_without_a_connection_nothing_is_shortened(self):
        one = Script(acquire=lambda p: GRANT, extend=renewals(9900))
        lock = await self.lock(one)
        self.it._failover.link.connection_lost(None)
        with self.assertRaises(pawl.PawlError):
            await lock.shorten(2)
        self.assertEqual((lock._order, lock._lease), (0, 10 * clock.SECOND))


class Sets(ScriptedCase):
    async def test_trust_in_all_of_them_falls_at_once_and_the_first_error_is_raised(self):
        def acquire(params):
            return {"valid_ms": 9900, "waited_ms": 0, "locks": [
                {**GRANT, "key": one["key"]} for one in params["locks"]]}

        node = Script(acquire=acquire, extend=lambda p: SHORT if p.get("key") == b"a"
                      else Refuse("no_quorum") if "shorten" in p
                      else {"locks": [{"valid_ms": 1900, "token": 5} for _ in p["locks"]]})
        client = await self.client(node)
        locks = await client.locks(["a", "b"], lease=10)
        with self.assertRaises(ValueError):
            await locks.shorten(20)
        task = asyncio.ensure_future(locks.shorten(2))
        await asyncio.sleep(0)
        self.assertTrue(all(1 < lock.valid < 1.8 for lock in locks))
        with self.assertRaises(pawl.NoQuorumError):
            await task
        self.assertEqual([(p["key"], p["order"]) for p in shortenings(node)],
                         [(b"a", 1), (b"b", 1)])
        await self.until(lambda: locks.valid > 1.8)
        self.assertTrue(locks.held)


class RealNodes(AsyncCase):
    async def test_masters_end_a_shortened_lease_earlier(self):
        async with pawl.aio.connect(self.endpoints) as client:
            for options in ({}, {"release_on_disconnect": True}, {"permits": 2, "of": 3}):
                async with client.lock(self.key, lease=30, **options) as lock:
                    for lease in (20, 2):
                        await lock.shorten(lease)
                        self.assertTrue(lease / 2 < lock.valid < lease)
                        seen = await client.get(self.key, quorum=True)
                        self.assertLess(seen.valid_at_least, lease)
                    await lock.extend(10)
                    self.assertGreater(lock.valid, 9)

    async def test_a_shortened_lock_still_ends_with_its_connection(self):
        holder, other = (pawl.aio.connect(self.endpoints) for _ in range(2))
        self.addAsyncCleanup(other.close)
        lock = await holder.lock(self.key, lease=50, release_on_disconnect=True)
        await lock.shorten(40)
        await holder.close(release=False)
        await (await other.lock(self.key, wait=10)).release()


class Blocking(Case):
    def test_sets_are_shortened(self):
        with pawl.connect(self.endpoints) as client:
            with client.locks([self.key, self.key + "/2"], lease=30) as locks:
                locks.shorten(2)
                self.assertLess(locks.valid, 2)
                self.assertLess(client.get(self.key + "/2", quorum=True).valid_at_least, 2)


if __name__ == "__main__":
    unittest.main()
