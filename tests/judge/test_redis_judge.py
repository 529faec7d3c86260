"""The judge of scripts/judge-redis, with beliefs that are good and bad."""

import unittest

from redis_judge import SLACK_NS, old_tokens, overlaps


def belief(begin, end, key="k", **more):
    return {"key": key, "who": 1, "begin": begin, "end": end, **more}


class Judged(unittest.TestCase):
    def test_beliefs_after_each_other_are_good(self):
        self.assertEqual(overlaps([belief(0, 10 * SLACK_NS), belief(10 * SLACK_NS, 20 * SLACK_NS),
                                   belief(0, 20 * SLACK_NS, "other")]), [])

    def test_the_slack_is_allowed_and_no_more(self):
        end = 10 * SLACK_NS
        self.assertEqual(overlaps([belief(0, end), belief(end - SLACK_NS, 2 * end)]), [])
        self.assertEqual(len(overlaps([belief(0, end), belief(end - SLACK_NS - 1, 2 * end)])), 1)

    def test_a_short_belief_does_not_hide_a_long_one(self):
        end = 10 * SLACK_NS
        self.assertEqual(len(overlaps([belief(0, end), belief(SLACK_NS, SLACK_NS + 1),
                                       belief(5 * SLACK_NS, end)])), 1)

    def test_tokens_grow(self):
        self.assertEqual(old_tokens([belief(0, 1, token=1), belief(2, 3), belief(4, 5, token=2)]),
                         [])
        self.assertEqual(len(old_tokens([belief(0, 1, token=2), belief(4, 5, token=2)])), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
