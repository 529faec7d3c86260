"""Runs the command pawl against real nodes, for tests."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import pawltest
from pawltest import PATIENCE

PAWLD, PAWL = "", ""


class Run:
    """The status and the output of a finished command."""

    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, err

    @property
    def json(self):
        return json.loads(self.out)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    # The tests know which node is asked first.
    env.update({"PAWL_PREFER_FIRST": "yes"}, **more)
    return env


def start(*arguments, endpoints="", input=subprocess.DEVNULL, **more):
    """Starts pawl in the background, with pipes for its standard output and errors."""
    env = environment(**({"PAWL_ENDPOINTS": endpoints} if endpoints else {}), **more)
    return subprocess.Popen([PAWL, *arguments], stdin=input, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            env=env, text=True)


def finish(process, text=None):
    """Waits for the end of the process, which reads the text first."""
    out, err = process.communicate(text, timeout=PATIENCE)
    return Run(process, out, err)


def pawl(*arguments, endpoints="", **more):
    return finish(start(*arguments, endpoints=endpoints, **more))


class Alive:
    """A named pipe that commands open for writing. It ends when all who have opened it are gone."""

    def __init__(self, folder):
        self.path = tempfile.mktemp(dir=folder)
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.input = b""

    def _read(self, patience):
        """Reads from the pipe; False: nothing came within that time. Sets self.ended at its end."""
        if not select.select([self.fd], [], [], patience)[0]:
            return False
        data = os.read(self.fd, 4096)
        self.ended = not data
        self.input += data
        return True

    def line(self):
        while b"\n" not in self.input:
            assert self._read(PATIENCE) and not self.ended, "no line has come through the pipe"
        line, _, self.input = self.input.partition(b"\n")
        return line.decode()

    def wait_end(self):
        self.ended = False
        while not self.ended:
            assert self._read(PATIENCE), "a command still has the pipe open"

    def has_ended(self):
        self.ended = False
        while not self.ended and self._read(0):
            pass
        return self.ended

    def close(self):
        os.close(self.fd)


class Case(unittest.TestCase):
    """A test with a folder of its own, whose processes end with it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def alive(self):
        alive = Alive(self.folder)
        self.addCleanup(alive.close)
        return alive

    def start(self, *arguments, **more):
        process = start(*arguments, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        process.stdout.close()
        process.stderr.close()

    def succeeds(self, run):
        self.assertEqual(run.status, 0, run.err)
        return run


class DevCase(Case):
    """A test with one node of its own, which self.endpoints names."""

    def setUp(self):
        super().setUp()
        self.endpoints = "unix:" + os.path.join(self.folder, "node")
        self.node = pawltest.Node([PAWLD, "--dev", "--listen", self.endpoints])
        self.addCleanup(self.node.terminate)  # After a kill its directory would be left behind.
        self.node.wait_log(" voting ")

    def pawl(self, *arguments, **more):
        return pawl(*arguments, endpoints=self.endpoints, **more)

    def begin(self, *arguments, **more):
        return self.start(*arguments, endpoints=self.endpoints, **more)


def main():
    global PAWLD, PAWL
    PAWLD, PAWL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    # What a test asserts in a thread counts, too: without this, Python prints it and goes on.
    died = []
    print_death = threading.excepthook
    threading.excepthook = lambda death: (died.append(death.thread), print_death(death))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    if died and not failed:
        print("FAILED: an exception ended %s" % ", ".join(str(thread) for thread in died))
        failed = 1
    print("passed=%d failed=%d skipped=%d" % (result.testsRun - failed - skipped, failed, skipped))
    sys.exit(1 if failed else 0)
