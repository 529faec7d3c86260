#!/usr/bin/env python3
"""upgrade_before.py PAWLD_BEFORE PAWLD PAWL_BEFORE PAWL: upgrades three masters of an earlier
version one by one, and goes back in the same way, while locks are held by clients of both versions.
scripts/test-upgrade builds the earlier version and runs this."""

import os
import subprocess
import sys
import unittest

import pawltest
import test_upgrade
from pawltest import Cluster

PAWLD = NEW = PAWL_BEFORE = PAWL = None


class Upgrade(unittest.TestCase):
    replace = test_upgrade.Upgrade.replace
    held, version = test_upgrade.Upgrade.held, test_upgrade.Upgrade.version

    def run_under(self, pawl, *words):
        """Starts a command that runs until this test ends it; returns it and the token of its
        lock."""
        process = subprocess.Popen(
            [pawl, *words, "--endpoints", ",".join(self.cluster.clients.values()), "--", "sh", "-c",
             "echo $PAWL_TOKEN; exec sleep 600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True, env={k: v for k, v in os.environ.items() if not k.startswith("PAWL_")})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, pawltest.PATIENCE)
        self.addCleanup(process.terminate)
        return process, int(process.stdout.readline())

    def tokens(self, key):
        """The tokens of one key after the other, from every node: they grow."""
        for name in self.cluster.names:
            with self.cluster.client(name) as client:
                got = client.call("acquire", key=key, lease_ms=1000)
                self.assertGreater(got["token"], self.last)
                self.last = got["token"]
                client.call("release", key=key, lock_id=got["lock_id"])

    def test_there_and_back_with_locks_held_all_the_time(self):
        self.last = 0
        with Cluster(PAWLD) as self.cluster:
            holder = test_upgrade.Holder(self.cluster, "held")
            runs = [self.run_under(pawl, "run", key, "--lease", "10s")
                    for pawl, key in ((PAWL_BEFORE, "old"), (PAWL, "new"))]
            runs.append(self.run_under(PAWL, "elect", "leader", "--lease", "10s"))
            for pawld in (NEW, PAWLD):
                for name in self.cluster.names:
                    self.replace(self.cluster, holder, name, pawld)
                    for key in ("held", "old", "new", "leader"):
                        self.held(self.cluster, name, key)
                    self.tokens("counted")
                    print("%s runs %s" % (name, self.version(self.cluster, name)), flush=True)
            holder.end()
            with self.cluster.client("a") as client:
                for (process, token), key in zip(runs, ("old", "new", "leader")):
                    self.assertIsNone(process.poll())
                    self.assertEqual(client.call("get", key=key)["token"], token)


if __name__ == "__main__":
    NEW, PAWL_BEFORE, PAWL = (os.path.abspath(sys.argv.pop(2)) for _ in range(3))
    pawltest.main(globals())
