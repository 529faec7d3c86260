#!/usr/bin/env python3
"""test_states.py PAWLD PAWL: tests what nodes that take no part in a cluster say of themselves, and
what `pawl` says of them. Each says its own state and what helps."""

import cli_fixture
from cli_fixture import Case, pawl
from pawltest import Cluster, free_port
from test_change import ChangeCase, wait_until


class Unborn(Cluster):
    """Initial masters, some of which have another file."""

    def __init__(self, edit):
        super().__init__(cli_fixture.PAWLD)
        self.edit = edit

    def start_all(self):
        self.write_configs()
        for name in self.names:
            with open(self.config(name)) as f:
                text = f.read()
            with open(self.config(name), "w") as f:
                f.write(self.edit(text) if name == "c" else text)
            self.start(name)
        return self


class Births(Case):
    def unborn(self, edit):
        cluster = Unborn(edit)
        cluster.__enter__()
        self.addCleanup(cluster.__exit__)
        self.endpoints = ",".join(cluster.clients[n] for n in cluster.names)
        return cluster

    def shows(self, *sentences):
        """Waits until `pawl cluster show` has all sentences, as text and as JSON."""
        shown = []

        def all_there():
            shown[:] = [pawl("cluster", "show", endpoints=self.endpoints).out]
            return all(s in shown[0] for s in sentences)
        wait_until(all_there, lambda: shown)
        advice = pawl("cluster", "show", "--json", endpoints=self.endpoints).json["advice"]
        self.assertTrue(all(any(s in line for line in advice) for s in sentences), advice)

    def test_masters_with_different_timings_say_which_values_differ_and_where(self):
        cluster = self.unborn(lambda text: text.replace(
            "[cluster]\n", "[cluster]\nmax_lease = 20s\nclock_drift = 2%\n"))
        theirs = ("max_lease is 20000ms at c, and 60000ms here; "
                  "clock_drift is 20000ppm at c, and 10000ppm here")
        for name in "ab":
            cluster.nodes[name].wait_log("birth_differs", theirs)
        cluster.nodes["c"].wait_log("birth_differs", "max_lease is 60000ms at ", "20000ms here")
        self.shows("a waits for the initial masters to agree: " + theirs,
                   "b waits for the initial masters to agree: " + theirs,
                   "c waits for the initial masters to agree: max_lease is 60000ms at ")
        run = pawl("acquire", "k", endpoints=cluster.clients["a"])
        self.assertEqual(run.status, 3)
        self.assertIn("the cluster is not born: this node waits for the initial masters to agree: "
                      + theirs, run.err)

    def test_masters_with_different_lists_say_so_on_every_node(self):
        cluster = self.unborn(lambda text: text + "d = 127.0.0.1:%d\n" % free_port())
        for name in "ab":
            cluster.nodes[name].wait_log(
                "birth_differs", "the list of masters is a b c d at c, and a b c here")
        cluster.nodes["c"].wait_log("birth_differs", ", and a b c d here")
        self.shows("a waits for the initial masters to agree: the list of masters is a b c d at c",
                   "c waits for the initial masters to agree: the list of masters is a b c at ")

    def test_masters_of_differently_named_clusters_name_both_names(self):
        cluster = self.unborn(lambda text: text.replace("name = test\n", "name = other\n"))
        why = "[cluster] name is other at c, and test at this node"
        for name in "ab":
            cluster.nodes[name].wait_log(why)
        cluster.nodes["c"].wait_log("[cluster] name is test at ", "and other at this node")
        self.shows("a has no link with c: ", why)

    def test_a_master_that_is_not_there_is_named(self):
        cluster = self.unborn(
            lambda text: text.replace("[node]\n", "[node]\nno_such_setting = 1\n"))
        cluster.nodes["c"].wait()
        self.endpoints = cluster.clients["a"]
        self.shows("a waits for the other initial masters to be heard", "a has no link with c: ")
        run = pawl("acquire", "k", endpoints=self.endpoints)
        self.assertIn("the cluster is not born yet: start all initial masters", run.err)


class Outside(ChangeCase):
    def refused(self, name, *sentences):
        for words in (["acquire", "k", "--lease", "2s"], ["get", "k", "--quorum"]):
            run = pawl(*words, endpoints=self.cluster.clients[name])
            self.assertEqual(run.status, 3)
            for sentence in sentences:
                self.assertIn(sentence, run.err)
            self.assertNotIn("try again", run.err)
        run = self.change("promote", "b", at=name)
        self.assertEqual(run.status, 3)
        self.assertIn(sentences[0], run.err)

    def waits_for(self, name, sentence):
        self.until(name, lambda s: sentence in s["waits_for"])
        self.assertIn(sentence, pawl("status", endpoints=self.cluster.clients[name]).out)

    def test_a_node_that_was_never_added_and_one_that_was_removed_say_so(self):
        self.cluster.join("d")
        self.refused("d", "this node was never added to the cluster", "pawl cluster add-replica")
        self.waits_for("d", "it was never added to the cluster")
        self.changes("add-replica", "d", self.cluster.peers["d"])
        self.changes("remove", "d")
        self.until("d", lambda s: s["role"] == "outside")
        self.refused("d", "this node was removed from the cluster", "Stop this one, or add it")
        self.waits_for("d", "it was removed from the cluster")

    def test_a_node_that_has_lost_its_state_says_so(self):
        self.cluster.nodes["c"].kill()
        self.cluster.lose_state("c")
        self.cluster.start("c").wait_log(" outside ")
        self.refused("c", "this node has the name of a member, but not its state directory",
                     "pawl cluster replace NAME NAME")
        self.waits_for("c", "not its state directory")

    def test_a_drained_node_says_so(self):
        self.succeeds(pawl("drain", "c", endpoints=self.endpoints("abc")))
        self.refused("c", "this node was drained for a planned stop", "stopped and started")

    def test_a_master_that_answers_and_does_not_vote_is_not_called_silent(self):
        for name in "abc":
            self.cluster.nodes[name].kill()
        self.cluster.start("c").wait_log(" recovering ")
        run = pawl("acquire", "k", "--lease", "2s", endpoints=self.cluster.clients["c"])
        self.assertEqual(run.status, 3)
        self.assertIn("silent: a, b; answering, but not voting: c", run.err)
        error = pawl("acquire", "k", "--lease", "2s", "--json",
                     endpoints=self.cluster.clients["c"]).json["error"]
        self.assertEqual((error["silent"], error["not_voting"]), (["a", "b"], ["c"]))

    def test_a_master_that_waits_says_how_long(self):
        for name in "abc":
            self.cluster.nodes[name].kill()
        self.cluster.start("c").wait_log(" recovering ")
        found = self.until("c", lambda s: s["state"] == "recovering" and s["left_ms"] > 0)
        self.assertIn("recovering, waits ", found["not_ready"])
        self.assertRegex(pawl("status", endpoints=self.cluster.clients["c"]).out,
                         r"(?m)^state +recovering, waits \d+ s more at most, for enough voting ")
        self.assertRegex(self.change("show", at="c").out,
                         r"c does not vote yet \(recovering\): wait up to \d+ s")

    def test_a_lock_that_silent_masters_may_know_is_not_called_a_rest(self):
        self.succeeds(pawl("acquire", "k", "--lease", "3s", endpoints=self.endpoints("a")))
        for name in "bc":
            self.cluster.nodes[name].kill()
        out = pawl("explain", "k", endpoints=self.endpoints("a")).out
        self.assertIn("1 of 3 reported it (a), and 2 do not answer or do not vote: it may be held, "
                      "and its holder may rely on it", out)
        self.assertNotIn("left over", out)

    def test_a_lease_that_is_not_given_is_what_the_cluster_allows(self):
        at = self.endpoints("a")
        lock = self.succeeds(pawl("acquire", "k", "--json", endpoints=at)).json
        self.assertGreater(lock["valid_ms"], 2000)
        self.assertLessEqual(lock["valid_ms"], 3000)
        self.succeeds(pawl("acquire", "d", "--lock-delay", "1s", endpoints=at))
        self.succeeds(pawl("acquire", "x", "y", endpoints=at))
        self.succeeds(pawl("extend", "k", lock["lock_id"], endpoints=at))
        self.assertEqual(pawl("acquire", "l", "--lease", "30s", "--json",
                              endpoints=at).json["error"]["code"], "too_long")

    def test_a_port_for_clients_is_refused_as_the_address_of_a_node(self):
        run = self.change("add-replica", "e", self.cluster.clients["b"])
        self.assertEqual(run.status, 1)
        self.assertIn("e at %s: this is a port for clients: give the address at which that node "
                      "listens for other nodes" % self.cluster.clients["b"], run.err)


if __name__ == "__main__":
    cli_fixture.main()
