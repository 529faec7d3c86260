#!/usr/bin/env python3
"""Tests that the checker finds what is wrong in a history, and nothing if all is right."""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import checker  # noqa: E402
import history  # noqa: E402

MS = 1000000


class Story:
    """A history that is written by hand, with times in ms."""

    def __init__(self):
        self.lines, self.cut_off = [], ""

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

    def other(self, invoke, returned, **fields):
        """Another client acquires the key."""
        return self.acquire(invoke, returned, "y", 2, 2, **fields)

    def moment(self, op, at, process=1, **fields):
        return self.add(op, at, at, process, **fields)

    def event(self, at, kind, lock=None, token=None, **fields):
        told = {"key": "k", "lock_id": lock, "token": token, "mode": "exclusive"} if lock else {}
        return self.moment("event", at, 9, chain=1, type=kind, **{**told, **fields})

    def watch(self, at):
        return self.add("watch", at, at + 1, 9, chain=1, result="ok", node="a")


def taken(**fields):
    """A client has acquired the key."""
    return Story().acquire(0, 5, "x", 1, **fields)


class Checker(unittest.TestCase):
    def judge(self, story):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "history")
            with open(path, "w") as f:
                f.write("".join(json.dumps(line) + "\n"
                                for line in [{"op": "run", "seed": 1,
                                              "drift_ppm": 20000}, *story.lines]))
                f.write(story.cut_off)
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
        self.good(taken().other(50, 101))

    def test_two_at_once_are_found(self):
        self.bad("exclusion", taken().other(50, 60))

    def test_locks_of_other_keys_do_not_exclude_each_other(self):
        self.good(taken().other(50, 60, key="l"))

    def test_an_answer_that_was_not_believed_does_not_count(self):
        self.good(taken().other(50, 60, believed=False))

    def test_a_belief_ends_when_its_release_is_requested(self):
        self.good(taken().asked("release", 20, 40, "x", released=True).other(10, 21))
        self.bad("exclusion", taken().asked("release", 20, 40, "x", released=True).other(10, 19))

    def test_an_extension_prolongs_a_belief(self):
        self.bad("exclusion", taken().asked("extend", 50, 60, "x", token=1).other(90, 120))

    def test_an_extension_that_came_too_late_prolongs_nothing(self):
        story = taken().asked("extend", 90, 110, "x", token=1, believed=False)
        self.good(story.other(90, 120))

    def test_a_slow_clock_of_the_client_believes_longer(self):
        self.bad("exclusion", taken(rate=0.5).other(50, 150, valid_ms=300))

    def test_a_client_that_forgot_its_lock_believes_no_more(self):
        self.good(taken().moment("forget", 20, key="k", lock_id="x").other(10, 21))

    def test_a_closed_connection_ends_the_locks_that_are_bound_to_it(self):
        story = taken(binding=1).moment("close", 20, connection=1)
        self.good(story.other(10, 21))

    def test_a_closed_connection_does_not_end_locks_with_a_later_binding_or_none(self):
        bound = taken(binding=1).asked("extend", 10, 15, "x", token=1, binding=2)
        self.bad("exclusion", bound.moment("close", 20, connection=1).other(12, 30))
        self.bad("exclusion", taken().moment("close", 20, connection=1).other(10, 21))

    def test_under_the_next_connection_only_what_is_answered_under_it_counts(self):
        moved = taken(binding=1, valid_ms=900).asked(
            "extend", 10, 15, "x", token=1, binding=2, valid_ms=100)
        self.good(moved.other(112, 120))
        on = taken(binding=1, valid_ms=900).asked("extend", 10, 15, "x", token=1, valid_ms=100)
        self.bad("exclusion", on.other(112, 120))

    def test_readers_hold_together_and_exclude_writers(self):
        readers = taken(mode="shared").acquire(0, 6, "y", 1, 2, mode="shared")
        self.good(readers)
        self.bad("exclusion", readers.acquire(10, 20, "z", 2, 3))

    def test_a_downgraded_lock_is_a_shared_one(self):
        story = taken().asked("downgrade", 20, 25, "x").other(10, 30, mode="shared")
        self.good(story)
        self.bad("exclusion", taken().asked("downgrade", 20, 25, "x").other(10, 19, mode="shared"))

    def test_permits_exclude_each_other_by_their_numbers(self):
        def pair(one, other, of=3):
            held = taken(mode="permits", of=3, permits=one)
            return held.other(0, 6, mode="permits", of=of, permits=other)
        self.good(pair([0, 1], [2]))
        self.bad("exclusion", pair([0, 1], [1]))
        self.bad("exclusion", pair([0], [1], of=4))

    def test_after_a_refused_transfer_the_belief_goes_on(self):
        def story(result):
            return taken().asked("transfer", 20, 30, "x", result=result).other(20, 40)
        self.good(story("ok"))
        self.bad("exclusion", story("not_found"))

    def test_several_keys_are_a_lock_each(self):
        members = [{"key": k, "lock_id": "m" + k, "mode": "exclusive", "token": 1} for k in "kl"]
        story = Story().add("acquire_all", 0, 5, result="ok", valid_ms=100, believed=True,
                            members=members)
        self.bad("exclusion", story.other(10, 20, key="l"))


    def test_a_client_may_say_itself_what_it_believes(self):
        def story(begin):
            told = Story().moment("believe", 5, key="k", lock_id="x", token=1, until=100 * MS)
            return told.moment("believe", begin, 2, key="k", lock_id="y", token=2, until=200 * MS)
        self.bad("exclusion", story(99))
        self.good(story(100))

    def test_an_answer_completes_the_line_of_its_request(self):
        asked = taken().asked("acquire", 50, None, "y", 2, result="unknown")
        asked.lines.append({"id": 1, "return": 60 * MS, "result": "ok", "token": 2,
                            "believed": True, "valid_ms": 100})
        self.bad("exclusion", asked)


    def test_a_line_that_was_cut_off_by_a_kill_is_the_end(self):
        story = taken()
        story.cut_off = '{"op": "acquire", "id": 2, "proc'
        self.good(story)


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
        again = taken().other(110, 120).asked("release", 130, 135, "y", 2, released=True)
        self.bad("tokens", again.acquire(140, 150, "x", 1))

    def test_no_two_locks_have_the_same_token(self):
        self.bad("tokens", taken(believed=False).acquire(0, 6, "y", 1, 2, believed=False))

    def test_tokens_of_locks_that_are_held_together_have_no_order(self):
        self.good(Story().acquire(0, 5, "x", 2,
                                  mode="shared").acquire(10, 15, "y", 1, 2, mode="shared"))

    def test_a_lock_that_was_shared_meanwhile_may_have_had_other_readers(self):
        story = taken().asked("downgrade", 10, 12, "x").other(9, 15, mode="shared")
        self.good(story.asked("extend", 20, 25, "x", token=1))

    def test_an_extension_without_a_deadline_says_that_nobody_came_in_between(self):
        story = taken().other(110, 120).asked("release", 130, 135, "y", 2, released=True)
        self.bad("honest extension", story.asked("extend", 140, 150, "x", token=1,
                                                 deadline_kept=False))
        other = taken().other(110, 120).asked("release", 130, 135, "y", 2, released=True)
        self.good(other.asked("extend", 140, 150, "x", token=3, deadline_kept=False))


class Delay(Checker):
    def test_a_delay_keeps_the_key_closed_after_a_loss(self):
        def story():
            return taken(lock_delay_ms=50)

        self.bad("lock delay", story().other(10, 140, valid_ms=300))
        self.good(story().other(10, 150, valid_ms=300))

    def test_a_release_ends_the_lock_delay(self):
        story = taken(lock_delay_ms=50).asked("release", 20, 30, "x", released=True)
        self.good(story.other(10, 40))


class Honesty(Checker):
    def long(self):
        return taken(valid_ms=1000)

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
        self.bad("quorum read", self.long().asked("extend", 6, 15, "x",
                                                  token=1).add("get", 10, 20, 2, **read))
        prolonged = taken(valid_ms=15).asked("extend", 6, 12, "x", token=1)
        self.good(prolonged.add("get", 10, 20, 2, **read))

    def test_a_read_must_not_show_a_released_lock(self):
        read = {"key": "k", "result": "ok", "consistency": "quorum", "held": True, "holders": ["x"]}
        self.bad("quorum read", self.long().asked("release", 10, 12, "x",
                                                  released=True).add("get", 20, 30, 2, **read))
        self.good(self.long().asked("release", 10, 22, "x",
                                    released=True).add("get", 20, 30, 2, **read))

    def test_an_error_that_the_protocol_does_not_have_is_found(self):
        self.good(Story().asked("acquire", 0, 5, "x", result="held"))
        self.bad("protocol", Story().asked("acquire", 0, 5, "x", result="canceled"))

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
        return taken(valid_ms=1000, value="a")

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


    def test_a_read_within_a_belief_is_one_of_the_values_in_order(self):
        read = {"key": "k", "lock_id": "x", "result": "ok", "consistency": "quorum", "held": True}

        def story(one, other):
            held = self.held().asked("update", 10, 20, "x", value="b")
            held.asked("update", 11, 21, "x", value="c").add("get", 22, 25, 2, shown=one, **read)
            return held.add("get", 26, 30, 2, shown=other, **read)
        self.good(story("b", "b"))
        self.good(story("c", "c"))
        self.bad("values", story("b", "c"))

    def test_an_acquire_that_went_on_to_another_node_may_write_late(self):
        def story(**fields):
            held = taken(valid_ms=1000, value="a", **fields)
            held.asked("update", 10, 20, "x", value="b", expect="a", by="value")
            return held.asked("update", 30, 40, "x", value="c", expect="a", by="value")
        self.good(story(again=True))
        self.bad("values", story())


class Watches(Checker):
    def two(self):
        story = Story().watch(0).acquire(10, 15, "x", 1).asked("release", 20, 25, "x",
                                                               released=True)
        return story.other(30, 35)

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

    def test_events_may_be_behind_what_was_read(self):
        """As at a replica: what was read shows already what is told next."""
        def behind(first, at):
            return Story().watch(0).event(1, "overflow").event(
                2, first, "y", 2).event(at, "acquired", "x", 1).event(
                at + 1, "released", "x", 1).event(at + 2, "acquired", "y", 2)
        self.good(behind("present", 12))
        self.bad("watches", behind("acquired", 12))
        self.bad("watches", behind("present", 20000))


if __name__ == "__main__":
    unittest.main(verbosity=1)
