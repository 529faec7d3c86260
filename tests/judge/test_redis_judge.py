"""The judge of scripts/judge-redis, with beliefs that are good and bad."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nodes")]

import checker  # noqa: E402
from redis_beliefs import LATE_NS, line_of  # noqa: E402


def belief(begin, end, key="k", **more):
    return {"key": key, "who": 1, "begin": begin, "end": end, **more}


class Judged(unittest.TestCase):
    def found(self, *beliefs):
        lines = [line_of(b, number) for number, b in enumerate(beliefs)]
        return [kind for kind, _, _ in checker.judge({"op": "run"}, lines)[0]]

    def test_beliefs_after_each_other_are_good(self):
        self.assertEqual(self.found(belief(0, 10 * LATE_NS), belief(10 * LATE_NS, 20 * LATE_NS),
                                    belief(0, 20 * LATE_NS, "other")), [])

    def test_a_late_thread_is_allowed_and_no_more(self):
        end = 10 * LATE_NS
        self.assertEqual(self.found(belief(0, end), belief(end - LATE_NS, 2 * end)), [])
        self.assertEqual(self.found(belief(0, end), belief(end - LATE_NS - 1, 2 * end)),
                         ["exclusion"])

    def test_exact_beliefs_are_allowed_nothing(self):
        exact = belief(0, 10 * LATE_NS, exact=True)
        self.assertEqual(self.found(exact, belief(10 * LATE_NS, 20 * LATE_NS)), [])
        self.assertEqual(self.found(exact, belief(10 * LATE_NS - 1, 20 * LATE_NS)), ["exclusion"])

    def test_a_short_belief_neither_hides_a_long_one_nor_is_hidden(self):
        end = 10 * LATE_NS
        self.assertEqual(self.found(belief(0, end), belief(LATE_NS, LATE_NS + 1),
                                    belief(5 * LATE_NS, end)), ["exclusion", "exclusion"])

    def test_tokens_grow(self):
        self.assertEqual(self.found(belief(0, 1, token=1), belief(2, 3), belief(4, 5, token=2)), [])
        self.assertEqual(self.found(belief(0, 1, token=2), belief(4, 5, token=2)), ["tokens"])

    def test_a_lock_that_is_held_is_taken_again_with_its_token(self):
        first, again = belief(0, 1, token=2, lock_id="a"), belief(4, 5, token=2, lock_id="a")
        self.assertEqual(self.found(first, again), [])
        self.assertEqual(self.found(first, {**again, "lock_id": "b"}), ["tokens"])
        self.assertEqual(self.found(first, {**again, "token": 1}), ["tokens"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
