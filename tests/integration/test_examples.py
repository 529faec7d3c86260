"""Tests the example programs, and with them libpawl, against real nodes."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import pawltest
from pawltest import Cluster

PAWLD = None
BLOCKING = EVENTED = EMBEDDED = None


class Program:
    """An example program that runs, and the lines that it prints."""

    def __init__(self, path, *arguments, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen(["stdbuf", "-oL", path, *arguments], stdin=stdin,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines, self.seen = [], threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.seen:
                self.lines.append(line.rstrip())
                self.seen.notify_all()

    def await_line(self, start, count=1):
        """Waits until that many lines begin so, and returns the last of them."""
        with self.seen:
            found = lambda: [line for line in self.lines if line.startswith(start)]
            if not self.seen.wait_for(lambda: len(found()) >= count, pawltest.PATIENCE):
                raise AssertionError("no line begins with %r in %r" % (start, self.lines))
            return found()[count - 1]

    def ticks(self):
        with self.seen:
            return self.lines.count("tick")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        status = self.process.wait(pawltest.PATIENCE)
        self.reader.join(pawltest.PATIENCE)
        self.process.stdout.close()
        if self.process.stdin:
            self.process.stdin.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.end()


class Readme(unittest.TestCase):
    def test_its_c_program_compiles_as_it_is_printed(self):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(top, "README.md"), encoding="utf-8") as f:
            program = f.read().split("```c\n")[1].split("```")[0]
        done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                               "-x", "c", "-",
                               "-I", os.path.join(top, "include")], input=program, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Examples(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(PAWLD)
        self.addCleanup(self.cluster.__exit__)
        self.cluster.start_all()
        self.endpoints = ",".join(self.cluster.clients[n] for n in "abc")

    def run_example(self, path, *arguments):
        program = Program(path, *arguments)
        self.addCleanup(program.kill)
        return program

    def get(self, key, name="c"):
        with self.cluster.client(name) as client:
            return client.call("get", key=key, consistency="quorum")

    def test_the_blocking_example_works_under_its_lock_and_releases_it(self):
        first = self.run_example(BLOCKING, self.endpoints, "job")
        first.await_line("step 1 of 10")
        second = self.run_example(BLOCKING, self.endpoints, "job")
        self.assertEqual((first.end(), second.end()), (0, 0))
        self.assertEqual(len([line for line in second.lines if line.startswith("step")]), 10)
        token = lambda program: int(program.lines[0].split()[-1])
        self.assertGreater(token(second), token(first))
        self.assertFalse(self.get("job")["held"])

    def test_the_event_driven_example_leads_until_it_is_told_to_stop(self):
        program = self.run_example(EVENTED, self.endpoints, "leader")
        program.await_line("leading with token")
        program.await_line("tick", 5)
        self.assertTrue(self.get("leader")["held"])
        self.assertEqual(program.end(signal.SIGTERM), 0)
        self.assertIn("released", program.lines)
        self.assertFalse(self.get("leader")["held"])

    def test_a_leader_survives_the_death_of_the_node_that_it_is_connected_to(self):
        program = self.run_example(EVENTED, self.endpoints, "leader")
        program.await_line("leading with token")
        self.cluster.nodes["a"].kill()
        program.await_line("tick", program.ticks() + 45)  # The lease of three seconds is shorter.
        self.assertFalse([line for line in program.lines if line.startswith("lost")])
        self.assertTrue(self.get("leader")["held"])
        self.assertEqual(program.end(signal.SIGTERM), 0)

    def test_a_leader_survives_a_node_that_hangs(self):
        program = self.run_example(EVENTED, self.endpoints, "leader")
        program.await_line("leading with token")
        self.cluster.nodes["a"].signal(signal.SIGSTOP)
        program.await_line("tick", program.ticks() + 45)
        self.assertFalse([line for line in program.lines if line.startswith("lost")])
        self.assertEqual(program.end(signal.SIGTERM), 0)

    def test_without_a_majority_the_leader_is_told_in_time_and_leads_again_later(self):
        program = self.run_example(EVENTED, self.endpoints, "leader")
        program.await_line("leading with token")
        for name in "bc":
            self.cluster.nodes[name].signal(signal.SIGSTOP)
        lost = program.await_line("lost")
        self.assertGreater(int(lost.split(";")[1].split()[0]), 100)
        for name in "bc":
            self.cluster.nodes[name].signal(signal.SIGCONT)
        program.await_line("leading with token", 2)
        self.assertEqual(program.end(signal.SIGTERM), 0)

    def test_a_leader_that_was_stopped_too_long_knows_it_at_once(self):
        program = self.run_example(EVENTED, self.endpoints, "leader")
        program.await_line("leading with token")
        rival = self.run_example(EVENTED, self.endpoints, "leader")
        os.kill(program.process.pid, signal.SIGSTOP)
        rival.await_line("leading with token")
        before = program.ticks()
        os.kill(program.process.pid, signal.SIGCONT)
        self.assertIn("; 0 ms", program.await_line("lost"))
        self.assertEqual(program.ticks(), before)
        self.assertEqual(rival.end(signal.SIGTERM), 0)
        program.await_line("leading with token", 2)


class Embedded(unittest.TestCase):
    """A program with a node inside joins a running cluster, reads from its own memory, and becomes
    a master."""

    def setUp(self):
        self.cluster = Cluster(PAWLD)
        self.addCleanup(self.cluster.__exit__)
        self.cluster.start_all()

    def start(self, name="x", stdin=subprocess.PIPE):
        state = os.path.join(self.cluster.dir, "state-" + name)
        masters = ",".join("%s=%s" % pair for pair in self.cluster.peers.items())
        program = Program(EMBEDDED, name, "test", state, "127.0.0.1:0", masters, "key", stdin=stdin)
        self.addCleanup(program.kill)
        return program, program.await_line("listening on ").split()[-1]

    def change(self, method, **params):
        with self.cluster.client("a") as client:
            return client.call(method, **params)

    def test_the_program_joins_reads_locally_writes_and_is_promoted(self):
        program, address = self.start()
        program.await_line("outside")
        self.change("cluster_add_replica", name="x", address=address)
        program.await_line("following in epoch 2")
        with self.cluster.client("b") as client:
            lock = client.call("acquire", key="key", owner="somebody", lease_ms=20000)
            program.await_line("held by somebody with token %d" % lock["token"])
            client.call("release", key="key", lock_id=lock["lock_id"])
        program.await_line("free")
        program.say("take")
        program.await_line("taken with token")
        program.await_line("held by x with token")
        self.change("cluster_promote", name="x")
        program.await_line("voting in epoch 3")
        with self.cluster.client("c") as client:
            self.assertEqual(client.call("get", key="key", consistency="quorum")["owner"], b"x")
        program.say("give")
        program.await_line("given")
        self.assertEqual(program.end(signal.SIGTERM), 0)
        self.assertIn("stopped", program.lines)

    def test_the_program_runs_as_a_service_whose_input_is_nothing_or_a_file(self):
        with open(os.path.join(self.cluster.dir, "input"), "w+", encoding="ascii") as file:
            file.write("take\n")
            file.flush()
            for name, stdin in (("x", subprocess.DEVNULL), ("y", file)):
                program, address = self.start(name, stdin)
                program.await_line("outside")
                self.change("cluster_add_replica", name=name, address=address)
                program.await_line("following")
                self.assertEqual(program.end(signal.SIGTERM), 0)
                self.assertIn("stopped", program.lines)
                self.assertEqual([line for line in program.lines if "epoll" in line.lower()], [])

    def test_its_locks_are_free_soon_after_it_died(self):
        program, address = self.start()
        program.await_line("outside")
        self.change("cluster_add_replica", name="x", address=address)
        program.await_line("following")
        program.say("take")
        program.await_line("taken")
        program.await_line("held by x")
        with self.cluster.client("a") as client:
            program.kill()
            died = time.monotonic()
            client.call("acquire", key="key", lease_ms=5000, wait_ms=20000)
            waited = time.monotonic() - died
        self.assertGreater(waited, 0.3)  # Until then it might have come back.
        self.assertLess(waited, 3)       # Its lease is half a minute.


if __name__ == "__main__":
    BLOCKING, EVENTED, EMBEDDED = [os.path.abspath(path) for path in sys.argv[2:5]]
    del sys.argv[2:5]
    pawltest.main(globals())
