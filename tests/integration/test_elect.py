#!/usr/bin/env python3
"""test_elect.py PAWLD PAWL: tests elections, events, and more than one holder or key, with the
command pawl.

A candidate's command opens a named pipe and leaves it open. When the test reads the end of the
pipe, everything that ran under that leadership is gone.
"""

import json
import os
import pty
import subprocess

import cli_fixture
from cli_fixture import DevCase, finish, pawl
from pawltest import PATIENCE, Client

LEADS = ("exec 9>$0; trap 'echo told >&9; exit 0' TERM; echo \"leads $PAWL_KEY $PAWL_TOKEN\" >&9; "
         "while :; do sleep 0.01; done")
STUBBORN = "exec 9>$0; trap '' TERM; echo leads >&9; while :; do sleep 0.01; done"


class ElectCase(DevCase):
    def candidate(self, name, *options, script=LEADS):
        """Starts a candidate. Returns it, and the pipe of what it runs while it leads."""
        alive = self.alive()
        process = self.begin("elect", "e", "--as", name, *options, "--", "sh", "-c", script,
                             alive.path)
        return process, alive

    def wait_for_candidates(self, *names):
        """Waits until these candidates wait, in this order."""
        while [w["owner"]
               for w in self.succeeds(self.pawl("waiters", "e",
                                                "--json")).json["waiters"]] != list(names):
            pass

    def watching(self, *options):
        process = self.begin("watch", "--json", *options)

        class Watching:
            def __enter__(inner):
                return inner

            def __exit__(inner, *_):
                process.terminate()

            def next(inner, *types):
                """Returns the next event of one of these types."""
                while True:
                    event = json.loads(process.stdout.readline())
                    if event["type"] in types:
                        return event

        return Watching()

    def leader(self):
        return self.pawl("leader", "e", "--json").json.get("owner")


class Elections(ElectCase):
    def test_the_command_runs_while_leading_and_its_status_is_the_candidates(self):
        run = self.pawl("elect", "e", "--value", "here", "--", "sh", "-c",
                        'pawl=$0; "$1" leader e; echo $PAWL_KEY; exit 7', "x", cli_fixture.PAWL)
        self.assertEqual(run.status, 7, run.err)
        self.assertRegex(run.out, r"^\S+:\d+ leads, token \d+, value here\ne\n$")
        self.assertEqual(self.pawl("leader", "e").status, 1)

    def test_without_a_command_it_says_so_and_leads_until_it_is_ended(self):
        process = self.begin("elect", "e", "--as", "anna", "--json")
        said = json.loads(process.stdout.readline())
        self.assertEqual((said["leading"], self.leader()), (True, "anna"))
        self.assertTrue(self.pawl("get", "e", "--json").json["election"])
        process.terminate()
        self.assertEqual(finish(process).status, 128 + 15)
        self.assertIsNone(self.leader())

    def test_when_the_leader_is_killed_the_next_leads_and_its_command_is_gone_by_then(self):
        first, first_alive = self.candidate("anna", "--release-on-disconnect", script=STUBBORN)
        self.assertEqual(first_alive.line(), "leads")
        _, alive = self.candidate("bert", "--release-on-disconnect")
        self.wait_for_candidates("bert")
        first.kill()
        self.assertTrue(alive.line().startswith("leads e "))
        self.assertTrue(first_alive.has_ended())

    def test_a_leader_hands_over_to_the_named_candidate_and_is_a_candidate_again(self):
        _, first = self.candidate("anna")
        first.line()
        self.candidate("bert")
        self.wait_for_candidates("bert")
        _, third = self.candidate("carl")
        self.wait_for_candidates("bert", "carl")
        self.succeeds(self.pawl("ask-release", "e", "--to", "carl"))
        self.assertEqual(first.line(), "told")
        token = int(third.line().split()[2])
        self.assertEqual(self.leader(), "carl")
        self.wait_for_candidates("bert", "anna")
        with self.watching("--exact", "e") as events:
            events.next("current")
            self.succeeds(self.pawl("ask-release", "e", "--to", "anna"))
            event = events.next("acquired")
        self.assertEqual(event["owner"], "anna")
        self.assertGreater(event["token"], token)

    def test_a_command_that_ignores_sigterm_does_not_keep_the_leadership(self):
        _, first = self.candidate("anna", "--grace", "200ms", script=STUBBORN)
        first.line()
        _, second = self.candidate("bert")
        self.wait_for_candidates("bert")
        self.succeeds(self.pawl("ask-release", "e", "--to", "bert"))
        self.assertTrue(second.line().startswith("leads e "))
        first.wait_end()

    def test_nobody_is_ended_for_somebody_who_does_not_wait(self):
        process, alive = self.candidate("anna")
        alive.line()
        with self.watching("--exact", "e") as events:
            events.next("current")
            with Client(self.endpoints) as client:  # pawl ask-release would refuse.
                client.call("ask_release", key="e", to="nobody")
            events.next("asked")
            self.succeeds(self.pawl("update", "e", self.pawl("get", "e", "--json").json["lock_id"],
                                    "seen"))
            events.next("updated")  # The leader still leads.
        self.assertIsNone(process.poll())

    def test_a_candidate_with_a_higher_priority_takes_over(self):
        _, first = self.candidate("anna")
        first.line()
        _, second = self.candidate("bert", "--priority", "5", "--takeover")
        self.assertTrue(second.line().startswith("leads e "))
        self.assertEqual(first.line(), "told")
        _, third = self.candidate("carl", "--priority", "4", "--takeover")
        self.wait_for_candidates("carl", "anna")
        self.assertEqual(self.leader(), "bert")

    def test_once_is_one_term(self):
        process, alive = self.candidate("anna", "--once")
        alive.line()
        _, second = self.candidate("bert")
        self.wait_for_candidates("bert")
        self.succeeds(self.pawl("ask-release", "e", "--to", "bert"))
        second.line()
        self.assertEqual(finish(process).status, 0)

    def test_an_impossible_candidate_is_refused_once_and_says_what_is_wrong(self):
        rows = ((["k" * 600], "key must be at most 512"),
                (["e", "--as", "a" * 300], "owner must be at most 256"),
                (["e", "--label", "l" * 300], "label must be at most 128"),
                (["e", "--lock-delay", "9h"], "lock delay"))
        for arguments, words in rows:
            run = self.pawl("elect", *arguments, "--once", "--", "true")
            self.assertEqual((run.status, run.err.count(words)), (111, 1), run.err)
        self.assertIn("prefix must be at most 512", self.pawl("watch", "k" * 600).err)

    def test_a_candidate_that_waits_for_ever_says_that_no_node_answers(self):
        nowhere = "unix:" + os.path.join(self.folder, "nobody")
        for arguments in (["elect", "e"], ["leader", "e", "--watch"], ["watch"],
                          ["run", "e", "--wait", "1h", "--", "true"],
                          ["wait", "e", "--for", "free"],
                          ["wait", "e", "--for", "held", "--timeout", "1h"]):
            process = cli_fixture.start("--timeout", "50ms", *arguments, endpoints=nowhere)
            self.assertIn("no node has answered yet", process.stderr.readline(), arguments)
            process.terminate()
            finish(process)

    def test_a_leader_that_is_cut_off_ends_its_command_with_a_status_of_its_own(self):
        process, alive = self.candidate("anna", "--once", "--lease", "1s", script=STUBBORN)
        alive.line()
        self.node.terminate()
        self.assertEqual(finish(process).status, 114)
        alive.wait_end()

    def test_leader_watch_tells_every_change(self):
        watch = self.begin("leader", "e", "--watch", "--json")
        lines = [json.loads(watch.stdout.readline())]
        for name in ("anna", "bert"):
            process = self.begin("elect", "e", "--as", name, "--value", name.upper())
            lines.append(json.loads(watch.stdout.readline()))
            process.terminate()
            lines.append(json.loads(watch.stdout.readline()))
        self.assertEqual([(l["held"], l.get("owner"), l.get("value")) for l in lines],
                         [(False, None, None), (True, "anna", "ANNA"), (False, None, None),
                          (True, "bert", "BERT"), (False, None, None)])
        self.assertGreater(lines[3]["token"], lines[1]["token"])

    def test_a_lock_that_was_broken_while_the_command_ran_is_not_told_as_success(self):
        for command in (("run",), ("elect", "--once"), ("elect",)):
            alive = self.alive()
            process = self.start(command[0], "k", *command[1:], "--json", "--", "sh", "-c",
                                 'exec 9>$0; echo ready >&9; read word', alive.path,
                                 endpoints=self.endpoints, input=subprocess.PIPE)
            self.assertEqual(alive.line(), "ready")
            self.succeeds(self.pawl("break", "k", "--now"))
            other = self.succeeds(self.pawl("acquire", "k", "--json")).json
            # It ends before its lock is to be renewed.
            run = finish(process, "end\n")
            self.assertEqual(run.status, 114, command)
            self.assertIn("pawl %s: 'k' was lost while sh ran" % command[0], run.err)
            self.assertEqual((run.json["exit_status"], run.json["error"]["code"]), (114, "lost"))
            self.succeeds(self.pawl("release", "k", other["lock_id"]))


class Events(ElectCase):
    def test_watch_shows_each_change_in_order_and_goes_on_after_a_position(self):
        with self.watching("a/") as events:
            events.next("current")
            lock = self.pawl("acquire", "a/1", "--json").json
            self.succeeds(self.pawl("acquire", "b"))
            self.succeeds(self.pawl("update", "a/1", lock["lock_id"], "v"))
            self.succeeds(self.pawl("release", "a/1", lock["lock_id"]))
            got = [events.next("acquired", "updated", "released") for _ in range(3)]
        self.assertEqual([(e["type"], e["key"], e["token"]) for e in got],
                         [(t, "a/1", lock["token"]) for t in ("acquired", "updated", "released")])
        again = self.succeeds(self.pawl("watch", "a/", "--json", "--from", got[0]["resume"],
                                        "--count", "2"))
        self.assertEqual([json.loads(l)["type"] for l in again.out.splitlines()],
                         ["updated", "released"])
        self.assertEqual(pawl("watch", "--from", "nonsense").status, 2)

    def test_run_is_told_when_somebody_asks(self):
        alive = self.alive()
        process = self.begin("run", "k", "--on-ask", "term", "--", "sh", "-c", LEADS, alive.path)
        alive.line()
        while self.pawl("ask-release", "k").status:  # It watches soon after it has the lock.
            pass
        self.assertEqual(alive.line(), "told")
        self.assertEqual(finish(process).status, 0)

    def test_asking_where_nobody_listens_is_a_failure(self):
        self.succeeds(self.pawl("acquire", "k"))
        run = self.pawl("ask-release", "k")
        self.assertEqual(run.status, 1)
        self.assertIn("nobody watches", run.err)


class Sharing(ElectCase):
    def acquire(self, *arguments):
        return self.succeeds(self.pawl("acquire", "--json", *arguments)).json

    def test_readers_share_and_a_writer_waits_for_all_of_them(self):
        readers = [self.acquire("k", "--shared") for _ in range(3)]
        self.assertEqual(self.pawl("acquire", "k").status, 1)
        writer = self.begin("acquire", "k", "--wait", "1m", "--owner", "writer")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        self.assertEqual(self.pawl("acquire", "k", "--shared").status, 1)  # The writer came first.
        for r in readers:
            self.succeeds(self.pawl("release", "k", r["lock_id"]))
        self.succeeds(finish(writer))

    def test_no_two_holders_have_the_same_permit(self):
        locks = [self.acquire("k", "--permits", str(n), "--of", "4") for n in (1, 2, 1)]
        self.assertEqual(sorted(s for l in locks for s in l["slots"]), [0, 1, 2, 3])
        self.assertEqual(self.pawl("acquire", "k", "--permits", "1", "--of", "4").status, 1)
        self.succeeds(self.pawl("release", "k", locks[1]["lock_id"]))
        run = self.succeeds(self.pawl("run", "k", "--permits", "2", "--of", "4", "--", "sh", "-c",
                                      "echo $PAWL_SLOTS"))
        self.assertEqual(run.out, ",".join(str(s) for s in sorted(locks[1]["slots"])) + "\n")

    def test_permits_that_make_no_sense_are_misuse(self):
        for arguments in (["--permits", "1"], ["--of", "2"], ["--permits", "3", "--of", "2"],
                          ["--permits", "1", "--of", "129"],
                          ["--permits", "1", "--of", "2", "--shared"]):
            self.assertEqual(pawl("acquire", "k", *arguments).status, 2, arguments)
        self.assertEqual(pawl("acquire", "a", "b", "a").status, 2)
        self.assertEqual(pawl("acquire", "k", "--priority", "x").status, 2)

    def test_several_keys_are_acquired_all_or_none_and_a_held_one_is_named(self):
        self.acquire("c")
        run = self.pawl("acquire", "d", "c", "b")
        self.assertEqual(run.status, 1)
        self.assertIn("acquire c:", run.err)
        got = self.acquire("d", "b")
        self.assertEqual([l["key"] for l in got["locks"]], ["d", "b"])
        run = self.succeeds(self.pawl("run", "y", "x", "--", cli_fixture.PAWL, "ls", "--json"))
        self.assertEqual([k["key"] for k in json.loads(run.out)["keys"]], ["b", "c", "d", "x", "y"])

    def test_a_writer_becomes_a_reader_without_letting_go(self):
        lock = self.acquire("k")
        self.succeeds(self.pawl("downgrade", "k", lock["lock_id"]))
        self.acquire("k", "--shared")
        self.assertEqual(len(self.pawl("get", "k", "--json").json["holders"]), 2)

    def test_a_repeated_acquire_does_not_lose_a_downgraded_lock(self):
        lock = self.acquire("k")
        self.succeeds(self.pawl("downgrade", "k", lock["lock_id"]))
        run = self.pawl("acquire", "k", "--lock-id", lock["lock_id"])
        self.assertEqual(run.status, 1)
        self.assertIn("still held in another mode", run.err)
        self.succeeds(self.pawl("extend", "k", lock["lock_id"]))
        self.assertEqual(self.acquire("k", "--shared", "--lock-id", lock["lock_id"])["lock_id"],
                         lock["lock_id"])

    def test_a_lock_is_handed_to_the_waiter_that_is_named(self):
        lock = self.acquire("k")
        waiters = {}
        for name in ("anna", "bert"):
            waiters[name] = self.begin("acquire", "k", "--wait", "1m", "--owner", name)
            while len(self.pawl("waiters", "k", "--json").json["waiters"]) < len(waiters):
                pass
        self.assertEqual(self.pawl("transfer", "k", lock["lock_id"], "carl").status, 1)
        self.assertEqual(self.pawl("get", "k", "--json").json["token"], lock["token"])
        self.succeeds(self.pawl("transfer", "k", lock["lock_id"], "bert"))
        self.succeeds(finish(waiters["bert"]))

    def test_a_lock_delay_keeps_the_key_closed_after_the_lease(self):
        self.acquire("k", "--lease", "100ms", "--lock-delay", "20s")
        got = self.pawl("get", "k", "--json").json
        while got["held"]:
            got = self.pawl("get", "k", "--json").json
        self.assertGreater(got["closing_ms"], 0)
        self.assertEqual(self.pawl("acquire", "k").status, 1)
        self.assertIn("stays closed for", self.pawl("get", "k").out)


class Explaining(ElectCase):
    def test_explain_tells_who_holds_who_waits_and_what_would_free_it(self):
        self.succeeds(self.pawl("acquire", "k", "--owner", "anna", "--label", "nightly build"))
        waiter = self.begin("acquire", "k", "--wait", "1m", "--owner", "bert", "--priority", "3")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        text = self.succeeds(self.pawl("explain", "k", "--owner", "bert")).out
        for words in ("anna (", "nightly build", "exclusive, token", "at most", "1. bert",
                      "priority 3", "You are waiting in place 1", "keeps the queue",
                      "pawl ask-release k", "pawl break k"):
            self.assertIn(words, text)
        tree = self.succeeds(self.pawl("explain", "k", "--json")).json
        self.assertEqual((tree["masters"][0]["records"][0]["owner"], tree["waiters"][0]["owner"]),
                         ("anna", "bert"))
        self.assertEqual(self.pawl("ls", "--waiting", "--json").json["waiters"][0]["key"], "k")
        self.assertIn("Nothing is in the way", self.pawl("explain", "free").out)
        waiter.terminate()

    def test_explain_tells_of_a_lock_delay_before_it_begins_and_of_an_election(self):
        self.succeeds(self.pawl("acquire", "k", "--lease", "10s", "--lock-delay", "40s"))
        text = self.succeeds(self.pawl("explain", "k")).out
        self.assertIn("lock delay   40.0s: if it is not released", text)
        self.assertRegex(text, r"in (50\.0|4\d\.\d|\d\d)s at most, which is its lease and then its "
                               r"lock delay, if the lease is not extended")
        self.assertNotIn("election", text)
        self.candidate("anna")[1].line()
        self.assertIn("the key is an election", self.succeeds(self.pawl("explain", "e")).out)

    def test_explain_does_not_promise_what_a_broken_lock_cannot_do(self):
        self.succeeds(self.pawl("acquire", "k"))
        self.succeeds(self.pawl("break", "k"))
        text = self.succeeds(self.pawl("explain", "k")).out
        self.assertIn("barred it from extending", text)
        for words in ("unless it extends", "if the lease is not extended", "you:"):
            self.assertNotIn(words, text)

    def test_explain_tells_of_a_lock_delay_and_break_now_ends_it(self):
        self.succeeds(self.pawl("acquire", "k", "--lease", "300ms", "--lock-delay", "50s",
                                "--owner", "anna"))
        while not self.pawl("get", "k", "--json").json.get("closing"):
            pass
        self.assertIn("stays closed for", self.pawl("acquire", "k").err)
        text = self.succeeds(self.pawl("explain", "k", "--owner", "anna")).out
        for words in ("keeps the key closed for a while", "closed after anna",
                      "pawl break k --now"):
            self.assertIn(words, text)
        for words in ("You have it", "held by anna", "ask-release"):
            self.assertNotIn(words, text)
        self.succeeds(self.pawl("break", "k", "--now"))
        self.succeeds(self.pawl("acquire", "k"))

    def test_explain_says_what_would_be_granted_in_addition_to_the_holders(self):
        self.succeeds(self.pawl("acquire", "read", "--shared", "--owner", "anna"))
        self.succeeds(self.pawl("acquire", "read", "--shared", "--owner", "bert"))
        self.assertIn("--shared", self.pawl("explain", "read").out)
        for reader in ("anna", "bert"):
            self.assertIn("You have it", self.pawl("explain", "read", "--owner", reader).out)
        self.succeeds(self.pawl("acquire", "some", "--permits", "2", "--of", "3"))
        self.assertIn("1 of 3 permits are free", self.pawl("explain", "some").out)
        self.succeeds(self.pawl("acquire", "some", "--permits", "1", "--of", "3"))
        self.assertIn("you are not waiting for it", self.pawl("explain", "some").out)

    def ask(self, answer):
        """Runs pawl break on a terminal with this answer, and returns what it says."""
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        process = subprocess.Popen([cli_fixture.PAWL, "break", "k"], stdin=far, stdout=far,
                                   stderr=far,
                                   env=cli_fixture.environment(PAWL_ENDPOINTS=self.endpoints))
        os.close(far)
        said = b""
        while b"(yes/no)" not in said:
            said += os.read(near, 4096)
        os.write(near, answer)
        return process.wait(PATIENCE), said.decode()

    def test_break_shows_the_holder_and_asks_on_a_terminal(self):
        lock = self.pawl("acquire", "k", "--owner", "anna", "--json").json
        status, said = self.ask(b"no\n")
        self.assertIn("held by anna", said)
        self.assertEqual(status, 1)
        self.succeeds(self.pawl("extend", "k", lock["lock_id"]))
        self.assertEqual(self.ask(b"yes\n")[0], 0)
        self.assertEqual(self.pawl("extend", "k", lock["lock_id"]).status, 1)


class Fences(cli_fixture.Case):
    def test_an_older_token_is_refused_and_the_highest_is_stored(self):
        path = os.path.join(self.folder, "fence")
        self.succeeds(pawl("fence", "check", path, "k", "5"))
        self.succeeds(pawl("fence", "check", path, "k", "5"))
        self.assertEqual(pawl("fence", "check", path, "k", "4").status, 1)
        self.succeeds(pawl("fence", "check", path, "other", "1"))
        self.succeeds(pawl("fence", "check", path, "k", "7", "--shared"))
        self.succeeds(pawl("fence", "check", path, "k", "6", "--shared"))
        self.assertEqual(pawl("fence", "check", path, "k", "6").status, 1)
        self.assertEqual(pawl("fence", "show", path, "k").out, "7\n")
        self.assertEqual(pawl("fence", "check", path, "k", "4", "--json").json["allowed"], False)

    def test_fence_show_makes_no_file(self):
        path = os.path.join(self.folder, "fence")
        run = pawl("fence", "show", path, "k")
        self.assertEqual(run.status, 2)
        self.assertIn("No such file", run.err)
        self.assertFalse(os.path.exists(path))

    def test_a_file_that_cannot_be_used_is_another_status_than_a_token_that_is_refused(self):
        for path, why in ((self.folder, "directory"),
                          (os.path.join(self.folder, "missing", "fence"), "No such file")):
            run = pawl("fence", "check", path, "k", "5")
            self.assertEqual(run.status, 2, run.err)
            self.assertIn(path, run.err)
            self.assertIn(why, run.err)
            self.assertEqual(pawl("fence", "check", path, "k", "5", "--json").status, 2)

    def test_a_damaged_file_is_refused_with_its_name(self):
        path = os.path.join(self.folder, "fence")
        with open(path, "w", encoding="ascii") as out:
            out.write("nonsense " * 100)
        run = pawl("fence", "check", path, "k", "5")
        self.assertEqual(run.status, 2)
        self.assertIn(path, run.err)
        for arguments in (["check", path, "k"], ["check", path, "k", "0"], ["nonsense", path, "k"],
                          ["show", path, "k", "1"], ["check", path, "", "1"],
                          ["check", "", "k", "1"], ["check", path, "k" * 2000, "1"],
                          ["check", path, "k", str(2**63)]):
            self.assertEqual(pawl("fence", *arguments).status, 2, arguments)


if __name__ == "__main__":
    cli_fixture.main()
