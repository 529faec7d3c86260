"""Tests mutual exclusion from end to end: the beliefs of libpawl are compared between processes,
while nodes and clients are killed and stopped.

All processes are on one machine, so they have the same CLOCK_BOOTTIME and their times can be
compared. SECONDS and SEED may be set in the environment."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import pawltest
from pawltest import Cluster

PAWLD = RIVAL = None
SECONDS = int(os.environ.get("SECONDS", "12"))
SEED = int(os.environ.get("SEED", random.getrandbits(31)))
LEASE_MS = 500


class Trouble:
    """Makes trouble for at most one master and one rival at a time; each comes back."""

    def __init__(self, cluster, rivals, rng):
        self.cluster, self.rivals, self.rng = cluster, rivals, rng

    def kill(self):
        name = self.rng.choice(self.cluster.names)
        self.cluster.nodes[name].kill()
        time.sleep(self.rng.uniform(0, 0.5))
        self.cluster.start(name).wait_log(" voting ")

    def stop_node(self):
        node = self.cluster.nodes[self.rng.choice(self.cluster.names)]
        self.pause(node.process)

    def stop_rival(self):
        self.pause(self.rng.choice(self.rivals))

    def pause(self, process):
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 3 * LEASE_MS / 1000))
        process.send_signal(signal.SIGCONT)

    def run_until(self, end):
        while time.monotonic() < end:
            self.rng.choice([self.kill, self.stop_node, self.stop_rival, self.stop_rival])()
            time.sleep(self.rng.uniform(0, 0.3))


def overlaps(lines):
    """Returns pairs that believed at the same time, or whose tokens do not grow with time."""
    wrong, by_key = [], {}
    for line in lines:
        key, token, begin, end = line.split()
        by_key.setdefault(key, []).append((int(begin), int(end), int(token)))
    for key, intervals in by_key.items():
        intervals.sort()
        for one, other in zip(intervals, intervals[1:]):
            if other[0] < one[1] or other[2] <= one[2]:
                wrong.append((key, one, other))
    return wrong


class Rivals(unittest.TestCase):
    def test_the_check_finds_what_is_wrong(self):
        self.assertEqual(overlaps(["k 1 0 10", "k 2 10 20", "j 1 5 15"]), [])
        self.assertEqual(len(overlaps(["k 1 0 11", "k 2 10 20"])), 1)
        self.assertEqual(len(overlaps(["k 2 0 10", "k 2 10 20"])), 1)

    def test_no_two_believe_at_once_whatever_happens(self):
        print("SEED=%d SECONDS=%d" % (SEED, SECONDS), flush=True)
        rng = random.Random(SEED)
        with Cluster(PAWLD, cluster="max_lease = 5s\nrequest_timeout = 300ms\npromise_timeout = "
                                    "600ms") as cluster:
            rivals = []
            for i in range(3):
                names = cluster.names[i:] + cluster.names[:i]
                rivals.append(subprocess.Popen([RIVAL, ",".join(cluster.clients[n] for n in names),
                                                "4", str(LEASE_MS),
                                                str(SECONDS), str(rng.getrandbits(30))],
                                               stdout=subprocess.PIPE, text=True))
            outputs = [[] for _ in rivals]
            readers = [threading.Thread(target=lambda o=o, r=r: o.extend(r.stdout))
                       for o, r in zip(outputs, rivals)]
            try:
                for reader in readers:
                    reader.start()
                Trouble(cluster, rivals, rng).run_until(time.monotonic() + SECONDS - 2)
                statuses = [rival.wait(pawltest.PATIENCE) for rival in rivals]
            finally:
                for rival in rivals:
                    rival.kill()
                for reader in readers:
                    reader.join()
                for rival in rivals:
                    rival.stdout.close()
        lines = [line for output in outputs for line in output]
        print("%d beliefs" % len(lines))
        self.assertEqual(statuses, [0, 0, 0])
        self.assertEqual(overlaps(lines), [])
        self.assertGreater(len(lines), SECONDS * 2)


if __name__ == "__main__":
    RIVAL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
