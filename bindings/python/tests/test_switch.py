"""Tests, with scripted nodes, that a client leaves a silent node within milliseconds, and that the
answers of that node still count."""

import asyncio
import unittest
from unittest import mock

import pawl
from pawl._link import failover
from pawl._link.patience import Patience
from scripted import GRANT, Refuse, Script, ScriptedCase


class Slow(Script):
    """Answers what it is asked after `hold` when `let_go` is called."""

    holds = False

    def answer(self, writer, msgid, said):
        if self.holds:
            self.kept.append((writer, msgid, said))
        else:
            super().answer(writer, msgid, said)

    def hold(self):
        self.holds, self.kept = True, []

    def let_go(self):
        self.holds = False
        for kept in self.kept:
            self.answer(*kept)


def node(**answers):
    return Slow(**dict({"get": lambda p: {"held": False}, "acquire": lambda p: GRANT,
                        "extend": lambda p: Refuse("no_quorum")}, **answers))


class Switch(ScriptedCase):
    async def begin(self, *scripts, **options):
        """Returns a client that knows how fast the first node answers. The first node hangs."""
        client = await self.client(*scripts, **dict({"silence": 20}, **options))
        for _ in range(8):
            await client.get("k")
        scripts[0].hold()
        return client

    async def test_a_node_that_stops_is_left_long_before_the_whole_silence_is_over(self):
        one, two = node(), node()
        client = await self.begin(one, two)
        lock = await client.lock("k", wait=0)
        self.assertEqual((client.endpoint, len(one.of("ping"))), (two.endpoint, 1))
        self.assertEqual([p["lock_id"] for p in one.of("acquire") + two.of("acquire")],
                         [lock.lock_id] * 2)
        self.assertEqual(one.ended, 0)  # The client still reads the connection.

    async def test_in_the_calm_case_there_is_one_connection_and_no_ping(self):
        one, two = node(), node()
        client = await self.begin(one, two)
        one.let_go()
        for _ in range(20):
            await client.get("k")
            await asyncio.sleep(0.005)
        self.assertEqual((one.of("ping"), two.writers), ([], []))

    async def test_a_node_that_answers_pings_is_not_left(self):
        one, two = node(list=lambda p: Script.SILENT), node()
        client = await self.begin(one, two, timeout=0.5)
        one.let_go()
        with self.assertRaises(pawl.WaitTimeoutError):
            await client.list()
        self.assertGreater(len(one.of("ping")), 1)
        self.assertEqual(client.endpoint, one.endpoint)

    async def test_the_first_answer_counts_wherever_it_comes_from(self):
        one, two = node(), node(acquire=lambda p: Script.SILENT)
        client = await self.begin(one, two)
        asked = asyncio.ensure_future(client.lock("k", wait=0))
        await self.until(lambda: two.of("acquire"))
        one.let_go()
        lock = await asked
        self.assertTrue(lock.held)
        await lock.release()
        self.assertEqual((one.of("release"), len(two.of("release"))), ([], 1))

    async def test_a_refusal_of_the_node_that_was_left_does_not_count(self):
        one, two = (node(acquire=lambda p: Refuse("no_quorum")),
                    node(acquire=lambda p: Script.SILENT))
        client = await self.begin(one, two)
        asked = asyncio.ensure_future(client.lock("k", wait=0))
        await self.until(lambda: two.of("acquire"))
        one.let_go()
        await client.get("k")
        self.assertFalse(asked.done())
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    async def test_an_update_is_not_repeated_and_may_be_answered_late(self):
        one = node(update=lambda p: {"value_seq": b"x" * 20})
        two = node(extend=lambda p: {"locks": [{"valid_ms": 9900, "token": 5}]})
        client = await self.begin(one, two)
        one.let_go()
        lock = await client.lock("k", wait=0, lease=60)
        one.hold()
        updating = asyncio.ensure_future(lock.update("v"))
        await self.until(lambda: client.endpoint == two.endpoint)
        self.assertFalse(updating.done())
        one.let_go()
        await updating
        self.assertEqual(two.of("update"), [])

    async def test_a_waiting_request_moves_to_the_next_node_with_the_rest_of_its_wait(self):
        one, two = node(acquire=lambda p: Script.SILENT), node()
        client = await self.begin(one, two, silence=2)
        one.let_go()
        asked = asyncio.ensure_future(client.lock("k", wait=60))
        await self.until(lambda: len(one.of("ping")) > 1)
        self.assertEqual(two.writers, [])
        one.hold()
        self.assertTrue((await asked).held)
        self.assertLess(two.of("acquire")[0]["wait_ms"], 60000)

    async def test_a_lock_is_bound_to_the_new_connection_before_the_old_one_is_closed(self):
        bound = []
        one = node()
        two = node(extend=lambda p: bound[0] if bound else Refuse("no_quorum"))
        client = await self.begin(one, two, silence=0.5)
        one.let_go()
        lock = await client.lock("k", wait=0, lease=6, release_on_disconnect=True)
        one.hold()
        await client.get("k")
        await self.until(lambda: len(two.of("extend")) > 2)
        self.assertEqual((one.ended, two.of("extend")[0]["locks"][0]["bond"]), (0, 2))
        bound.append({"locks": [{"valid_ms": 5900, "token": 5}]})
        await self.until(lambda: one.ended)
        self.assertTrue(lock.held)

    async def test_a_transfer_is_lost_with_its_own_connection_only(self):
        one = node()
        two = node(transfer=lambda p: Script.SILENT)
        client = await self.begin(one, two, silence=0.5)
        await client.get("k")
        self.assertEqual((client.endpoint, one.ended), (two.endpoint, 0))
        lock = await client.lock("k", wait=0, lease=60, release_on_disconnect=True)
        transfer = asyncio.ensure_future(lock.transfer("b"))
        await self.until(lambda: client._failover._old is None)
        self.assertIsNone(lock.error)
        transfer.cancel()
        await asyncio.gather(transfer, return_exceptions=True)

    async def test_requests_move_to_the_next_node_in_the_order_in_which_they_were_sent(self):
        one = node(get=lambda p: Refuse("no_quorum") if p["key"] == b"a" else Script.SILENT)
        two = node()
        client = await self.client(one, two)
        await asyncio.gather(*(client.get(key) for key in "abc"))
        self.assertEqual([p["key"] for p in two.of("get")], [b"a", b"b", b"c"])

    async def test_the_silence_goes_on_while_requests_give_up(self):
        """Each request gives up before the alarm, and then nothing may be under way."""
        one = node()
        client = await self.begin(one, silence=0.4, timeout=0.19)
        for _ in range(40):
            with self.assertRaises(pawl.PawlError):
                await client.get("k")
            if len(one.writers) > 1:
                return
        self.fail("the client stays")

    async def test_a_client_begins_by_chance_and_returns_only_if_that_is_wanted(self):
        with mock.patch.object(failover, "RETURN_FIRST", 0.05):
            one, two = node(), node()
            client = await self.begin(one, two)
            await client.get("k")
            self.assertEqual(client.endpoint, two.endpoint)
            one.let_go()
            await self.until(lambda: client.endpoint == one.endpoint)
        found = set()
        for _ in range(64):
            some = pawl.aio.connect("127.0.0.1:1,127.0.0.1:2")
            found.add(some._failover._rounds.present.port)
            await some.close()
        self.assertEqual(found, {1, 2})


class Decisions(unittest.TestCase):
    def setUp(self):
        self.patience = Patience()
        self.patience.answered(0.0001, 0)

    def test_the_time_is_four_times_the_slowest_recent_answer_within_bounds(self):
        self.assertEqual(self.patience.time(1), 0.006)
        self.patience.answered(0.01, 0)
        self.assertEqual(self.patience.time(1), 0.04)
        self.patience.answered(0.8, 0)
        self.assertEqual(self.patience.time(1), 1)
        for _ in range(400):
            self.patience.answered(0.0001, 0)
        self.assertEqual(self.patience.time(1), 0.006)

    def test_switches_double_the_time_and_answers_halve_it_once_a_second(self):
        self.patience.switched(1, 1)
        self.patience.too_short(1)
        self.assertEqual(self.patience.time(1), 0.024)
        for _ in range(100):
            self.patience.answered(0.0001, 1.001)
        self.assertEqual(self.patience.time(1), 0.024)
        self.patience.answered(0.0001, 2)
        self.assertEqual(self.patience.time(1), 0.012)

    def test_repeats_have_a_budget(self):
        self.patience.switched(5, 0)
        self.assertTrue(self.patience.allows)
        self.patience.switched(1, 0)
        self.assertFalse(self.patience.allows)
        for _ in range(10):
            self.patience.answered(0.0001, 0)
        self.assertTrue(self.patience.allows)

    def test_pauses_of_this_process_count_like_slow_answers(self):
        self.patience.late(0.01)
        self.assertEqual(self.patience.time(1), 0.04)
        self.patience.late(3600)
        self.assertEqual(self.patience.time(1), 0.4)


if __name__ == "__main__":
    unittest.main()
