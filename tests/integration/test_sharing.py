#!/usr/bin/env python3
"""test_sharing.py PAWLD: tests several holders, several keys, the order of waiting, and
explanations, over raw MessagePack."""

import unittest

import pawltest
from pawltest import Cluster, Refused, lock_id

PAWLD = None


class Sharing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def client(self, node="a"):
        client = self.cluster.client(node)
        self.addCleanup(client.close)
        return client

    def refused(self, code, client, method, **params):
        with self.assertRaises(Refused) as refused:
            client.call(method, **params)
        self.assertEqual(refused.exception.code, code)
        return refused.exception.error

    def await_waiters(self, key, count):
        client = self.client("c")
        pawltest.wait_until(
            self, lambda: len(client.call("waiters", key=key)["waiters"]) >= count)

    # ---- several holders ----

    def test_readers_hold_together_and_a_writer_waits_for_all_of_them(self):
        key, writer = "readers", self.client("c")
        readers = [(c, c.call("acquire", key=key, lease_ms=30000, mode="shared", label="reader",
                              host="h", pid=7))
                   for c in map(self.client, "ab")]
        self.assertEqual([got["mode"] for _, got in readers], ["shared"] * 2)
        self.assertNotEqual(*[got["token"] for _, got in readers])
        seen = writer.call("get", key=key, consistency="quorum")
        self.assertEqual((seen["held"], seen["mode"], len(seen["holders"])), (True, "shared", 2))
        self.assertEqual({(h["label"], h["host"], h["pid"]) for h in seen["holders"]},
                         {(b"reader", b"h", 7)})
        error = self.refused("held", writer, "acquire", key=key, lease_ms=30000)
        self.assertEqual(error["holder"]["mode"], "shared")
        waiting = writer.send("acquire", key=key, lease_ms=30000, wait_ms=20000)
        self.await_waiters(key, 1)
        # A request that comes after a writer waits behind it, even a reader.
        self.refused("held", self.client("b"), "acquire", key=key, lease_ms=30000, mode="shared")
        for client, got in readers:
            client.call("release", key=key, lock_id=got["lock_id"])
        got = writer.answer(waiting)
        self.assertEqual(got["mode"], "exclusive")
        self.assertEqual(writer.call("downgrade", key=key, lock_id=got["lock_id"])["mode"],
                         "shared")
        self.client("a").call("acquire", key=key, lease_ms=30000, mode="shared")

    def test_a_semaphore_gives_out_permit_numbers(self):
        key = "semaphore"
        two = self.client("a").call("acquire", key=key, lease_ms=30000, permits=2, of=3)
        one = self.client("b").call("acquire", key=key, lease_ms=30000, permits=1, of=3)
        self.assertEqual((two["slots"], one["slots"]), ([0, 1], [2]))
        for named in ({}, {"slots": [0, 1]}):
            longer = self.client("c").call("extend", key=key, lease_ms=30000,
                                           lock_id=two["lock_id"], **named)
            self.assertEqual((longer["mode"], longer["permits"], longer["of"], longer["slots"]),
                             ("permits", 2, 3, [0, 1]))
        locks = [{"key": key, "lock_id": got["lock_id"], "lease_ms": 30000, "slots": got["slots"]}
                 for got in (two, one)]
        answered = self.client("c").call("extend", locks=locks, deadline_kept=True)["locks"]
        self.assertEqual([lock["slots"] for lock in answered], [[0, 1], [2]])
        error = self.refused("bad_request", self.client("c"), "extend", key=key, lease_ms=30000,
                             lock_id=one["lock_id"], slots=[128])
        self.assertEqual(error["field"], "slots")
        self.refused("held", self.client("c"), "acquire", key=key, lease_ms=30000, permits=1, of=3)
        self.client("a").call("release", key=key, lock_id=two["lock_id"])
        self.assertEqual(self.client("c").call("acquire", key=key, lease_ms=30000, permits=1,
                                               of=3)["slots"], [0])
        error = self.refused("mismatch", self.client("b"), "acquire", key=key, lease_ms=30000,
                             lock_id=one["lock_id"])
        self.assertEqual(error["field"], "mode")

    # ---- several keys ----

    def test_several_keys_are_acquired_together_or_not_at_all(self):
        holder, other = self.client("a"), self.client("b")
        got = holder.call("acquire", locks=[{"key": "all/2"}, {"key": "all/1", "mode": "shared"}],
                          lease_ms=30000)
        self.assertEqual([lock["key"] for lock in got["locks"]], [b"all/2", b"all/1"])
        error = self.refused("held", other, "acquire", locks=[{"key": "all/0"}, {"key": "all/2"}],
                             lease_ms=30000)
        self.assertEqual(error["key"], b"all/2")
        self.assertFalse(other.call("get", key="all/0", consistency="quorum")["held"])
        waiting = other.send("acquire", locks=[{"key": "all/0"}, {"key": "all/2"}], lease_ms=30000,
                             wait_ms=20000)
        self.await_waiters("all/2", 1)
        for lock in got["locks"]:
            self.assertTrue(holder.call("release", key=lock["key"],
                                        lock_id=lock["lock_id"])["released"])
        self.assertEqual(len(other.answer(waiting)["locks"]), 2)

    def test_several_keys_end_together_with_their_connection(self):
        holder, watcher = self.client("a"), self.client("b")
        watcher.call("watch", prefix="together/")
        holder.call("acquire", locks=[{"key": "together/1"}, {"key": "together/2"}], lease_ms=30000,
                    release_on_disconnect=True)
        self.assertEqual({watcher.event()["key"] for _ in range(2)}, {b"together/1", b"together/2"})
        holder.close()
        self.assertEqual({(e["type"], e["key"]) for e in (watcher.event(), watcher.event())},
                         {("lost", b"together/1"), ("lost", b"together/2")})

    # ---- order ----

    def test_the_highest_priority_is_next_and_a_named_successor_before_it(self):
        key, holder = "order", self.client("a")
        got = holder.call("acquire", key=key, lease_ms=30000)
        waiting = {}
        for count, (name, priority) in enumerate((("low", 0), ("high", 5), ("successor", -5)), 1):
            client = self.client("b")
            waiting[name] = (client, client.send("acquire", key=key, lease_ms=30000, wait_ms=20000,
                                                 owner=name, priority=priority))
            self.await_waiters(key, count)
        queue = holder.call("waiters", key=key)["waiters"]
        self.assertEqual([w["owner"] for w in queue], [b"high", b"low", b"successor"])
        self.refused("not_found", holder, "transfer", key=key, lock_id=got["lock_id"],
                     to="stranger")
        self.assertTrue(holder.call("transfer", key=key, lock_id=got["lock_id"],
                                    to="successor")["transferred"])
        for left, name in ((2, "successor"), (1, "high"), (0, "low")):
            client, sent = waiting[name]
            got = client.answer(sent)
            # The waiters that were passed over are soon in the queue again.
            pawltest.wait_until(self, lambda: all(
                m["kept"] >= left for m in holder.call("explain", key=key)["masters"]))
            client.call("release", key=key, lock_id=got["lock_id"])

    def test_waiters_are_told_for_all_keys_with_a_prefix(self):
        holder = self.client("a")
        for i in range(3):
            holder.call("acquire", key="prefix/%d" % i, lease_ms=30000)
            self.client("b").send("acquire", key="prefix/%d" % i, lease_ms=30000, wait_ms=20000,
                                  owner="w%d" % i)
            self.await_waiters("prefix/%d" % i, 1)
        found = holder.call("waiters", prefix="prefix/")["waiters"]
        self.assertEqual([(w["key"], w["owner"]) for w in found],
                         [(b"prefix/%d" % i, b"w%d" % i) for i in range(3)])
        self.assertEqual(len(holder.call("waiters", prefix="prefix/", limit=2)["waiters"]), 2)

    def test_a_lock_delay_keeps_a_key_closed_after_a_lease_and_not_after_a_release(self):
        holder, other = self.client("a"), self.client("b")
        got = holder.call("acquire", key="delay", lease_ms=200, lock_delay_ms=800)
        holder.call("release", key="delay", lock_id=got["lock_id"])
        other.call("acquire", key="delay", lease_ms=200, lock_delay_ms=800)
        self.assertGreater(holder.call("acquire", key="delay", lease_ms=1000,
                                       wait_ms=20000)["waited_ms"], 700)

    # ---- explanations ----

    def test_an_explanation_has_what_each_master_says(self):
        key, holder = "explain", self.client("a")
        got = holder.call("acquire", key=key, lease_ms=30000, owner="me", label="why")
        self.client("b").send("acquire", key=key, lease_ms=30000, wait_ms=20000, owner="next")
        self.await_waiters(key, 1)
        told = self.client("c").call("explain", key=key)
        self.assertEqual((told["held"], told["owner"], told["label"]), (True, b"me", b"why"))
        self.assertEqual([m["state"] for m in told["masters"]], ["voting"] * 3)
        self.assertEqual(sum(m["home"] for m in told["masters"]), 1)
        self.assertEqual([m["waiting"] for m in told["masters"] if m["home"]], [1])
        self.assertGreaterEqual(sum(len(m["records"]) for m in told["masters"]), 2)
        for master in told["masters"]:
            self.assertTrue(all(r["token"] == got["token"] for r in master["records"]))

    # ---- status ----

    def test_the_status_counts_watches_and_events(self):
        watcher = self.client("c")
        before = watcher.call("status")
        watcher.call("watch", key="counted")
        got = watcher.call("acquire", key="counted", lease_ms=30000, lock_id=lock_id())
        self.assertEqual(watcher.event()["token"], got["token"])
        after = watcher.call("status")
        self.assertEqual((after["watches"] - before["watches"], after["events"] - before["events"]),
                         (1, 1))


if __name__ == "__main__":
    pawltest.main(globals())
