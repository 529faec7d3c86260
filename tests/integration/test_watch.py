#!/usr/bin/env python3
"""test_watch.py PAWLD: tests watches, and locks that end with their holder's connection, over raw
MessagePack."""

import os
import time
import unittest

import pawltest
from pawltest import Cluster, Refused, lock_id

PAWLD = None
# In a build with the sanitizers, memory that was freed goes back soon and does not count as the
# node's.
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"),
                                                    "quarantine_size_mb=1"]))


def resident_kilobytes(node):
    with open("/proc/%d/status" % node.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD, node="[limits]\nwatches_per_client = 5\n").__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def client(self, node="a"):
        client = self.cluster.client(node)
        self.addCleanup(client.close)
        return client

    def expect(self, watcher, *wanted):
        """Returns the next events as pairs of type and token."""
        got = []
        for _ in wanted:
            event = watcher.event()
            got.append((event["type"], event.get("token")))
        self.assertEqual(got, list(wanted))

    # ---- what is told ----

    def test_every_change_of_a_key_is_told_in_order_at_every_node(self):
        key = "order/1"
        watchers = [self.client(n) for n in "abc"]
        for i, watcher in enumerate(watchers):
            answer = watcher.call("watch", prefix="order/") if i else watcher.call("watch", key=key)
            self.assertIn("watch", answer)
        holder = self.client("b")
        tokens = []
        for value in (b"one", b"two"):
            got = holder.call("acquire", key=key, lease_ms=30000, owner="me", value=value)
            # An extension is not a change.
            holder.call("extend", key=key, lock_id=got["lock_id"], lease_ms=30000)
            holder.call("update", key=key, lock_id=got["lock_id"], value=value * 2)
            holder.call("release", key=key, lock_id=got["lock_id"])
            tokens.append(got["token"])
        for watcher in watchers:
            seen = [watcher.event() for _ in range(6)]
            self.assertEqual([(e["type"], e["token"]) for e in seen],
                             [(t, token) for token in tokens
                              for t in ("acquired", "updated", "released")])
            self.assertEqual([bytes(seen[i]["value"]) for i in (0, 1, 3, 4)],
                             [b"one", b"oneone", b"two", b"twotwo"])
            self.assertTrue(all(e["key"] == key.encode() for e in seen))
            self.assertEqual(len({e["position"] for e in seen}), 6)

    def test_the_end_of_a_lock_says_how_it_ended(self):
        watcher, holder = self.client("c"), self.client("a")
        watcher.call("watch", prefix="end/")
        short = holder.call("acquire", key="end/expires", lease_ms=200)
        self.expect(watcher, ("acquired", short["token"]), ("expired", short["token"]))
        broken = holder.call("acquire", key="end/broken", lease_ms=30000)
        holder.call("break", key="end/broken", token=broken["token"], now=True)
        self.expect(watcher, ("acquired", broken["token"]), ("lost", broken["token"]))

    def test_a_watch_begins_with_the_present_state_and_misses_nothing_after_it(self):
        watcher, holder = self.client("a"), self.client("b")
        free = watcher.call("watch", key="begin")
        self.assertFalse(free["held"])
        got = holder.call("acquire", key="begin", lease_ms=30000, value=b"v")
        self.expect(watcher, ("acquired", got["token"]))
        second = self.client("a")
        held = second.call("watch", key="begin")
        self.assertTrue(held["held"])
        self.assertEqual((held["token"], bytes(held["value"])), (got["token"], b"v"))
        holder.call("release", key="begin", lock_id=got["lock_id"])
        self.expect(second, ("released", got["token"]))

    def test_after_unwatch_no_event_comes(self):
        watcher = self.client("a")
        first, second = (watcher.call("watch", key="un")["watch"],
                         watcher.call("watch", key="un")["watch"])
        watcher.call("unwatch", watch=first)
        with self.assertRaises(Refused) as refused:
            watcher.call("unwatch", watch=first)
        self.assertEqual(refused.exception.code, "not_found")
        got = watcher.call("acquire", key="un", lease_ms=30000)
        event = watcher.event()
        self.assertEqual((event["watch"], event["token"]), (second, got["token"]))
        watcher.call("release", key="un", lock_id=got["lock_id"])
        self.assertEqual(watcher.event()["type"], "released")
        self.assertFalse(watcher.notes)

    def test_a_connection_has_a_limit_of_watches(self):
        watcher = self.client("a")
        watches = [watcher.call("watch", key="limit%d" % i)["watch"] for i in range(5)]
        for params in ({"key": "limit5"}, {"prefix": ""}):
            with self.assertRaises(Refused) as refused:
                watcher.call("watch", **params)
            self.assertEqual((refused.exception.code, refused.exception.error.get("field")),
                             ("full", "watches_per_client"))
        watcher.call("unwatch", watch=watches[0])
        watcher.call("watch", key="limit5")

    # ---- resuming ----

    def test_a_watcher_that_comes_back_is_told_what_it_has_missed(self):
        holder, watcher = self.client("a"), self.client("b")
        watcher.call("watch", key="resume")
        first = holder.call("acquire", key="resume", lease_ms=30000)
        seen = watcher.event()["position"]
        watcher.close()
        holder.call("release", key="resume", lock_id=first["lock_id"])
        second = holder.call("acquire", key="resume", lease_ms=30000)
        again = self.client("b")
        again.call("watch", **{"key": "resume", "from": seen})
        self.expect(again, ("released", first["token"]), ("acquired", second["token"]))
        holder.call("release", key="resume", lock_id=second["lock_id"])
        self.expect(again, ("released", second["token"]))

    def test_a_position_of_another_node_is_an_overflow(self):
        position = self.client("a").call("watch", key="elsewhere")["position"]
        watcher = self.client("b")
        watcher.call("watch", **{"key": "elsewhere", "from": position})
        self.assertEqual(watcher.event()["type"], "overflow")
        got = watcher.call("acquire", key="elsewhere", lease_ms=30000)
        self.expect(watcher, ("acquired", got["token"]))

    # ---- slow watchers ----

    def test_a_watcher_that_does_not_read_costs_bounded_memory_and_is_told_of_an_overflow(self):
        slow, quick, holder = self.client("a"), self.client("a"), self.client("a")
        slow.call("watch", key="slow")
        quick.call("watch", key="slow")
        got = holder.call("acquire", key="slow", lease_ms=60000)
        self.expect(quick, ("acquired", got["token"]))
        before, value = resident_kilobytes(self.cluster.nodes["a"]), b"x" * 60000
        for number in range(800):
            holder.call("update", key="slow", lock_id=got["lock_id"], value=value + b"%d" % number)
            event = quick.event()
            self.assertEqual((event["type"], bytes(event["value"][60000:])),
                             ("updated", b"%d" % number))
        self.assertLess(resident_kilobytes(self.cluster.nodes["a"]) - before, 24 * 1024)
        numbers, overflow = [], None
        self.assertEqual(slow.event()["type"], "acquired")
        while overflow is None:
            event = slow.event()
            if event["type"] == "overflow":
                overflow = event
            else:
                numbers.append(int(event["value"][60000:]))
        # No event before the overflow is missing.
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertLess(len(numbers), 800)
        self.assertTrue(slow.call("get", key="slow")["held"])  # The client reads the state again.
        holder.call("release", key="slow", lock_id=got["lock_id"])
        while True:
            event = slow.event()
            if event["type"] == "released":
                break
            self.assertEqual(event["type"], "updated")

    # ---- asking ----

    def test_a_holder_hears_that_it_is_asked_to_let_go(self):
        holder, asker = self.client("a"), self.client("c")
        got = holder.call("acquire", key="asked", lease_ms=30000)
        holder.call("watch", key="asked")
        holder.call("watch", prefix="ask")
        self.client("b").call("watch", key="asked")
        reached = asker.call("ask_release", key="asked", owner="other", to="successor",
                             priority=3)["reached"]
        self.assertEqual(reached, 2)  # Connections are counted, not watches.
        for _ in range(2):
            event = holder.event()
            self.assertEqual((event["type"], event["by"], event["to"], event["priority"]),
                             ("asked", b"other", b"successor", 3))
        holder.call("release", key="asked", lock_id=got["lock_id"])

    # ---- locks that end with a connection ----

    def hand_off(self, attempt, node):
        """Returns how long the next waiter waits after the holder's end, in seconds."""
        holder, waiter = self.client(node), self.client("b")
        key = "leader%d%s" % (attempt, node)
        holder.call("acquire", key=key, lease_ms=60000, release_on_disconnect=True)
        waiting = waiter.send("acquire", key=key, lease_ms=60000, wait_ms=20000)
        other = self.client("b")
        while not other.call("waiters", key=key)["waiters"]:
            pass
        began = time.monotonic()
        holder.close()
        waiter.answer(waiting)
        return time.monotonic() - began

    def test_a_waiter_has_the_lock_at_once_when_the_holder_is_gone(self):
        for node in "ab":
            best = 1.0
            for attempt in range(5):
                best = min(best, self.hand_off(attempt, node))
                if best < 0.02:
                    break
            self.assertLess(best, 0.02)

    def test_without_asking_for_it_a_lock_outlives_its_connection(self):
        holder, other = self.client("a"), self.client("a")
        watcher = self.client("a")
        watcher.call("watch", prefix="stays/")
        held = holder.call("acquire", key="stays/held", lease_ms=30000)
        ended = holder.call("acquire", key="stays/ended", lease_ms=30000,
                            release_on_disconnect=True)
        self.expect(watcher, ("acquired", held["token"]), ("acquired", ended["token"]))
        holder.close()
        event = watcher.event()
        self.assertEqual((event["key"], event["token"]), (b"stays/ended", ended["token"]))
        self.assertTrue(other.call("get", key="stays/held", consistency="quorum")["held"])

    def test_a_lock_that_was_released_and_taken_again_is_not_touched_by_the_old_connection(self):
        holder, other = self.client("a"), self.client("a")
        identity = lock_id()
        holder.call("acquire", key="again", lease_ms=30000, release_on_disconnect=True,
                    lock_id=identity)
        holder.call("release", key="again", lock_id=identity)
        got = other.call("acquire", key="again", lease_ms=30000)
        holder.close()
        other.call("extend", key="again", lock_id=got["lock_id"], lease_ms=30000)
        self.assertEqual(other.call("get", key="again", consistency="quorum")["token"],
                         got["token"])

    def test_a_holder_that_has_moved_to_another_connection_still_has_its_lock(self):
        for node in "ba":  # The holder moves to another node, and to the same one.
            key, old, new, watcher = ("moved/" + node, self.client("a"), self.client(node),
                                      self.client("c"))
            watcher.call("watch", prefix=key)
            got = old.call("acquire", key=key, lease_ms=30000, release_on_disconnect=True)
            mark = old.call("acquire", key=key + "/mark", lease_ms=30000,
                            release_on_disconnect=True)
            new.call("extend",
                     locks=[{"key": key, "lock_id": got["lock_id"], "lease_ms": 30000, "bond": 2}])
            old.close()
            # The end of the old connection has had its effect once another lock has ended with it.
            self.expect(watcher, ("acquired", got["token"]), ("acquired", mark["token"]),
                        ("lost", mark["token"]))
            self.assertEqual(new.call("extend", key=key, lock_id=got["lock_id"],
                                      lease_ms=30000)["token"], got["token"])
            new.close()
            self.expect(watcher, ("lost", got["token"]))

    def test_a_request_that_was_under_way_when_its_client_went_leaves_nothing_held(self):
        holder, gone, watcher = self.client("a"), self.client("b"), self.client("c")
        got = holder.call("acquire", key="halfway", lease_ms=30000)
        gone.send("acquire", key="halfway", lease_ms=30000, wait_ms=20000,
                  release_on_disconnect=True)
        while not watcher.call("waiters", key="halfway")["waiters"]:
            pass
        holder.send("release", key="halfway", lock_id=got["lock_id"])
        gone.close()
        self.assertGreater(watcher.call("acquire", key="halfway", lease_ms=30000,
                                        wait_ms=20000)["token"], got["token"])

    def test_the_death_of_a_node_releases_nothing(self):
        with Cluster(PAWLD) as cluster, cluster.client("b") as holder, cluster.client("a") as other:
            got = holder.call("acquire", key="k", lease_ms=60000, release_on_disconnect=True)
            cluster.nodes["b"].kill()
            cluster.nodes["a"].wait_log("peer_down", "peer=b")
            self.assertEqual(other.call("get", key="k", consistency="quorum")["token"],
                             got["token"])
            # The holder goes on at another node, and from then on the lock ends with this
            # connection.
            with cluster.client("c") as again:
                self.assertEqual(again.call("extend", key="k", lock_id=got["lock_id"],
                                            lease_ms=60000, bond=2)["token"], got["token"])
            other.call("acquire", key="k", lease_ms=1000, wait_ms=20000)


class Replica(unittest.TestCase):
    def told(self, watcher, kind, got):
        event = watcher.event()
        self.assertEqual((event["type"], event["token"]), (kind, got["token"]))

    def follow(self, cluster):
        """Returns a replica r, a client of a master, and a client of the replica that watches."""
        cluster.join("r")
        holder, watcher = cluster.client("a"), cluster.client("r")
        self.addCleanup(holder.close)
        self.addCleanup(watcher.close)
        holder.call("cluster_add_replica", name="r", address=cluster.peers["r"])
        cluster.nodes["r"].wait_log(" following ")
        while (watcher.call("status")["state"] != "following"
               or watcher.call("get", key="k").get("age_ms") is None):
            pass
        watcher.call("watch", prefix="")
        # Events before the master knows of the watch are told as an overflow.
        probe = holder.call("acquire", key="probe", lease_ms=30000)
        while (watcher.event()["type"] == "overflow"
               and not watcher.call("get", key="probe")["held"]):
            pass
        holder.call("release", key="probe", lock_id=probe["lock_id"])
        while watcher.event()["type"] != "released":
            pass
        return holder, watcher

    def test_a_replica_tells_what_the_masters_decide(self):
        with Cluster(PAWLD) as cluster:
            holder, watcher = self.follow(cluster)
            got = holder.call("acquire", key="k", lease_ms=30000, value=b"v")
            self.told(watcher, "acquired", got)
            holder.call("update", key="k", lock_id=got["lock_id"], value=b"w")
            self.told(watcher, "updated", got)
            holder.call("release", key="k", lock_id=got["lock_id"])
            self.told(watcher, "released", got)
            short = holder.call("acquire", key="k", lease_ms=300)
            self.told(watcher, "acquired", short)
            self.told(watcher, "expired", short)

    def test_a_replica_tells_every_one_of_many_quick_changes_in_order(self):
        with Cluster(PAWLD) as cluster:
            holder, watcher = self.follow(cluster)
            wanted = []
            for i in range(1000):  # Several come within one interval of replication.
                got = holder.call("acquire", key="k", lease_ms=30000, value=b"v%d" % i)
                holder.call("update", key="k", lock_id=got["lock_id"], value=b"w%d" % i)
                holder.call("release", key="k", lock_id=got["lock_id"])
                wanted += [("acquired", got["token"], b"v%d" % i),
                           ("updated", got["token"], b"w%d" % i), ("released", got["token"], None)]
            missed = 0
            while wanted:
                event = watcher.event()
                one = (event["type"], event.get("token"), event.get("value"))
                if event["type"] == "overflow":
                    # A repair passed a commit on its way to the replica's master.
                    missed += 1
                    acquired = watcher.event()
                    self.assertEqual((acquired["type"], acquired.get("token")), wanted[0][:2])
                    self.assertEqual(acquired.get("value"), wanted[1][2])
                    del wanted[:2]
                else:
                    self.assertEqual(one, wanted.pop(0))
            # Where the cores are busy, the replica's master is behind now and then.
            self.assertLess(missed, 300)
            self.assertFalse(watcher.notes)


class OwnRequests(unittest.TestCase):
    """A node asks itself to release what ended with a connection, and numbers that apart from what
    its clients ask for."""

    def test_a_waiter_is_not_told_what_the_node_itself_has_asked_for(self):
        with Cluster(PAWLD, masters=1) as cluster:
            holder, waiter, other = (cluster.client("a") for _ in range(3))
            got = holder.call("acquire", key="held", lease_ms=30000)
            waiting = waiter.send("acquire", key="held", lease_ms=30000, wait_ms=30000)
            while not other.call("waiters", key="held")["waiters"]:
                pass
            for _ in range(10):
                with cluster.client("a") as gone:
                    gone.call("acquire", key="gone", lease_ms=30000, wait_ms=20000,
                              release_on_disconnect=True)
            other.call("acquire", key="gone", lease_ms=30000, wait_ms=20000)
            holder.call("release", key="held", lock_id=got["lock_id"])
            self.assertGreater(waiter.answer(waiting)["token"], got["token"])


if __name__ == "__main__":
    pawltest.main(globals())
