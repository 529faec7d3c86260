"""Tests scripts/cluster: the nodes that it starts run, what it breaks is broken and heals, and
everything is removed at the end."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
import zlib

import netns

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class TestCluster(unittest.TestCase):
    def setUp(self):
        self.parent = tempfile.TemporaryDirectory(prefix="pawl-cluster-")
        self.addCleanup(self.parent.cleanup)
        self.dir = os.path.join(self.parent.name, "c")
        self.addCleanup(self.cluster, "down", status=None)

    def cluster(self, *arguments, status=0):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "cluster"), "--dir",
                               self.dir, "--build", BUILD, *arguments],
                              capture_output=True, text=True, timeout=120)
        if status is not None:
            self.assertEqual(done.returncode, status, "%s: %s%s"
                             % (arguments, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def namespaces(self):
        """Returns the namespaces of this cluster. There may be others: of other tests."""
        prefix = "pawl-%08x-" % zlib.crc32(self.dir.encode())
        return ([n for n in os.listdir(netns.PLACE) if n.startswith(prefix)]
                if os.path.isdir(netns.PLACE) else [])

    def test_a_cluster_is_made_broken_healed_and_removed(self):
        self.assertIn("n1, n2, n3", self.cluster("up", "--masters", "3", "--replicas", "1"))
        self.assertEqual(len(self.namespaces()), 5)
        self.assertIn("the cluster runs already", self.cluster("up", status=1))
        self.cluster("run", "pawl", "acquire", "one", "--lease", "5s")
        self.cluster("run", "--at", "n2", "--", "pawl", "get", "one", "--quorum")

        self.cluster("kill", "n1")
        self.assertIn("does not run", self.cluster("kill", "n1", status=1))
        self.cluster("partition", "n2")
        self.assertIn("hears nothing of n3", self.cluster("status", status=None))
        self.assertIn("no_quorum", self.cluster("run", "pawl", "acquire", "two", "--lease", "1s",
                                                "--json", status=3))
        self.cluster("heal")
        address = self.cluster("new", "n5").split()[-1]
        self.cluster("run", "pawl", "cluster", "add-replica", "n5", address)
        self.cluster("run", "pawl", "cluster", "replace", "n1", "n5")
        self.cluster("run", "pawl", "acquire", "two", "--lease", "1s", "--wait", "20s")
        self.cluster("lose-disk", "n2")
        self.cluster("start", "n2")
        self.cluster("run", "pawl", "cluster", "replace", "n2", "n2")
        self.assertIn("there is no node n7", self.cluster("start", "n7", status=1))

        self.cluster("stop", "n3")
        self.assertIn("SIGSTOP", self.cluster("status", status=None))
        self.cluster("down")
        self.assertEqual(self.namespaces(), [])
        self.assertFalse(os.path.exists(self.dir))
        self.assertIn("there is no cluster", self.cluster("status", status=1))


if __name__ == "__main__":
    reason = netns.why_not()
    if reason:
        print("skipped: %s" % reason)
        sys.exit(77)  # For meson this is a skipped test.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Nothing must be left behind.
    BUILD = os.path.abspath(sys.argv.pop(1))
    del sys.argv[1:3]  # These programs are named so that they are built before.
    unittest.main(verbosity=2)
