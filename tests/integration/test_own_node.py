"""The client's own node stops or dies: the command (libpawl) and Python go on at another node
within milliseconds and keep the locks that they hold, and nothing is granted twice when the stopped
node serves what waits in its sockets.

The bounds are generous, because the machine may be busy; tests/bench measures the gaps."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import cli_fixture
import pawltest
from pawltest import Cluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
import pawl

PAWLD = PAWL = None
# In seconds. A client that waits for the whole silence needs 2 s.
GAP = 1.0


class OwnNode(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(PAWLD).__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.endpoints = [self.cluster.clients[name] for name in "cab"]

    def connect(self, **options):
        client = pawl.connect(self.endpoints, prefer_first=True, **options)
        self.addCleanup(client.close)
        self.assertTrue(client.ping())
        self.assertEqual(client.endpoint, self.endpoints[0])
        return client

    def strike(self, number):
        self.cluster.nodes["c"].process.send_signal(number)
        if number == signal.SIGSTOP:
            self.addCleanup(self.cluster.nodes["c"].process.send_signal, signal.SIGCONT)
        else:
            self.cluster.nodes["c"].process.wait()

    def gap_of_the_command(self, number):
        env = cli_fixture.environment(PAWL_ENDPOINTS=",".join(self.endpoints))
        bench = subprocess.Popen([PAWL, "bench", "gap", "--json", "--duration", "3s"],
                                 stdout=subprocess.PIPE, env=env, text=True)
        time.sleep(1.5)
        self.strike(number)
        said = json.loads(bench.communicate(timeout=60)[0])
        self.assertEqual(said["errors"], 0, said)
        self.assertLess(said["longest_gap_ms"] / 1000, GAP)

    def test_the_command_goes_on_when_its_node_stops(self):
        self.gap_of_the_command(signal.SIGSTOP)

    def test_the_command_goes_on_when_its_node_dies(self):
        self.gap_of_the_command(signal.SIGKILL)

    def gap_of_python(self, number):
        client = self.connect()
        longest, last = 0.0, time.monotonic()
        begin, struck = last, False
        while last < begin + 2:
            with client.lock("own/python", lease=10):
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            if not struck and now > begin + 1:
                struck = True
                self.strike(number)
        self.assertNotEqual(client.endpoint, self.endpoints[0])
        self.assertLess(longest, GAP)

    def test_python_goes_on_when_its_node_stops(self):
        self.gap_of_python(signal.SIGSTOP)

    def test_python_goes_on_when_its_node_dies(self):
        self.gap_of_python(signal.SIGKILL)

    def test_a_lock_that_ends_with_the_connection_survives_and_so_do_its_waiters(self):
        holder, waiter = self.connect(), self.connect()
        lock = holder.lock("own/bound", lease=10, release_on_disconnect=True).acquire()
        got = []
        waits = threading.Thread(
            target=lambda: got.append(waiter.lock("own/bound", lease=10, wait=60).acquire()))
        waits.start()
        while not holder.waiters("own/bound"):
            time.sleep(0.01)
        self.strike(signal.SIGSTOP)
        holder.get("own/bound", quorum=True)
        time.sleep(1)
        self.assertTrue(lock.held)
        self.assertEqual(got, [])
        # The node goes on, and finds that the old connection is closed, or not.
        self.cluster.nodes["c"].process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        self.assertTrue(lock.held)
        self.assertEqual(holder.get("own/bound", quorum=True).token, lock.token)
        token = lock.token
        lock.release()
        waits.join(60)
        self.assertGreater(got[0].token, token)

    def test_nothing_is_granted_twice_while_the_node_stops_and_goes_on(self):
        held, wrong, tokens = [], [], []
        over = threading.Event()

        def contend(client, number):
            while not over.is_set():
                with client.lock("own/one", lease=10, wait=60) as lock:
                    held.append(number)
                    if len(held) > 1:
                        wrong.append(list(held))
                    tokens.append(lock.token)
                    time.sleep(0.001)
                    held.remove(number)

        contenders = [threading.Thread(target=contend, args=(self.connect(), n)) for n in range(3)]
        for contender in contenders:
            contender.start()
        process = self.cluster.nodes["c"].process
        for pause in (0.05, 0.3, 0.1, 1.5, 0.02, 0.6):
            process.send_signal(signal.SIGSTOP)
            time.sleep(pause)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.4)
        over.set()
        for contender in contenders:
            contender.join(90)
        self.assertEqual(wrong, [])
        self.assertEqual(tokens, sorted(set(tokens)))
        self.assertGreater(len(tokens), 20)


if __name__ == "__main__":
    PAWLD, PAWL = (os.path.abspath(path) for path in sys.argv[1:3])
    cli_fixture.main()
