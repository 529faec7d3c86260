#!/usr/bin/env python3
"""test_memory.py PAWLD: tests what happens to clients that take too much of a node's memory for
connections, over raw MessagePack."""

import resource
import socket
import time
import unittest

import pawltest
from pawltest import Closed, Cluster, Refused, lock_id

PAWLD = None

LIMIT = 8 << 20
POOL = 32 << 20
# The memory that a node has ready for the next large request, and that of connections which are
# not counted.
SPARE, MARGIN = 16 << 20, 8 << 20
VALUE = b"x" * 60000
GREEDY, GREEDY_TOO, MODEST = "127.0.0.2", "127.0.0.3", "127.0.0.4"  # Addresses are identities here.


class Memory(unittest.TestCase):
    PER_IDENTITY = LIMIT

    @classmethod
    def setUpClass(cls):
        node = ("[limits]\nclient_memory = %d\nclient_memory_per_identity = %d\n"
                "client_memory_per_address = 0\n" % (POOL, cls.PER_IDENTITY))
        cls.cluster = Cluster(PAWLD, masters=1, node=node).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        # The memory of the process at its start.
        cls.begun = cls.resident()

    @classmethod
    def pages(cls, column):
        """Returns the bytes of the process: mapped (column 0) or resident (column 1)."""
        with open("/proc/%d/statm" % cls.cluster.nodes["a"].process.pid) as f:
            return int(f.read().split()[column]) * resource.getpagesize()

    @classmethod
    def resident(cls):
        return cls.pages(1)

    def client(self, source):
        client = self.cluster.client("a", source=source)
        self.addCleanup(client.close)
        return client

    @staticmethod
    def code(client, msgid):
        try:
            client.answer(msgid)
            return None
        except Refused as e:
            return e.code

    def hold(self, source, value=VALUE):
        """Acquires a lock with a large value. Returns it, and the connection that holds it."""
        client = self.client(source)
        got = None
        while not got:
            try:
                got = client.call("acquire", key="large/" + source, lease_ms=60000, value=value)
            except Refused as e:
                # The memory of an earlier test is about to be freed.
                self.assertEqual(e.code, "quota")
        self.addCleanup(self.let_go, source, got["lock_id"])
        return client, got["lock_id"]

    def let_go(self, source, lock):
        with self.cluster.client("a", source=source) as client:
            client.call("release", key="large/" + source, lock_id=lock)

    def fill(self, *sources):
        """Asks for answers without reading them, until one is refused. Returns the connections, and
        the error."""
        asking = []
        for i in range(1200):
            source = sources[i % len(sources)]
            asking.append(self.ask_without_reading(source))
            with self.cluster.client("a", source=source) as client:
                try:
                    client.call("get", key="large/" + source)
                except Refused as e:
                    return asking, e.error
        self.fail("no request was refused")

    def ask_without_reading(self, source, count=200):
        client = self.client(source)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        for _ in range(count):
            try:
                client.send("get", key="large/" + source)
            except (TimeoutError, ConnectionError):
                return client
        return client

    def used(self, asker, source):
        """Returns the memory that is counted for the identity, and its limit."""
        for share in asker.call("clients", shares=True, limit=1000)["shares"]:
            if share["address"] == source and "identity" in share:
                return share["client_memory"], share.get("client_memory_limit")
        return 0, None

    def works(self, client):
        for _ in range(50):
            lock = lock_id()
            client.call("acquire", key="modest", lease_ms=10000, lock_id=lock)
            client.call("release", key="modest", lock_id=lock)


class Shares(Memory):
    def test_unread_answers_of_one_identity_are_bounded_and_another_one_works_on(self):
        modest, (holder, lock) = self.client(MODEST), self.hold(GREEDY)
        asking, error = self.fill(GREEDY)
        self.assertEqual((error["code"], error["field"]), ("quota", "client_memory_per_identity"))
        self.assertGreater(error["retry_after_ms"], 0)
        self.works(modest)
        used, limit = self.used(modest, GREEDY)
        self.assertEqual(limit, LIMIT)
        self.assertLess(used, LIMIT + LIMIT // 16)
        self.assertLess(self.used(modest, MODEST)[0], 1 << 20)
        # The first requests are answered, except on the connections that had the most memory.
        try:
            for msgid in range(1, 4):
                self.assertIn(self.code(asking[0], msgid), (None, "quota"))
        except (Closed, ConnectionError):
            pass
        for client in asking:
            client.close()
        # After that there is room again.
        while self.code(holder, holder.send("get", key="large/" + GREEDY)):
            pass
        self.assertTrue(holder.call("release", key="large/" + GREEDY, lock_id=lock)["released"])
        self.works(modest)

    def test_the_largest_half_requests_are_ended_and_a_client_at_its_limit_can_still_release(self):
        modest, (holder, lock) = self.client(MODEST), self.hold(GREEDY)
        start = len(self.cluster.nodes["a"].lines)
        small = self.client(GREEDY)
        small.socket.sendall(pawltest.pack([0, 1, "get", [{"key": "x"}]])[:-1])
        half = pawltest.pack([0, 1, "update",
                              [{"key": "k", "lock_id": lock, "value": b"x" * (3 << 20)}]])[:-100]
        for _ in range(6):
            client = self.client(GREEDY)
            try:
                client.socket.sendall(half)
            except ConnectionError:
                pass
        self.cluster.nodes["a"].wait_log(" client_refused ", "client_memory_per_identity",
                                         "most of it", start=start)
        self.assertTrue(holder.call("release", key="large/" + GREEDY, lock_id=lock)["released"])
        small.last = 1
        small.socket.sendall(b"x")
        self.assertIn(self.code(small, 1), (None, "quota"))
        self.works(modest)

    def test_shares_are_told_with_their_limits_page_by_page(self):
        asker, other = self.client(MODEST), self.client(GREEDY_TOO)
        other.call("acquire", key="told", lease_ms=60000)
        seen, after, more = [], {}, True
        while more:
            page = asker.call("clients", shares=True, limit=1, **after)
            seen += page["shares"]
            after, more = {"after": seen[-1]["share"]}, page["more"]
        self.assertEqual(sorted(s["share"] for s in seen), [s["share"] for s in seen])
        [own] = [s for s in seen if s["address"] == GREEDY_TOO and "identity" in s]
        self.assertEqual((own["identity"], own["locks"], own["clients"], own["clients_limit"]),
                         (b"", 1, 1, 5000))
        self.assertEqual((own["client_memory_limit"], own["locks_limit"]), (LIMIT, 2000000))
        self.assertNotIn("rate", own)
        self.assertNotIn("rate_limit", own)
        [address] = [s for s in seen if s["address"] == GREEDY_TOO and "identity" not in s]
        self.assertNotIn("client_memory_limit", address)


class Pool(Memory):
    PER_IDENTITY = 0

    def test_a_node_whose_memory_is_full_ends_connections_of_those_who_have_most_of_it(self):
        modest = self.client(MODEST)
        for source in (GREEDY, GREEDY_TOO):
            self.hold(source)
        _, error = self.fill(GREEDY, GREEDY_TOO)
        self.assertEqual((error["code"], error["field"]), ("full", "client_memory"))
        self.works(modest)
        self.cluster.nodes["a"].wait_log(" full what=client_memory ", "limit=%d" % POOL,
                                         "from=127.0.0.")
        self.works(modest)
        held = sum(self.used(modest, source)[0] for source in (GREEDY, GREEDY_TOO, MODEST))
        self.assertLess(held, POOL + POOL // 16)

    def test_the_process_stays_within_its_limit_and_is_small_again_afterwards(self):
        """A MiB of the limit is a MiB of the process, and after the flood the system gets it
        back."""
        if self.pages(0) > (1 << 40):
            self.skipTest("a sanitizer maps much, and keeps what is freed")
        for source in (GREEDY, GREEDY_TOO):
            self.hold(source, VALUE[:20000])
        before = self.begun
        asking, _ = self.fill(GREEDY, GREEDY_TOO)
        most = self.resident()
        self.assertGreater(most, before + POOL // 2)
        self.assertLess(most, before + POOL + POOL // 16 + SPARE + MARGIN)
        for client in asking:
            client.close()
        end = time.monotonic() + 10
        while self.resident() > before + MARGIN and time.monotonic() < end:
            self.works(self.client(MODEST))
        self.assertLess(self.resident(), before + MARGIN)


if __name__ == "__main__":
    pawltest.main(globals())
