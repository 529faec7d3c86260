"""Tests the servers that the package starts for the tests of others."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import pawl
import pawl.testing

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARENT = """
import json, sys, time
import pawl.testing
server = pawl.testing.start()
print(json.dumps([server.pid, server.endpoints]), flush=True)
time.sleep(600)
"""
FIXTURE = """
import os, socket
import pytest
import pawl

seen = []

@pytest.mark.parametrize("number", range(2))
def test_a_lock_is_taken(pawl_server, number):
    assert pawl_server.endpoints not in seen    # each test has a node of its own
    seen.append(pawl_server.endpoints)
    with pawl.connect(pawl_server.endpoints) as client, client.lock("k") as lock:
        assert lock.token > 0

def test_the_nodes_are_gone():
    for endpoint in seen:
        host, port = endpoint.split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": PACKAGE, "PAWL_TEST_PAWLD": os.environ["PAWLD"], **more}


def refuses(endpoint):
    host, port = endpoint.split(":")
    try:
        socket.create_connection((host, int(port)), 10).close()
    except ConnectionRefusedError:
        return True
    return False


class Servers(unittest.TestCase):
    def named(self, path):
        return mock.patch.dict(os.environ, {"PAWL_TEST_PAWLD": path})

    def test_a_server_grants_locks_and_ends_with_its_block(self):
        with self.named(os.environ["PAWLD"]), pawl.testing.start() as server:
            with pawl.connect(server.endpoints) as client, client.lock("k") as lock:
                self.assertGreater(lock.token, 0)
            for address in (server.redis, server.memcached, server.admin):
                self.assertFalse(refuses(address))
        self.assertTrue(refuses(server.endpoints))
        with self.assertRaises(ProcessLookupError):
            os.kill(server.pid, 0)
        server.stop()

    def test_servers_run_side_by_side(self):
        with self.named(os.environ["PAWLD"]):
            with pawl.testing.start() as one, pawl.testing.start() as other:
                self.assertNotEqual(one.endpoints, other.endpoints)

    def test_the_program_may_be_in_the_path(self):
        with mock.patch.dict(os.environ, {"PATH": os.path.dirname(os.environ["PAWLD"])}):
            os.environ.pop("PAWL_TEST_PAWLD", None)
            with pawl.testing.start() as server:
                self.assertFalse(refuses(server.endpoints))

    def test_without_the_program_the_error_says_where_it_was_looked_for(self):
        with mock.patch.dict(os.environ, {"PATH": "/nonexistent"}):
            os.environ.pop("PAWL_TEST_PAWLD", None)
            with self.assertRaises(FileNotFoundError) as raised:
                pawl.testing.start()
        self.assertIn("PATH", str(raised.exception))
        self.assertIn("PAWL_TEST_PAWLD", str(raised.exception))
        with self.named("/nonexistent/pawld"), self.assertRaises(FileNotFoundError) as raised:
            pawl.testing.start()
        self.assertIn("PAWL_TEST_PAWLD names /nonexistent/pawld", str(raised.exception))

    def test_a_program_that_does_not_start_is_reported_with_what_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pawld")
            for script, timeout, said in (
                    ("echo no such option >&2; exit 2", 10, "has ended: no such option"),
                    ("exec cat", 0.05, "is not ready after 0.05 s: it says nothing")):
                with open(path, "w", encoding="utf-8") as f:
                    f.write("#!/bin/sh\n%s\n" % script)
                os.chmod(path, 0o700)
                with self.named(path), self.assertRaises(RuntimeError) as raised:
                    pawl.testing.start(timeout)
                self.assertIn(said, str(raised.exception))

    def test_a_test_that_is_killed_leaves_no_node(self):
        with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE,
                              env=environment()) as parent:
            pid, endpoint = json.loads(parent.stdout.readline())
            node = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
            parent.send_signal(signal.SIGKILL)
        if node is None:
            self.skipTest("this Python has no os.pidfd_open")
        import select
        self.assertTrue(select.select([node], [], [], 30)[0], "the node outlives its test")
        os.close(node)
        self.assertTrue(refuses(endpoint))

    def test_pytest_is_not_needed(self):
        code = "import sys, pawl.testing; sys.exit('pytest' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code],
                                        env=environment()).returncode, 0)

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
    def test_the_fixture_of_pytest_gives_each_test_a_node(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_mine.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write(FIXTURE)
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "pawl.pytest_plugin",
                 "-p", "no:cacheprovider", path], cwd=folder, capture_output=True, text=True,
                env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("3 passed", run.stdout)


if __name__ == "__main__":
    unittest.main()
