#!/usr/bin/env python3
"""test_deadlock.py PAWLD PAWL: tests that deadlocks between clients of real nodes are found,
reported once, shown and, if so configured, ended; and that nothing else is."""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import cli_fixture
from adminhttp import AdminCluster
from cli_fixture import pawl
from pawltest import PATIENCE, Refused, rights, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings",
                                "python"))
AFTER = 1.0
# Half a second is promised. A machine that is busy with other tests takes longer.
FOUND = 0.5 + 0.2 * os.getloadavg()[0]


class Deadlocks(unittest.TestCase):
    action, more = "report", ""

    @classmethod
    def setUpClass(cls):
        cls.cluster = AdminCluster(cli_fixture.PAWLD,
                                   node="deadlock = %s\n%s" % (cls.action, cls.more)).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        self.clients = []
        self.counted = self.found()

    def tearDown(self):
        for client in self.clients:
            client.close()

    def client(self, node="a"):
        client = self.cluster.client(node)
        self.clients.append(client)
        return client

    def hold(self, client, key, **more):
        return client.call("acquire", key=self.id() + key, lease_ms=60000,
                           owner=more.pop("owner", key), **more)["lock_id"]

    def wait(self, client, key, **more):
        return client.send("acquire", key=self.id() + key, lease_ms=60000,
                           wait_ms=more.pop("wait_ms", 60000), **more)

    def news(self):
        """The lines of all logs about deadlocks of this test."""
        return [line for node in self.cluster.nodes.values() for line in node.log().splitlines()
                if re.search(r" deadlock .*" + re.escape(self.id()), line)]

    def found(self):
        return sum(self.cluster.metrics(name)["pawl_deadlocks_total"]
                   for name in self.cluster.names)

    def ring(self, count):
        """Makes a ring over all nodes: client i holds key i and waits for the next one. The last
        one is the youngest. Returns the requests, and when the last one was made."""
        names = self.cluster.names
        clients = [self.client(names[i % len(names)]) for i in range(count)]
        self.locks = [self.hold(c, "k%d" % i, owner="o%d" % i) for i, c in enumerate(clients)]
        asked = [self.wait(clients[i], "k%d" % (i + 1), owner="o%d" % i) for i in range(count - 1)]
        with self.cluster.client("a") as client:
            for i in range(1, count):
                wait_until(self, lambda: client.call("waiters",
                                                     key=self.id() + "k%d" % i)["waiters"])
        self.let_grow_older()
        asked.append(self.wait(clients[-1], "k0", owner="o%d" % (count - 1)))
        return clients, asked, time.monotonic()

    def let_grow_older(self):
        """Lets those that wait be older than who comes next. A node tells how long its own have
        waited in milliseconds, so of two that are milliseconds apart either may be taken for the
        younger one."""
        time.sleep(0.1)

    def assert_none(self):
        """Nothing is reported in the time in which it would be, twice."""
        time.sleep(2 * AFTER + FOUND)
        self.assertEqual(self.news(), [])
        self.assertEqual(self.found(), self.counted)


class Report(Deadlocks):
    def assert_found(self, begun, count, clients):
        wait_until(self, self.news)
        self.assertLess(time.monotonic() - begun, AFTER + FOUND)
        line = self.news()[0]
        self.assertIn("clients=%d" % clients, line)
        self.assertIn("refused=no", line)
        for i in range(count):
            self.assertIn("o%d waits for %s" % (i, self.id()), line)
        # It stands, and is reported once.
        time.sleep(2 * AFTER)
        self.assertEqual(len(self.news()), 1)
        self.assertEqual(self.found(), self.counted + 1)

    def test_two(self):
        _, _, begun = self.ring(2)
        self.assert_found(begun, 2, 2)

    def test_three(self):
        _, _, begun = self.ring(3)
        self.assert_found(begun, 3, 3)

    def test_ten(self):
        clients, _, begun = self.ring(10)
        # Somebody else waits for the ring, and is not part of it.
        tail = self.client("b")
        self.hold(tail, "tail")
        self.wait(tail, "k3")
        self.assert_found(begun, 6, 10)
        # The youngest waits at the first node.
        self.assertIn(self.news()[0], self.cluster.nodes["a"].log())

    def test_readers_that_want_to_write(self):
        clients = [self.client(n) for n in "abc"]
        for client in clients:
            self.hold(client, "k", mode="shared")
        for client in clients:
            self.wait(client, "k", owner="o")
        wait_until(self, self.news)
        self.assertIn("clients=3", self.news()[0])

    def test_permits(self):
        a, b, c = (self.client(n) for n in "abc")
        self.hold(a, "s", permits=1, of=2)
        self.hold(b, "s", permits=1, of=2)
        self.hold(c, "k")
        self.wait(a, "k", owner="a")
        self.wait(c, "s", permits=1, of=2, owner="c")
        # The second permit will come free.
        self.assert_none()
        self.wait(b, "k", owner="b")
        wait_until(self, self.news)
        self.assertIn("clients=3", self.news()[0])

    def test_a_request_for_several_keys(self):
        a, b = self.client("a"), self.client("b")
        self.hold(b, "k2")
        a.send("acquire", locks=[{"key": self.id() + "k%d" % i} for i in (1, 2)],
               lease_ms=60000, wait_ms=60000, owner="a")
        wait_until(self, lambda: self.client("c").call("get", key=self.id() + "k1",
                                                       consistency="quorum")["held"])
        self.wait(b, "k1", owner="b")
        wait_until(self, self.news)
        self.assertIn("clients=2", self.news()[0])

    def test_a_party_has_several_connections(self):
        party = [os.urandom(16) for _ in range(2)]
        clients = [self.client("a"), self.client("b")]
        for i in (0, 1):
            self.hold(clients[i], "k%d" % i, party=party[i])
        # Other connections wait, to the same nodes.
        for i in (0, 1):
            self.wait(self.client("ab"[i]), "k%d" % (1 - i), party=party[i])
        wait_until(self, self.news)

    def test_other_parties_on_one_connection(self):
        client = self.client("a")
        self.hold(client, "k0", party=os.urandom(16))
        self.hold(client, "k1", party=os.urandom(16))
        for i in (0, 1):
            self.wait(client, "k%d" % i, party=os.urandom(16))
        self.assert_none()

    def test_an_extension_carries_the_party_to_another_node(self):
        party = [os.urandom(16) for _ in range(2)]
        a = self.client("a")
        lock = self.hold(a, "k0", party=party[0])
        a.close()
        b = self.client("b")
        b.call("extend", locks=[{"key": self.id() + "k0", "lock_id": lock, "lease_ms": 60000}],
               party=party[0])
        c = self.client("c")
        self.hold(c, "k1", party=party[1])
        self.wait(b, "k1", party=party[0], owner="o")
        self.wait(c, "k0", party=party[1], owner="o")
        wait_until(self, self.news)

    def test_a_convoy(self):
        holder = self.client("a")
        self.hold(holder, "k")
        for i in range(60):
            client = self.client("abc"[i % 3])
            self.hold(client, "own%d" % i)
            self.wait(client, "k")
        self.assert_none()

    def test_converging_waits(self):
        clients = [self.client("abc"[i % 3]) for i in range(9)]
        for i, client in enumerate(clients):
            self.hold(client, "k%d" % i)
        for i, client in enumerate(clients[1:]):
            self.wait(client, "k%d" % (i // 2))
        self.assert_none()

    def test_a_ring_that_ends_by_itself(self):
        a, b = self.client("a"), self.client("b")
        self.hold(a, "k0")
        self.hold(b, "k1")
        self.wait(a, "k1")
        self.wait(b, "k0", wait_ms=int(AFTER * 500))
        self.assert_none()

    def test_a_holder_whose_node_is_gone(self):
        # The lock outlives the node that granted it. So nobody knows its party.
        clients, _, _ = self.ring(2)
        self.cluster.nodes["b"].kill()
        try:
            time.sleep(2 * AFTER + FOUND)
            self.assertEqual(self.news(), [])
        finally:
            self.cluster.start("b").wait_log(" voting ")

    def test_explain(self):
        self.ring(3)
        key = self.id() + "k1"
        for name in self.cluster.names:
            with self.cluster.client(name) as client:
                wait_until(self, lambda: client.call("explain", key=key)["deadlocks"])
                ring = client.call("explain", key=key)["deadlocks"][0]
                self.assertFalse(ring["refused"])
                self.assertEqual({m["owner"] for m in ring["ring"]}, {b"o0", b"o1", b"o2"})
                self.assertEqual({m["node"] for m in ring["ring"]}, set(self.cluster.names))
                self.assertEqual(client.call("explain", key="other")["deadlocks"], [])
                answer = self.cluster.fetch(name, "/v1/explain?key=" + key)[2]
                self.assertEqual(len(json.loads(answer)["deadlocks"][0]["ring"]), 3)
        done = pawl("explain", key, endpoints=self.cluster.clients["a"])
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertRegex(done.out, r"(?m)^  o0 waits for \S+k1, which o1 holds \(at a\)$")
        shown = pawl("explain", "--json", key, endpoints=self.cluster.clients["a"]).json
        self.assertEqual(len(shown["deadlocks"][0]["ring"]), 3)


class Hidden(Deadlocks):
    """Whoever may read some of the keys of a ring is not told the others, nor who wants them."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-deadlock-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.more = rights(folder, ("plain", "allow = acquire, wait, status on *\n"
                                            "allow = read on seen/\n"), local=False)
        super().setUpClass()

    def hidden_ring(self):
        """Client 0 waits for a key that may be read, and is the youngest. Returns its client and
        its request."""
        clients, keys = [self.client(n) for n in "abc"], ("other/0", "seen/1", "other/2")
        for i, client in enumerate(clients):
            client.call("acquire", key=keys[i], lease_ms=60000, owner="o%d" % i)
        for i in (1, 2, 0):
            asked = clients[i].send("acquire", key=keys[(i + 1) % 3], lease_ms=60000, wait_ms=60000,
                                    owner="o%d" % i)
            wait_until(self, lambda: self.cluster.metrics("abc"[i])["pawl_waiters"] > 0
                       or self.cluster.metrics("abc"[i])["pawl_deadlocks_total"] > 0)
            # Nodes compare ages in milliseconds.
            time.sleep(0.005)
        self.cluster.nodes["a"].wait_log(" deadlock ")
        return clients[0], asked

    def assert_hidden(self, text):
        self.assertIn("o0", text)
        self.assertEqual(text.count("(a key that you may not read)"), 2, text)
        for other in ("other/", "o2"):
            self.assertNotIn(other, text)

    def test_explain_hides_the_other_keys(self):
        self.hidden_ring()
        for name in self.cluster.names:
            with self.cluster.client(name) as client:
                wait_until(self, lambda: client.call("explain", key="seen/1")["deadlocks"])
                self.assert_hidden(repr(client.call("explain", key="seen/1")["deadlocks"]))
            said = json.loads(self.cluster.fetch(name, "/v1/explain?key=seen/1")[2])["deadlocks"]
            self.assert_hidden(repr(said))
            self.assertEqual([m["owner"] for m in said[0]["ring"]], ["o0", "(hidden)", "(hidden)"])
            self.assert_hidden(pawl("explain", "seen/1", endpoints=self.cluster.clients[name]).out)
            self.assertEqual(self.cluster.fetch(name, "/v1/explain?key=other/0")[0], 403)


class HiddenFromTheRefused(Hidden):
    action = "refuse"

    def test_explain_hides_the_other_keys(self):
        client, asked = self.hidden_ring()
        with self.assertRaises(Refused) as caught:
            client.answer(asked)
        self.assertEqual(caught.exception.error["code"], "deadlock")
        self.assert_hidden(caught.exception.error["message"])


class Refuse(Deadlocks):
    action = "refuse"

    def test_the_youngest_is_refused(self):
        clients, asked, begun = self.ring(3)
        with self.assertRaises(Refused) as caught:
            clients[2].answer(asked[2])
        self.assertLess(time.monotonic() - begun, AFTER + FOUND)
        error = caught.exception.error
        self.assertEqual(error["code"], "deadlock")
        for i in range(3):
            self.assertIn("o%d waits for %sk%d, which o%d holds"
                          % (i, self.id(), (i + 1) % 3, (i + 1) % 3), error["message"])
        # It holds what it held. When it lets go, the others go on.
        clients[2].call("release", key=self.id() + "k2", lock_id=self.locks[2])
        got = clients[1].answer(asked[1])
        clients[1].call("release", key=self.id() + "k2", lock_id=got["lock_id"])
        clients[1].call("release", key=self.id() + "k1", lock_id=self.locks[1])
        clients[0].answer(asked[0])
        self.assertIn("refused=yes", self.news()[0])
        self.assertEqual(self.found(), self.counted + 1)
        # It counts as an error of its own.
        self.assertGreater(self.cluster.metrics("c")[
            'pawl_requests_total{method="acquire",result="deadlock"}'], 0)

    def test_several_keys(self):
        a, b = self.client("a"), self.client("b")
        lock = self.hold(b, "k2")
        asked = a.send("acquire", locks=[{"key": self.id() + "k%d" % i} for i in (1, 2)],
                       lease_ms=60000, wait_ms=60000, owner="a")
        wait_until(self, lambda: self.client("c").call("get", key=self.id() + "k1",
                                                       consistency="quorum")["held"])
        self.let_grow_older()
        other = self.wait(b, "k1", owner="b")
        with self.assertRaises(Refused) as caught:
            b.answer(other)
        self.assertEqual(caught.exception.error["code"], "deadlock")
        b.call("release", key=self.id() + "k2", lock_id=lock)
        self.assertEqual(len(a.answer(asked)["locks"]), 2)


class Libraries(Deadlocks):
    """Python's clients, and those of the command, which is one of libpawl."""
    action = "refuse"

    def endpoint(self, name):
        return self.cluster.clients[name]

    def test_python(self):
        import pawl as package
        with package.connect(self.endpoint("a")) as a, package.connect(self.endpoint("b")) as b:
            with a.lock(self.id() + "1"), b.lock(self.id() + "2"):
                asked = threading.Thread(target=lambda: self.swallow(
                    a.lock(self.id() + "2", wait=PATIENCE)))
                asked.start()
                wait_until(self, lambda: self.waits(self.id() + "2"))
                self.let_grow_older()
                with self.assertRaises(package.DeadlockError) as caught:
                    b.lock(self.id() + "1", wait=PATIENCE).acquire()
                self.assertIn(self.id() + "1", str(caught.exception))
            asked.join()

    def test_candidates_of_python(self):
        import pawl as package
        with package.connect(self.endpoint("a")) as a, package.connect(self.endpoint("b")) as b:
            first, second = self.id() + "1", self.id() + "2"
            with a.election(first).campaign(), b.election(second).campaign():
                campaigns = [threading.Thread(target=self.campaign, args=(client, name))
                             for client, name in ((a, second), (b, first))]
                for one in campaigns:
                    one.start()
                for one in campaigns:
                    one.join()
            self.assertEqual(self.news(), [])
            self.assertEqual(self.found(), self.counted)

    def test_the_command(self):
        """What pawl run holds does not wait with what another command waits for."""
        a = self.client("a")
        self.hold(a, "1", owner="a")
        endpoints = self.endpoint("b")
        run = cli_fixture.start("run", self.id() + "2", "--", "sleep", "30", endpoints=endpoints)
        try:
            wait_until(self, lambda: a.call("get", key=self.id() + "2")["held"])
            self.wait(a, "2")
            done = pawl("acquire", self.id() + "1", "--wait", "2500ms", endpoints=endpoints)
            self.assertEqual(done.status, 1)
            self.assertEqual(self.news(), [])
        finally:
            run.terminate()
            run.communicate()

    def swallow(self, lock):
        with lock:
            pass

    def campaign(self, client, name):
        """Waits in vain to be elected, for longer than a deadlock takes to be found."""
        import pawl as package
        with self.assertRaises(package.WaitTimeoutError), \
                client.election(name).campaign(3 * AFTER + FOUND):
            pass

    def waits(self, key):
        with self.cluster.client("c") as client:
            return client.call("waiters", key=key)["waiters"]


class Off(Deadlocks):
    action = "off"

    def test_nothing_is_looked_for(self):
        self.ring(2)
        self.assert_none()


class SwitchedOn(Deadlocks):
    action = "off"

    def test_a_reload_is_enough(self):
        self.ring(2)
        self.assert_none()
        for name, node in self.cluster.nodes.items():
            with open(self.cluster.config(name)) as f:
                config = f.read()
            with open(self.cluster.config(name), "w") as f:
                f.write(config.replace("deadlock = off", "deadlock = report"))
            node.signal(signal.SIGHUP)
            node.wait_log(" reloaded ")
        wait_until(self, self.news)


if __name__ == "__main__":
    cli_fixture.main()
