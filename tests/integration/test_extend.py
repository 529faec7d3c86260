#!/usr/bin/env python3
"""test_extend.py PAWLD PAWL: tests pawl extend --shorten and pawl release --close, against a real
node and against one that answers as the tests want."""

import cli_fixture
from cli_fixture import Case, DevCase, pawl
from status_node import Fails, StatusNode


class Locks(DevCase):
    def acquire(self, key, *options):
        return self.succeeds(self.pawl("acquire", key, "--json", *options)).json

    def test_a_lease_is_shortened_and_extended_under_the_order_that_was_printed(self):
        lock = self.acquire("a", "--lease", "40s")["lock_id"]
        order = 0
        for lease_s in 20, 10:
            said = self.succeeds(self.pawl("extend", "a", lock, "--shorten", "--lease",
                                           "%ds" % lease_s, "--json")).json
            self.assertEqual(said["order"], order + 1)
            order = said["order"]
            got = self.pawl("get", "a", "--quorum", "--json").json
            self.assertLessEqual(got["held_at_most_ms"], lease_s * 1100)
            self.assertEqual(got["order"], order)
        run = self.succeeds(self.pawl("extend", "a", lock, "--shorten", "--lease", "5s"))
        self.assertRegex(run.out, r"(?m)^order +3$")
        more = self.succeeds(self.pawl("extend", "a", lock, "--order", "3", "--lease", "30s",
                                       "--json")).json
        self.assertGreater(more["valid_ms"], 20000)
        again = self.acquire("a", "--lease", "30s", "--lock-id", lock, "--order", "4")
        self.assertGreater(again["valid_ms"], 20000)
        self.assertEqual(self.pawl("get", "a", "--quorum", "--json").json["order"], 4)
        run = self.pawl("extend", "a", "00" * 15 + "01", "--shorten", "--lease", "5s")
        self.assertEqual((run.status, run.out), (1, ""))
        self.assertIn("not shown to be held by this lock_id", run.err)

    def test_a_release_may_close_the_key(self):
        lock = self.acquire("a")["lock_id"]
        run = self.succeeds(self.pawl("release", "a", lock, "--close", "20s"))
        self.assertRegex(run.out, r"(?m)^closed +for 20\.0s$")
        got = self.pawl("get", "a", "--quorum", "--json").json
        self.assertTrue(got["closing"])
        self.assertTrue(10000 < got["closing_ms"] <= 20000)
        # It was not lost.
        self.assertRegex(self.pawl("get", "a", "--quorum").out,
                         r"(?m)^held +no; its last holder is gone, and it stays closed for 1")
        self.assertRegex(self.pawl("explain", "a").out,
                         r"(?m)^ +gone +it was lost .* or released .* stays closed for 1")
        run = self.succeeds(self.pawl("release", "a", lock, "--close", "20s"))
        self.assertNotIn("closed", run.out)
        lock = self.acquire("b")["lock_id"]
        run = self.pawl("release", "b", lock, "--close", "10d")
        self.assertEqual(run.status, 1)
        self.assertIn("or --close", run.err)


class Shortening(Case):
    """pawl extend --shorten, where a node answers as the test wants."""

    LOCK_ID = bytes(15) + b"\x01"

    def setUp(self):
        super().setUp()
        self.node = StatusNode(self.folder, "a")
        self.addCleanup(self.node.die)
        self.held = {"held": True, "token": 7, "owner": b"x", "value": b"", "mode": "shared",
                     "lock_id": b"\x02" * 16, "order": 9, "order_settled": True,
                     "holders": [{"token": 7, "owner": b"x", "lock_id": b"\x02" * 16, "order": 9},
                                 {"token": 6, "owner": b"y", "lock_id": self.LOCK_ID, "order": 4,
                                  "order_settled": True}]}
        self.extended = {"valid_ms": 4900, "token": 6, "quorum": 2, "acks": 3}
        self.node.change = lambda method, params: (
            self.held if method == "get" else self._extend(params))

    def _extend(self, params):
        if isinstance(self.extended, Exception):
            raise self.extended
        return self.extended

    def shorten(self, *options):
        return pawl("extend", "k", self.LOCK_ID.hex(), "--shorten", "--lease", "5s", *options,
                    endpoints=self.node.endpoint)

    def orders(self):
        return [(params["order"], params.get("shorten", False), params["lease_ms"])
                for method, params in self.node.asked if method == "extend"]

    def test_the_order_is_the_next_one_of_this_lock(self):
        run = self.succeeds(self.shorten("--json"))
        self.assertEqual((run.json["order"], self.orders()), (5, [(5, True, 5000)]))
        self.assertEqual(self.node.asked[0][1]["consistency"], "quorum")

    def test_an_order_that_not_every_quorum_knows_of_is_settled_first(self):
        self.held["holders"][1]["order_settled"] = False
        run = self.succeeds(self.shorten())
        self.assertRegex(run.out, r"(?m)^order +6$")
        self.assertEqual(self.orders(), [(5, False, 5000), (6, True, 5000)])

    def test_after_an_error_the_order_is_told(self):
        self.extended = Fails("unsure", "nobody knows")
        run = self.shorten()
        self.assertEqual(run.status, 1)
        self.assertIn("give --order 5 to each later extend", run.err)
        # Nothing was shortened yet.
        self.held["holders"][1]["order_settled"] = False
        self.assertNotIn("--order", self.shorten().err)

    def test_a_node_that_tells_no_order_is_named_as_the_reason(self):
        del self.held["holders"][1]["order_settled"]
        run = self.shorten()
        self.assertEqual((run.status, self.orders()), (1, []))
        self.assertIn("the node does not tell the order", run.err)
        self.assertIn("does not tell the order", self.shorten("--json").json["error"]["message"])


if __name__ == "__main__":
    cli_fixture.main()
