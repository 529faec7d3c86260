"""What the tests of the guide share: a cluster, the pages, and the programs of docs/guide/examples,
which are started as the pages say."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402
from pawltest import Program  # noqa: E402

GUIDE = os.path.normpath(os.path.join(HERE, "..", "..", "docs", "guide"))
EXAMPLES = os.path.join(GUIDE, "examples")
BINDINGS = os.path.normpath(os.path.join(GUIDE, "..", "..", "bindings"))
PATIENCE = pawltest.PATIENCE


class Paths:
    """The paths of the programs, which main sets."""
    pawld = pawl = programs = None


class Recipe(unittest.TestCase):
    """One cluster of three for all tests of a class; each test has a directory, $PWD, of its
    own."""
    tls = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = pawltest.Cluster(Paths.pawld, tls=cls.tls).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.endpoints = ",".join(cls.cluster.clients[n] for n in "abc")

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-guide-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def env(self, **more):
        path = os.pathsep.join([EXAMPLES, os.path.dirname(Paths.pawl), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1",
                "PAWL_ENDPOINTS": self.endpoints, **more}

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def start(self, *arguments):
        program = Program(list(arguments), env=self.env(), cwd=self.dir, stderr=subprocess.STDOUT)
        self.addCleanup(program.kill)
        return program

    def start_c(self, name, *arguments):
        return self.start("stdbuf", "-oL", os.path.join(Paths.programs, name),
                          self.endpoints, *arguments)

    def finish(self, *arguments, status=0):
        """Returns what the process has printed. It must end with that status."""
        program = self.start(*arguments)
        self.assertEqual(program.end(), status, program.lines)
        return program.lines

    def call(self, method, **params):
        with self.cluster.client("a") as client:
            return client.call(method, **params)

    def await_file(self, name, pattern):
        end = time.monotonic() + PATIENCE
        while not (os.path.exists(self.path(name)) and re.search(pattern, self.read(name))):
            self.assertLess(time.monotonic(), end, "no %r in %s" % (pattern, name))
            time.sleep(0.01)  # A file has no event to wait for.

    def await_waiters(self, key, count):
        end = time.monotonic() + PATIENCE
        while len(self.call("waiters", key=key)["waiters"]) != count:
            self.assertLess(time.monotonic(), end, "not %d who wait for %s" % (count, key))
            time.sleep(0.01)


class Clock:
    """What singleton-service.md says, of a program in any language: candidate(name) starts one, and
    ASKED is the line of a leader that was asked to hand over to "two"."""

    def test_the_next_one_leads_when_the_leader_is_killed_or_stopped(self):
        hosts = [self.candidate("a")]
        hosts[0].await_line("^leading")
        for waiting, name in enumerate("bc", 1):
            hosts.append(self.candidate(name))
            self.await_waiters("clock", waiting)
        hosts[0].kill()
        hosts[1].await_line("^tick")
        self.assertEqual(hosts[1].end(signal.SIGTERM), 0)
        hosts[2].await_line("^tick")
        tokens = [int(host.await_line(r"^leading with token (\d+)")[1]) for host in hosts]
        self.assertEqual(tokens, sorted(set(tokens)))
        self.assertEqual(hosts[2].end(signal.SIGTERM), 0)

    def test_a_leader_that_is_asked_hands_over_and_is_a_candidate_again(self):
        one = self.candidate("one")
        one.await_line("^tick")
        two = self.candidate("two")
        self.await_waiters("clock", 1)
        self.finish("pawl", "ask-release", "clock", "--to", "two")
        one.await_line(self.ASKED)
        two.await_line("^tick")
        self.await_waiters("clock", 1)
        self.assertEqual(two.end(signal.SIGTERM), 0)
        one.await_line("^leading", 2)
        self.assertEqual(one.end(signal.SIGTERM), 0)


def page(name):
    with open(os.path.join(GUIDE, name), encoding="utf-8") as f:
        return f.read()


def blocks(text, language):
    return re.findall(r"^```%s\n(.*?)^```$" % language, text, flags=re.S | re.M)


def main(module, counts=False):
    """Runs the tests of the calling module: test_x.py PAWLD PAWL PROGRAMS [unittest options]. With
    `counts` it ends with lines that say how many were skipped, and why."""
    Paths.pawld, Paths.pawl, Paths.programs = [os.path.abspath(p) for p in sys.argv[1:4]]
    del sys.argv[1:4]
    result = unittest.main(module=module, verbosity=2, exit=not counts).result
    for test, reason in result.skipped:
        print("skipped: %s: %s" % (test.id().split(".", 1)[1], reason))
    failed = len(result.failures) + len(result.errors)
    print("passed=%d failed=%d skipped=%d" % (
        result.testsRun - failed - len(result.skipped), failed, len(result.skipped)))
    sys.exit(not result.wasSuccessful())
