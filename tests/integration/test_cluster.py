"""Tests a cluster of three masters: its operations, and what kills, stops and restarts cost."""

import os
import shutil
import signal
import subprocess
import time
import unittest

import pawltest
from pawltest import Client, Cluster, Node, Refused

PAWLD = None
SHORT = "max_lease = 2s\nrequest_timeout = 300ms\npromise_timeout = 600ms\n"


def refusal(test, client, method, **params):
    with test.assertRaises(Refused) as caught:
        client.call(method, **params)
    return caught.exception


def linked(client):
    """Waits until the node has a link to all others. Some of them dial a node that has just come
    back, and it dials the others."""
    while client.call("status")["voting"] < 3:
        pass


class Operations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.a, cls.b, cls.c = (cls.cluster.client(n) for n in "abc")
        for client in (cls.a, cls.b, cls.c):
            cls.addClassCleanup(client.close)

    def test_a_lock_taken_at_one_node_is_refused_at_the_others_until_it_is_released(self):
        got = self.a.call("acquire", key="k1", lease_ms=10000, owner="alice", value=b"v")
        self.assertEqual(got["quorum"], 2)
        self.assertLessEqual(got["valid_ms"], 10000)
        refused = refusal(self, self.b, "acquire", key="k1", lease_ms=10000)
        self.assertEqual(refused.code, "held")
        self.assertEqual(refused.error["holder"]["owner"], b"alice")
        self.assertTrue(self.c.call("release", key="k1", lock_id=got["lock_id"])["released"])
        again = self.b.call("acquire", key="k1", lease_ms=10000)
        self.assertGreater(again["token"], got["token"])

    def test_an_update_compares_and_sets(self):
        got = self.a.call("acquire", key="k2", lease_ms=10000, value="one")
        self.b.call("update", key="k2", lock_id=got["lock_id"], value="two", expect="one")
        self.assertEqual(refusal(self, self.a, "update", key="k2", lock_id=got["lock_id"],
                                 value="x", expect="one").code, "mismatch")
        seen = self.c.call("get", key="k2", consistency="quorum")
        self.assertEqual(seen["value"], b"two")
        self.a.call("update", key="k2", lock_id=got["lock_id"], value="three",
                    value_seq=seen["value_seq"])
        seq = self.a.call("update", key="k2", lock_id=got["lock_id"], value="four",
                          expect="three")["value_seq"]
        self.a.call("update", key="k2", lock_id=got["lock_id"], value="three", expect=seq)

    def test_many_leases_are_extended_by_one_request(self):
        locks = [{"key": "many%d" % i,
                  "lock_id": self.a.call("acquire", key="many%d" % i, lease_ms=5000)["lock_id"],
                  "lease_ms": 9000} for i in range(100)]
        locks.append({"key": "none", "lock_id": pawltest.lock_id(), "lease_ms": 9000})
        results = self.a.call("extend", locks=locks)["locks"]
        self.assertEqual(len(results), 101)
        self.assertTrue(all(r["valid_ms"] > 5000 for r in results[:100]), results)
        self.assertIn("error", results[100])

    def test_a_waiter_is_next(self):
        got = self.a.call("acquire", key="k3", lease_ms=20000)
        waiting = self.b.send("acquire", key="k3", lease_ms=5000, wait_ms=20000, owner="bob")
        while not self.a.call("waiters", key="k3")["waiters"]:
            pass
        self.a.call("release", key="k3", lock_id=got["lock_id"])
        self.assertGreater(self.b.answer(waiting)["token"], got["token"])

    def test_a_release_may_keep_the_key_closed_until_a_waiter_gets_it(self):
        got = self.a.call("acquire", key="k6", lease_ms=20000)
        waiting = self.b.send("acquire", key="k6", lease_ms=5000, wait_ms=20000)
        while not self.a.call("waiters", key="k6")["waiters"]:
            pass
        begin = time.monotonic()
        self.assertTrue(self.c.call("release", key="k6", lock_id=got["lock_id"],
                                    close_ms=1500)["released"])
        seen = self.a.call("get", key="k6", consistency="quorum")
        self.assertFalse(seen["held"])
        self.assertTrue(seen["closing"])
        self.assertLessEqual(seen["closing_ms"], 1500)
        again = self.b.answer(waiting)
        # The masters' clocks may be faster by the drift.
        self.assertGreater(time.monotonic() - begin, 1.4)
        self.assertGreater(again["token"], got["token"])
        refused = refusal(self, self.a, "release", key="k6", lock_id=again["lock_id"],
                          close_ms=10**9)
        self.assertEqual((refused.code, refused.error["field"]), ("too_long", "close_ms"))

    def test_a_shortened_lease_ends_early_and_may_be_extended_again(self):
        got = self.a.call("acquire", key="k7", lease_ms=20000)
        lock = {"key": "k7", "lock_id": got["lock_id"], "deadline_kept": True}
        self.assertLess(self.b.call("extend", lease_ms=3000, shorten=True, order=1,
                                    **lock)["valid_ms"], 3000)
        seen = self.c.call("get", key="k7", consistency="quorum")
        self.assertLess(seen["valid_at_least_ms"], 3000)
        self.assertEqual((seen["order"], seen["order_settled"]), (1, True))
        self.b.call("extend", lease_ms=20000, order=1, **lock)
        # Without `shorten`, or as something that was asked for before, it leaves the later end.
        self.c.call("extend", lease_ms=1000, order=1, **lock)
        self.c.call("extend", lease_ms=1000, shorten=True, order=1, **lock)
        self.assertGreater(self.a.call("get", key="k7", consistency="quorum")["valid_at_least_ms"],
                           10000)
        waiting = self.b.send("acquire", key="k7", lease_ms=5000, wait_ms=20000)
        begin = time.monotonic()
        self.a.call("extend", lease_ms=1000, shorten=True, order=2, **lock)
        again = self.b.answer(waiting)
        self.assertGreater(again["token"], got["token"])
        self.assertTrue(0.95 < time.monotonic() - begin < 10)
        refused = refusal(self, self.a, "extend", lease_ms=1000, shorten=True, **lock)
        self.assertEqual((refused.code, refused.error["field"]), ("bad_request", "shorten"))

    def test_a_waiter_that_hangs_up_leaves_the_queue(self):
        got = self.a.call("acquire", key="k4", lease_ms=20000)
        with self.cluster.client("b") as other:
            other.send("acquire", key="k4", lease_ms=5000, wait_ms=20000)
            while not self.a.call("waiters", key="k4")["waiters"]:
                pass
        while self.a.call("waiters", key="k4")["waiters"]:
            pass
        self.a.call("release", key="k4", lock_id=got["lock_id"])
        self.assertFalse(self.a.call("get", key="k4", consistency="quorum")["held"])

    def test_wait_tells_when_a_key_is_free(self):
        got = self.a.call("acquire", key="k5", lease_ms=20000)
        waiting = self.c.send("wait", **{"key": "k5", "for": "free", "timeout_ms": 20000})
        self.a.call("release", key="k5", lock_id=got["lock_id"])
        self.assertFalse(self.c.answer(waiting)["held"])

    def test_requests_are_pipelined(self):
        asked = [self.b.send("acquire", key="p%d" % i, lease_ms=5000) for i in range(500)]
        tokens = {self.b.answer(m)["token"] for m in asked}
        self.assertTrue(tokens)

    def test_a_unix_socket_serves_as_well(self):
        with Client(self.cluster.unix("a")) as client:
            self.assertEqual(client.call("ping")["node"], "a")

    def test_status_names_the_peers(self):
        status = self.a.call("status")
        self.assertEqual(status["state"], "voting")
        self.assertEqual([p["node"] for p in status["peers"] if p["linked"]], ["a", "b", "c"])


class Failures(unittest.TestCase):
    def test_the_kill_of_one_master_costs_nothing_and_it_comes_back(self):
        with Cluster(PAWLD,
                     cluster=SHORT) as cluster, cluster.client("a") as a, cluster.client("b") as b:
            got = a.call("acquire", key="k", lease_ms=2000)
            cluster.nodes["c"].kill()
            for i in range(50):
                a.call("acquire", key="after%d" % i, lease_ms=1000)
                a.call("extend", key="k", lock_id=got["lock_id"], lease_ms=2000)
            self.assertEqual(refusal(self, b, "acquire", key="k", lease_ms=1000).code, "held")
            cluster.start("c").wait_log(" voting ")
            with cluster.client("c") as c:
                linked(c)
                self.assertEqual(refusal(self, c, "acquire", key="k", lease_ms=1000).code, "held")

    def test_any_master_that_dies_leaves_quorum_reads_of_what_was_handed_over(self):
        """The commit of a waiter that follows may come to a third master before the release of its
        predecessor does. That master refuses it, and is sent the record afterwards."""
        for dies, stays in (("a", "b"), ("b", "c"), ("c", "a")):
            with Cluster(PAWLD) as cluster, cluster.client("a") as a, cluster.client("b") as b:
                keys = ["k%d" % i for i in range(100)]
                held = [a.call("acquire", key=key, lease_ms=50000)["lock_id"] for key in keys]
                waiting = [b.send("acquire", key=key, lease_ms=50000, wait_ms=20000,
                                  value=b"second") for key in keys]
                while len(a.call("waiters", key=keys[-1])["waiters"]) < 1:
                    pass
                for key, lock_id in zip(keys, held):
                    a.send("release", key=key, lock_id=lock_id)
                for request in waiting:
                    b.answer(request)
                for name in cluster.names:  # What is left to be repaired comes before this.
                    with cluster.client(name) as client:
                        client.call("acquire", key="last-" + name, lease_ms=1000)
                cluster.nodes[dies].kill()
                with cluster.client(stays) as client:
                    for key in keys:
                        seen = client.call("get", key=key, consistency="quorum")
                        self.assertEqual(seen["value"], b"second")

    def test_a_stopped_master_delays_nobody(self):
        with Cluster(PAWLD, cluster=SHORT) as cluster, cluster.client("a") as a:
            a.call("acquire", key="warm", lease_ms=1000)
            cluster.nodes["b"].signal(signal.SIGSTOP)
            # This is long enough for the link to be reset.
            longest, end = 0, time.monotonic() + 1.0
            serial = 0
            while time.monotonic() < end:
                began = time.monotonic()
                a.call("acquire", key="s%d" % serial, lease_ms=1000)
                longest = max(longest, time.monotonic() - began)
                serial += 1
            self.assertLess(longest, 0.25)
            cluster.nodes["a"].wait_log(" link_reset ", "peer=b ")
            lines = len(cluster.nodes["a"].lines)
            cluster.nodes["b"].signal(signal.SIGCONT)
            cluster.nodes["a"].wait_log(" peer_up ", "peer=b ", start=lines)
            with cluster.client("b") as b:
                linked(b)
                b.call("acquire", key="b-again", lease_ms=1000)

    def test_an_extension_that_a_stopped_node_finds_in_its_socket_is_too_late(self):
        with Cluster(PAWLD,
                     cluster=SHORT) as cluster, cluster.client("a") as a, cluster.client("b") as b:
            got = a.call("acquire", key="k", lease_ms=1000)
            cluster.nodes["a"].signal(signal.SIGSTOP)
            late = a.send("extend", key="k", lock_id=got["lock_id"], lease_ms=1000)
            # The lock is granted when the lease is over.
            later = b.call("acquire", key="k", lease_ms=2000, wait_ms=20000)
            self.assertGreater(later["token"], got["token"])
            cluster.nodes["a"].signal(signal.SIGCONT)
            with self.assertRaises(Refused) as caught:
                a.answer(late)
            self.assertIn(caught.exception.code, ("lost", "unsure", "no_quorum", "held"))
            self.assertEqual(b.call("get", key="k")["token"], later["token"])

    def test_a_master_that_hangs_in_mid_frame_slows_nobody_down(self):
        with Cluster(PAWLD, cluster=SHORT) as cluster, cluster.client("a") as a:
            value = b"x" * 60000
            cluster.nodes["c"].signal(signal.SIGSTOP)
            longest = 0
            for i in range(300):  # This is more than fits into the buffers of the socket.
                began = time.monotonic()
                a.call("acquire", key="v%d" % i, lease_ms=1000, value=value)
                longest = max(longest, time.monotonic() - began)
            self.assertLess(longest, 0.25)
            cluster.nodes["c"].signal(signal.SIGCONT)
            linked(a)

    def test_without_a_quorum_nothing_is_granted_and_the_silent_are_named(self):
        with Cluster(PAWLD, cluster=SHORT) as cluster, cluster.client("a") as a:
            cluster.nodes["b"].kill()
            cluster.nodes["c"].kill()
            refused = refusal(self, a, "acquire", key="k", lease_ms=1000)
            self.assertEqual(refused.code, "no_quorum")
            self.assertEqual(sorted(refused.error["silent"]), ["b", "c"])
            cluster.nodes["a"].wait_log(" quorum_lost ", "voting=1 ")
            self.assertNotIn(" quorum_back ", cluster.nodes["a"].log())
            cluster.start("b")
            cluster.nodes["a"].wait_log(" quorum_back ", "voting=2")

    def test_a_rolling_restart_leaves_a_held_lease_alone(self):
        with Cluster(PAWLD) as cluster, Client(cluster.clients["a"]) as first:
            got = first.call("acquire", key="k", lease_ms=50000)
            for name in cluster.names:
                self.assertEqual(cluster.nodes[name].terminate(), 0)
                cluster.start(name).wait_log(" voting ", "by=drain")
                with cluster.client("a") as a:
                    linked(a)
                    self.assertEqual(refusal(self, a, "acquire", key="k", lease_ms=1000).code,
                                     "held")
            with cluster.client("b") as b:
                linked(b)
                b.call("extend", key="k", lock_id=got["lock_id"], lease_ms=50000,
                       token=got["token"])

    def test_tokens_grow_when_everything_dies_at_once(self):
        with Cluster(PAWLD, cluster=SHORT) as cluster:
            with cluster.client("a") as a:
                got = a.call("acquire", key="k", lease_ms=2000)
            for name in cluster.names:
                cluster.nodes[name].kill()
            for name in cluster.names:
                cluster.start(name)
            # Two of them wait, and perhaps the third one rejoins these.
            for name in cluster.names:
                cluster.nodes[name].wait_log(" voting ")
            with cluster.client("b") as b:
                linked(b)
                self.assertGreater(b.call("acquire", key="k", lease_ms=1000)["token"], got["token"])

    def test_a_drained_node_answers_that_it_does_not_vote(self):
        with Cluster(PAWLD) as cluster, cluster.client("c") as c, cluster.client("a") as a:
            c.call("drain")
            self.assertEqual(c.call("status")["state"], "drained")
            a.call("acquire", key="k", lease_ms=1000)
            self.assertEqual(cluster.nodes["c"].terminate(), 0)
            cluster.start("c").wait_log(" voting ", "by=drain")


class Starting(unittest.TestCase):
    def test_a_second_daemon_on_the_same_state_is_refused(self):
        with Cluster(PAWLD, masters=1) as cluster:
            second = Node([PAWLD, "--config", cluster.config("a")])
            self.assertNotEqual(second.wait(), 0)
            self.assertIn("state-a", second.log())

    def test_dev_is_ready_within_a_second(self):
        began = time.monotonic()
        process = subprocess.Popen([PAWLD, "--dev", "--listen", "127.0.0.1:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            while True:
                line = process.stdout.readline()
                self.assertTrue(line, "it ended")
                if line.startswith("endpoint: "):
                    break
            with Client(line.split()[1]) as client:
                client.call("acquire", key="k", lease_ms=1000)
            self.assertLess(time.monotonic() - began, 1.0)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


class LostStateDirectory(unittest.TestCase):
    def test_its_node_stays_outside_and_says_what_to_put_back(self):
        with Cluster(PAWLD, cluster=SHORT) as cluster:
            with cluster.client("a") as client:
                lock = client.call("acquire", key="k", lease_ms=2000)
                cluster.nodes["c"].kill()
                shutil.rmtree(os.path.join(cluster.dir, "state-c"))
                node = cluster.start("c")
                node.wait_log(" outside ", "cluster replace")
                with cluster.client("c") as stranger:
                    self.assertEqual(stranger.call("status")["state"], "unconfigured")
                    self.assertEqual(refusal(self, stranger, "get", key="k").code, "recovering")
                client.call("extend", key="k", lock_id=lock["lock_id"], lease_ms=2000)


if __name__ == "__main__":
    pawltest.main(globals())
