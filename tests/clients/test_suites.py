"""test_suites.py PAWLD: what scripts/test-clients reads from the output of suites, and the suite of
redis-py at nodes of Pawl."""

import os
import sys
import tempfile
import unittest

import servers
import suites

UNITTEST = """
test_a (__main__.A.test_a) ... ok
======================================================================
FAIL: test_b (__main__.A.test_b)
======================================================================
ERROR: test_c (__main__.A.test_c)
----------------------------------------------------------------------
Ran 5 tests in 1.230s

FAILED (failures=1, errors=1, skipped=1)
"""
PYTEST = """
FAILED tests/test_lock.py::TestLock::test_b[pool] - AssertionError: assert 1
2 failed, 81 passed, 52 skipped in 2.18s
"""
MOCHA = """
    ✓ should throw an error if not passed any clients
    1) emits a clientError event when a client error occurs
  223 passing (21s)
  1 failing

  1) Redlock: single-server
       emits a clientError event when a client error occurs:
"""
NODE = """
not ok 3 - one server: a lock ends
# tests 3
# pass 2
# fail 1
"""
RUBY = """
  1) Failure:
Locks#test_a_lock_ends [ruby_locks.rb:50]:
6 runs, 21 assertions, 1 failures, 0 errors, 0 skips
"""
PHP = """
FAILED a lock ends: Exception: not so: it is free
passed=6 failed=1
"""


def suite(part):
    return next(s for s in suites.SUITES if part in s.name)


class Results(unittest.TestCase):
    def test_what_each_runner_says(self):
        for part, text, results in (
                ("redis-py", UNITTEST, (2, 2, ["test_b", "test_c"])),
                ("redlock 4", MOCHA, (223, 1,
                                      ["emits a clientError event when a client error occurs"])),
                ("redlock 5", NODE, (2, 1, ["one server: a lock ends"])),
                ("ruby", RUBY, (5, 1, ["test_a_lock_ends"])),
                ("phpredis", PHP, (6, 1, ["a lock ends"]))):
            self.assertEqual(suite(part).results(text), results, part)
        self.assertEqual(suites.RedisPySource("x").results(PYTEST),
                         (81, 1, ["TestLock::test_b[pool]"]))

    def test_a_suite_that_did_not_run_has_passed_nothing(self):
        for s in [*suites.SUITES, suites.RedisPySource("x")]:
            self.assertEqual(s.results("sh: not found\n")[0], 0, s.name)


class RedisPy(unittest.TestCase):
    def test_its_locks_at_pawl(self):
        with tempfile.TemporaryDirectory() as folder, servers.Pawl(PAWLD, "redis") as cluster:
            log = os.path.join(folder, "log")
            passed, failed, names = suite("redis-py").run(cluster.port, folder, log)
            with open(log, encoding="utf-8") as f:
                self.assertEqual((failed, names), (0, []), f.read())
        self.assertGreater(passed, 20)


if __name__ == "__main__":
    PAWLD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
