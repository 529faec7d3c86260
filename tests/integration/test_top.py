#!/usr/bin/env python3
"""test_top.py PAWLD PAWL: tests pawl top, and the method top, against real nodes."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

import cli_fixture
import pawltest
from adminhttp import AdminCluster
from cli_fixture import pawl
from pawltest import PATIENCE, Refused, wait_until

LISTS = {"longest_queues", "oldest_waiters", "oldest_holders", "most_granted"}
TOTALS = {"requests", "refusals", "grants", "releases", "losses", "waiting"}


class Busy(unittest.TestCase):
    """A cluster in which a key is handed over, one is held, and one has a queue."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = AdminCluster(cli_fixture.PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.clients = [cls.cluster.client("a") for _ in range(2)]
        a, b = cls.clients
        a.call("acquire", key="held", lease_ms=60000, owner="keeper")
        for _ in range(2):
            b.send("acquire", key="held", lease_ms=60000, wait_ms=60000)
        # A candidate of an election waits without an end.
        b.send("acquire", key="held", lease_ms=60000, wait_ms=2**32 - 1)
        # A key that is no text.
        a.call("acquire", key=b"\xff\x1b[31m", lease_ms=60000, owner="x")
        cls.over = threading.Event()
        cls.worker = threading.Thread(target=cls.work)
        cls.worker.start()
        cls.addClassCleanup(cls.worker.join, PATIENCE)
        cls.addClassCleanup(cls.over.set)

    @classmethod
    def work(cls):
        with cls.cluster.client("b") as client:
            while not cls.over.wait(0.01):
                try:
                    got = client.call("acquire", key="hot", lease_ms=60000)
                    client.call("release", key="hot", lock_id=got["lock_id"])
                except Refused as refused:
                    # The other nodes may be late, because others use the processors.
                    if refused.code != "no_quorum":
                        raise

    def top(self, node, **params):
        with self.cluster.client(node) as client:
            return client.call("top", **params)

    def listed(self, node, name, **params):
        return [one["key"] for one in self.top(node, **params)[name]]

    def test_the_answer_of_a_node(self):
        wait_until(self, lambda: b"held" in self.listed("a", "oldest_holders"))
        said = self.top("a")
        self.assertEqual(set(said), LISTS | TOTALS | {"node"})
        self.assertEqual(said["node"], "a")
        first = said["oldest_holders"][0]
        self.assertEqual((first["key"], first["owner"]), (b"held", b"keeper"))
        self.assertGreater(first["held_ms"], 0)
        self.assertEqual([w["key"] for w in said["oldest_waiters"]], [b"held"])
        self.assertEqual(said["waiting"], 3)
        # Every master sees what is granted; a key's home knows its queue.
        for node in "abc":
            wait_until(self, lambda: self.listed(node, "most_granted")[:1] == [b"hot"])
        wait_until(self, lambda: any({"key": b"held", "waiting": 3}
                                     in self.top(n)["longest_queues"] for n in "abc"))

    def test_only_keys_with_the_prefix(self):
        for name in LISTS:
            self.assertEqual(self.listed("a", name, prefix="nothing"), [])
        wait_until(self, lambda: self.listed("a", "oldest_holders", prefix="hel") == [b"held"])
        self.assertEqual(self.listed("a", "oldest_waiters", prefix="hel"), [b"held"])

    def test_the_admin_port_says_the_same(self):
        shown = json.loads(self.cluster.fetch("a", "/v1/top?prefix=hel")[2])
        self.assertEqual(set(shown), LISTS | TOTALS | {"node"})
        self.assertEqual([k["key"] for k in shown["oldest_waiters"]], ["held"])
        self.assertEqual(shown["most_granted"][0]["key"], "held")

    def command(self, *arguments, **more):
        return pawl("top", *arguments, endpoints=",".join(self.cluster.clients.values()), **more)

    def test_a_line_a_second(self):
        begun = time.monotonic()
        done = self.command("--count", "3")
        self.assertGreater(time.monotonic() - begun, 2)
        self.assertEqual((done.status, done.err), (0, ""))
        lines = done.out.splitlines()
        self.assertEqual(len(lines), 3)
        # A node that answers late, because others use the processors, is named at the end.
        self.assertRegex(lines[2], r"^nodes 3/3 voting 3/3 requests/s [1-9]\d* refusals/s \d+ "
                         r"grants/s [1-9]\d* releases/s [1-9]\d* losses/s 0 waiting [34] "
                         r"most_granted hot \d+ longest_queues held 3 oldest_waiters held \S+ "
                         r"oldest_holders held \S+( 127.0.0.1:\d+: slow)*$")
        self.assertNotIn("\033", done.out)

    def test_an_object_a_second(self):
        done = self.command("--json", "--count", "2")
        objects = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(len(objects), 2)
        last = objects[1]
        self.assertEqual({n["node"] for n in last["nodes"]}, set("abc"))
        self.assertTrue(all(n["answers"] and n["ready"] for n in last["nodes"]))
        self.assertGreater(last["rates"]["grants"], 0)
        self.assertEqual((last["voting"], last["quorum"], last["masters"]), (3, 2, 3))
        self.assertEqual(last["most_granted"][0]["key"], "hot")
        self.assertIn("ff1b5b33316d", [k.get("key_hex") for k in last["oldest_holders"]])

    def test_only_keys_with_the_prefix_of_the_command(self):
        done = self.command("--json", "--count", "1", "--prefix", "hel")
        shown = json.loads(done.out)
        self.assertEqual({k["key"] for name in LISTS for k in shown[name]}, {"held"})

    def screen(self, **more):
        return Screen(self, ",".join(self.cluster.clients.values()), **more)

    def test_the_screen_and_its_keys(self):
        screen = self.screen(NO_COLOR="1")
        lines = screen.wait("[most granted]", "hot", "3 of 3 masters vote")
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        screen.press("\033[C")
        screen.wait("[longest queues]", "held")
        screen.press("\033[C")
        screen.wait("[oldest waiters]", "held")
        screen.press("\033[C")
        lines = screen.wait("[oldest holders]", "keeper", "held")
        # What is no text cannot steer the terminal.
        self.assertTrue(any(line.startswith(r"\xff\x1b[31m") for line in lines), lines)
        screen.press("\033[B")
        screen.wait("[oldest holders]", without="keeper")
        screen.press("\033[A")
        screen.wait("[oldest holders]", "keeper")
        screen.press("\033[D")
        screen.wait("[oldest waiters]")
        screen.resize(10, 50)
        wait_until(self, lambda: screen.read() or len(screen.lines()) <= 10)
        self.assertLessEqual(max(map(len, screen.lines())), 50)
        screen.press("q")
        self.assertEqual(screen.end(), 0)
        self.assertNotRegex(screen.output, r"\033\[3\dm")

    def test_trouble_has_a_colour(self):
        self.cluster.nodes["c"].signal(signal.SIGSTOP)
        self.addCleanup(self.cluster.nodes["c"].signal, signal.SIGCONT)
        screen = self.screen()
        screen.wait("no answer for", "2 of 3 nodes answer")
        self.assertIn("\033[31m", screen.output)
        screen.process.send_signal(signal.SIGTERM)
        self.assertEqual(screen.end(), 0)
        done = self.command("--count", "2")
        self.assertIn("%s: silent" % self.cluster.clients["c"], done.out.splitlines()[1])


class Screen:
    """pawl top in a terminal of 80 columns and 24 lines."""

    def __init__(self, case, endpoints, **more):
        self.case, self.output = case, ""
        self.terminal, theirs = pty.openpty()
        case.addCleanup(os.close, self.terminal)
        self.resize(24, 80)
        env = cli_fixture.environment(PAWL_ENDPOINTS=endpoints, TERM="xterm")
        env.pop("NO_COLOR", None)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        case.addCleanup(os.close, theirs)
        self.process = subprocess.Popen([cli_fixture.PAWL, "top"], stdin=theirs, stdout=theirs,
                                        stderr=theirs, env={**env, **more})
        case.addCleanup(self.process.wait, PATIENCE)
        case.addCleanup(self.process.kill)

    def resize(self, lines, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    def read(self):
        """Reads what has come. Returns false."""
        if select.select([self.terminal], [], [], 0.05)[0]:
            self.output += os.read(self.terminal, 1 << 16).decode()
        return False

    def lines(self):
        """The lines of the last whole screen."""
        screens = self.output.split("\033[H")
        whole = [s for s in screens[1:] if "\033[J" in s]
        text = whole[-1].split("\033[J")[0] if whole else ""
        return re.sub(r"\033\[[\d;?]*[A-Za-z]", "", text).split("\r\n")

    def wait(self, *words, without=None):
        end = time.monotonic() + PATIENCE
        while True:
            self.read()
            lines = self.lines()
            text = "\n".join(lines)
            if all(word in text for word in words) and (without is None or without not in text):
                return lines
            self.case.assertLess(time.monotonic(), end, self.output)

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def end(self):
        """Waits for the end, and checks that the terminal is as it was."""
        status = self.process.wait(PATIENCE)
        self.read()
        self.case.assertTrue(self.output.endswith("\033[?25h\033[?1049l"))
        self.case.assertEqual(termios.tcgetattr(self.theirs), self.before)
        return status


class Others(unittest.TestCase):
    def test_nobody_answers(self):
        done = pawl("top", "--count", "1", endpoints="127.0.0.1:1")
        self.assertEqual(done.status, 3)
        self.assertIn("no node has answered", done.err)

    def test_the_right_to_read_these_keys(self):
        folder = tempfile.mkdtemp(prefix="pawl-top-")
        self.addCleanup(shutil.rmtree, folder)
        rules = pawltest.rights(folder, ("plain", "allow = read, acquire on mine/\n"
                                         "allow = status\n"), local=False)
        with pawltest.Cluster(cli_fixture.PAWLD, masters=1, node=rules) as cluster, \
                cluster.client("a") as client:
            with self.assertRaises(Refused) as caught:
                client.call("top")
            self.assertEqual(caught.exception.code, "denied")
            client.call("acquire", key="mine/x", lease_ms=20000)
            client.call("top", prefix="mine/")
            # A node without an admin port begins to look when somebody asks.
            wait_until(self, lambda: [k["key"] for k in client.call(
                "top", prefix="mine/")["oldest_holders"]] == [b"mine/x"])
            done = pawl("top", "--count", "2", endpoints=cluster.clients["a"])
            self.assertIn("denied", done.out)


if __name__ == "__main__":
    cli_fixture.main()
