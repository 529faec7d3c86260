"""Tests that a lock object which the program has dropped is released, and that nothing else counts
as dropped."""

import asyncio
import contextlib
import gc
import threading
import unittest
import warnings

import pawl
from nodes import Case
from scripted import GRANT, Refuse, Script, ScriptedCase


def grant(params):
    return {**GRANT, "locks": [{**GRANT, "key": one["key"]} for one in params.get("locks", ())]}


def node(**answers):
    return Script(**{"acquire": grant, "watch": lambda p: {"watch": 1, "position": b"p" * 16},
                     "unwatch": lambda p: {}, **answers})


class Dropped(ScriptedCase):
    async def asyncSetUp(self):
        self.node = node()
        self.client = await super().client(self.node)
        self.told = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: self.told.append(context["exception"]))

    def look(self):
        """Lets the client look for what was dropped, as it does every second."""
        gc.collect()
        self.client._keeper.release_dropped()

    async def kept(self, lock):
        self.look()
        await asyncio.sleep(0.01)
        self.assertEqual((lock.held, self.node.of("release")), (True, []))

    async def released(self, *keys):
        with self.assertLogs("pawl", "WARNING") as logged, self.assertWarns(ResourceWarning):
            self.look()
            await self.until(lambda: len(self.node.of("release")) >= len(keys))
        self.assertEqual(sorted(p["key"] for p in self.node.of("release")), sorted(keys))
        self.assertEqual(len(logged.output), len(keys))
        self.assertEqual(self.client._keeper.locks(), [])

    async def test_a_lock_is_released_under_its_lock_id_and_the_log_says_so(self):
        lock = await self.client.lock("k")
        lock_id = lock.lock_id
        await self.kept(lock)
        del lock
        await self.released(b"k")
        self.assertEqual(self.node.of("release")[0]["lock_id"], lock_id)

    async def test_the_client_looks_by_itself(self):
        await self.client.lock("k", lease=60)
        await self.until(lambda: self.node.of("release"))

    async def test_callbacks_and_the_watch_of_a_lock_do_not_keep_it(self):
        lock = await self.client.lock("k", on_lost=lambda lock, error: self.told.append(error),
                                      on_asked=lambda lock, asked: None)
        await self.until(lambda: self.node.of("watch"))
        await self.kept(lock)
        del lock
        await self.released(b"k")
        await self.until(lambda: self.node.of("unwatch"))
        self.assertEqual(self.told, [])

    async def test_a_leadership_is_released(self):
        leadership = await self.client.election("e").campaign()
        await self.until(lambda: self.node.of("watch"))
        await self.kept(leadership)
        del leadership
        await self.released(b"e")

    async def test_whoever_keeps_one_lock_of_a_set_keeps_the_set(self):
        one = (await self.client.locks(["a", "b"]))["a"]
        await self.kept(one)
        del one
        await self.released(b"a", b"b")

    async def test_a_block_keeps_its_lock(self):
        async with self.client.lock("k"):
            self.look()
            self.assertEqual(len(self.client._keeper.locks()), 1)
        self.node.asked.clear()
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.client.locks(["a", "b"]))
            self.look()
            self.assertEqual(len(self.client._keeper.locks()), 2)
        self.assertEqual(len(self.node.of("release")), 2)

    async def test_a_lock_that_was_released_lost_or_transferred_was_not_dropped(self):
        self.node.answers.update(extend=lambda p: {"locks": [{"error": {"code": "lost"}}]},
                                 transfer=lambda p: {"transferred": True})
        lock = await self.client.lock("released")
        await lock.release()
        lock = await self.client.lock("transferred")
        await lock.transfer("x")
        lock = await self.client.lock("lost")
        with self.assertRaises(pawl.LostError):
            await lock.extend()
        del lock
        with self.assertNoLogs("pawl"):
            self.look()
            await asyncio.sleep(0.01)
        self.assertEqual([p["key"] for p in self.node.of("release")], [b"released"])

    async def test_an_object_that_acquires_anew_is_not_confused_with_what_it_had(self):
        lock = self.client.lock("k")
        await lock
        await lock.release()
        await lock
        self.node.asked.clear()
        await self.kept(lock)

    async def test_filters_of_warnings_that_raise_disturb_nobody(self):
        lock = await self.client.lock("kept")
        await self.client.lock("k")
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            self.look()
            await self.until(lambda: self.told)
        self.assertIsInstance(self.told[0], ResourceWarning)
        self.assertIn("b'k'", str(self.told[0]))
        self.assertTrue(lock.held)

    async def test_closing_without_a_release_leaves_it_to_its_lease(self):
        await self.client.lock("k")
        gc.collect()
        await self.client.close(release=False)
        self.assertEqual(self.node.of("release"), [])

    async def test_closing_releases_it(self):
        await self.client.lock("k")
        gc.collect()
        await self.client.close()
        self.assertEqual(len(self.node.of("release")), 1)

    async def test_no_connection_is_retained_for_it(self):
        other = node(extend=lambda p: Refuse("no_quorum"))
        client = await super().client(self.node, other)
        lock = await client.lock("k", release_on_disconnect=True)
        client._failover.link.fail(pawl.NoQuorumError())
        await self.until(lambda: other.of("extend"))
        self.assertEqual(self.node.ended, 0)
        del lock
        gc.collect()
        await self.until(lambda: self.node.ended)


class Blocking(Case):
    def setUp(self):
        super().setUp()
        self.client, self.other = pawl.connect(self.endpoints), pawl.connect(self.endpoints)
        self.addCleanup(self.other.close)
        self.addCleanup(self.client.close)

    def held(self):
        return self.other.get(self.key, quorum=True).held

    def look(self):
        gc.collect()
        self.client._runner.do(self.client._client._keeper.release_dropped)

    def test_a_lock_is_released_whichever_thread_drops_it(self):
        held = [self.client.lock(self.key, lease=60, on_lost=lambda lock, error: None,
                                 on_asked=lambda lock, asked: None).acquire()]
        self.look()
        self.assertTrue(self.held())
        threading.Thread(target=held.clear).start()
        self.until(lambda: not self.held(), "the release")

    def test_a_leadership_is_released(self):
        leadership = self.client.election(self.key, lease=60).campaign(
            on_lost=lambda lock, error: None)
        self.look()
        self.assertTrue(leadership.leading and self.held())
        del leadership
        self.until(lambda: not self.held(), "the release")

    def test_whoever_keeps_one_lock_of_a_set_keeps_the_set(self):
        two, lost = self.key + "/2", []
        one = self.client.locks([self.key, two], lease=1.5,
                                on_lost=lambda lock, error: lost.append(lock.key)
                                ).acquire()[self.key]
        self.look()
        self.assertTrue(self.held())
        self.other.break_lock(two, self.other.get(two, quorum=True).token, now=True)
        self.until(lambda: lost, "the loss of the other lock")
        self.assertEqual((lost, one.held), ([two.encode()], True))
        del one
        gc.collect()
        self.until(lambda: not self.held(), "the release")

    def test_blocks_keep_their_locks(self):
        with self.client.lock(self.key, lease=60):
            self.look()
            self.assertTrue(self.held())
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.client.lock(self.key, lease=60))
            self.look()
            self.assertTrue(self.held())
        self.assertFalse(self.held())


if __name__ == "__main__":
    unittest.main()
