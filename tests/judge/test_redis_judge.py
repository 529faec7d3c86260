"""The judge of scripts/judge-redis, with beliefs that are good and bad."""

import unittest

from redis_judge import LATE_NS, old_tokens, overlaps


def belief(begin, end, key="k", **more):
    return {"key": key, "who": 1, "begin": begin, "end": end, **more}


class Judged(unittest.TestCase):
    def test_beliefs_after_each_other_are_good(self):
        self.assertEqual(overlaps([belief(0, 10 * LATE_NS), belief(10 * LATE_NS, 20 * LATE_NS),
                                   belief(0, 20 * LATE_NS, "other")]), [])

    def test_a_late_thread_is_allowed_and_no_more(self):
        end = 10 * LATE_NS
        self.assertEqual(overlaps([belief(0, end), belief(end - LATE_NS, 2 * end)]), [])
        self.assertEqual(len(overlaps([belief(0, end), belief(end - LATE_NS - 1, 2 * end)])), 1)

    def test_a_short_belief_does_not_hide_a_long_one(self):
        end = 10 * LATE_NS
        self.assertEqual(len(overlaps([belief(0, end), belief(LATE_NS, LATE_NS + 1),
                                       belief(5 * LATE_NS, end)])), 1)

    def test_tokens_grow(self):
        self.assertEqual(old_tokens([belief(0, 1, token=1), belief(2, 3), belief(4, 5, token=2)]),
                         [])
        self.assertEqual(len(old_tokens([belief(0, 1, token=2), belief(4, 5, token=2)])), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
