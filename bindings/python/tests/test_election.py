"""Tests elections against three real nodes."""

import asyncio
import unittest

import pawl
import pawl.aio
from nodes import AsyncCase, Case, InBackground


class Elections(AsyncCase):
    def candidate(self, name, **options):
        client = pawl.aio.connect(self.endpoints)
        self.addAsyncCleanup(client.close)
        return client.election(self.key, candidate=name, **options)

    async def waits(self, election, name):
        async def there():
            return any(w.owner == name.encode() for w in await election._client.waiters(self.key))

        await self.until_so(there, name)

    async def test_one_leads_and_the_next_follows_when_it_resigns(self):
        a, b = self.candidate("a", value="at a"), self.candidate("b", value="at b")
        first = await a.campaign()
        self.assertEqual((first.leading, (await b.leader()).owner, (await b.leader()).value),
                         (True, "a", b"at a"))
        task = asyncio.create_task(b.campaign().acquire())
        await self.waits(a, "b")
        await first.resign()
        self.assertFalse(first.leading)
        second = await asyncio.wait_for(task, 10)
        self.assertGreater(second.token, first.token)
        self.assertEqual((await a.leader()).owner, "b")
        await second.resign()
        self.assertIsNone(await a.leader())

    async def test_observers_see_every_leader_and_every_proclamation_in_order(self):
        a, b = self.candidate("a", value="1"), self.candidate("b", value="3")
        async with self.candidate("x").observe() as leaders:
            self.assertIsNone(await leaders.change(10))
            leader = await a.campaign()
            await leader.proclaim("2")
            task = asyncio.create_task(b.campaign().acquire())
            await self.waits(a, "b")
            await leader.resign()
            await (await task).resign()
            seen = []
            while seen[-2:] != [("b", b"3"), None]:
                change = await leaders.change(10)
                seen.append(change and (change.owner, change.value))
            self.assertEqual([s for s in seen if s], [("a", b"1"), ("a", b"2"), ("b", b"3")])

    async def test_the_present_leader_is_told_first(self):
        a = self.candidate("a")
        async with a.campaign():
            async with self.candidate("x").observe() as leaders:
                self.assertEqual((await leaders.change(10)).owner, "a")

    async def test_a_leader_hands_over_to_the_candidate_that_it_names(self):
        a, b, c = map(self.candidate, "abc")
        leader = await a.campaign()
        tasks = []
        for one, name in ((b, "b"), (c, "c")):
            tasks.append(asyncio.create_task(one.campaign().acquire()))
            await self.waits(a, name)
        with self.assertRaises(pawl.NotFoundError):
            await leader.transfer("nobody")
        self.assertTrue(leader.leading)
        await leader.transfer("c")
        second = await asyncio.wait_for(tasks[1], 10)
        self.assertEqual((await a.leader()).owner, "c")
        await second.resign()
        await (await tasks[0]).resign()

    async def test_a_leader_that_is_asked_lets_go_after_its_block_is_over(self):
        a, b = self.candidate("a"), self.candidate("b")
        entered, ended = asyncio.Event(), []

        async def lead():
            async with a.campaign() as leadership:
                entered.set()
                try:
                    await asyncio.sleep(20)
                finally:
                    ended.append((leadership.held, leadership.yielding, leadership.leading))

        leading = asyncio.create_task(lead())
        await entered.wait()
        task = asyncio.create_task(b.campaign().acquire())
        await self.waits(a, "b")
        await self.until_so(lambda: b.ask(to="b"))
        with self.assertRaises(pawl.YieldError):
            await asyncio.wait_for(leading, 10)
        self.assertEqual(ended, [(True, True, False)])
        await (await asyncio.wait_for(task, 10)).resign()

    async def test_a_candidate_takes_over_only_from_a_leader_with_a_lower_priority(self):
        a = self.candidate("a", priority=5)
        low, high = (self.candidate("low", priority=4, takeover=True),
                     self.candidate("high", priority=6, takeover=True))
        leadership = await a.campaign()
        tasks = [asyncio.create_task(low.campaign().acquire())]
        await self.waits(a, "low")
        self.assertTrue(leadership.leading)
        tasks.append(asyncio.create_task(high.campaign().acquire()))

        async def yields():
            return leadership.yielding

        await self.until_so(yields)
        self.assertTrue(leadership.held)  # The leader itself decides when it has stopped.
        await leadership.resign()
        self.assertTrue((await asyncio.wait_for(tasks[1], 10)).leading)
        await tasks[1].result().resign()
        await (await asyncio.wait_for(tasks[0], 10)).resign()

    async def test_the_program_may_stay_when_it_is_asked(self):
        asked = []
        a = self.candidate("a", on_asked=lambda leadership, what: asked.append(what.by) or False)
        b = self.candidate("b", priority=9)
        leadership = await a.campaign()
        task = asyncio.create_task(b.campaign().acquire())
        await self.waits(a, "b")

        async def heard():
            await b.ask()
            return asked

        await self.until_so(heard)
        self.assertTrue(leadership.leading)
        await leadership.resign()
        await (await task).resign()

    async def test_a_campaign_ends_when_its_time_is_over(self):
        leadership = await self.candidate("a").campaign()
        with self.assertRaises(pawl.WaitTimeoutError):
            await self.candidate("b").campaign(0.1)
        with self.assertRaises(pawl.HeldError):
            await self.candidate("b").campaign(0)
        await leadership.resign()


class Blocking(Case):
    def test_an_election_is_won_observed_and_handed_over(self):
        with pawl.connect(self.endpoints) as one, pawl.connect(self.endpoints) as two:
            a, b = (one.election(self.key, candidate="a", value="x"),
                    two.election(self.key, candidate="b"))
            with b.observe() as leaders:
                self.assertIsNone(next(leaders))
                with a.campaign() as leadership:
                    self.assertEqual((a.leader(), leadership.leading),
                                     (pawl.Leader("a", b"x", leadership.token, "", *self.me()),
                                      True))
                    self.assertEqual(leaders.change(10).owner, "a")
                    leadership.proclaim("y")
                    self.assertEqual(leaders.change(10).value, b"y")
                    waiting = InBackground(b.campaign)
                    self.until_waiting(one, self.key)
                    self.until(lambda: b.ask(to="b") and leadership.yielding)
                    self.assertTrue(leadership.held and not leadership.leading)
                second = waiting.result()
                self.assertTrue(second.leading)
                second.resign()

    @staticmethod
    def me():
        import os
        import socket

        return socket.gethostname(), os.getpid()


if __name__ == "__main__":
    unittest.main()
