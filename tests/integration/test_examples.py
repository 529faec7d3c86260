"""Tests the example programs, and with them libpawl, against real nodes."""

import os
import re
import signal
import subprocess
import sys
import time
import unittest

import pawltest
from pawltest import Cluster

PAWLD = None
BLOCKING = EVENTED = POLLED = EMBEDDED = None


class Program(pawltest.Program):
    """An example program that runs."""

    def __init__(self, path, *arguments, **options):
        super().__init__(["stdbuf", "-oL", path, *arguments], stderr=subprocess.STDOUT, **options)

    def await_line(self, start, count=1):
        """Waits until that many lines begin so, and returns the last of them."""
        return super().await_line("^" + re.escape(start), count).string

    def ticks(self):
        with self.seen:
            return self.lines.count("tick")


class Readme(unittest.TestCase):
    def compile(self, *options):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(top, "README.md"), encoding="utf-8") as f:
            program = f.read().split("```c\n")[1].split("```")[0]
        done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-x", "c", "-",
                               *options], input=program, text=True, capture_output=True, cwd=top)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_its_c_program_compiles_as_it_is_printed(self):
        self.compile("-fsyntax-only", "-I", "include")

    def test_it_is_built_with_what_a_build_directory_has(self):
        """As docs/client-guide.md says, from a build that was not installed."""
        build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(PAWLD))))
        env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(build, "meson-uninstalled")}
        for library in ("pawl", "pawl-node"):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", library], env=env,
                                   check=True, text=True, stdout=subprocess.PIPE).stdout.split()
            # Libraries with sanitizers leave symbols to the program.
            self.compile(*flags, "-Wl,--unresolved-symbols=ignore-in-shared-libs",
                         "-o", "/dev/null")


class Examples(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(PAWLD)
        self.addCleanup(self.cluster.__exit__)
        self.cluster.start_all()
        self.endpoints = ",".join(self.cluster.clients[n] for n in "abc")

    def run_example(self, path, *arguments, **options):
        program = Program(path, *arguments, **options)
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

    def test_the_example_with_its_own_loop_renews_its_lock_and_stops_at_a_signal(self):
        first = self.run_example(POLLED, self.endpoints, "spool", stdin=subprocess.PIPE)
        first.say("begin")
        begin = first.await_line("")
        second = self.run_example(POLLED, self.endpoints, "spool", stdin=subprocess.PIPE)
        third = self.run_example(POLLED, self.endpoints, "spool", stdin=subprocess.PIPE)
        with self.cluster.client("c") as client:
            while len(client.call("waiters", key="spool")["waiters"]) < 2:
                pass
            # Nothing comes on its input for longer than the lease.
            with self.assertRaises(pawltest.Refused) as refused:
                client.call("wait", key="spool", timeout_ms=4000, **{"for": "free"})
        self.assertEqual(refused.exception.code, "timeout")
        first.say("end")
        self.assertEqual(first.await_line("", 2), begin.replace("begin", "end"))
        # One waits for the key, and one works.
        self.assertEqual(third.end(signal.SIGTERM), 1)
        self.assertEqual(third.lines, ["not acquired: pawl_wake has interrupted the call"])
        self.assertEqual(first.end(signal.SIGTERM), 0)
        second.say("begin")
        self.assertTrue(second.await_line("").endswith(": begin"))
        second.process.stdin.close()
        self.assertEqual(second.end(), 0)
        self.assertFalse(self.get("spool")["held"])

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
    BLOCKING, EVENTED, POLLED, EMBEDDED = [os.path.abspath(path) for path in sys.argv[2:6]]
    del sys.argv[2:6]
    pawltest.main(globals())
