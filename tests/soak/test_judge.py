#!/usr/bin/env python3
"""test_judge.py JUDGE: tests that the judge of histories finds what is wrong in them, and nothing
if all is right."""

import os
import subprocess
import sys
import tempfile
import unittest

NONE = 2 ** 32 - 1
MS = 1000000
ONE, OTHER = "11" * 16, "22" * 16


def event(kind, what, at, client, op=0, lock="-", left=0, error=0, token=0, expect=NONE, value=NONE,
          held=0):
    return "%s %s %d %d %d %d 0 %s %d %d %d %d %d\n" % (kind, what, at * MS, left * MS, client, op,
                                                        lock, error, token, expect, value, held)


def acquired(at, client, lock, token, left):
    return (event("I", "a", at, client, 0, lock, value=client) + event("R", "a", at + 1, client, 0,
        lock, token=token, held=1) + event("B", "-", at + 2, client, 0, lock, left, token=token))


def updated(at, client, op, lock, expect, value):
    return (event("I", "u", at, client, op, lock, expect=expect, value=value) +
            event("R", "u", at + 1, client, op, lock, expect=expect, value=value))


class Judge(unittest.TestCase):
    def judge(self, *histories):
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, str(i)) for i in range(len(histories))]
            for path, text in zip(files, histories):
                with open(path, "w") as f:
                    f.write(text)
            return subprocess.run([JUDGE, *files], capture_output=True, text=True)

    def finds(self, what, *histories):
        done = self.judge(*histories)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("VIOLATION of " + what, done.stderr)

    def test_one_after_the_other_is_right(self):
        done = self.judge(acquired(10, 1, ONE, 5, 100), acquired(120, 2, OTHER, 6, 100))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("acquired 2\n", done.stdout)

    def test_a_belief_that_was_given_up_is_over(self):
        done = self.judge(acquired(10, 1, ONE, 5, 100) + event("F", "-", 20, 1, lock=ONE),
                          acquired(30, 2, OTHER, 6, 100))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_two_that_believe_at_a_time_are_found(self):
        self.finds("mutual exclusion", acquired(10, 1, ONE, 5, 100), acquired(50, 2, OTHER, 6, 100))

    def test_a_later_acquisition_with_a_lower_token_is_found(self):
        self.finds("fencing (order of answers)", acquired(10, 1, ONE, 6, 10),
                   acquired(50, 2, OTHER, 5, 100))

    def test_a_token_of_two_locks_is_found(self):
        one = event("I", "a", 1, 1, 0, ONE, value=1) + event("R", "a", 10, 1, 0, ONE, token=5)
        other = event("I", "a", 2, 2, 0, OTHER, value=2) + event("R", "a", 11, 2, 0, OTHER, token=5)
        self.finds("fencing (unique tokens)", one, other)

    def test_an_update_over_a_value_that_was_gone_is_found(self):
        self.finds("linearizable values", acquired(10, 1, ONE, 5, 100)
                   + updated(20, 1, 1, ONE, 1, 7) + updated(30, 1, 2, ONE, 1, 8))

    def test_a_key_that_is_said_to_be_free_while_it_is_believed_is_found(self):
        read = event("I", "q", 20, 2, 0) + event("R", "q", 21, 2, 0)
        self.finds("honest answers (quorum read)", acquired(10, 1, ONE, 5, 100), read)

    def test_a_line_that_was_cut_off_by_a_kill_is_the_end(self):
        self.assertEqual(self.judge(acquired(10, 1, ONE, 5, 100) + "I a 30").returncode, 0)


if __name__ == "__main__":
    JUDGE = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
