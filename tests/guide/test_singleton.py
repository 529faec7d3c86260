"""Tests the parts of singleton-service.md that are not typed: the unit for systemd, and the program
that is its own candidate."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import guide
from guide import EXAMPLES, Recipe


class Unit(Recipe):
    def unit(self):
        with open(os.path.join(EXAMPLES, "clock.service"), encoding="utf-8") as f:
            return f.read()

    @unittest.skipUnless(shutil.which("systemd-analyze"),
                         "systemd-analyze is not installed (Debian: systemd)")
    def test_systemd_accepts_the_unit(self):
        self.write("clock.service", self.unit().replace("/usr/bin/pawl", guide.Paths.pawl))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.path("clock.service")],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, [line for line in done.stderr.splitlines()
                                            if "clock.service" in line]), (0, []))

    def start_host(self, name):
        """Returns the command of ExecStart, on a host of that name."""
        unit = re.sub(r"\\\n\s*", "", self.unit())  # A command may go on in the next line.
        command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
        for there, here in (("/usr/bin/pawl", "pawl"), ("/usr/local/bin/clock.sh", "clock.sh"),
                            ("/var/lib/clock/log", "log"),
                            ("%H", name)):
            self.assertIn(there, command)
            command = command.replace(there, here)
        return self.start(*command.split())

    def leader(self):
        return self.call("get", key="clock", consistency="quorum")

    def test_stopping_the_leader_ends_the_service_first_and_then_the_next_host_leads(self):
        first = self.start_host("host-a")
        self.await_file("log", r"^\d+ \d")
        second = self.start_host("host-b")
        self.await_waiters("clock", 1)
        token = self.leader()["token"]
        self.assertEqual(first.end(signal.SIGTERM), 0)  # As with KillMode=mixed, only pawl gets it.
        self.await_file("log", r"%d stops\n\d+ \d" % token)
        self.assertEqual(self.leader()["owner"], b"host-b")
        self.assertEqual(second.end(signal.SIGTERM), 0)


class Killed(Recipe):
    def test_a_service_that_ignores_sigterm_is_gone_before_the_next_one_begins(self):
        first = self.start("pawl", "elect", "stubborn", "--lease", "5s", "--release-on-disconnect",
                           "--", "sh", "-c",
                           "trap '' TERM; while :; do echo old >>log; sleep 0.01; done")
        self.await_file("log", "old")
        second = self.start("pawl", "elect", "stubborn", "--lease", "5s", "--release-on-disconnect",
                            "--", "sh", "-c",
                            "while :; do echo new >>log; sleep 0.01; done")
        self.await_waiters("stubborn", 1)
        first.kill()
        self.await_file("log", "(new\n){50}")
        second.end(signal.SIGTERM)
        self.assertNotIn("old", self.read("log").split("new", 1)[1])


class Failures(Recipe):
    """The table at the end of the page. Each test has candidates a and b, and a leads."""

    def candidate(self, election, name, *options):
        return self.start("pawl", "elect", election, "--as", name, "--lease", "5s",
                          "--release-on-disconnect", *options, "--",
                          "clock.sh", "log-" + name)

    def two(self, election):
        first = self.candidate(election, "a")
        self.await_file("log-a", r"^\d+ \d")
        second = self.candidate(election, "b")
        self.await_waiters(election, 1)
        return first, second

    def test_a_candidate_with_a_higher_priority_takes_over_as_soon_as_it_comes(self):
        first = self.candidate("prior", "a")
        self.await_file("log-a", r"^\d+ \d")
        second = self.candidate("prior", "b", "--priority", "10", "--takeover")
        self.await_file("log-b", r"^\d+ \d")
        self.assertIn("stops", self.read("log-a"))
        self.await_waiters("prior", 1)  # Now a is a candidate again.
        for program in (first, second):
            program.end(signal.SIGTERM)

    def test_a_leader_that_must_end_while_it_hands_over_is_not_a_candidate_again(self):
        first = self.start("pawl", "elect", "slow", "--as", "a", "--lease", "5s", "--", "sh", "-c",
                           "trap 'echo begun >>log; sleep 0.3; exit' TERM; echo leads >>log; while "
                           ":; do sleep 0.01; done")
        self.await_file("log", "leads")
        second = self.candidate("slow", "b")
        self.await_waiters("slow", 1)
        self.finish("pawl", "ask-release", "slow", "--to", "b")
        self.await_file("log", "begun")
        first.end(signal.SIGTERM)
        self.await_file("log-b", r"^\d+ \d")
        self.assertEqual(self.call("waiters", key="slow")["waiters"], [])
        second.end(signal.SIGTERM)

    def test_when_pawl_hangs_the_service_is_ended_and_the_next_one_leads(self):
        first, second = self.two("hangs")
        first.process.send_signal(signal.SIGSTOP)
        self.await_file("log-b", r"^\d+ \d")
        self.assertIn("stops", self.read("log-a"))
        first.kill()
        second.end(signal.SIGTERM)

    def test_nothing_happens_when_a_node_dies_and_without_a_majority_the_service_ends(self):
        first, second = self.two("nodes")
        self.cluster.nodes["a"].kill()  # Both are connected to this node.
        before = self.read("log-a").count("\n")
        self.await_file("log-a", r"(.*\n){%d}" % (before + 6))  # This takes longer than the lease.
        self.assertNotIn("stops", self.read("log-a"))
        self.cluster.nodes["b"].signal(signal.SIGSTOP)
        self.await_file("log-a", "stops")
        self.cluster.nodes["b"].signal(signal.SIGCONT)
        end = time.monotonic() + guide.PATIENCE
        while self.read("log-a").endswith("stops\n") and not os.path.exists(self.path("log-b")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        for program in (first, second):
            program.end(signal.SIGTERM)
        self.cluster.start("a").wait_log(" voting ")


class InC(guide.Clock, Recipe):
    ASKED = "^stepped down: asked to"

    def candidate(self, name):
        return self.start_c("clock", name)


if __name__ == "__main__":
    guide.main("__main__")
