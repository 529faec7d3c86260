#!/usr/bin/env python3
"""test_log.py PAWLD PAWL: what the daemon's log says, about whom, and that nobody waits for who reads it."""

import fcntl
import os
import re
import subprocess
import tempfile
import time

import cli_fixture
from cli_fixture import Case
from pawltest import PATIENCE, Client

F_SETPIPE_SZ = 1031


class UnreadCase(Case):
    """A node whose log is a small pipe that nobody reads."""

    def setUp(self):
        super().setUp()
        self.endpoint = "unix:" + os.path.join(self.folder, "node")
        self.log, end = os.pipe()
        self.addCleanup(os.close, self.log)
        fcntl.fcntl(end, F_SETPIPE_SZ, 4096)
        self.node = subprocess.Popen([cli_fixture.PAWLD, "--dev", "--listen", self.endpoint], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=end)
        os.close(end)
        self.addCleanup(self.kill)
        self.node.stdout.readline()  # it votes

    def kill(self):
        if self.node.poll() is None:
            self.node.kill()
        self.node.wait(PATIENCE)
        self.node.stdout.close()

    def say(self, client, seconds):
        """Requests that are logged, for so long: as many lines as the node lets through. None of them waits for long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            before = time.monotonic()
            client.call("acquire", key=b"k" * 256, lease_ms=60000)
            client.call("break", key=b"k" * 256, now=True)
            self.assertLess(time.monotonic() - before, 2)
            time.sleep(0.005)


class Unread(UnreadCase):
    def test_a_log_that_nobody_reads_stops_nothing_and_what_was_lost_is_said(self):
        with Client(self.endpoint, timeout=5) as client:
            self.say(client, 7)  # more than pipe and queue hold
        text = b""
        while b"log_lines_lost" not in text:
            text += os.read(self.log, 1 << 16)
        self.assertRegex(text.decode(), r"warning log_lines_lost lines=[1-9]\d* why=")

    def test_a_node_ends_although_nobody_reads_what_it_says(self):
        with Client(self.endpoint, timeout=5) as client:
            self.say(client, 1)
        self.node.terminate()
        self.assertEqual(self.node.wait(10), 0)


if __name__ == "__main__":
    cli_fixture.main()
