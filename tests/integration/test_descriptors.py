"""A node that may open few files: limits that cannot be kept are said, and the places of
administrators and of other nodes hold although everybody else takes all that there is."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import pawltest
from pawltest import Client, Closed, Refused, split
from test_tls import Certificates

PAWLD = None

FILES = 300
# More than there are files, and fewer than one identity may have by its own limit.
CONNECTIONS = 600
# Less than a stranger may take for its handshake.
SOON_S = 5


class FewFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-files-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.certificates = c = Certificates(folder, nodes="abc", clients=("alice", "bob"))
        # A shell lowers the limit for pawld alone.
        cls.pawld = os.path.join(folder, "pawld")
        with open(cls.pawld, "w") as f:
            f.write("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n" % (FILES, PAWLD))
        os.chmod(cls.pawld, 0o700)
        cls.admin = "unix:" + os.path.join(folder, "admin.sock")

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\nclient_auth = required\n%s%s" % (
                c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
                pawltest.rights(folder, ("alice", pawltest.ALL),
                                ("everybody", pawltest.KEYS), local=False),
                "[admin]\nlisten = %s\n" % cls.admin if name == "a" else "")

        cls.cluster = pawltest.Cluster(cls.pawld, tls=section).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def connect(self, name, timeout=pawltest.PATIENCE):
        return Client(self.cluster.clients["a"], self.certificates.context(name), timeout)

    def crowd(self, name):
        """As many connections as the node takes, all of which stay open; and how many it has
        refused."""
        kept, refused = [], 0
        for _ in range(CONNECTIONS):
            try:
                client = self.connect(name)
                self.addCleanup(client.close)
                client.call("ping")
                kept.append(client)
            except TimeoutError:
                self.fail("a connection was neither taken nor refused")
            except (Refused, Closed, OSError):
                refused += 1
        return kept, refused

    def test_check_config_says_what_cannot_be_kept(self):
        run = subprocess.run([self.pawld, "--check-config", self.cluster.config("a")],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("warning: this process may open %d files" % FILES, run.stdout)

    def test_the_log_says_so_at_the_start_and_after_a_reload(self):
        node = self.cluster.nodes["a"]
        node.wait_log(" warning limits_lowered ", "may open %d files" % FILES)
        start = len(node.lines)
        node.signal(signal.SIGHUP)
        node.wait_log(" warning limits_lowered ", start=start)
        node.wait_log(" reloaded", start=start)

    def test_an_administrator_gets_in_beside_an_identity_that_takes_all(self):
        kept, refused = self.crowd("bob")
        self.assertGreater(len(kept), 30)
        self.assertEqual(len(kept) + refused, CONNECTIONS)
        # The kept places of administrators, each with a request that needs a quorum.
        for _ in range(16):
            alice = self.connect("alice")
            self.addCleanup(alice.close)
            self.assertGreater(alice.call("status")["clients"], len(kept))
            alice.call("get", key="k", consistency="quorum")
        # Those who had a place still have it.
        for client in kept:
            client.call("ping")

    def test_an_administrator_gets_in_beside_strangers_on_all_ports(self):
        a = self.cluster
        for address in (a.clients["a"], a.peers["a"]):
            for n in range(CONNECTIONS // 2):
                s = socket.socket()
                self.addCleanup(s.close)
                s.settimeout(pawltest.PATIENCE)
                # One address alone may not have as many as all strangers together.
                s.bind(("127.0.0.%d" % (n % 4 + 1), 0))
                s.connect(split(address))
        alice = self.connect("alice", SOON_S)
        self.addCleanup(alice.close)
        alice.call("get", key="k", consistency="quorum")


if __name__ == "__main__":
    pawltest.main(globals())
