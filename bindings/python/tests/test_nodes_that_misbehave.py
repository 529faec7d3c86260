"""Tests a real client against scripted nodes that send wrong answers or none."""

import asyncio
import unittest

import pawl
from pawl._link.msgpack import pack
from scripted import GRANT, Refuse, Script, ScriptedCase


class Misbehaving(ScriptedCase):
    async def test_a_lock_that_comes_after_a_long_wait_is_asked_for_again_and_held(self):
        # The drift of the clocks over the wait has left nothing of the lease.
        late = dict(GRANT, valid_ms=0, waited_ms=3_000_000)
        node = Script(acquire=lambda p: GRANT if len(node.of("acquire")) > 1 else late)
        lock = await (await self.client(node)).lock("k", lease=10, wait=None)
        self.assertTrue(lock.held)
        first, second = node.of("acquire")
        self.assertEqual(first["lock_id"], second["lock_id"])
        self.assertEqual(node.of("release"), [])

    async def test_an_election_is_marked_where_the_node_knows_the_mark(self):
        knows = Script(acquire=lambda p: GRANT)
        earlier = Script(acquire=lambda p: Refuse("bad_request", field="election")
                         if "election" in p else GRANT)
        for script, asked in ((knows, [True]), (earlier, [True, None])):
            client = await self.client(script)
            leadership = await client.election("e").campaign()
            self.assertEqual([p.get("election") for p in script.of("acquire")], asked)
            await leadership.resign()
            await client.close()

    async def test_a_node_that_knows_no_order_costs_neither_the_shortened_lock_nor_others(self):
        def said(params):
            return {"locks": [{"valid_ms": item["lease_ms"] * 99 // 100, "token": 5}
                              for item in params["locks"]]}

        def refuses(params):
            return (Refuse("bad_request", field="locks")
                    if any("order" in item for item in params["locks"]) else said(params))
        grant = dict(GRANT, valid_ms=2900)
        earlier = Script(acquire=lambda p: grant, extend=refuses)
        now = Script(acquire=lambda p: grant, extend=lambda p: (
            {"valid_ms": 2900, "token": 5} if "shorten" in p
            else said(p) if len(earlier.of("extend")) > 1 else Script.HANG_UP))
        client = await self.client(now, earlier)
        locks = [await client.lock(key, lease=3) for key in ("k", "l")]
        await locks[0].shorten(3)
        # At the next renewal the client goes on at a node of release 0.2.0.
        await self.until(lambda: any("order" in item for params in now.of("extend")[2:]
                                     for item in params["locks"]))
        self.assertTrue(any(["order" not in item for item in params["locks"]] == [True]
                            for params in earlier.of("extend")))
        self.assertEqual([lock.held for lock in locks], [True, True])

    async def test_garbage_is_not_understood_as_an_answer(self):
        bad, good = Script(ping=lambda p: Script.GARBAGE), Script()
        self.assertEqual((await (await self.client(bad, good)).ping())["node"], "script")
        alone = await self.client(Script(ping=lambda p: Script.GARBAGE), timeout=0.2)
        with self.assertRaises(pawl.PawlError):
            await alone.ping()

    async def test_a_silent_node_is_pinged_and_then_left(self):
        deaf, good = (Script(get=lambda p: Script.SILENT, ping=lambda p: Script.SILENT),
                      Script(get=lambda p: {"held": False}))
        client = await self.client(deaf, good, silence=0.2)
        self.assertFalse((await client.get("k")).held)
        self.assertEqual([method for method, _ in deaf.asked], ["get", "ping"])

    async def test_a_node_that_takes_long_but_answers_pings_is_not_left(self):
        slow = Script(get=lambda p: Script.SILENT)
        client = await self.client(slow, Script(), silence=0.2, timeout=1)
        with self.assertRaises(pawl.WaitTimeoutError):
            await client.get("k")
        self.assertEqual(client.endpoint, slow.endpoint)

    async def test_an_acquire_is_repeated_at_the_next_node_with_the_rest_of_the_wait(self):
        bad, good = Script(acquire=lambda p: Script.HANG_UP), Script(acquire=lambda p: GRANT)
        lock = await (await self.client(bad, good)).lock("k", lease=10, wait=10)
        first, second = bad.of("acquire")[0], good.of("acquire")[0]
        self.assertEqual((first["lock_id"], second["lock_id"]), (lock.lock_id, lock.lock_id))
        self.assertLess(second["wait_ms"], first["wait_ms"])

    async def test_a_node_without_a_quorum_is_left_and_its_attempt_is_released(self):
        bad, good = Script(acquire=lambda p: Refuse("no_quorum")), Script(acquire=lambda p: GRANT)
        lock = await (await self.client(bad, good)).lock("k")
        spent = bad.of("acquire")[0]["lock_id"]
        self.assertNotEqual(lock.lock_id, spent)
        await self.until(lambda: [r for r in good.of("release") if r["lock_id"] == spent])

    async def test_a_request_that_may_wait_asks_until_a_node_serves_it(self):
        for code in ("no_quorum", "recovering"):
            for count in (1, 2):
                with self.subTest(code=code, nodes=count):
                    refusals = iter([Refuse(code)] * (2 * count + 1))
                    nodes = [Script(acquire=lambda p: next(refusals, GRANT))
                             for _ in range(count)]
                    lock = await (await self.client(*nodes)).lock("k", lease=10, wait=10)
                    asked = sum(len(node.of("acquire")) for node in nodes)
                    self.assertEqual((asked, lock.held), (2 * count + 2, True))

    async def test_the_refusal_is_the_answer_when_the_wait_is_over(self):
        node = Script(acquire=lambda p: Refuse("no_quorum"))
        with self.assertRaises(pawl.NoQuorumError):
            await (await self.client(node)).lock("k", wait=1)
        self.assertIn(len(node.of("acquire")), range(2, 7))

    async def test_if_no_node_has_a_quorum_that_is_the_answer(self):
        client = await self.client(Script(get=lambda p: Refuse("no_quorum", votes=1)),
                                   Script(get=lambda p: Refuse("no_quorum", votes=0)))
        with self.assertRaises(pawl.NoQuorumError) as caught:
            await client.get("k", quorum=True)
        self.assertEqual(caught.exception.details["votes"], 0)

    async def test_a_grant_that_is_over_when_it_arrives_is_released(self):
        for valid in (0, None, "x", -5):
            late = Script(acquire=lambda p, valid=valid: dict(GRANT, valid_ms=valid))
            with self.assertRaises(pawl.LostError):
                await (await self.client(late)).lock("k")
            await self.until(lambda: late.of("release"))

    async def test_a_lock_that_is_held_in_another_mode_under_the_lock_id_is_not_released(self):
        node = Script(acquire=lambda p: Refuse("mismatch", field="mode"))
        client = await self.client(node)
        with self.assertRaises(pawl.MismatchError):
            await client.call("acquire", key=b"k", lock_id="1" * 32, lease_ms=1000)
        await client.ping()  # This would come after a release.
        self.assertEqual(node.of("release"), [])

    async def test_an_error_that_leaves_open_whether_the_key_is_held_is_followed_by_a_release(self):
        broken = Script(acquire=lambda p: Refuse("unsure"))
        with self.assertRaises(pawl.UnsureError):
            await (await self.client(broken)).lock("k")
        await self.until(lambda: broken.of("release"))
        self.assertEqual(broken.of("release")[0]["lock_id"], broken.of("acquire")[0]["lock_id"])
        refused = Script(acquire=lambda p: Refuse("held"))
        client = await self.client(refused)
        with self.assertRaises(pawl.HeldError):
            await client.lock("k", wait=0)
        await client.ping()
        self.assertEqual(refused.of("release"), [])

    async def test_an_update_whose_answer_was_lost_is_never_repeated(self):
        bad, good = (Script(update=lambda p: Script.HANG_UP, acquire=lambda p: GRANT),
                     Script(update=lambda p: {}))
        lock = await (await self.client(bad, good)).lock("k")
        with self.assertRaises(pawl.UnsureError):
            await lock.update("v")
        self.assertEqual(good.of("update"), [])

    async def test_the_reason_of_nodes_that_let_nobody_in_is_raised_at_once(self):
        client = await self.client(Script(ping=lambda p: Refuse("denied", last_word=True)),
                                   timeout=30)
        with self.assertRaises(pawl.DeniedError):
            await asyncio.wait_for(client.ping(), 5)

    async def test_a_ping_that_is_refused_as_busy_does_not_end_the_connection(self):
        busy, other = (Script(acquire=lambda p: Script.SILENT, ping=lambda p: Refuse("busy")),
                       Script())
        client = await self.client(busy, other, silence=0.2, timeout=1)
        with self.assertRaises(pawl.PawlError):
            await client.lock("k", wait=0.5)
        self.assertGreater(len(busy.of("ping")), 1)
        self.assertEqual((len(busy.of("acquire")), other.asked), (1, []))

    async def test_extensions_are_tried_again_until_they_succeed_and_bring_a_higher_token(self):
        tries = iter([Refuse("no_quorum"), {"locks": [{"error": {"code": "unsure"}}]},
                      {"locks": []}, {"locks": "?"}])
        good = Script(acquire=lambda p: dict(GRANT, valid_ms=890),
                      extend=lambda p: next(tries, {"locks": [{"valid_ms": 890, "token": 9}]}))
        lock = await (await self.client(good)).lock("k", lease=0.9)
        await self.until(lambda: lock.token == 9)
        self.assertTrue(lock.held)
        self.assertEqual({(e["locks"][0]["lock_id"], e["deadline_kept"])
                          for e in good.of("extend")}, {(lock.lock_id, True)})

    async def test_an_extension_after_the_deadline_brings_nothing_back(self):
        held_up = Script(acquire=lambda p: dict(GRANT, valid_ms=150),
                         extend=lambda p: Script.SILENT)
        lock = await (await self.client(held_up)).lock("k", lease=0.2, warn=0.0)
        await asyncio.wait_for(lock.wait_lost(), 5)
        self.assertEqual(lock.valid, 0.0)
        self.assertIsNotNone(lock.error)

    async def test_answers_to_nothing_and_notifications_of_later_versions_are_skipped(self):
        def noise(params):
            for writer in node.writers:
                writer.write(pack([1, 4711, None, {}]) + pack([2, "later", [{}]])
                             + pack([2, "event", []]) + pack([2, "event", [{"watch": 9}]]))
            return {"held": False, "later": {"a": [1]}}

        node = Script(get=noise)
        self.assertFalse((await (await self.client(node)).get("k")).held)

    async def test_a_value_that_is_not_a_message_ends_the_connection(self):
        for strange in ([1, 2], 7, [1, "x", None, {}], {"a": 1}):
            node = Script()
            node.answers["ping"] = lambda p: [writer.write(pack(strange))
                                              for writer in node.writers] and Script.SILENT
            client = await self.client(node, Script())
            await client.ping()
            self.assertNotEqual(client.endpoint, node.endpoint, strange)


class Older(ScriptedCase):
    """Nodes of release 0.1, which refuse the parameters `party` and `trace`."""

    async def test_a_lock_is_granted_and_extended_without_a_party(self):
        def of_0_1(answer):
            return lambda p: Refuse("bad_request", field="party") if "party" in p else answer(p)

        node = Script(
            acquire=of_0_1(lambda p: dict(GRANT, valid_ms=290)),
            extend=of_0_1(lambda p: {"locks": [{"lock_id": lock["lock_id"], "valid_ms": 290,
                                                "token": 5} for lock in p["locks"]]}))
        lock = await (await self.client(node)).lock("k", lease=0.3)
        self.assertEqual(len(node.of("acquire")), 2)
        self.assertEqual(node.of("release"), [])
        await self.until(lambda: len(node.of("extend")) > 6)
        self.assertTrue(lock.held)

    async def test_a_request_is_made_without_a_trace(self):
        node = Script(get=lambda p: Refuse("bad_request", field="trace") if "trace" in p
                      else {"held": False})
        client = await self.client(node, trace="00-%032x-%016x-01" % (1, 2))
        for _ in range(3):
            self.assertFalse((await client.get("k")).held)
        self.assertEqual(["trace" in p for p in node.of("get")], [True, False, False, False])
        always = Script(get=lambda p: Refuse("bad_request", field="trace"))
        client = await self.client(always, trace="00-%032x-%016x-01" % (1, 2))
        with self.assertRaises(pawl.BadRequestError):
            await client.get("k")
        self.assertEqual(len(always.of("get")), 2)



if __name__ == "__main__":
    unittest.main()
