"""test_elections.py PAWLD CANDIDATE: tests which candidate leads next, and how soon. The candidates
are processes (tests/elections).

Whatever must happen at once is tried several times, and the best time counts, because the machine
may be busy with something else."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "elections"))

import candidates  # noqa: E402
import pawltest  # noqa: E402
from pawltest import Cluster  # noqa: E402

PAWLD = CANDIDATE = None
LEASE_MS = 2000
TRIES = 5
AT_ONCE_MS = 20
CLUSTER = "max_lease = 5s\nrequest_timeout = 300ms\npromise_timeout = 600ms"


class Elections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD, cluster=CLUSTER).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.elections = 0

    def setUp(self):
        type(self).elections += 1
        self.election = "e%d" % self.elections

    def candidate(self, name, node, **settings):
        at = self.cluster.names.index(node)
        names = self.cluster.names[at:] + self.cluster.names[:at]
        endpoints = ",".join(self.cluster.clients[n] for n in names)
        settings = {"elections": self.election, "lease": LEASE_MS, **settings}
        one = candidates.Candidate([CANDIDATE], endpoints, name, **settings)
        self.addCleanup(one.kill)
        return one

    def await_waiters(self, *owners):
        """Waits until these candidates wait, in this order."""
        with self.cluster.client("a") as client:
            end = candidates.time.monotonic() + pawltest.PATIENCE
            while True:
                waiting = [bytes(w["owner"]).decode()
                           for w in client.call("waiters", key=self.election)["waiters"]]
                if waiting == list(owners):
                    return
                self.assertLess(candidates.time.monotonic(), end,
                                "%s wait, not %s" % (waiting, owners))

    def field(self, nodes="abc", **settings):
        """Starts a leader and waiters, c0, c1, ..., in this order, each at its own first node."""
        some = []
        for i, node in enumerate(nodes):
            some.append(self.candidate("c%d" % i, node, **settings))
            some[-1].say("campaign")
            if i == 0:
                some[0].await_line("L")
            else:
                self.await_waiters(*["c%d" % k for k in range(1, i + 1)])
        return some

    def led_after(self, some, since):
        """Returns which of these leads first, and after how many milliseconds."""
        found = candidates.first(some, "L")
        name = min(found, key=found.get)
        return name, (found[name] - since) / 1e6

    # ---- the end of a leader ----

    def test_after_the_kill_of_a_leader_with_a_session_binding_the_next_one_leads_at_once(self):
        took = []
        while len(took) < TRIES and (not took or min(took) > AT_ONCE_MS):
            some = self.field("bca"[len(took) % 3:] + "bca"[:len(took) % 3], disconnect=1)
            name, ms = self.led_after(some[1:], some[0].kill())
            self.assertEqual(name, "c1")
            took.append(ms)
            for one in some:
                one.kill()
            self.setUp()
        print("killed, the next one leads after %s ms" % ["%.1f" % ms for ms in took], flush=True)
        self.assertLessEqual(min(took), AT_ONCE_MS)

    def test_after_the_kill_of_a_leader_the_next_one_leads_when_the_lease_is_over(self):
        some = self.field()
        killed = some[0].kill()
        until = max(int(w[5]) for w in some[0].lines if w[0] in "LA")
        name, ms = self.led_after(some[1:], killed)
        self.assertEqual(name, "c1")
        self.assertGreaterEqual(int(some[1].find("L")[1]), until)
        self.assertLess(ms, LEASE_MS * 1.1 + 1000)

    def test_after_a_resignation_the_next_one_leads_at_once_whatever_the_lock_delay(self):
        some = self.field(delay=3000)
        began = candidates.boottime()
        some[0].say("resign")
        self.assertLess(self.led_after(some[1:], began)[1], 1000)

    def test_a_lock_delay_keeps_the_key_closed_after_a_kill(self):
        for disconnect in (0, 1):
            with self.subTest(disconnect=disconnect):
                some = self.field("ab", delay=1500, disconnect=disconnect)
                killed = some[0].kill()
                until = max(int(w[5]) for w in some[0].lines if w[0] in "LA")
                _, ms = self.led_after(some[1:], killed)
                least = 1500 if disconnect else (until - killed) / 1e6 + 1500
                self.assertGreaterEqual(ms, least)
                self.assertLess(ms, least + LEASE_MS * 0.2 + 1500)
                some[1].kill()
                self.setUp()

    # ---- the end of a node ----

    def kill_node(self, name, leader):
        """Checks that the leadership does not move: it is renewed with the same token while the
        node is away, and afterwards."""
        token = leader.find("L")[3]
        at = candidates.boottime()
        self.cluster.nodes[name].kill()
        leader.await_renewal(at)
        self.cluster.start(name).wait_log(" voting ")
        leader.await_renewal(candidates.boottime())
        self.assertFalse(leader.has("E"))
        self.assertEqual({w[3] for w in leader.lines if w[0] in "LA"}, {token})

    def test_leadership_does_not_move_when_a_master_dies(self):
        for disconnect in (0, 1):
            some = self.field(disconnect=disconnect)
            for victim in ("c", "a"):  # The victim is another node, and then the leader's own.
                with self.subTest(disconnect=disconnect, victim=victim):
                    self.kill_node(victim, some[0])
                    self.assertFalse(some[1].has("L") or some[2].has("L"))
            for one in some:
                one.kill()
            self.setUp()

    # ---- who is next ----

    def test_leadership_is_handed_to_a_candidate_by_name(self):
        some = self.field()
        some[0].say("transfer nobody")
        self.assertNotEqual(some[0].await_line("D")[3], "0")
        self.assertFalse(some[0].has("E"))
        began = candidates.boottime()
        some[0].say("transfer c2")
        name, _ = self.led_after(some[1:], began)
        self.assertEqual(name, "c2")
        self.assertLess(int(some[0].await_line("E")[3]), int(some[2].find("L")[1]))
        self.assertFalse(some[1].has("L"))

    def test_the_candidate_with_the_highest_priority_is_next_and_takes_over_if_it_wants(self):
        some = self.field("ab")
        third = self.candidate("c2", "c", priority=5)
        third.say("campaign")
        self.await_waiters("c2", "c1")
        some[0].say("resign")
        self.assertEqual(self.led_after([some[1], third], 0)[0], "c2")
        fourth = self.candidate("c3", "a", priority=7, takeover=1)
        fourth.say("campaign")
        fourth.await_line("L")
        self.assertLess(int(third.await_line("E")[3]), int(fourth.find("L")[1]))
        self.assertFalse(some[1].has("L"))

    # ---- observing ----

    def test_everybody_is_shown_every_leader_in_order_and_the_present_one_first(self):
        some = self.field()
        for leader, follower in ((0, 1), (1, 2)):
            some[leader].say("resign")
            some[follower].await_line("L")
        late = self.candidate("c3", "b")
        tokens = [int(one.find("L")[3]) for one in some]
        self.assertEqual(tokens, sorted(set(tokens)))
        last = some[2].find("L")[3]
        for one in [*some, late]:
            one.await_line("O", 0, lambda w: w[3] == last)
        self.assertEqual(late.find("O")[3:], [last, "c2"])
        for one in some[:2]:
            seen = [int(w[3]) for w in one.lines if w[0] == "O" and w[3] != "0"]
            self.assertEqual(seen, tokens[-len(seen):])


if __name__ == "__main__":
    CANDIDATE = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
