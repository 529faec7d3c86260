#!/usr/bin/env python3
"""test_bench.py BUILD: tests that tests/bench/run measures everything: each of its parts once, and
for a moment. What it measures in this way says nothing about Pawl."""
import contextlib
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import benchmark
import beside
import callgrind
import gaps
import sites
import spread

MOMENT = 0.2
FEW_LEASES = 5000
# What callgrind writes when `main` calls two functions `go_on` of two files, and one calls itself.
CALLS = """\
fl=(1) ../cluster/a.c
fn=(1) main
cfn=(2) go_on
calls=3 8
9 30
cfi=(2) ../cluster/b.h
cfn=(3) go_on
calls=2 7
9 20
fn=(2)
8 4
cfn=(4) go_on'2
calls=5 8
fn=(4)
8 4
fl=(2)
fn=(3)
7 1
"""
# This program has no ending, so it has to be told that it is Python.
LOADER = importlib.machinery.SourceFileLoader(
    "members", os.path.join(os.path.dirname(os.path.abspath(__file__)), "members"))
MEMBERS = importlib.util.module_from_spec(importlib.util.spec_from_loader("members", LOADER))
LOADER.exec_module(MEMBERS)



class Quiet(benchmark.Report):
    """A report that prints nothing meanwhile."""

    def add(self, key, what, value, target=""):
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            with contextlib.redirect_stderr(nowhere):
                super().add(key, what, value, target)


class Measured(unittest.TestCase):
    def setUp(self):
        for module in (beside, spread, sites):
            self.enterContext(unittest.mock.patch.object(module, "ROUNDS", 1))
        self.report = Quiet()

    def cluster(self, tls=False):
        return self.enterContext(benchmark.Cluster(BUILD, tls))

    def rows(self):
        return [row for _, _, rows in self.report.tables for row in rows]

    def assert_measured(self, *keys):
        """Asserts that there is a figure for each of these, and for nothing else, and that none of
        them is 0."""
        self.assertEqual(sorted(self.report.values), sorted(keys))
        for what, value, _ in self.rows():
            for figure in value.replace("and", " ").split():
                if figure.replace(".", "").isdigit():
                    self.assertGreater(float(figure), 0, what)

    def test_cycles_extends_and_handoffs_also_with_tls(self):
        for tls in (False, True):
            cluster = self.cluster(tls)
            beside.measure_cycles(cluster, None, self.report, f"{tls} ", MOMENT)
            beside.measure_extends(cluster, self.report, f"{tls} ", MOMENT)
            beside.measure_handoff(cluster, self.report, f"{tls} ", MOMENT)
        self.assert_measured(*(f"{tls} {what}" for tls in (False, True) for what in (
            "cycles_1", "cycle_p50_1", "cpu_1", "cycles_64", "cycle_p50_64", "cpu_64", "cycles_256",
            "cycle_p50_256", "cpu_256", "extends", "handoff_p50", "handoff_p99")))

    @unittest.skipUnless(shutil.which("redis-server"), "there is no redis-server here")
    def test_locks_of_redis(self):
        cluster = self.cluster()
        beside.measure_redlock(cluster, self.report, MOMENT)
        with benchmark.Redis() as redis:
            beside.measure_own(cluster, redis, self.report, MOMENT)
            beside.measure_dialect(cluster, redis, self.report, MOMENT)
        self.assert_measured("redlock", "dialect", "dialect_cpu", *(
            f"own_{count}_{socket}_{where}{cpu}" for count in (64, 256)
            for socket in ("tcp", "unix") for where in ("one", "all") for cpu in ("", "_cpu")))

    def test_load_at_all_nodes(self):
        spread.measure_coordinators(self.cluster(), self.report, MOMENT)
        self.assert_measured("coordinators_192", "coordinators_cpu_192", "coordinators_768",
                             "coordinators_cpu_768")

    def test_hot_keys(self):
        spread.measure_hot(self.cluster(), self.report, 1)
        self.assertEqual(len(self.rows()), 3 * (1 + len(spread.HOT)))

    def test_five_masters(self):
        spread.measure_five_cycles(BUILD, self.report, MOMENT)
        self.assertEqual(len(self.rows()), 3 * 3 + 2)

    def test_gaps(self):
        cluster = self.cluster()
        for sign in (signal.SIGKILL, signal.SIGSTOP):
            self.assertGreater(gaps.gap_while(cluster, ["c", "a", "b"], sign), 0)
            self.assertGreater(gaps.gap_of_python(cluster, ["c", "a", "b"], sign), 0)
        for what in ("contend", "turn"):
            self.assertGreater(gaps.hung_home(cluster, what, cluster.keys_of("c")), 0)

    def test_members(self):
        MEMBERS.measure_lag(BUILD, self.report, MOMENT)
        MEMBERS.measure_cost(BUILD, self.report, MOMENT)
        MEMBERS.measure_changes(BUILD, self.report, FEW_LEASES)
        MEMBERS.measure_many(BUILD, self.report, FEW_LEASES, MOMENT)
        self.assertEqual(len(self.rows()), 3 + 2 + 10 + 14)

    def test_calls_that_callgrind_has_counted(self):
        self.assertEqual(callgrind.calls(CALLS.splitlines()),
                         {("../cluster/a.c", "go_on"): 8, ("../cluster/b.h", "go_on"): 2})

    @unittest.skipIf(sites.why_not(), sites.why_not())
    def test_sites(self):
        delay = os.path.join(BUILD, "tests/bench/delay")
        with sites.Wan(delay, "abc", sites.apart("abc", 20)) as wan:
            with sites.SitesCluster(BUILD, wan) as cluster:
                rows = sites.cycles_at(cluster, "b", 1) | sites.elections_at(cluster)
                sites.kill(cluster, "c")
                self.assertGreater(cluster.cycles(MOMENT, 1, nodes=["a"])["cycles"], 0)
        # Two round trips.
        self.assertGreaterEqual(float(rows["acquire, p50"].split()[0]), 40)
        self.assertGreaterEqual(float(rows["get from a quorum, p50"].split()[0]), 20)
        self.assertLess(float(rows["get, p50"].split()[0]), 20)
        self.assertEqual(len(rows), 9 + 3)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Nothing must be left behind.
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
