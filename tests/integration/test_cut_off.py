"""Tests that those who wait at a node that is cut off, or that stops as planned, go on waiting at
another one: the command, the event-driven and the blocking client of Python, and a client of Redis.
Each node is a host of a network of its own."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import netns
import pawltest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
import pawl  # noqa: E402

PAWLD = PAWL = None
REQUEST_TIMEOUT, LEASE = 1, 3
# Until the cut is noticed, the lease of the leader is over, and a busy machine has done the rest.
BOUND = 15
CONFIG = """[node]
name = %(name)s
state_dir = %(dir)s/state-%(name)s
listen_peer = %(address)s:7118
listen_client = %(address)s:7117
listen_redis = %(address)s:6379
insecure = yes
[cluster]
name = test
max_lease = 10s
request_timeout = 1s
promise_timeout = 2s
[cluster.masters]
%(masters)s
"""


class Network:
    """Three masters a, b and c, each on a host of its own; clients are in the hub."""

    def __init__(self, case):
        self.dir = tempfile.mkdtemp(prefix="pawl-cut-")
        case.addCleanup(shutil.rmtree, self.dir)
        self.net = netns.Net(subnet="10.119.0")
        case.addCleanup(self.net.close)
        self.nodes = {}
        case.addCleanup(self.end)
        for name in "abc":
            self.net.add(name)
        masters = "".join("%s = %s:7118\n" % (n, self.net.address(n)) for n in "abc")
        for name in "abc":
            with open(self.config(name), "w", encoding="ascii") as f:
                f.write(CONFIG % {"name": name, "dir": self.dir, "masters": masters,
                                  "address": self.net.address(name)})
            self.start(name)
        self.voting("abc")

    def config(self, name):
        return os.path.join(self.dir, name + ".conf")

    def start(self, name):
        self.nodes[name] = pawltest.Node(
            self.net.command(name, [PAWLD, "--config", self.config(name)]), name)

    def voting(self, names):
        for name in names:
            self.nodes[name].wait_log(" voting ")

    def endpoints(self, order):
        return ",".join("%s:7117" % self.net.address(name) for name in order)

    def end(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.kill()


class Program:
    """A command of pawl in the hub, whose lines are read with a limit."""

    def __init__(self, case, network, order, *arguments):
        self.process = network.net.popen(
            netns.HUB, [PAWL, *arguments, "--endpoints", network.endpoints(order),
                        "--prefer-first"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        case.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@unittest.skipIf(os.geteuid() != 0 or netns.why_not(), "needs root and network namespaces")
class CutOff(unittest.TestCase):
    def setUp(self):
        self.network = Network(self)

    def acquire(self, order, *options):
        return Program(self, self.network, order, "acquire", "k", "--lease", "%ds" % LEASE,
                       "--json", *options)

    def held(self):
        holder = self.acquire("a").process
        return json.loads(holder.communicate(timeout=BOUND)[0])

    def waiting(self, count):
        """Waits until so many requests are in the queue of the key."""
        with self.network.net.inside(netns.HUB):
            client = pawltest.Client("%s:7117" % self.network.net.address("a"))
        self.addCleanup(client.close)
        end = time.monotonic() + BOUND
        while len(client.call("waiters", key="k")["waiters"]) < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_who_waits_at_a_node_that_is_cut_off_gets_the_key_from_the_others(self):
        self.held()
        command = self.acquire("cab", "--wait", "60s").process
        with self.network.net.inside(netns.HUB):
            redis = socket.create_connection((self.network.net.address("c"), 6379), BOUND)
        self.addCleanup(redis.close)
        redis.sendall(b"PAWL.WAIT k v 3000 60000\r\n")
        self.waiting(2)
        self.network.net.isolate("c")
        said, trouble = command.communicate(timeout=BOUND)
        self.assertEqual(command.returncode, 0, trouble)
        self.assertGreater(json.loads(said)["token"], 0)
        self.assertEqual(redis.recv(4096)[:11], b"-NOREPLICAS")

    def extend(self, client, lock_id):
        """Extends the lock. On a busy machine a node that has just started may be slow."""
        end = time.monotonic() + 5
        while True:
            try:
                return client.call("extend", key="k", lock_id=bytes.fromhex(lock_id),
                                   lease_ms=10000)
            except pawltest.Refused as refused:
                if refused.code != "no_quorum" or time.monotonic() > end:
                    raise

    def test_a_planned_stop_of_every_node_ends_no_wait(self):
        holder = self.acquire("a").process
        lock = json.loads(holder.communicate(timeout=BOUND)[0])
        waiter = self.acquire("abc", "--wait", "60s").process
        self.waiting(1)
        for _ in range(2):
            for name in "abc":
                with self.network.net.inside(netns.HUB):
                    other = next(n for n in "abc" if n != name)
                    client = pawltest.Client("%s:7117" % self.network.net.address(other))
                self.extend(client, lock["lock_id"])
                client.close()
                self.assertEqual(self.network.nodes[name].terminate(), 0)
                self.network.start(name)
                self.network.voting(name)
                self.assertIsNone(waiter.poll(), waiter.poll() is not None
                                  and waiter.communicate())
        said, trouble = waiter.communicate(timeout=30)
        self.assertEqual(waiter.returncode, 0, trouble)
        self.assertGreater(json.loads(said)["token"], lock["token"])

    def test_a_candidate_at_a_node_that_is_cut_off_leads_at_the_others(self):
        endpoints = self.network.endpoints
        with self.network.net.inside(netns.HUB):
            asyncio.run(self.candidates(endpoints))

    async def candidates(self, endpoints):
        first = pawl.aio.connect(endpoints("abc"), prefer_first=True)
        second = pawl.aio.connect(endpoints("cab"), prefer_first=True)
        try:
            leader = await first.lock("k", lease=LEASE)
            asks = asyncio.ensure_future(second.lock("k", lease=LEASE, wait=60))
            while not await first.waiters("k"):
                await asyncio.sleep(0.02)
            self.network.net.isolate("c")
            await asyncio.sleep(3 * REQUEST_TIMEOUT)
            await leader.release()
            lock = await asyncio.wait_for(asks, BOUND)
            self.assertGreater(lock.token, leader.token)
            await lock.release()
        finally:
            await first.close()
            await second.close()


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
