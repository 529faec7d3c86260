"""Tests that three masters can be upgraded one by one while locks are held, and that they refuse a
node of a release that is too new for them."""

import json
import os
import subprocess
import sys
import threading
import unittest

import pawltest
from pawltest import Client, Cluster, Refused

PAWLD = NEXT = INCOMPATIBLE = PAWL = None
LEASE_MS = 5000


def linked(client):
    """Waits until all three vote, as far as this node sees."""
    while client.call("status")["voting"] < 3:
        pass


class Holder(threading.Thread):
    """Holds a lock for as long as the test lasts, through a node that is not being upgraded, and
    acquires and releases another one again and again. `away` is the node that it does not ask."""

    def __init__(self, cluster, key):
        super().__init__(daemon=True)
        self.cluster, self.key, self.away, self.rounds = cluster, key, None, 0
        self.ending, self.idle, self.failure = False, threading.Condition(), None
        with cluster.client(cluster.names[0]) as first:
            self.lock = first.call("acquire", key=key, lease_ms=LEASE_MS, owner="holder")
        self.token = self.lock["token"]
        self.start()

    def avoid(self, name):
        """Returns when nothing is under way at the node, and nothing will be."""
        with self.idle:
            self.away = name

    def turn(self, client):
        got = client.call("extend", key=self.key, lock_id=self.lock["lock_id"], lease_ms=LEASE_MS,
                          token=self.token, deadline_kept=True)
        assert got["token"] == self.token, "somebody else's came between: %r" % got
        other = client.call("acquire", key=self.key + "-in-between", lease_ms=LEASE_MS)
        assert client.call("release", key=self.key + "-in-between",
                           lock_id=other["lock_id"])["released"]

    def run(self):
        try:
            while not self.ending:
                for name in self.cluster.names:
                    with self.idle:
                        if name != self.away:
                            with self.cluster.client(name) as client:
                                self.turn(client)
                            self.rounds += 1
        except BaseException as e:  # end() raises it in the thread of the test.
            self.failure = e

    def go_on(self, rounds=6):
        """Waits for `rounds` more rounds, which show that what the test has done did not end it."""
        until = self.rounds + rounds
        while self.rounds < until and self.is_alive():
            self.join(0.01)
        if self.failure:
            raise self.failure

    def end(self):
        self.ending = True
        self.join()
        if self.failure:
            raise self.failure


class Upgrade(unittest.TestCase):
    def replace(self, cluster, holder, name, pawld):
        """Makes a planned stop of one node, and starts it with another program."""
        holder.avoid(name)
        self.assertEqual(cluster.nodes[name].terminate(), 0)
        holder.go_on()
        node = cluster.start(name, pawld)
        node.wait_log(" voting ", "by=drain")
        for each in cluster.names:
            with cluster.client(each) as client:
                linked(client)
        holder.avoid(None)
        holder.go_on()

    def held(self, cluster, name, key):
        with cluster.client(name) as client, self.assertRaises(Refused) as caught:
            client.call("acquire", key=key, lease_ms=1000)
        self.assertEqual(caught.exception.code, "held")

    def version(self, cluster, name):
        with cluster.client(name) as client:
            return client.call("status")["version"]

    def test_one_by_one_there_and_back_with_locks_held_all_the_time(self):
        with Cluster(PAWLD) as cluster:
            holder = Holder(cluster, "held")
            for pawld, mark in ((NEXT, True), (PAWLD, False)):
                for name in cluster.names:
                    self.replace(cluster, holder, name, pawld)
                    self.assertEqual(self.version(cluster, name).endswith("+next"), mark)
                    self.held(cluster, name, "held")
            holder.end()

    def test_a_mixed_cluster_survives_the_kill_of_either_kind(self):
        with Cluster(PAWLD) as cluster:
            holder = Holder(cluster, "held")
            self.replace(cluster, holder, "b", NEXT)
            for name, pawld in (("a", PAWLD), ("b", NEXT)):
                holder.avoid(name)
                cluster.nodes[name].kill()
                holder.go_on()
                cluster.start(name, pawld).wait_log(" voting ", "by=rejoining")
                for each in cluster.names:
                    with cluster.client(each) as client:
                        linked(client)
                holder.avoid(None)
                holder.go_on()
            holder.end()

    def test_a_node_that_is_too_new_is_refused_and_says_so(self):
        with Cluster(PAWLD) as cluster:
            holder = Holder(cluster, "held")
            holder.avoid("b")
            self.assertEqual(cluster.nodes["b"].terminate(), 0)
            lines = {name: len(cluster.nodes[name].lines) for name in "ac"}
            cluster.start("b", INCOMPATIBLE)
            # a dials b, so it knows which node it means; b dials c.
            cluster.nodes["a"].wait_log(" peer_link_failed ", "peer=b ",
                                        "node b speaks versions 2 to 2 of the protocol between "
                                        "nodes, and this node 1 to 1: upgrade this node",
                                        start=lines["a"])
            cluster.nodes["c"].wait_log("node b speaks versions 2 to 2", start=lines["c"])
            cluster.nodes["b"].wait_log("node a speaks versions 1 to 1 of the protocol between "
                                        "nodes, "
                                        "and this node 2 to 2: upgrade a")
            cluster.nodes["b"].wait_log(" peer_link_failed ", "peer=c ", "upgrade c")
            holder.go_on()
            with cluster.client("a") as a:
                peers = {p["node"]: p for p in a.call("status")["peers"]}
            self.assertFalse(peers["b"]["linked"] or peers["b"]["voting"])
            self.assertTrue(peers["c"]["linked"] and peers["c"]["voting"])
            self.check_command(cluster)
            with cluster.client("b") as b, self.assertRaises(Refused) as caught:
                b.call("acquire", key="alone", lease_ms=1000)
            self.assertEqual(caught.exception.code, "no_quorum")
            self.replace(cluster, holder, "b", PAWLD)
            self.held(cluster, "b", "held")
            holder.end()

    def check_command(self, cluster):
        """Returns what an operator sees."""
        command = [PAWL, "--endpoints", cluster.clients["a"], "status"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=pawltest.PATIENCE)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        row = next(line for line in shown.stdout.splitlines() if line.startswith("b "))
        self.assertIn("DOWN", row)
        tree = json.loads(subprocess.run(command[:-1] + ["--json", "status"], capture_output=True,
                                         timeout=pawltest.PATIENCE).stdout)
        self.assertEqual([p["node"] for p in tree["peers"] if not p["linked"]], ["b"])


if __name__ == "__main__":
    NEXT, INCOMPATIBLE, PAWL = (os.path.abspath(sys.argv.pop(2)) for _ in range(3))
    pawltest.main(globals())
