"""Tests that the judge finds what is wrong in the histories of candidates, and nothing if all is
right."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nodes")]

import checker  # noqa: E402
import told  # noqa: E402

ONE, OTHER, THIRD = "11" * 16, "22" * 16, "33" * 16


def term(begin, end, token, lock=ONE, until=None):
    """Returns the lines of a term from begin to end, with a deadline in `until`. Without an end the
    term lasts until its deadline."""
    lines = ["L %d e %d %s %d\n" % (begin, token, lock, until or end),
             "A %d e %d %s %d\n" % (begin + 1, token, lock, until or end)]
    return lines + (["E %d e %d\n" % (end, end)] if end else [])


def wrong(*histories, killed=None):
    """Returns the violations in the histories of some candidates, the first of which may have been
    killed."""
    lines = [line for i, h in enumerate(histories)
             for line in told.history(h, "c%d" % i, i + 1, None if i else killed)]
    return checker.judge({"op": "run"}, lines)[0]


def event(at, kind, token, lock, owner="c0"):
    return "W %d %s e %d %s %s\n" % (at, kind, token, lock, owner)


class Reading(unittest.TestCase):
    def test_a_line_that_is_seen_in_parts_counts_once_it_is_whole(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("an earlier line\n")
            file.flush()
            tail, seen = told.Tail(file.name), []
            for part in ("S 1 e ", "0 0 -", "\nS 2", " e 1 7 c0\nS 3"):
                file.write(part)
                file.flush()
                seen.append(tail.lines())
            tail.close()
        self.assertEqual(seen, [[], [], ["S 1 e 0 0 -"], ["S 2 e 1 7 c0"]])


class Judge(unittest.TestCase):
    def test_one_after_the_other_is_right(self):
        self.assertEqual(wrong(term(0, 10, 1), term(10, 20, 2, OTHER)), [])

    def test_two_at_once_are_wrong(self):
        self.assertEqual(len(wrong(term(0, 11, 1), term(10, 20, 2, OTHER))), 1)

    def test_two_at_once_are_wrong_even_if_one_only_could_have_gone_on(self):
        self.assertEqual(len(wrong(term(0, None, 1, until=30), term(20, 40, 2, OTHER))), 1)

    def test_a_candidate_that_was_killed_leads_no_more(self):
        both = term(0, None, 1, until=30), term(20, 40, 2, OTHER)
        self.assertEqual(wrong(*both, killed=15), [])
        self.assertEqual(len(wrong(*both, killed=25)), 1)

    def test_a_token_that_does_not_grow_is_wrong(self):
        self.assertNotEqual(wrong(term(0, 10, 2), term(10, 20, 2, OTHER)), [])
        self.assertEqual(len(wrong(term(0, 10, 2) + term(10, 20, 2))), 1)

    def test_to_lead_twice_without_an_end_is_wrong(self):
        self.assertEqual(len(wrong(term(0, None, 1, until=5) + term(10, 20, 2))), 1)

    def test_to_show_an_older_leader_after_a_newer_one_is_wrong(self):
        shown = ["O 1 e 1 c0\n", "O 2 e 0 -\n", "O 3 e 2 c1\n"]
        self.assertEqual(wrong(term(0, 10, 1), term(10, 20, 2, OTHER), shown), [])
        back = [*shown, "O 4 e 1 c0\n"]
        self.assertEqual(len(wrong(term(0, 10, 1), term(10, 20, 2, OTHER), back)), 1)

    def test_observers_that_do_not_agree_are_wrong(self):
        self.assertEqual(len(wrong(term(0, 10, 1), ["O 1 e 1 c7\n"])), 1)
        self.assertEqual(len(wrong(term(0, 10, 1), ["O 1 e 1 c0\n"], ["O 1 e 1 c7\n"])), 1)

    def test_a_token_with_which_nobody_led_may_be_that_of_two(self):
        self.assertEqual(wrong(term(0, 10, 2), ["O 1 e 1 c1\n"], ["O 1 e 1 c2\n"]), [])

    def test_a_watch_that_leaves_out_an_end_or_goes_back_is_wrong(self):
        first, second = event(1, "acquired", 1, ONE), event(3, "acquired", 2, OTHER)
        self.assertEqual(wrong([first, event(2, "released", 1, ONE), second]), [])
        self.assertEqual(len(wrong([first, second])), 1)
        self.assertEqual(len(wrong([second, event(4, "expired", 2, OTHER), first])), 1)
        self.assertEqual(wrong([first, "W 2 overflow - 0 - -\n", event(3, "present", 2, OTHER)]),
                         [])

    def test_what_the_present_state_shows_may_be_told_once_more(self):
        """A read may show the second try of what the next event tells, and at a replica what the
        next events lead to."""
        shown, told = event(1, "present", 2, ONE), event(2, "acquired", 1, ONE)
        self.assertEqual(wrong([shown, told]), [])
        self.assertEqual(wrong([shown, event(2, "acquired", 1, OTHER)]), [])
        self.assertEqual(len(wrong([shown, event(20 * 10**9, "acquired", 1, OTHER)])), 2)

    def test_a_watch_that_leaves_out_a_leader_without_an_overflow_is_wrong(self):
        led = [term(0, 1, 1, ONE), term(2, 3, 2, THIRD), term(4, 5, 3, OTHER)]
        told = [event(1, "acquired", 1, ONE), event(2, "released", 1, ONE),
                event(5, "acquired", 3, OTHER, "c2")]
        self.assertEqual(len(wrong(*led, told)), 1)
        self.assertEqual(wrong(*led, [*told, "W 6 overflow - 0 - -\n"]), [])

    def test_a_line_that_was_cut_off_does_not_count(self):
        self.assertEqual(wrong(term(0, 10, 1) + ["L 5 e"]), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
