#!/usr/bin/env python3
"""test_checker.py: tests that the checker finds what is wrong in a history, and nothing if all is
right; and that the codec of tests/judge is MessagePack."""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]

import checker  # noqa: E402
import history  # noqa: E402
import pawltest  # noqa: E402
import rpc  # noqa: E402
import shapes  # noqa: E402

MS = 1000000


class Story:
    """A history that is written by hand, with times in ms."""

    def __init__(self):
        self.lines = []

    def add(self, op, invoke, returned, process=1, **fields):
        self.lines.append({"op": op, "id": len(self.lines), "process": process,
                           "invoke": invoke * MS,
                           "return": None if returned is None else returned * MS, **fields})
        return self

    def asked(self, op, invoke, returned, lock, process=1, result="ok", key="k", **fields):
        if op in ("acquire", "extend") and result == "ok":
            fields = {"valid_ms": 100, "believed": True, **fields}
        return self.add(op, invoke, returned, process, key=key, lock_id=lock, result=result,
                        **fields)

    def acquire(self, invoke, returned, lock, token, process=1, **fields):
        return self.asked("acquire", invoke, returned, lock, process, token=token, **fields)

    def moment(self, op, at, process=1, **fields):
        return self.add(op, at, at, process, **fields)

    def event(self, at, kind, lock=None, token=None, **fields):
        told = {"key": "k", "lock_id": lock, "token": token, "mode": "exclusive"} if lock else {}
        return self.moment("event", at, 9, chain=1, type=kind, **{**told, **fields})

    def watch(self, at):
        return self.add("watch", at, at + 1, 9, chain=1, result="ok", node="a")


class Checker(unittest.TestCase):
    def judge(self, story):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "history")
            with open(path, "w") as f:
                f.write("".join(json.dumps(line) + "\n"
                                for line in [{"op": "run", "seed": 1,
                                              "drift_ppm": 20000}, *story.lines]))
            [(first, lines)] = history.load(path)
            return checker.judge(first, lines)[0]

    def good(self, story):
        self.assertEqual(self.judge(story), [])

    def bad(self, kind, story):
        found = self.judge(story)
        self.assertIn(kind, [k for k, _, _ in found], found)
        self.assertTrue(all(lines for _, _, lines in found))


class Exclusion(Checker):
    def test_one_after_the_other_is_right(self):
        self.good(Story().acquire(0, 5, "x", 1).acquire(50, 101, "y", 2, 2))

    def test_two_at_once_are_found(self):
        self.bad("exclusion", Story().acquire(0, 5, "x", 1).acquire(50, 60, "y", 2, 2))

    def test_locks_of_other_keys_do_not_exclude_each_other(self):
        self.good(Story().acquire(0, 5, "x", 1).acquire(50, 60, "y", 2, 2, key="l"))

    def test_an_answer_that_was_not_believed_does_not_count(self):
        self.good(Story().acquire(0, 5, "x", 1).acquire(50, 60, "y", 2, 2, believed=False))

    def test_a_belief_ends_when_its_release_is_requested(self):
        self.good(Story().acquire(0, 5, "x", 1).asked("release", 20, 40, "x",
                                                      released=True).acquire(10, 21, "y", 2, 2))
        self.bad("exclusion", Story().acquire(0, 5, "x",
                                              1).asked("release", 20, 40, "x",
                                                       released=True).acquire(10, 19, "y", 2, 2))

    def test_an_extension_prolongs_a_belief(self):
        self.bad("exclusion", Story().acquire(0, 5, "x",
                                              1).asked("extend", 50, 60, "x",
                                                       token=1).acquire(90, 120, "y", 2, 2))

    def test_an_extension_that_came_too_late_prolongs_nothing(self):
        story = Story().acquire(0, 5, "x", 1).asked("extend", 90, 110, "x", token=1, believed=False)
        self.good(story.acquire(90, 120, "y", 2, 2))

    def test_a_slow_clock_of_the_client_believes_longer(self):
        self.bad("exclusion", Story().acquire(0, 5, "x", 1,
                                              rate=0.5).acquire(50, 150, "y", 2, 2, valid_ms=300))

    def test_a_client_that_forgot_its_lock_believes_no_more(self):
        self.good(Story().acquire(0, 5, "x", 1).moment("forget", 20, key="k",
                                                       lock_id="x").acquire(10, 21, "y", 2, 2))

    def test_a_closed_connection_ends_the_locks_that_are_bound_to_it(self):
        story = Story().acquire(0, 5, "x", 1, binding=1).moment("close", 20, connection=1)
        self.good(story.acquire(10, 21, "y", 2, 2))

    def test_a_closed_connection_does_not_end_locks_with_a_later_binding_or_none(self):
        bound = Story().acquire(0, 5, "x", 1, binding=1).asked("extend", 10, 15, "x", token=1,
                                                               binding=2)
        self.bad("exclusion", bound.moment("close", 20, connection=1).acquire(12, 30, "y", 2, 2))
        self.bad("exclusion", Story().acquire(0, 5, "x",
                                              1).moment("close", 20,
                                                        connection=1).acquire(10, 21, "y", 2, 2))

    def test_under_the_next_connection_only_what_is_answered_under_it_counts(self):
        moved = Story().acquire(0, 5, "x", 1, binding=1, valid_ms=900).asked(
            "extend", 10, 15, "x", token=1, binding=2, valid_ms=100)
        self.good(moved.acquire(112, 120, "y", 2, 2))
        on = Story().acquire(0, 5, "x", 1, binding=1, valid_ms=900).asked(
            "extend", 10, 15, "x", token=1, valid_ms=100)
        self.bad("exclusion", on.acquire(112, 120, "y", 2, 2))

    def test_readers_hold_together_and_exclude_writers(self):
        readers = Story().acquire(0, 5, "x", 1,
                                  mode="shared").acquire(0, 6, "y", 1, 2, mode="shared")
        self.good(readers)
        self.bad("exclusion", readers.acquire(10, 20, "z", 2, 3))

    def test_a_downgraded_lock_is_a_shared_one(self):
        story = Story().acquire(0, 5, "x", 1).asked("downgrade", 20, 25,
                                                    "x").acquire(10, 30, "y", 2, 2, mode="shared")
        self.good(story)
        self.bad("exclusion", Story().acquire(0, 5, "x",
                                              1).asked("downgrade", 20, 25,
                                                       "x").acquire(10, 19, "y", 2, 2,
                                                                    mode="shared"))

    def test_permits_exclude_each_other_by_their_numbers(self):
        def pair(one, other, of=3):
            return Story().acquire(0, 5, "x", 1, mode="permits", of=3,
                                   permits=one).acquire(0, 6, "y", 2, 2, mode="permits", of=of,
                                                        permits=other)
        self.good(pair([0, 1], [2]))
        self.bad("exclusion", pair([0, 1], [1]))
        self.bad("exclusion", pair([0], [1], of=4))

    def test_after_a_refused_transfer_the_belief_goes_on(self):
        def story(result):
            return Story().acquire(0, 5, "x", 1).asked("transfer", 20, 30, "x",
                                                       result=result).acquire(20, 40, "y", 2, 2)
        self.good(story("ok"))
        self.bad("exclusion", story("not_found"))

    def test_several_keys_are_a_lock_each(self):
        members = [{"key": k, "lock_id": "m" + k, "mode": "exclusive", "token": 1} for k in "kl"]
        story = Story().add("acquire_all", 0, 5, result="ok", valid_ms=100, believed=True,
                            members=members)
        self.bad("exclusion", story.acquire(10, 20, "y", 2, 2, key="l"))


class Tokens(Checker):
    def test_tokens_grow_in_the_order_of_answers(self):
        self.bad("tokens", Story().acquire(0, 5, "x", 2,
                                           believed=False).acquire(10, 15, "y", 1, 2,
                                                                   believed=False))
        self.good(Story().acquire(0, 12, "x", 2,
                                  believed=False).acquire(10, 15, "y", 1, 2, believed=False))

    def test_tokens_grow_in_the_order_of_beliefs(self):
        self.bad("tokens", Story().acquire(0, 5, "x", 2).acquire(4, 115, "y", 1, 2, valid_ms=300))

    def test_tokens_grow_even_if_a_lock_is_asked_for_again(self):
        again = Story().acquire(0, 5, "x", 1).acquire(110, 120, "y", 2,
                                                      2).asked("release", 130, 135, "y", 2,
                                                               released=True)
        self.bad("tokens", again.acquire(140, 150, "x", 1))

    def test_no_two_locks_have_the_same_token(self):
        self.bad("tokens", Story().acquire(0, 5, "x", 1,
                                           believed=False).acquire(0, 6, "y", 1, 2, believed=False))

    def test_tokens_of_locks_that_are_held_together_have_no_order(self):
        self.good(Story().acquire(0, 5, "x", 2,
                                  mode="shared").acquire(10, 15, "y", 1, 2, mode="shared"))

    def test_a_lock_that_was_shared_meanwhile_may_have_had_other_readers(self):
        story = Story().acquire(0, 5, "x", 1).asked("downgrade", 10, 12,
                                                    "x").acquire(9, 15, "y", 2, 2, mode="shared")
        self.good(story.asked("extend", 20, 25, "x", token=1))

    def test_an_extension_without_a_deadline_says_that_nobody_came_in_between(self):
        story = Story().acquire(0, 5, "x", 1).acquire(110, 120, "y", 2,
                                                      2).asked("release", 130, 135, "y", 2,
                                                               released=True)
        self.bad("honest extension", story.asked("extend", 140, 150, "x", token=1,
                                                 deadline_kept=False))
        other = Story().acquire(0, 5, "x", 1).acquire(110, 120, "y", 2,
                                                      2).asked("release", 130, 135, "y", 2,
                                                               released=True)
        self.good(other.asked("extend", 140, 150, "x", token=3, deadline_kept=False))


class Delay(Checker):
    def test_a_delay_keeps_the_key_closed_after_a_loss(self):
        def story():
            return Story().acquire(0, 5, "x", 1, lock_delay_ms=50)

        self.bad("lock delay", story().acquire(10, 140, "y", 2, 2, valid_ms=300))
        self.good(story().acquire(10, 150, "y", 2, 2, valid_ms=300))

    def test_a_release_ends_the_lock_delay(self):
        story = Story().acquire(0, 5, "x", 1,
                                lock_delay_ms=50).asked("release", 20, 30, "x", released=True)
        self.good(story.acquire(10, 40, "y", 2, 2))


class Honesty(Checker):
    def long(self):
        return Story().acquire(0, 5, "x", 1, valid_ms=1000)

    def test_a_held_lock_must_not_be_answered_as_lost(self):
        self.bad("forgotten", self.long().asked("extend", 10, 20, "x", result="lost"))
        self.good(self.long().asked("extend", 990, 995, "x", result="lost"))

    def test_a_released_lock_may_be_answered_as_lost(self):
        self.good(self.long().asked("release", 10, 12, "x",
                                    released=True).asked("extend", 15, 20, "x", result="lost"))

    def test_a_release_of_a_held_lock_must_not_say_that_it_was_not_held(self):
        self.bad("forgotten", self.long().asked("release", 10, 20, "x", released=False))

    def test_a_read_must_not_say_that_a_held_key_is_free(self):
        read = {"key": "k", "result": "ok", "consistency": "quorum", "held": False}
        self.bad("quorum read", self.long().add("get", 10, 20, 2, **read))
        self.good(self.long().asked("extend", 6, 15, "x", token=1).add("get", 10, 20, 2, **read))

    def test_a_read_must_not_show_a_released_lock(self):
        read = {"key": "k", "result": "ok", "consistency": "quorum", "held": True, "holders": ["x"]}
        self.bad("quorum read", self.long().asked("release", 10, 12, "x",
                                                  released=True).add("get", 20, 30, 2, **read))
        self.good(self.long().asked("release", 10, 22, "x",
                                    released=True).add("get", 20, 30, 2, **read))

    def test_in_calm_there_are_no_excuses(self):
        def story(what):
            return Story().moment("phase", 0, what=what).asked("acquire", 10, 20, "x",
                                                               result="no_quorum")
        self.bad("calm", story("calm"))
        self.good(story("end of calm"))

    def test_in_calm_some_answers_must_come_soon(self):
        def story(returned):
            return Story().moment("phase", 0, what="calm").acquire(10, returned, "x", 1,
                                                                   must=["ok"], within_ms=50)
        self.good(story(40))
        self.bad("calm", story(70))


class Waiting(Checker):
    def story(self, one, other, **fields):
        story = Story().moment("phase", 0, what="calm").acquire(10, 500, "x", one, wait_ms=1000,
                                                                believed=False)
        story.add("waiters", 20, 25, 3, key="k", result="ok", queue=["x"])
        return story.acquire(30, 520, "y", other, 2, wait_ms=1000, believed=False, **fields)

    def test_a_waiter_in_the_queue_is_served_before_later_ones(self):
        self.good(self.story(1, 2))
        self.bad("order of waiting", self.story(2, 1))

    def test_a_later_waiter_with_a_higher_priority_may_be_first(self):
        self.good(self.story(2, 1, priority=3))


class Values(Checker):
    def held(self):
        return Story().acquire(0, 5, "x", 1, valid_ms=1000, value="a")

    def test_a_lost_update_is_found(self):
        story = self.held().asked("update", 10, 20, "x", value="b", expect="a", by="value")
        self.bad("values", story.asked("update", 12, 22, "x", value="c", expect="a", by="value"))

    def test_one_of_two_conditional_updates_may_be_refused(self):
        story = self.held().asked("update", 10, 20, "x", value="b", expect="a", by="value")
        self.good(story.asked("update", 12, 22, "x", result="mismatch", value="c", expect="a",
                              by="value", shown="b"))

    def test_an_unsure_update_may_take_effect_late(self):
        story = self.held().asked("update", 10, 20, "x", result="unsure",
                                  value="b").asked("update", 30, 40, "x", value="c")
        self.good(story.asked("update", 50, 60, "x", value="d", expect="b", by="value"))

    def test_a_repeated_acquire_changes_no_value(self):
        story = self.held().asked("update", 10, 20, "x",
                                  value="b").acquire(30, 40, "x", 1, valid_ms=1000, value="a")
        self.bad("values", story.asked("update", 50, 60, "x", value="c", expect="a", by="value"))

    def test_a_read_must_not_show_a_value_that_was_overwritten(self):
        read = {"key": "k", "lock_id": "x", "result": "ok", "consistency": "quorum", "held": True}
        story = self.held().asked("update", 10, 20, "x", value="b")
        self.bad("values", story.add("get", 30, 40, 2, shown="a", **read))
        self.good(self.held().asked("update", 10, 35, "x",
                                    value="b").add("get", 30, 40, 2, shown="a", **read))


class Watches(Checker):
    def two(self):
        story = Story().watch(0).acquire(10, 15, "x", 1).asked("release", 20, 25, "x",
                                                               released=True)
        return story.acquire(30, 35, "y", 2, 2)

    def test_a_watch_must_tell_a_lock_that_came_and_went(self):
        told = self.two().event(15, "acquired", "x", 1).event(25, "released", "x",
                                                              1).event(35, "acquired", "y", 2)
        self.good(told)
        self.bad("watches", self.two().event(35, "acquired", "y", 2))

    def test_a_watch_may_soon_tell_an_overflow_instead(self):
        self.good(self.two().event(34, "overflow").event(35, "acquired", "y", 2))
        self.good(self.two().event(34, "overflow", key="k").event(35, "acquired", "y", 2))
        self.bad("watches", self.two().event(34, "overflow",
                                             key="other").event(35, "acquired", "y", 2))
        self.good(self.two().event(35, "acquired", "y",
                                   2).moment("fault", 36, None, what="kill", node="a"))
        self.bad("watches", self.two().event(35, "acquired", "y",
                                             2).moment("fault", 36, None, what="kill", node="b"))
        self.good(self.two().event(35, "acquired", "y", 2).event(36, "overflow"))
        self.bad("watches", self.two().event(9, "overflow").event(35, "acquired", "y", 2))
        calm = self.two().event(35, "acquired", "y", 2)
        calm.moment("phase", 100, what="calm").moment("phase", 200, what="end of calm")
        self.bad("watches", calm.event(300, "overflow"))

    def test_a_new_watch_may_tell_the_overflow_of_the_one_before(self):
        anew = self.two().event(35, "acquired", "y", 2).add("watch", 36, 37, 9, chain=2,
                                                            result="ok", node="a")
        anew.moment("event", 38, 9, chain=2, type="overflow")
        self.good(anew.moment("phase", 40, what="calm").moment("phase", 50, what="end of calm"))
        late = self.two().event(35, "acquired", "y", 2)
        late.moment("phase", 40, what="calm").moment("phase", 50, what="end of calm")
        self.bad("watches", late.add("watch", 56, 57, 9, chain=2, result="ok", node="a"))

    def test_all_events_must_be_told_in_the_end(self):
        self.good(self.two().event(15, "acquired", "x", 1).event(25, "released", "x", 1))
        self.bad("watches", self.two().event(15, "acquired", "x",
                                             1).event(25, "released", "x",
                                                      1).moment("watched", 500, 9, chain=1))

    def test_the_end_of_a_lock_must_be_told_before_the_next_lock(self):
        self.bad("watches", self.two().event(15, "acquired", "x", 1).event(35, "acquired", "y", 2))

    def test_tokens_of_events_grow(self):
        told = Story().watch(0).event(10, "acquired", "y",
                                      2).event(11, "released", "y", 2).event(12, "acquired", "x", 1)
        self.bad("watches", told)


class Codec(unittest.TestCase):
    VALUES = [None, True, False, 0, 1, 127, 128, 255, 256, 65535, 65536, 2**32,
              2**64 - 1, -1, -32, -33, -128, -129, -2**31, -2**40, "", "k" * 40,
              b"", b"v" * 300, [1, [2, ["x"]]], {"a": {"b": [None]}}, ["n"] * 70000,
              {str(i): i for i in range(20)}]

    def test_another_codec_reads_what_is_packed(self):
        for value in self.VALUES:
            packed = rpc.pack(value)
            self.assertEqual(pawltest.Unpacker(packed).value(), value)
            self.assertEqual(rpc.unpack(packed, 0), (value, len(packed)))
            self.assertEqual(rpc.unpack(pawltest.pack(value), 0)[0], value)

    def test_half_a_message_is_incomplete(self):
        packed = rpc.pack([0, 1, "acquire", [{"key": b"k" * 100, "lease_ms": 70000}]])
        for size in range(len(packed)):
            with self.assertRaises(rpc.Incomplete):
                rpc.unpack(packed[:size], 0)


class Shapes(unittest.TestCase):
    def test_an_error_that_the_protocol_does_not_have_is_a_fault(self):
        def fault(code):
            return shapes.fault(rpc.Answer(0, 1, code, {"message": b"why"}), "acquire", None, 0)
        self.assertIsNone(fault("held"))
        self.assertIn("does not know", fault("canceled"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
