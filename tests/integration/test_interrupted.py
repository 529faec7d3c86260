"""Interrupts a program that uses libpawl in the blocking style at random moments, with real nodes.

`test_interrupted.py PAWLD INTERRUPTED [--rounds N]` does N rounds (default 300); SEED repeats the
choices of a run."""

import os
import random
import re
import subprocess
import sys
import unittest

import pawltest

PAWLD = INTERRUPTED = None
ROUNDS = 300
SEED = os.environ.get("SEED", str(random.getrandbits(31)))


class Interrupted(unittest.TestCase):
    def test_no_wake_leaves_a_lock_that_is_held_or_renewed(self):
        with pawltest.Cluster(PAWLD) as cluster:
            endpoints = ",".join(cluster.clients[name] for name in cluster.names)
            done = subprocess.run([INTERRUPTED, endpoints, str(ROUNDS), SEED], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=60 + ROUNDS)
        print("SEED=%s: %s" % (SEED, done.stdout.strip()))
        self.assertEqual(done.returncode, 0, done.stdout)
        # Each kind of call was interrupted.
        counts = dict(re.findall(r"(\w+) \d+, interrupted (\d+)", done.stdout))
        self.assertEqual([kind for kind, count in counts.items() if count == "0"], [])


if __name__ == "__main__":
    INTERRUPTED = os.path.abspath(sys.argv.pop(2))
    if "--rounds" in sys.argv:
        at = sys.argv.index("--rounds")
        ROUNDS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    pawltest.main(globals())
