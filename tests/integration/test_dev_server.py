"""Tests pawld --dev --print-endpoints: a node that a test starts says where it listens, and does
not outlive its test."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from adminhttp import fetch
from pawltest import PATIENCE, Client, lock_id, split

PAWLD = None
# A test that starts a node and says no more. The node has this program's standard output.
PARENT = """
import subprocess, sys, time
node = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
time.sleep(600)
"""


def start(*more, stdin=subprocess.PIPE):
    return subprocess.Popen([PAWLD, "--dev", "--print-endpoints", *more], stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def said(address, line):
    """Returns the beginning of what the server at that address answers to the line."""
    with socket.create_connection(split(address), PATIENCE) as s:
        s.sendall(line)
        return s.recv(100)


class DevServer(unittest.TestCase):
    def started(self, *more, **how):
        """Returns a node and what it has printed."""
        process = start(*more, **how)
        self.addCleanup(self.end, process)
        return process, json.loads(process.stdout.readline())

    def end(self, process):
        process.kill()
        process.communicate(timeout=PATIENCE)

    def test_it_tells_all_listeners_once_they_are_ready(self):
        process, told = self.started()
        self.assertEqual(sorted(told), ["admin", "client", "memcached", "pid", "redis"])
        self.assertEqual(told["pid"], process.pid)
        with Client(told["client"]) as client:
            self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                           lock_id=lock_id())["token"], 0)
        self.assertEqual(said(told["redis"], b"PING\r\n"), b"+PONG\r\n")
        self.assertTrue(said(told["memcached"], b"version\r\n").startswith(b"VERSION "))
        self.assertEqual(fetch(told["admin"], "/livez")[0], 200)
        self.assertTrue(all(told[name].startswith("127.0.0.1:") for name in
                            ("admin", "client", "memcached", "redis")))

    def test_several_run_side_by_side(self):
        told = [self.started()[1] for _ in range(5)]
        addresses = [one[name] for one in told for name in sorted(one) if name != "pid"]
        self.assertEqual(len(set(addresses)), 20)

    def test_an_address_may_be_chosen(self):
        with tempfile.TemporaryDirectory() as directory:
            path = "unix:" + os.path.join(directory, 'a "socket"')
            _, told = self.started("--listen", path)
            self.assertEqual(told["client"], path)
            with Client(path) as client:
                self.assertEqual(client.call("ping")["node"], "dev")

    def test_it_ends_with_its_standard_input_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            os.environ["TMPDIR"] = directory
            try:
                process, _ = self.started()
            finally:
                del os.environ["TMPDIR"]
            process.stdin.write(b"this means nothing\n")
            process.stdin.flush()
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertEqual(os.listdir(directory), [])
        process.stdin = None

    def test_a_test_that_is_killed_leaves_no_node(self):
        parent = subprocess.Popen([sys.executable, "-c", PARENT, PAWLD, "--dev",
                                   "--print-endpoints"], stdout=subprocess.PIPE)
        self.addCleanup(self.end, parent)
        told = json.loads(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        # The end of the output: neither the parent nor the node is there any more.
        self.assertEqual(parent.stdout.read(), b"")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(split(told["client"]), PATIENCE)

    def test_an_input_that_says_nothing_of_a_parent_does_not_end_it(self):
        process, told = self.started(stdin=subprocess.DEVNULL)
        with Client(told["client"]) as client:
            self.assertEqual(client.call("ping")["node"], "dev")
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_it_is_for_dev_alone(self):
        process = subprocess.run([PAWLD, "--config", "/x", "--print-endpoints"],
                                 capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(process.returncode, 2)
        self.assertIn("--print-endpoints needs --dev", process.stderr)


if __name__ == "__main__":
    PAWLD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
