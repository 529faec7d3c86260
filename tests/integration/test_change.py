#!/usr/bin/env python3
"""test_change.py PAWLD PAWL: tests pawl cluster against real nodes, while a lock is held all the
time."""

import os
import re
import shutil
import signal
import threading

import cli_fixture
import pawltest
from cli_fixture import Case, finish, pawl, start
from pawltest import PATIENCE, Cluster, Refused

SHORT = "max_lease = 3s\nrequest_timeout = 300ms\npromise_timeout = 600ms\n"


class GrowingCluster(Cluster):
    def __init__(self, masters=3):
        super().__init__(cli_fixture.PAWLD, masters=masters, cluster=SHORT)

    def lose_state(self, name):
        shutil.rmtree(os.path.join(self.dir, "state-" + name))


class Held:
    """A lock that is extended all the time. It must not be lost, and its token must not grow."""

    def __init__(self, cluster, names):
        self.clients = [cluster.client(n) for n in names]
        self.got = self.clients[0].call("acquire", key="held", lease_ms=3000, owner="keeper",
                                        value="v")
        self.stopped, self.problems, self.extended = threading.Event(), [], 0
        self.thread = threading.Thread(target=self._keep, daemon=True)
        self.thread.start()

    def _keep(self):
        while not self.stopped.wait(0.2):
            for client in list(self.clients):
                try:
                    token = client.call("extend", key="held", lock_id=self.got["lock_id"],
                                        lease_ms=3000)["token"]
                    self.extended += 1
                    if token != self.got["token"]:
                        self.problems.append("token %d became %d" % (self.got["token"], token))
                    break
                except Refused as refused:
                    if refused.code in ("lost", "held", "unsure"):
                        self.problems.append(str(refused.error))
                except (pawltest.Closed, OSError):
                    self.clients.remove(client)

    def end(self):
        self.stopped.set()
        self.thread.join(PATIENCE)
        for client in self.clients:
            client.close()


class ChangeCase(Case):
    MASTERS = 3

    def setUp(self):
        super().setUp()
        self.cluster = GrowingCluster(self.MASTERS)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def endpoints(self, names):
        return ",".join(self.cluster.clients[n] for n in names)

    def change(self, *arguments, at="a"):
        return pawl("cluster", *arguments, endpoints=self.endpoints(at))

    def changes(self, *arguments, at="a"):
        run = self.change(*arguments, at=at)
        self.assertEqual(run.status, 0, run.out + run.err + "".join(
            "\n%s:\n%s" % (n, node.log()) for n, node in self.cluster.nodes.items()))
        return run

    def status(self, name):
        return self.succeeds(pawl("status", "--json", endpoints=self.endpoints(name))).json

    def until(self, name, condition):
        """Asks the node for its status until the condition holds, and returns it."""
        found = {}

        def met():
            found.update(self.status(name))
            return condition(found)
        wait_until(met, lambda: "%s: %s" % (found, self.cluster.nodes[name].log()))
        return found

    def add(self, name, at="a"):
        self.cluster.join(name)
        return self.changes("add-replica", name, self.cluster.peers[name], at=at)

    def held(self, names="ac"):
        held = Held(self.cluster, names)
        self.addCleanup(held.end)
        return held

    def check(self, held):
        """Checks that the lock is still held, and was held all the time."""
        before = held.extended
        wait_until(lambda: held.extended > before, lambda: held.problems)
        self.assertEqual(held.problems, [])


def wait_until(condition, tell):
    for _ in range(int(PATIENCE / 0.05)):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError(tell())


class Replicas(ChangeCase):
    def test_a_replica_is_added_reads_locally_and_leaves_again(self):
        held = self.held()
        run = self.add("d")
        self.assertIn("done: epoch 2, complete", run.out)
        found = self.until("d", lambda s: s["state"] == "following"
                           and s["following"]["age_ms"] is not None)
        self.assertEqual((found["role"], found["masters"], found["replicas"]),
                         ("replica", ["a", "b", "c"], ["d"]))
        with self.cluster.client("d") as d:
            seen = d.call("get", key="held")
            self.assertEqual((seen["held"], seen["role"]), (True, "replica"))
            got = d.call("acquire", key="through a replica", lease_ms=1000)
            self.assertEqual(got["quorum"], 2)
        self.assertIn("nothing to do: epoch 2",
                      self.changes("add-replica", "d", self.cluster.peers["d"]).out)
        self.assertIn("done: epoch 3", self.changes("remove", "d", at="b").out)
        self.assertEqual(self.status("a")["replicas"], [])
        self.check(held)


class Masters(ChangeCase):
    def test_a_replica_is_promoted_and_a_master_demoted(self):
        held = self.held()
        self.add("d")
        self.assertIn("vote: a, b, c, d\n", self.changes("promote", "d").out)
        self.assertIn("done: epoch 4", self.changes("demote", "b", at="c").out)
        self.assertEqual(self.until("b", lambda s: s["state"] == "following")["masters"],
                         ["a", "c", "d"])
        self.assertEqual(self.until("d", lambda s: s["state"] == "voting")["voting"], 3)
        self.check(held)

    def test_a_dead_master_is_replaced(self):
        held = self.held()
        self.add("d")
        self.cluster.nodes["b"].kill()
        self.until("a", lambda s: s["voting"] == 2)
        shown = self.changes("show")
        self.assertRegex(shown.out, r"b does not answer( \(.*\))?: restart it, or replace it: pawl "
                                    r"cluster replace b d\n")
        self.changes("replace", "b", "d", at="ac")
        self.assertIn("nothing to do", self.changes("replace", "b", "d", at="ca").out)
        self.assertEqual(self.until("a", lambda s: s["complete"])["masters"], ["a", "d", "c"])
        self.assertNotIn("What to do", self.changes("show").out)
        self.check(held)

    def give_its_place_again(self, name, others):
        held = self.held(others)
        self.cluster.nodes[name].kill()
        self.cluster.lose_state(name)
        self.cluster.start(name)
        self.until(others[0], lambda s: any(p["stranger"] for p in s["peers"]))
        command = "pawl cluster replace %s %s" % (name, name)
        self.assertIn(command, self.changes("show", at=others).out)
        self.changes(*command.split()[2:], at=others)
        self.until(name, lambda s: s["state"] == "voting")
        self.assertIn("nothing to do", self.changes(*command.split()[2:], at=others).out)
        self.check(held)

    def test_a_master_that_lost_its_state_gets_its_place_again(self):
        self.give_its_place_again("b", "ac")

    def test_a_master_that_has_pledged_another_birth_gets_its_place_again(self):
        # a dials all others, so it hears their identities, and pledges, before it hears of the
        # cluster.
        self.give_its_place_again("a", "bc")

    def test_the_whole_set_is_replaced_at_once(self):
        held = self.held("a")
        for name in "def":
            self.cluster.join(name)
        masters = ",".join("%s=%s" % (n, self.cluster.peers[n]) for n in "def")
        held.clients.append(self.cluster.client("d"))
        self.changes("set-nodes", "--masters", masters, "--replicas", "a")
        self.assertEqual(self.until("d", lambda s: s["complete"])["masters"], ["d", "e", "f"])
        self.until("a", lambda s: s["state"] == "following")
        self.check(held)

    def test_a_change_goes_on_when_its_coordinator_is_stopped(self):
        held = self.held("c")
        self.add("d")
        self.cluster.nodes["a"].signal(signal.SIGSTOP)
        run = self.changes("promote", "d", at="ab")
        self.cluster.nodes["a"].signal(signal.SIGCONT)
        self.assertRegex(run.out, r"epoch 3")
        self.until("a", lambda s: s["complete"] and s["epoch"] == 3)
        self.check(held)

    def test_timing_is_changed_while_it_runs(self):
        held = self.held()
        with self.cluster.client("a") as a:
            with self.assertRaises(Refused) as caught:
                a.call("acquire", key="long", lease_ms=60000)
            self.assertEqual(caught.exception.code, "too_long")
            self.changes("set-timing", "--max-lease", "2m")
            self.assertGreater(a.call("acquire", key="long", lease_ms=60000)["valid_ms"], 50000)
        self.assertIn("leases up to 2m00s", self.changes("show").out)
        self.check(held)


class Timing(ChangeCase):
    NEED = re.compile(r"(?:must be at least|8 times that is) (\d+)ms")

    def timing(self, request_ms, at="abc"):
        return self.change("set-timing", "--request-timeout", "%dms" % request_ms,
                           "--promise-timeout", "%dms" % (2 * request_ms), at=at)

    def test_a_timing_that_nobody_could_take_back_is_refused(self):
        run = self.timing(1)
        self.assertEqual(run.status, 1, run.out)
        self.assertIn("request_timeout must be at least 10ms", run.err)
        self.assertEqual(self.status("a")["epoch"], 1)

    def test_the_least_timing_is_set_and_taken_back(self):
        with self.cluster.client("a") as a:
            token = a.call("acquire", key="k", lease_ms=1000)["token"]
        least, run = 10, self.timing(10)
        while run.status:  # It depends on this machine. A refusal names the least timing.
            self.assertRegex(run.err, self.NEED)
            least = int(self.NEED.search(run.err).group(1))
            run = self.timing(least)
        below = self.timing(max(least // 2, 1))
        self.assertEqual(below.status, 1, below.out)
        self.assertRegex(below.err, self.NEED)
        runs = []

        def back():  # Links may be reset meanwhile, because this machine does other things, too.
            runs.append(self.timing(1500))
            return runs[-1].status == 0
        wait_until(back, lambda: "".join(run.out + run.err for run in runs))
        shown = []

        # b may have lost its links at the least timing, and the change is settled without it.
        def known():
            shown.append(self.changes("show", at="b").out)
            return "1.5s" in shown[-1]
        wait_until(known, lambda: shown[-1])
        self.until("a", lambda s: s["complete"])
        with self.cluster.client("b") as b:
            self.assertGreater(b.call("acquire", key="k", lease_ms=1000, wait_ms=5000)["token"],
                               token)


class Refusals(ChangeCase):
    def test_a_change_that_would_lose_the_quorum_is_refused_unless_it_is_forced(self):
        self.cluster.nodes["c"].kill()
        self.until("a", lambda s: s["voting"] == 2)
        run = self.change("remove", "b", "--yes")
        self.assertIn(run.status, (1, 3), run.out)
        self.assertEqual(self.status("a")["epoch"], 1)

    def test_strange_names_are_refused(self):
        for words in ("promote x", "demote x", "replace x y"):
            run = self.change(*words.split())
            self.assertEqual(run.status, 1, words)
            self.assertIn("x", run.err)

    def test_one_of_two_operators_at_once_is_refused_or_comes_second(self):
        self.add("d")
        self.add("e")
        runs = [start("cluster", "promote", n, endpoints=self.endpoints(at))
                for n, at in (("d", "a"), ("e", "b"))]
        runs = [finish(process) for process in runs]
        self.assertIn(0, [run.status for run in runs])
        for run in runs:
            if run.status:
                self.assertRegex(run.err, "another|not complete|under way")
        masters = self.until("c", lambda s: s["complete"])["masters"]
        self.assertEqual(len(masters), 3 + [run.status for run in runs].count(0))


class Force(ChangeCase):
    def test_one_node_starts_over_after_the_loss_of_a_majority(self):
        with self.cluster.client("a") as a:
            token = a.call("acquire", key="k", lease_ms=1000)["token"]
        for name in "bc":
            self.cluster.nodes[name].kill()
            self.cluster.lose_state(name)
        refused = self.change("force")
        self.assertEqual(refused.status, 2)
        self.assertIn("must be dead", refused.err)
        self.change("force", "--yes")
        self.until("a", lambda s: s["state"] == "voting")
        self.assertIn("nothing to do", self.changes("force", "--yes").out)
        with self.cluster.client("a") as a:
            self.assertGreater(a.call("acquire", key="k", lease_ms=1000)["token"], token)
        self.cluster.start("b")
        self.changes("add-replica", "b", self.cluster.peers["b"])
        self.assertTrue(re.search("vote: a, b\n", self.changes("promote", "b").out))


    def test_a_node_with_the_state_from_before_is_to_be_emptied_and_not_added(self):
        for name in "bc":
            self.cluster.nodes[name].kill()
        told = self.changes("force", "--yes").out
        self.assertIn("next: every other node has the state from before. If it is to come back: "
                      "stop it, empty its state directory", told)
        self.cluster.start("b")
        self.until("a", lambda s: any(p["node"] == "b" and p["epoch"] == 1 for p in s["peers"]))
        said = ("has the state of the cluster as it was before it was started over, so it will "
                "never come: stop it, empty its state directory")
        self.assertIn("b " + said, self.changes("show", at="ba").out)
        self.assertNotIn("To add it", self.changes("show", at="ab").out)
        self.until("b", lambda s: any(p["node"] == "a" and p["epoch"] > 1 for p in s["peers"]))
        self.assertIn("the cluster was started over with a, and b has the state from before",
                      self.changes("show", at="b").out)
        explained = pawl("explain", "k", endpoints=self.endpoints("b"))
        self.assertIn("NOT CURRENT: the cluster was started over with a", explained.out)
        self.assertIn("not known: too few masters answer", explained.out)
        self.assertNotIn("nobody\n", explained.out)
        refused = self.change("add-replica", "b", self.cluster.peers["b"], at="ba")
        self.assertEqual(refused.status, 1)
        self.assertRegex(refused.out, r"^asked a at ")
        self.assertIn("b: has the state of the cluster as it was before it was started over",
                      refused.err)
        self.assertIn("empty its state directory", refused.err)
        self.cluster.nodes["b"].kill()
        self.cluster.lose_state("b")
        self.cluster.start("b")
        self.changes("add-replica", "b", self.cluster.peers["b"], at="a")

    def test_a_majority_with_the_state_from_before_is_told(self):
        for name in "bc":
            self.cluster.nodes[name].kill()
        self.changes("force", "--yes")
        for name in "bc":
            self.cluster.start(name)
        self.cluster.nodes["c"].wait_log(" voting ")
        told = self.changes("show", at="abc").out
        for name in "bc":
            self.assertIn(name + " goes on as the cluster from before it was started over with a",
                          told)

    def test_a_node_that_a_change_has_left_out_by_mistake_starts_over(self):
        with self.cluster.client("a") as a:
            token = a.call("acquire", key="k", lease_ms=1000)["token"]
        self.cluster.join("d")
        self.changes("set-nodes", "--masters", "d=" + self.cluster.peers["d"], "--yes")
        self.until("c", lambda s: s["role"] == "outside")
        for name in "abcd":
            self.cluster.nodes[name].kill()
        for name in "abd":
            self.cluster.lose_state(name)
        self.cluster.start("c")
        self.until("c", lambda s: s["role"] == "outside")
        refused = self.change("remove", "d", at="c")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("must be dead", self.change("force", at="c").err)
        self.change("force", "--yes", at="c")
        self.until("c", lambda s: s["state"] == "voting")
        with self.cluster.client("c") as c:
            self.assertGreater(c.call("acquire", key="k", lease_ms=1000)["token"], token)
        self.cluster.start("a")
        self.changes("add-replica", "a", self.cluster.peers["a"], at="c")
        self.changes("promote", "a", at="c")
        self.cluster.nodes["a"].kill()
        self.cluster.start("a")  # a dials c at the address that c has put into the configuration.
        self.until("c", lambda s: s["voting"] == 2)


if __name__ == "__main__":
    cli_fixture.main()
