"""Tests watches against three real nodes."""

import asyncio
import unittest
import unittest.mock

import pawl
import pawl.aio
from nodes import AsyncCase, Case


class WatchCase(AsyncCase):
    async def asyncSetUp(self):
        self.client = pawl.aio.connect(self.endpoints[0])  # All events come from this node.
        self.addAsyncCleanup(self.client.close)
        self.other = pawl.aio.connect(self.endpoints)
        self.addAsyncCleanup(self.other.close)

    async def take(self, watch, count):
        return [await watch.get(10) for _ in range(count)]


class Watches(WatchCase):
    async def test_every_change_of_a_key_is_told_in_order(self):
        async with self.client.watch(self.key) as watch:
            self.assertEqual([e.type for e in await self.take(watch, 1)], ["current"])
            async with self.other.lock(self.key, value="1", owner="me") as lock:
                await lock.update("2")
                await lock.downgrade()
                token = lock.token
            events = await self.take(watch, 4)
        self.assertEqual([e.type for e in events], ["acquired", "updated", "downgraded",
                                                    "released"])
        self.assertEqual({(e.key.decode(), e.entry.token, e.entry.owner) for e in events},
                         {(self.key, token, b"me")})
        self.assertEqual([e.entry.value for e in events[:2]], [b"1", b"2"])
        self.assertEqual([e.entry.held for e in events], [True, True, True, False])

    async def test_the_present_holders_are_told_first(self):
        keys = [self.key + "/%d" % i for i in range(3)]
        async with self.other.locks(keys):
            async with self.client.watch(prefix=self.key) as watch:
                events = await self.take(watch, 4)
                self.assertEqual([(e.type, e.key.decode()) for e in events],
                                 [("present", key) for key in keys] + [("current", "")])
                self.assertTrue(watch.current)
        async with self.other.lock(self.key):
            async with self.client.watch(self.key) as watch:
                self.assertEqual([e.type for e in await self.take(watch, 2)],
                                 ["present", "current"])

    async def test_a_watch_goes_on_where_another_one_ended(self):
        async with self.client.watch(self.key) as watch:
            since = (await watch.get(10)).position
        async with self.other.lock(self.key):
            pass
        async with self.client.watch(self.key, since=since) as watch:
            self.assertEqual([e.type for e in await self.take(watch, 2)], ["acquired", "released"])

    async def test_a_position_that_nobody_knows_is_an_overflow_and_the_present_state(self):
        async with self.other.lock(self.key):
            async with self.client.watch(self.key, since=b"\x01" * 16) as watch:
                self.assertEqual([e.type for e in await self.take(watch, 3)],
                                 ["overflow", "present", "current"])

    async def test_nothing_is_missed_when_the_connection_breaks(self):
        async with self.client.watch(self.key) as watch:
            await watch.get(10)
            for _ in range(3):
                await self.until_so(lambda: asyncio.sleep(0, self.client._failover.connection))
                self.client._failover.link.fail(pawl.UnreachableError("cut by the test"))
                async with self.other.lock(self.key):
                    pass
            self.assertEqual([e.type for e in await self.take(watch, 6)],
                             ["acquired", "released"] * 3)

    async def test_a_program_that_reads_too_slowly_gets_an_overflow_and_the_present_state(self):
        with unittest.mock.patch("pawl._watch.watch.EVENTS_MAX", 10):
            async with self.client.watch(self.key) as watch:
                await watch.get(10)
                for _ in range(8):
                    async with self.other.lock(self.key):
                        pass
                lock = await self.other.lock(self.key)
                seen = []
                while not seen or seen[-1].type != "current":
                    seen.append(await watch.get(10))
                at = [e.type for e in seen].index("overflow")
                self.assertEqual([e.type for e in seen[at:]], ["overflow", "present", "current"])
                self.assertEqual(seen[-2].entry.token, lock.token)
                await lock.release()
                event = await watch.get(10)
                if event.type == "acquired":
                    # It came after the present state, which had it already.
                    self.assertEqual(event.entry.token, lock.token)
                    event = await watch.get(10)
                self.assertEqual(event.type, "released")

    async def test_a_lease_that_runs_out_and_a_lock_that_is_broken_are_told_apart(self):
        async with self.client.watch(self.key) as watch:
            await watch.get(10)
            over = await self.other.lock(self.key, lease=0.2, renew=False)
            self.assertEqual([e.type for e in await self.take(watch, 2)], ["acquired", "expired"])
            self.assertFalse(over.held)
            lock = await self.other.lock(self.key)
            await self.other.break_lock(self.key, lock.token, now=True)
            self.assertEqual([e.type for e in await self.take(watch, 2)], ["acquired", "lost"])

    async def test_closing_ends_the_iteration(self):
        watch = self.client.watch(self.key)

        async def collect():
            return [event.type async for event in watch]

        task = asyncio.create_task(collect())
        await self.until_so(lambda: asyncio.sleep(0, watch.current))
        await watch.close()
        self.assertEqual(await asyncio.wait_for(task, 10), ["current"])

    async def test_a_watch_that_the_node_refuses_ends_with_the_reason(self):
        async with self.client.watch(b"k" * 600) as watch:
            with self.assertRaises(pawl.TooLargeError):
                await watch.get(10)


class Blocking(Case):
    def test_events_are_iterated(self):
        with pawl.connect(self.endpoints) as client, client.watch(self.key) as watch:
            self.assertEqual(next(watch).type, "current")
            with client.lock(self.key):
                self.assertEqual(next(watch).type, "acquired")
            self.assertEqual(watch.get(timeout=10).type, "released")
            with self.assertRaises(pawl.WaitTimeoutError):
                watch.get(timeout=0.05)
            watch.close()
            self.assertEqual(list(watch), [])


if __name__ == "__main__":
    unittest.main()
