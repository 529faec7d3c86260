"""test_limits.py PAWLD: tries each limit of docs/operations/reference.md at its edge. What is
exactly at the limit is served, and one more gets the error that is documented. Limits that count
together are tried together. A limit that is not tried here names the tests that hold its edge."""

import glob
import os
import re
import unittest

import pawltest
from pawltest import Client, Closed, Cluster, Refused, lock_id

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REFERENCE = os.path.join(ROOT, "docs", "operations", "reference.md")


class Node:
    """A cluster of one node with these limits, and a client of it. `tcp`: the client comes from an
    address, and otherwise over a Unix socket, by which it has an identity."""

    def __init__(self, case, limits, tcp=False):
        text = "".join("%s = %s\n" % limit for limit in limits.items())
        self.cluster = Cluster(PAWLD, masters=1, node="[limits]\n" + text)
        case.addCleanup(self.cluster.__exit__)
        self.case, self.tcp, self.waiting = case, tcp, []
        self.cluster.__enter__()
        self.client = self.connect()
        # One that has asked for nothing yet makes room for others.
        self.client.call("ping")

    def connect(self, tcp=None):
        tcp = self.tcp if tcp is None else tcp
        client = Client(self.cluster.clients["a"] if tcp else self.cluster.unix("a"))
        self.case.addCleanup(client.close)
        return client

    def acquire(self, key, **more):
        return self.client.call("acquire", **{"key": key, "lock_id": lock_id(), "lease_ms": 30000,
                                              **more})

    def stop(self):
        self.cluster.stop_all()

    def ask(self, params):
        params = {"key": "k", "lock_id": lock_id(), "lease_ms": 30000, **params}
        self.client.call("acquire", **{k: v for k, v in params.items() if v is not None})

    def wait(self, key, one_more):
        """Sends a request that waits. One more than the limit is answered at once."""
        sent = self.client.send("acquire", key=key, lock_id=lock_id(), lease_ms=30000,
                                wait_ms=30000)
        if one_more:
            self.client.answer(sent)
        self.waiting.append(sent)

    def waits_go_on(self):
        """The node has what was sent, and has refused none of it."""
        other = self.connect(not self.tcp)
        pawltest.wait_until(self.case, lambda: other.call("status")["waiters"]
                            == len(self.waiting))
        other.close()
        self.case.assertEqual([s for s in self.waiting if s in self.client.answers], [])


# Each of these asks for one thing; `last`: it is one more than the limit.

def key(node, i, last):
    del last
    node.acquire("k%d" % i)


def share(node, i, last):
    del i, last
    node.acquire("k", mode="shared")


def value(node, i, last):
    del last
    node.acquire("k%d" % i, value=b"v" * 1024)


def watch(node, i, last):
    del last
    node.client.call("watch", key="k%d" % i)


def wait_for_one_key(node, i, last):
    if i == 0:
        node.acquire("k")
    node.wait("k", last)


def wait_for_keys(node, i, last):
    node.acquire("k%d" % i)
    node.wait("k%d" % i, last)


# The limits that are counted: what is counted, how many of them there may be, and the error of one
# more, with the limit that it names.
COUNTED = [
    ({"keys": 5}, key, 5, "full", "keys"),
    ({"holders_per_key": 5}, share, 5, "full", "holders_per_key"),
    ({"waiters": 5}, wait_for_keys, 5, "full", "waiters"),
    ({"waiters_per_key": 5}, wait_for_one_key, 5, "full", None),
    ({"waiters_per_client": 5}, wait_for_keys, 5, "full", "waiters_per_client"),
    ({"requests_per_client": 5}, wait_for_one_key, 5, "busy", None),
    ({"watches_per_client": 5}, watch, 5, "full", "watches_per_client"),
    # Two at a time.
    ({"locks_per_identity": 5, "value_bytes_per_identity": "5k"}, value, 5, "quota",
     "locks_per_identity"),
    ({"keys": 5, "locks_per_identity": 5}, key, 5, "quota", "locks_per_identity"),
    ({"keys": 5, "value_bytes": "1k"}, value, 5, "full", "keys"),
    ({"waiters": 5, "waiters_per_client": 5}, wait_for_keys, 5, "full", "waiters"),
    ({"waiters_per_key": 5, "waits_per_identity": 5}, wait_for_one_key, 5, "quota",
     "waits_per_identity"),
    ({"watches_per_client": 5, "watches_per_identity": 5}, watch, 5, "quota",
     "watches_per_identity"),
]
# The shares, each for an identity and for an address.
SHARES = [("requests", 5, wait_for_one_key, 5), ("waits", 5, wait_for_one_key, 5),
          ("watches", 5, watch, 5), ("locks", 5, key, 5), ("value_bytes", "5k", value, 5)]
COUNTED += [({"%s_per_%s" % (what, whose): limit}, take, count, "quota",
             "%s_per_%s" % (what, whose))
            for what, limit, take, count in SHARES for whose in ("identity", "address")]


def locks(count):
    return [{"key": "k%d" % i, "lock_id": lock_id()} for i in range(count)]


# What is bounded in its size: the limits that a node has, the parameters of an acquire for a size,
# the largest (or least) size, the step to the next one, and the error with its field.
SIZED = [
    ("key", {}, lambda n: {"key": "k" * n}, 512, 1, "too_large", "key"),
    ("owner", {}, lambda n: {"owner": "o" * n}, 256, 1, "too_large", "owner"),
    ("label", {}, lambda n: {"label": "l" * n}, 128, 1, "too_large", "label"),
    ("locks", {}, lambda n: {"key": None, "lock_id": None, "locks": locks(n)}, 64, 1,
     "bad_request", "locks"),
    ("permits", {}, lambda n: {"permits": 1, "of": n}, 128, 1, "bad_request", "of"),
    ("value_bytes", {"value_bytes": "1k"}, lambda n: {"value": b"v" * n}, 1024, 1, "too_large",
     "value"),
    ("value_bytes", {"value_bytes": "1m"}, lambda n: {"value": b"v" * n}, 1 << 20, 1, "too_large",
     "value"),
    ("lease_min", {"lease_min": "200ms"}, lambda n: {"lease_ms": n}, 200, -1, "bad_request",
     "lease_ms"),
    ("max_lease", {}, lambda n: {"lease_ms": n}, 60000, 1, "too_long", "lease_ms"),
    # Two at a time: each of the largest keys has the largest value that all of them may have.
    ("locks and keys", {}, lambda n: {"key": None, "lock_id": None, "locks": [
        {"key": ("%d" % i).rjust(n, "k"), "lock_id": lock_id()} for i in range(64)]}, 512, 1,
     "too_large", "key"),
]


# Who holds the edge of the other limits: functions in tests/.
HELD_BY = {
    "memory": ["memory_that_runs_out_is_a_refusal_and_nothing_granted_suffers"],
    "log": ["when_the_log_does_not_reach_back_it_takes_a_snapshot"],
    "released": ["a_ring_remembers_the_latest_of_as_many_as_it_has_places",
                 "the_ring_of_released_lock_ids_may_lose_its_oldest"],
    "rounds": ["at_the_limit_of_rounds_the_answer_is_busy_and_nothing_granted_suffers"],
    "admin_clients": ["an_administrator_has_a_place_at_a_full_node"],
    "client_memory": ["a_limit_has_a_reserve_and_administrators_have_another_one"],
    "client_memory_per_identity": [
        "bytes_count_for_identity_and_address_from_the_first_to_the_last"],
    "client_memory_per_address": ["an_address_has_a_limit_too_and_the_pool"],
    "kept_locks": ["test_a_node_keeps_so_many_locks_and_no_more"],
    "clients_per_identity": ["an_identity_may_have_limits_of_its_own"],
    "clients_per_address": ["limits_of_an_address_hold_for_all_that_come_from_it"],
    "rate_per_identity": ["requests_above_the_rate_are_told_when_to_come_again"],
    "rate_per_address": ["requests_above_the_rate_are_told_when_to_come_again"],
    "handshakes": ["one_goes_when_they_are_too_many"],
    "handshakes_per_address": ["an_address_with_too_many_loses_one_of_its_own"],
    "handshake_memory": ["one_goes_when_they_take_too_much_memory"],
    "idle_timeout": ["test_a_silent_connection_is_closed_but_not_one_that_waits"],
    # Pairs of limits that count together, in requests and between nodes.
    "permits in a request to extend": [
        "a_request_to_extend_is_no_larger_than_a_node_reads",
        "test_a_request_to_extend_is_no_larger_than_a_node_reads"],
    "values of a key and a link": ["one_key_with_more_than_a_link_holds_is_copied"],
    "certificates of a chain": ["test_a_chain_of_four_authorities_is_read_and_one_of_five_is_not"],
    "groups of a handshake": [
        "test_the_exchange_of_keys_is_on_an_elliptic_curve_at_every_listener"],
}
# Nobody is told an error at this one: what there is no room for is repaired in the background.
WITHOUT_ERROR = {"lingering"}


class Limits(unittest.TestCase):
    def refused(self, code, field, ask, *arguments):
        with self.assertRaises(Refused) as refused:
            ask(*arguments)
        error = refused.exception.error
        self.assertEqual((refused.exception.code, error.get("field")), (code, field), error)

    def test_what_is_counted_reaches_its_limit_and_not_one_more(self):
        for limits, take, count, code, field in COUNTED:
            tcp = any(name.endswith("_per_address") for name in limits)
            with self.subTest(limits=limits):
                node = Node(self, limits, tcp)
                for i in range(count):
                    take(node, i, False)
                if node.waiting:
                    node.waits_go_on()
                self.refused(code, field, take, node, count, True)
                node.stop()

    def test_what_has_a_size_reaches_its_limit_and_not_one_more(self):
        for name, limits, params, size, step, code, field in SIZED:
            with self.subTest(name=name, size=size):
                node = Node(self, limits)
                node.ask(params(size))
                self.refused(code, field, node.ask, params(size + step))
                node.stop()

    def test_a_full_node_takes_as_many_connections_as_it_says(self):
        node = Node(self, {"clients": 5, "admin_clients": 0}, tcp=True)
        for _ in range(4):
            node.connect().call("ping")
        with self.assertRaises((Closed, ConnectionError)):
            node.connect().call("ping")
        node.client.close()
        pawltest.wait_until(self, lambda: self.is_served(node))

    def is_served(self, node):
        try:
            return node.connect().call("ping")
        except (Closed, ConnectionError):
            return False

    def test_each_limit_of_the_reference_is_held_by_a_test(self):
        with open(REFERENCE, encoding="utf-8") as f:
            text = f.read()
        text = text[text.index("| `[limits]` |"):text.index("### File descriptors")]
        rows = re.findall(r"^\| ((?:`\w+`,? ?)+)(?:\*\*R\*\* )?\|", text, re.M)
        named = set(re.findall(r"\w+", " ".join(rows)))
        self.assertGreater(len(named), 30)
        tried = {name for row in COUNTED for name in row[0]}
        tried |= {name for row in SIZED for name in row[1]} | {"clients"}
        self.assertEqual(named - tried - set(HELD_BY), WITHOUT_ERROR)
        self.assertEqual(named & set(HELD_BY) - {"admin_clients"} & tried, set())

    def test_those_that_hold_an_edge_are_there(self):
        tests = ""
        for path in (glob.glob(os.path.join(ROOT, "tests", "**", "*.[cp]*"), recursive=True)
                     + glob.glob(os.path.join(ROOT, "bindings", "python", "tests", "*.py"))):
            if os.path.isfile(path) and path.endswith((".c", ".py")) and path != __file__:
                with open(path, encoding="utf-8") as f:
                    tests += f.read()
        for limit, names in HELD_BY.items():
            for name in names:
                self.assertTrue(re.search(r"(?:static \w+|def) %s\(" % name, tests),
                                "%s: no test has the name %s" % (limit, name))


if __name__ == "__main__":
    pawltest.main(globals())
