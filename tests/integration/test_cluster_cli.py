#!/usr/bin/env python3
"""test_cluster_cli.py PAWLD PAWL: tests pawl cluster and pawl status against scripted nodes, which
answer as the tests want."""

import os
import pty
import select
import signal

import cli_fixture
from cli_fixture import Case, finish, pawl
from pawltest import PATIENCE
from status_node import Fails, StatusNode, done, later, peer, status


class NodesCase(Case):
    def node(self, name):
        node = StatusNode(self.folder, name)
        self.addCleanup(lambda: os.path.exists(node.path) and node.die())
        return node

    def setUp(self):
        super().setUp()
        self.a = self.node("a")
        self.endpoints = self.a.endpoint

    def pawl(self, *arguments):
        return pawl(*arguments, endpoints=self.endpoints)

    def begin(self, *arguments):
        return self.start(*arguments, endpoints=self.endpoints)


class Requests(NodesCase):
    def test_each_change_is_asked_for_by_its_method_and_parameters(self):
        rows = [("add-replica e e.example:7118", "add_replica",
                 dict(name="e", address="e.example:7118")),
                ("promote d", "promote", dict(name="d")),
                ("demote b --anyway --yes", "demote", dict(name="b", anyway=True)),
                ("remove d", "remove", dict(name="d")),
                ("replace b d", "replace", dict(old="b", new="d")),
                ("set-nodes --masters a,e=e.example:1 --replicas d --yes", "set_nodes",
                 dict(masters=["a", "e=e.example:1"], replicas=["d"])),
                ("set-nodes --masters a --yes", "set_nodes", dict(masters=["a"], replicas=[])),
                ("set-timing --max-lease 2m --clock-drift 0.5%", "set_timing",
                 dict(max_lease_ms=120000, clock_drift_ppm=5000)),
                ("set-timing --request-timeout 2s --promise-timeout 4s", "set_timing",
                 dict(request_timeout_ms=2000, promise_timeout_ms=4000)),
                ("force --yes", "force", dict(yes=True))]
        for words, method, params in rows:
            self.a.asked.clear()
            self.succeeds(self.pawl("cluster", *words.split()))
            self.assertEqual(self.a.asked, [("cluster_" + method, params)])

    def test_the_last_lines_name_the_epoch_and_the_masters(self):
        run = self.succeeds(self.pawl("cluster", "promote", "d"))
        self.assertIn("done: epoch 5, complete\n", run.out)
        self.assertIn("vote: a, b, c\n", run.out)

    def test_a_change_that_is_done_already_says_that_there_is_nothing_to_do(self):
        self.a.change = lambda method, params: done(4)
        self.assertIn("nothing to do: epoch 4",
                      self.succeeds(self.pawl("cluster", "promote", "c")).out)

    def test_removing_a_node_that_has_left_and_still_runs_is_remarked(self):
        self.a.status["peers"].append(peer("x", "outside", voting=False))
        for words in ("remove x", "replace x d"):
            out = self.succeeds(self.pawl("cluster", *words.split())).out
            self.assertIn("note: x is not in the cluster", out)
            self.assertIn("next: x has left the cluster and still runs: stop it\n", out)
            self.assertNotIn("add-replica", out)
        self.assertIn("x is running but is not in the cluster. If it was removed, stop it. To add "
                      "it: pawl cluster add-replica x",
                      self.succeeds(self.pawl("cluster", "promote", "d")).out)

    def test_a_name_that_no_node_has_is_an_error_and_not_nothing_to_do(self):
        for words in ("remove x", "replace x d", "replace x c", "promote x", "demote x",
                      "set-nodes --masters a,b,x"):
            run = self.pawl("cluster", *words.split())
            self.assertEqual((run.status, self.a.asked), (1, []), words)
            self.assertIn("there is no node x in the cluster", run.err)
            self.assertIn("Its masters are a, b, c; its replicas: d", run.err)
            self.assertEqual(self.pawl("cluster", *words.split(), "--json").json["error"]["code"],
                             "not_found")

    def test_missing_nodes_and_warnings_are_told(self):
        self.a.change = lambda method, params: done(complete=False, missing=["c"],
                                                    warning="one more loss stops it")
        self.a.status["peers"][2].update(voting=False)
        run = self.succeeds(self.pawl("cluster", "promote", "d"))
        self.assertIn("epoch 5, settled, not complete", run.out)
        self.assertIn("do not vote yet: c\n", run.out)
        self.assertIn("warning: one more loss stops it", run.out)

    def test_a_change_that_is_not_settled_is_status_3(self):
        self.a.change = lambda method, params: done(settled=False, complete=False,
                                                    missing=["b", "c"])
        run = self.pawl("cluster", "promote", "d")
        self.assertEqual(run.status, 3)
        self.assertIn("NOT SETTLED", run.out)

    def test_json_is_one_object_without_progress(self):
        self.a.change = lambda method, params: done(complete=False, missing=["d"])
        run = self.succeeds(self.pawl("cluster", "promote", "d", "--json"))
        self.assertEqual(run.json, dict(epoch=5, settled=True, complete=False, missing=["d"],
                                        changed=True))
        self.assertEqual(run.err, "")

    def test_refusals_say_why_and_what_to_do(self):
        rows = [("mismatch", "another change came first: epoch 5 is chosen", 1,
                 "pawl cluster show"),
                ("unsettled", "the change to epoch 4 is not complete: c does not vote yet", 1,
                 "replace it"),
                ("not_found", "there is no node x", 1, "pawl cluster show"),
                ("no_quorum", "1 of 2 masters answered", 3, "pawl status"),
                ("busy", "a change to epoch 5 is under way here", 1, "wait")]
        for code, message, exit_status, remedy in rows:
            def refuse(method, params, code=code, message=message):
                raise Fails(code, message)
            self.a.change = refuse
            run = self.pawl("cluster", "promote", "d")
            self.assertEqual(run.status, exit_status, code)
            self.assertIn(message, run.err)
            self.assertIn(remedy, run.err)
            self.assertEqual(self.pawl("cluster", "promote", "d", "--json").json["error"]["code"],
                             code)


class Failures(NodesCase):
    """Changes after which fewer masters may fail."""

    LOWER = ("set-nodes --masters a", "demote b", "remove c")

    def test_without_a_terminal_they_need_yes_and_say_how_many_may_fail(self):
        for words in self.LOWER:
            for more in ([], ["--json"], ["--anyway"] * (words != "remove c")):
                run = self.pawl("cluster", *words.split(), *more)
                self.assertEqual((run.status, self.a.asked), (2, []), words)
                self.assertIn("masters that may fail at the same time: 1 before this change, 0 "
                              "after it", run.err)
            self.succeeds(self.pawl("cluster", *words.split(), "--yes"))
            self.a.asked.clear()

    def test_other_changes_ask_nothing(self):
        for words in ("promote d", "remove d", "replace b d", "replace c c",
                      "set-nodes --masters a,b,d", "add-replica e e.example:1"):
            self.succeeds(self.pawl("cluster", *words.split()))
        self.assertEqual(len(self.a.asked), 6)

    def on_terminal(self, answer, *words):
        """Returns the exit status, and what was written to the terminal."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = cli_fixture.subprocess.Popen([cli_fixture.PAWL, "cluster", *words, "--endpoints",
                                                self.endpoints],
                                               stdin=theirs, stdout=theirs, stderr=theirs,
                                               env=cli_fixture.environment())
        os.close(theirs)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        text = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                text += os.read(ours, 4096)
            except OSError:  # The other end is closed.
                break
            if answer and b"(yes/no)" in text:
                os.write(ours, answer)
                answer = b""
        return process.wait(PATIENCE), text.decode()

    def test_on_a_terminal_they_ask(self):
        status, text = self.on_terminal(b"no\n", "demote", "b")
        self.assertEqual((status, self.a.asked), (1, []))
        self.assertIn("After this change the masters are a, c.", text)
        self.assertIn("How many of them may fail: 0; before the change: 1.", text)
        status, text = self.on_terminal(b"yes\n", "demote", "b")
        self.assertEqual((status, self.a.asked), (0, [("cluster_demote", dict(name="b"))]))

    def test_a_dry_run_shows_the_change_and_makes_none(self):
        rows = [("set-nodes --masters a --replicas b", "a; replicas b", "1 before, 0 after"),
                ("remove c", "a, b; replicas d", "1 before, 0 after"),
                ("demote b", "a, c; replicas d, b", "1 before, 0 after"),
                ("promote d", "a, b, c, d; replicas none", "1 before, 1 after"),
                ("replace b d", "a, c, d; replicas none", "1 before, 1 after"),
                ("add-replica e e.example:1", "a, b, c; replicas d, e", "1 before, 1 after"),
                ("set-timing --max-lease 2m", "a, b, c; replicas d", "1 before, 1 after"),
                ("force", "a; replicas none", "1 before, 0 after")]
        for words, after, failures in rows:
            run = self.succeeds(self.pawl("cluster", *words.split(), "--dry-run"))
            self.assertIn("before: masters a, b, c; replicas d\nafter: masters %s\n" % after,
                          run.out)
            self.assertIn("may fail at the same time: " + failures, run.out)
            self.assertIn("dry run: nothing was changed", run.out)
        self.assertIn("max lease: 1m00s before, 2m00s after",
                      self.pawl("cluster", "set-timing", "--max-lease", "2m", "--dry-run").out)
        run = self.pawl("cluster", "demote", "b", "--dry-run", "--json")
        self.assertEqual(run.json["before"]["failures_borne"], 1)
        self.assertEqual(run.json["after"], dict(
            masters=["a", "c"], replicas=["d", "b"], failures_borne=0, max_lease_ms=60000,
            request_timeout_ms=1000, promise_timeout_ms=2000, clock_drift_ppm=5000))
        self.assertEqual(self.a.asked, [])


class Progress(NodesCase):
    def test_each_step_is_a_line(self):
        self.a.change = later
        process = self.begin("cluster", "replace", "b", "d")
        self.a.wait_held()
        for step in ("copies what is held", "asks the masters"):
            self.a.status = status("a", change=dict(step=step, done=10, total=100, epoch=5))
            self.a.wait_seen()
        self.a.answer(done())
        run = self.succeeds(finish(process))
        lines = run.out.splitlines()
        self.assertIn("epoch 4", lines[0])
        self.assertEqual(lines[1:3], ["copies what is held", "asks the masters"])
        self.assertTrue(lines[3].startswith("done: epoch 5"), run.out)

    def test_on_a_terminal_one_line_is_rewritten_and_shows_how_far_it_is(self):
        self.a.change = later
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = cli_fixture.subprocess.Popen([cli_fixture.PAWL, "cluster", "promote", "d",
                                                "--endpoints", self.endpoints],
                                               stdin=theirs, stdout=theirs, stderr=theirs,
                                               env=cli_fixture.environment())
        os.close(theirs)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.a.wait_held()
        for amount in (10, 20):
            self.a.status = status("a", change=dict(step="copies", done=amount, total=100, epoch=5))
            self.a.wait_seen()
        self.a.answer(done())
        text = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                text += os.read(ours, 4096)
            except OSError:  # The other end is closed.
                break
        self.assertIn(b"copies: 10 of 100 (10%)\r\x1b[Kcopies: 20 of 100 (20%)", text)
        self.assertIn(b"\r\x1b[Kdone: epoch 5", text)


class Coordinators(NodesCase):
    def test_when_the_coordinator_dies_the_next_node_goes_on(self):
        b = self.node("b")
        self.endpoints += "," + b.endpoint
        self.a.change = b.change = later
        process = self.begin("cluster", "promote", "d")
        self.a.wait_held()
        self.a.die()
        b.wait_held()
        b.wait_seen()
        b.answer(done())
        run = self.succeeds(finish(process))
        self.assertEqual(b.asked, [("cluster_promote", dict(name="d"))])
        self.assertIn("no longer answers: asked", run.out)
        self.assertIn("done: epoch 5", run.out)

    def test_the_next_node_waits_for_the_change_that_the_dead_one_began(self):
        b = self.node("b")
        self.endpoints += "," + b.endpoint
        self.a.change = later
        answers = [Fails("mismatch", "another change came first"),
                   Fails("unsettled", "d does not vote yet"), None]

        def change(method, params):
            answer = answers.pop(0)
            if answer:
                b.wait(lambda: b.statuses > 1)
                raise answer
            return done()
        b.change = change
        process = self.begin("cluster", "promote", "d")
        self.a.wait_held()
        self.a.die()
        run = self.succeeds(finish(process))
        self.assertEqual(len(b.asked), 3)
        self.assertIn("done: epoch 5", run.out)

    def test_the_node_that_knows_most_is_asked_and_named(self):
        for stale in (dict(role="outside", state="unconfigured", epoch=9), dict(epoch=3)):
            self.a.status = status("a", **stale)
            b = self.node("b%d" % stale["epoch"])
            b.status = status("b")
            run = self.succeeds(pawl("cluster", "promote", "d",
                                     endpoints=self.a.endpoint + "," + b.endpoint))
            self.assertIn("asked b at %s: epoch 4, 3 of 3" % b.endpoint, run.out)
            self.assertEqual((self.a.asked, len(b.asked)), ([], 1))

    def test_when_no_node_is_left_it_says_to_repeat_the_command(self):
        self.a.change = later
        process = self.begin("cluster", "promote", "d", "--timeout", "500ms")
        self.a.wait_held()
        self.a.die()
        run = finish(process)
        self.assertEqual(run.status, 3)
        self.assertIn("repeat the command", run.err)

    def test_after_an_interrupt_it_says_that_the_change_may_go_on(self):
        self.a.change = later
        process = self.begin("cluster", "promote", "d")
        self.a.wait_held()
        process.send_signal(signal.SIGINT)
        run = finish(process)
        self.assertEqual(run.status, 130)
        self.assertIn("repeat the command", run.err)

    def test_an_unreachable_cluster_is_status_3(self):
        self.a.die()
        run = self.pawl("cluster", "promote", "d", "--timeout", "300ms")
        self.assertEqual(run.status, 3)
        self.assertIn(self.endpoints, run.err)

    def test_after_its_timeout_it_says_that_the_change_may_go_on(self):
        self.a.change = later
        run = self.pawl("cluster", "promote", "d", "--wait", "300ms", "--timeout", "300ms")
        self.assertEqual(run.status, 3)
        self.assertIn("the change may still be going on", run.err)


class Force(NodesCase):
    def test_without_yes_it_says_what_may_be_lost_and_does_nothing(self):
        self.a.status["peers"][1].update(linked=False, voting=False)
        run = self.pawl("cluster", "force")
        self.assertEqual((run.status, self.a.asked), (2, []))
        self.assertIn("must be dead, now and for ever: b, c (WHICH ANSWERS).", run.err)
        self.assertIn("1m00s", run.err)
        self.assertIn("--yes", run.err)

    def test_force_is_for_one_node_only(self):
        run = pawl("cluster", "force", "--yes", endpoints=self.a.endpoint + ","
                   + self.node("b").endpoint)
        self.assertEqual((run.status, self.a.asked), (2, []))
        self.assertIn("one node", run.err)

    def test_force_goes_on_until_the_wait_is_over(self):
        def force(method, params):
            self.a.status = status("a", epoch=1 << 32, state="recovering", settled=False,
                                   complete=False, left_ms=3000)
            return done(4, settled=False, complete=False)
        self.a.change = force
        process = self.begin("cluster", "force", "--yes")
        self.a.wait(lambda: self.a.status["state"] == "recovering")
        self.a.wait_seen()
        self.a.status = status("a", epoch=1 << 32)
        run = self.succeeds(finish(process))
        self.assertIn("waiting until every lease has expired", run.out)
        self.assertIn("done: epoch 4294967296, complete", run.out)

    def test_a_repeated_force_finds_that_it_is_done(self):
        self.a.status = status("a", epoch=1 << 32)
        self.a.change = lambda method, params: done(1 << 32)
        self.assertIn("nothing to do: epoch 4294967296",
                      self.succeeds(self.pawl("cluster", "force", "--yes")).out)

    def test_force_is_not_repeated_when_the_node_dies(self):
        self.a.change = later
        process = self.begin("cluster", "force", "--yes")
        self.a.wait_held()
        self.a.die()
        run = finish(process)
        self.assertEqual(run.status, 3)
        self.assertIn("repeat the command", run.err)
        self.assertEqual(len(self.a.asked), 1)


class Show(NodesCase):
    def test_the_answers_of_all_nodes_are_put_together(self):
        b, d = self.node("b"), self.node("d")
        # c is not asked, and has told a its version; d tells its own, whatever a has heard.
        self.a.status["peers"][2].update(version="9.8")
        self.a.status["peers"][3].update(version="9.8")
        peers = [dict(p, follows=False) for p in status("b")["peers"]]
        b.status = status("b", epoch=3, peers=peers)
        d.status = status("d", role="replica", state="following", peers=peers,
                          following=dict(node="a", catching_up=False, snapshot_done=0, position=97,
                                         age_ms=12))
        self.endpoints += "," + b.endpoint + "," + d.endpoint
        run = self.succeeds(self.pawl("cluster", "show"))
        self.assertIn("prod, epoch 4, complete", run.out)
        self.assertRegex(run.out, r"(?m)^timing +leases up to 1m00s, request timeout 1\.0s, "
                                  r"promise timeout 2\.0s, clock drift 0\.5%$")
        self.assertRegex(run.out, r"(?m)^a +master +a.example:7118 +voting +yes")
        self.assertRegex(run.out,
                         r"(?m)^d +replica +d.example:7118 +following +- +3 +12ms +- +9\.9 +a$")
        self.assertRegex(run.out,
                         r"(?m)^c +master +c.example:7118 +voting +yes +- +- +- +9\.8 +-$")
        self.assertNotIn("What to do", run.out)
        shown = self.pawl("cluster", "show", "--json").json
        self.assertEqual((shown["epoch"], shown["advice"]), (4, []))
        self.assertEqual((shown["seen_by"], shown["endpoint"], shown["cluster"], shown["complete"]),
                         ("a", self.a.endpoint, "prod", True))
        self.assertEqual((shown["voting"], shown["masters"], shown["quorum"], shown["change"]),
                         (3, 3, 2, None))
        self.assertEqual((shown["max_lease_ms"], shown["clock_drift_ppm"]), (60000, 5000))
        self.assertEqual([n["node"] for n in shown["nodes"]], ["a", "b", "c", "d"])
        self.assertEqual(shown["nodes"][3], dict(
            node="d", role="replica", address="d.example:7118", state="following", waits_for="",
            left_ms=0, voting=False, copied=None, lag=3, age_ms=12, rights="", version="9.9",
            follows="a", trouble=""))

    def test_show_says_what_to_do(self):
        self.a.status["peers"][1].update(linked=False, voting=False)
        self.a.status["voting"] = 2
        for command in (["cluster", "show"], ["status"]):
            run = self.succeeds(self.pawl(*command))
            self.assertIn("What to do:\n  - b does not answer: restart it, or replace it: pawl "
                          "cluster replace b d\n", run.out)
        self.assertEqual(len(self.pawl("cluster", "show", "--json").json["advice"]), 1)

    def test_masters_that_run_without_a_link_are_named_once_where_a_third_has_both(self):
        def without(node, lacking, **why):
            peers = [dict(p, linked=p["linked"] and p["node"] != lacking) for p in
                     status(node)["peers"]]
            for p in peers:
                p.update(why if p["node"] == lacking else {})
            return status(node, voting=2, peers=peers)
        b, c = self.node("b"), self.node("c")
        b.status, c.status = without("b", "c", trouble="no hello came in time"), without("c", "b")
        said = ("b and c both run, but have no link with each other (no hello came in time): "
                "repair what is between them, in both directions; do not restart them")
        for endpoints in ((b, c), (b,), (c, b)):
            self.endpoints = ",".join(n.endpoint for n in (self.a, *endpoints))
            shown = self.pawl("cluster", "show", "--json").json
            self.assertEqual((shown["seen_by"], shown["advice"]), ("a", [said]))
        c.status["uptime_ms"] = 900
        self.assertEqual(self.pawl("cluster", "show", "--json").json["advice"], [])

    def test_members_are_asked_rather_than_nodes_outside(self):
        outsider = self.node("c")
        outsider.status = status("x", role="outside", state="unconfigured", voting=9, epoch=4)
        self.endpoints = outsider.endpoint + "," + self.a.endpoint
        self.assertRegex(self.succeeds(self.pawl("cluster", "show")).out, r"(?m)^as seen by +a at ")
        run = self.succeeds(pawl("status", endpoints=outsider.endpoint))
        self.assertIn("What to do:\n  - x is not in the cluster. ", run.out)
        self.assertEqual(run.out.count("\n  - "), 1)

    def test_endpoints_where_nobody_answers_are_named(self):
        nobody = "unix:" + os.path.join(self.folder, "nobody")
        self.endpoints += "," + nobody
        run = self.succeeds(self.pawl("cluster", "show", "--timeout", "300ms"))
        self.assertIn("no node answers at " + nobody, run.out)
        shown = self.pawl("cluster", "show", "--json", "--timeout", "300ms").json
        self.assertTrue(any("no node answers at " + nobody in s for s in shown["advice"]))

    def test_an_unreachable_cluster_is_status_3(self):
        self.a.die()
        self.assertEqual(self.pawl("cluster", "show", "--timeout", "300ms").status, 3)

    def test_status_tells_whom_a_replica_follows_and_how_far_a_change_is(self):
        d = self.node("d")
        d.status = status("d", role="replica", state="following",
                          change=dict(step="copies", done=5, total=9, epoch=5),
                          following=dict(node="a", catching_up=False, snapshot_done=0, position=97,
                                         age_ms=12))
        run = self.succeeds(pawl("status", endpoints=d.endpoint))
        self.assertRegex(run.out, r"(?m)^follows +a, with a view at most 12ms old$")
        self.assertRegex(run.out, r"(?m)^change +to epoch 5: copies, 5 of 9$")


class Misuse(Case):
    def test_misuse_names_what_is_wrong(self):
        rows = [("", "an argument is missing"), ("nonsense", "nonsense"),
                ("promote", "promote NAME"), ("promote a b", "too many"),
                ("add-replica e", "HOST:PORT"), ("add-replica e host", "HOST:PORT"),
                ("show --anyway", "--anyway"),
                ("show --yes", "--yes"), ("show --dry-run", "--dry-run"),
                ("promote a --masters b", "--masters"),
                ("promote a --max-lease 5s", "timing options"),
                ("set-nodes", "--masters"), ("set-nodes --masters a,,b", "empty"),
                ("set-nodes --masters a --replicas a", "twice"),
                ("set-timing", "--max-lease"), ("set-timing --clock-drift 5", "--clock-drift"),
                ("set-timing --max-lease 0", "--max-lease"),
                ("promote a --wait 0", "--wait")]
        for words, what in rows:
            run = pawl("cluster", *words.split())
            self.assertEqual((run.status, run.out), (2, ""), words)
            self.assertIn(what, run.err, words)


if __name__ == "__main__":
    cli_fixture.main()
