#!/usr/bin/env python3
"""test_cli.py PAWLD PAWL: tests all commands of pawl except run, against one real node."""

import json
import os
import ssl
import stat
import subprocess
import unittest

import cli_fixture
import pawltest
from cli_fixture import Case, DevCase, pawl

COMMANDS = ("run elect leader acquire extend update release downgrade transfer ask-release get ls "
            "wait waiters explain watch fence break "
            "status top clients audit cluster drain cert deploy bench").split()


class CommandLine(Case):
    def test_every_command_explains_itself_with_an_example(self):
        for command in COMMANDS:
            run = self.succeeds(pawl(command, "--help"))
            self.assertTrue(run.out.startswith("usage: pawl " + command), run.out)
            self.assertIn("\nExample:\n  ", run.out)
            self.assertEqual(run.out, pawl("help", command).out)

    def test_the_overview_names_every_command(self):
        run = self.succeeds(pawl("--help"))
        for command in COMMANDS:
            self.assertRegex(run.out, r"(?m)^  %s +\w" % command)

    def test_misuse_is_status_2_and_names_what_is_wrong(self):
        rows = [([], "no command given"), (["nonsense"], "nonsense"), (["get"], "pawl get KEY"),
                (["get", "a", "b"], "'b'"),
                (["get", "", ], "empty"), (["get", "a", "--lease", "5s"], "--lease"),
                (["acquire", "a", "--lease", "5"], "'5'"),
                (["acquire", "a", "--lease"], "--lease"), (["extend", "a", "xyz"], "xyz"),
                (["wait", "a"], "--for"),
                (["run", "a"], "--"), (["run", "a", "--"], "--"),
                (["run", "a", "true"], "after '--'"), (["run", "a", "make", "-j4"], "after '--'"),
                (["lock", "a", "make"], "pawl lock KEY -- CMD"),
                (["lock", "a", "make", "-j4"], "while 'make' runs"),
                (["lock", "--lease", "5s", "a", "make"], "pawl acquire KEY..."),
                (["acquire", "a", "--", "make"], "pawl run KEY -- CMD"),
                (["acquire", "a", "b", "--", "make", "-j4"], "while 'make' runs"),
                (["cert", "client", "a", "--days", "0"], "--days"),
                (["run", "a", "--lease", "4s", "--grace", "3s", "--", "x"], "--grace"),
                (["get", "a", "--endpoints", "nonsense"], "nonsense"),
                (["bench", "nonsense"], "nonsense"),
                (["bench", "cycle", "--outstanding", "0"], "outstanding"),
                (["cert", "nonsense"], "nonsense"),
                (["break", "a", "--token", "-1"], "-1"),
                (["acquire", "a", "--lease", "0"], "--lease"),
                (["extend", "a", "01" * 16, "--lease", "0s"], "--lease"),
                (["extend", "a", "01" * 16, "--shorten"], "--lease"),
                (["extend", "a", "01" * 16, "--shorten", "--lease", "5s", "--order", "1"],
                 "by itself"),
                (["extend", "a", "01" * 16, "--order", "4294967296"], "--order"),
                (["acquire", "a", "--order", "1"], "--lock-id"),
                (["ls", "--limit", "0"], "--limit"),
                (["update", "a", "01" * 16, "v", "--expect-seq", "00"], "40 hex"),
                (["status", "--interval", "0s"], "--interval")]
        for arguments, word in rows:
            run = pawl(*arguments)
            # A status of 2 would be taken for that of the command.
            self.assertEqual((run.status, run.out), (112 if arguments[:1] == ["run"] else 2, ""),
                             arguments)
            self.assertIn(word, run.err, arguments)

    def test_a_word_that_is_nearly_right_brings_the_right_one_to_mind(self):
        rows = ((["aquire", "k"], "did you mean pawl acquire?"),
                (["stauts"], "did you mean pawl status?"), (["unlock", "k"], "pawl release?"),
                (["help", "explian"], "did you mean pawl explain?"),
                (["acquire", "k", "--leese", "5s"], "did you mean --lease?"),
                (["ls", "--wating"], "did you mean --waiting?"),
                (["run", "k", "--wiat=5s", "--", "true"], "did you mean --wait?"),
                (["--endpoint", "x", "--enpdoints", "get"], "did you mean --endpoints?"))
        for arguments, words in rows:
            self.assertIn(words, pawl(*arguments).err, arguments)
        for arguments in (["nonsense"], ["get", "k", "--nonsense"], ["x"], ["y" * 999],
                          ["get", "k", "--" + "x" * 99], ["get", "k", "--" + "é" * 9]):
            self.assertNotIn("did you mean", pawl(*arguments).err, arguments)

    def test_versions_and_other_names(self):
        for arguments in (["-V"], ["--version"], ["get", "-V"]):
            self.assertRegex(self.succeeds(pawl(*arguments)).out, r"^pawl \d+\.\d+")
        self.assertTrue(pawl("lock", "--help").out.startswith("usage: pawl acquire KEY"))
        self.assertEqual(pawl("help", "lock").out, pawl("lock", "--help").out)

    def test_misuse_is_told_as_json_too(self):
        run = pawl("get", "--json")
        self.assertEqual(run.status, 2)
        self.assertEqual(run.json["error"]["code"], "bad_request")
        # It comes after the option that is wrong.
        for arguments in (["get", "a", "--nonsense", "--json"], ["nonsense", "--json"]):
            self.assertEqual(pawl(*arguments).json["error"]["code"], "bad_request")

    def test_tls_without_an_authority_names_the_option(self):
        run = pawl("get", "a", endpoints="tls://127.0.0.1:1")
        self.assertEqual(run.status, 2)
        self.assertIn("--cacert", run.err)

    def test_an_unreachable_node_is_status_3_and_names_the_endpoints(self):
        nobody = "unix:" + os.path.join(self.folder, "nobody")
        run = pawl("get", "a", "--timeout", "300ms", endpoints=nobody)
        self.assertEqual(run.status, 3)
        self.assertIn(nobody, run.err)
        self.assertIn("error", pawl("get", "a", "--timeout", "300ms", "--json",
                                    endpoints=nobody).json)

    def test_options_may_stand_before_the_command(self):
        nobody = "unix:" + os.path.join(self.folder, "nobody")
        run = pawl("--json", "--timeout", "300ms", "--endpoints", nobody, "get", "a")
        self.assertEqual(run.status, 3)
        self.assertIn("error", run.json)


class Locks(DevCase):
    def acquire(self, key, *options):
        return self.succeeds(self.pawl("acquire", key, "--json", *options)).json

    def test_acquire_get_extend_update_release(self):
        lock = self.acquire("a", "--lease", "20s", "--value", "v1", "--owner", "anna")
        self.assertRegex(lock["lock_id"], "^[0-9a-f]{32}$")
        self.assertGreater(lock["token"], 0)
        self.assertTrue(15000 < lock["valid_ms"] <= 20000)
        got = self.succeeds(self.pawl("get", "a", "--json", "--quorum")).json
        self.assertEqual((got["held"], got["owner"], got["value"], got["token"]),
                         (True, "anna", "v1", lock["token"]))
        self.assertTrue(0 < got["remaining_ms"] <= 20000)
        more = self.succeeds(self.pawl("extend", "a", lock["lock_id"], "--lease", "40s",
                                       "--json")).json
        self.assertTrue(20000 < more["valid_ms"] <= 40000)
        self.succeeds(self.pawl("update", "a", lock["lock_id"], "v2", "--expect", "v1"))
        got = self.pawl("get", "a", "--json").json
        self.assertEqual(got["value"], "v2")
        self.succeeds(self.pawl("update", "a", lock["lock_id"], "v3", "--expect-seq",
                                got["value_seq"]))
        self.assertTrue(self.succeeds(self.pawl("release", "a", lock["lock_id"],
                                                "--json")).json["released"])
        self.assertFalse(self.succeeds(self.pawl("release", "a", lock["lock_id"],
                                                 "--json")).json["released"])
        for options in ([], ["--quorum"]):
            free = self.pawl("get", "a", "--json", *options)
            self.assertEqual((free.json["held"], free.status), (False, 1))
        # Nobody leads there either.
        leader = self.pawl("leader", "a", "--json")
        self.assertEqual((leader.json["held"], leader.status), (False, 1))

    def test_lock_with_a_command_behind_two_dashes_is_run(self):
        run = self.pawl("lock", "k", "--lease", "5s", "--", "sh", "-c", 'echo "$PAWL_KEY"; exit 9')
        self.assertEqual((run.status, run.out), (9, "k\n"))
        self.succeeds(self.pawl("lock", "k"))
        # A key may begin with a dash.
        self.succeeds(self.pawl("acquire", "--lease", "5s", "--", "-k", "l"))
        self.assertEqual([key["key"] for key in self.pawl("ls", "--json").json["keys"]],
                         ["-k", "k", "l"])
        self.assertEqual(self.pawl("lock", "k", "--", "true").status, 115)

    def test_people_read_aligned_fields(self):
        run = self.succeeds(self.pawl("acquire", "a"))
        self.assertRegex(run.out, r"^key         a\nlock id     [0-9a-f]{32}\ntoken       "
                                  r"\d+\ntime left   29\.\ds\n$")
        self.assertRegex(self.pawl("get", "a").out, r"(?m)^held by     \S+$")

    def test_a_held_lock_is_refused_with_its_holder(self):
        lock = self.acquire("a", "--owner", "anna")
        run = self.pawl("acquire", "a")
        self.assertEqual(run.status, 1)
        self.assertIn("anna", run.err)
        error = self.pawl("acquire", "a", "--json").json["error"]
        self.assertEqual((error["code"], error["holder"]["token"]), ("held", lock["token"]))
        self.assertTrue(error["message"])

    def test_a_hash_in_json_is_a_string_that_loses_no_digit(self):
        with pawltest.Client(self.endpoints) as client:
            number = client.call("status")["config_hash"]
        self.assertEqual(self.pawl("status", "--json").json["config_hash"], "%016x" % number)

    def test_a_wait_that_ends_names_the_holder(self):
        lock = self.acquire("a", "--owner", "anna")
        run = self.pawl("acquire", "a", "--wait", "1s")
        self.assertEqual(run.status, 1)
        self.assertIn("the wait has timed out; held by anna, token %d, " % lock["token"], run.err)
        error = self.pawl("acquire", "a", "--wait", "1s", "--json").json["error"]
        self.assertEqual((error["code"], error["holder"]["owner"]), ("timeout", "anna"))
        error = self.pawl("acquire", "z", "a", "--wait", "1s", "--json").json["error"]
        self.assertEqual((error["code"], error["key"], error["holder"]["owner"]),
                         ("timeout", "a", "anna"))

    def test_a_semaphore_of_another_size_is_named(self):
        self.acquire("s", "--permits", "1", "--of", "3", "--owner", "anna")
        for more in ([], ["--wait", "1s"]):
            run = self.pawl("acquire", "s", "--permits", "1", "--of", "4", *more)
            self.assertEqual(run.status, 1)
            self.assertIn("held as a semaphore of 3 permits: all must name the same number, so ask "
                          "for permits of 3; held by anna", run.err)
            self.assertIn("\n  give --of 3, as those who hold it do\n", run.err)
            self.assertNotIn("--wait", run.err)
            group = self.pawl("acquire", "r", "s", "--permits", "1", "--of", "4", *more)
            self.assertIn("\n  give --of 3, ", group.err)
            self.assertIn("1 of 3 permits", run.err)
        self.assertEqual(self.pawl("acquire", "s", "--permits", "1", "--of", "4", "--json")
                         .json["error"]["other_of"], 3)
        run = self.pawl("acquire", "s", "--permits", "3", "--of", "3")
        self.assertNotIn("give --of", run.err)

    def test_a_release_with_the_lock_id_of_nobody_says_who_holds_the_key(self):
        lock = self.acquire("a", "--owner", "anna")
        other = "00" * 15 + "01"
        run = self.pawl("release", "a", other)
        self.assertEqual(run.status, 1)
        self.assertRegex(run.out, r"(?m)^released +no: this lock_id does not hold it \(any more\); "
                                  r"held by anna, token %d, " % lock["token"])
        run = self.pawl("release", "a", other, "--json")
        said = run.json
        self.assertEqual(run.status, 1)
        self.assertEqual((said["released"], said["holder"]["owner"]), (False, "anna"))
        self.assertRegex(self.pawl("release", "a", lock["lock_id"]).out, r"(?m)^released +yes$")
        self.assertRegex(self.succeeds(self.pawl("release", "a", lock["lock_id"])).out,
                         r"(?m)^released +it was no longer held$")

    def test_an_ask_in_favour_of_nobody_is_refused(self):
        self.acquire("a", "--owner", "anna")
        watch = self.begin("watch", "a", "--json")
        watch.stdout.readline()
        run = self.pawl("ask-release", "a", "--to", "bob")
        self.assertEqual(run.status, 1)
        self.assertIn("nobody of the name that --to gives waits for the key", run.err)
        self.assertEqual(self.pawl("ask-release", "a", "--to", "bob", "--json").json["error"]
                         ["code"], "not_found")
        waiter = self.begin("acquire", "a", "--wait", "20s", "--owner", "bob")
        while not self.pawl("waiters", "a", "--json").json["waiters"]:
            pass
        self.succeeds(self.pawl("ask-release", "a", "--to", "bob"))
        waiter.kill()

    def test_a_break_with_the_token_of_nobody_names_the_holders_token(self):
        lock = self.acquire("a")
        run = self.pawl("break", "a", "--token", "7")
        self.assertEqual(run.status, 1)
        self.assertIn("no holder of this key has token 7; its holder has token %d"
                      % lock["token"], run.err)
        run = self.pawl("break", "nothing", "--token", "7")
        self.assertEqual(run.status, 1)
        self.assertIn("no holder of this key has that token", run.err)

    def test_a_repeated_acquire_gives_the_same_lock(self):
        lock = self.acquire("a")
        self.assertEqual(self.acquire("a", "--lock-id", lock["lock_id"])["token"], lock["token"])

    def test_a_wrong_expectation_changes_nothing(self):
        lock = self.acquire("a", "--value", "v1")
        run = self.pawl("update", "a", lock["lock_id"], "v2", "--expect", "other")
        self.assertEqual(run.status, 1)
        self.assertIn("v1", run.err)
        self.assertEqual(self.pawl("get", "a", "--json").json["value"], "v1")

    def test_a_lock_that_is_not_held_cannot_be_extended(self):
        run = self.pawl("extend", "a", "00" * 15 + "01", "--json")
        self.assertEqual(run.status, 1)
        self.assertIn(run.json["error"]["code"], ("lost", "not_found", "unsure"))

    def test_an_option_that_is_given_twice_is_misuse_and_a_list_is_added_to(self):
        for line, named in (("acquire a --wait 1s --wait 2s", "--wait is given twice"),
                            ("--timeout 1s get a --timeout 2s", "--timeout is given twice"),
                            ("run a -E 3 -E 4 -- true", "-E is given twice"),
                            ("status --cert a --cert b", "--cert is given twice")):
            run = self.pawl(*line.split())
            self.assertIn(named, run.err)
            self.assertIn(run.status, (2, 112))
        self.assertEqual(self.pawl("get", "a", "--quorum", "--quorum", "--json").status, 1)
        # Of two lists of endpoints the first leads nowhere.
        run = pawl("get", "a", "--endpoints", "127.0.0.1:1", "--endpoints", self.endpoints)
        self.assertIn("held        no", run.out)

    def test_too_long_a_lease_is_refused(self):
        run = self.pawl("acquire", "a", "--lease", "48h", "--json")
        self.assertEqual((run.status, run.json["error"]["code"]), (1, "too_long"))

    def test_too_short_a_lease_is_refused_with_the_shortest(self):
        run = self.pawl("acquire", "a", "--lease", "1ms", "--json")
        self.assertEqual((run.status, run.json["error"]["code"], run.json["error"]["field"]),
                         (1, "bad_request", "lease_ms"))
        self.assertGreater(run.json["error"]["limit_ms"], 1)
        self.assertIn("lease_ms is shorter than", self.pawl("acquire", "a", "--lease", "1ms").err)

    def test_a_wait_ends_in_time_or_is_served_in_order(self):
        lock = self.acquire("a", "--owner", "anna")
        self.assertEqual(self.pawl("acquire", "a", "--wait", "1s",
                                   "--json").json["error"]["code"], "timeout")
        waiting = []
        for name in ("first", "second"):
            waiting.append(self.begin("acquire", "a", "--wait", "20s", "--json", "--owner", name))
            while len(self.pawl("waiters", "a", "--json").json["waiters"]) < len(waiting):
                pass
        self.assertEqual([w["owner"] for w in self.pawl("waiters", "a", "--json").json["waiters"]],
                         ["first", "second"])
        self.assertRegex(self.pawl("waiters", "a").out, r"(?s)1\. first .*2\. second ")
        self.pawl("release", "a", lock["lock_id"])
        first = self.succeeds(cli_fixture.finish(waiting[0])).json
        self.assertEqual(self.pawl("get", "a", "--json").json["owner"], "first")
        self.pawl("release", "a", first["lock_id"])
        self.assertGreater(self.succeeds(cli_fixture.finish(waiting[1])).json["token"],
                           first["token"])

    def test_wait_returns_when_the_key_is_free_or_held(self):
        self.assertEqual(self.pawl("wait", "a", "--for", "held", "--timeout", "50ms").status, 1)
        self.succeeds(self.pawl("wait", "a", "--for", "free", "--timeout", "5s"))
        held = self.begin("wait", "a", "--for", "held", "--json")
        lock = self.acquire("a")
        self.assertEqual(self.succeeds(cli_fixture.finish(held)).json["token"], lock["token"])
        free = self.begin("wait", "a", "--for", "free", "--timeout", "20s")
        self.pawl("release", "a", lock["lock_id"])
        self.succeeds(cli_fixture.finish(free))

    def test_ls_shows_the_keys_with_a_prefix_in_order(self):
        for key in ("jobs/b", "jobs/a", "other", "jobs/c"):
            self.acquire(key, "--value", "of " + key)
        keys = self.succeeds(self.pawl("ls", "jobs/", "--json")).json
        self.assertEqual(([k["key"] for k in keys["keys"]], keys["more"]),
                         (["jobs/a", "jobs/b", "jobs/c"], False))
        keys = self.pawl("ls", "--json", "--limit", "2").json
        self.assertEqual(([k["key"] for k in keys["keys"]], keys["more"]),
                         (["jobs/a", "jobs/b"], True))
        self.assertEqual([k["key"] for k in self.pawl("ls", "--json", "--after",
                                                      "jobs/b").json["keys"]], ["jobs/c", "other"])
        self.assertIn("of jobs/c", self.pawl("ls").out)

    def test_control_characters_are_shown_escaped(self):
        self.acquire("a", "--value", "\x1b[2Jx")
        self.assertIn("\\x1b[2Jx", self.pawl("get", "a").out)
        self.assertEqual(self.pawl("get", "a", "--json").json["value"], "\x1b[2Jx")
        self.acquire("b", "--shared", "--label", "\x1b[31mred")
        waiting = self.begin("acquire", "b", "--wait", "1m", "--label", "\x1b[32mgreen")
        while not self.pawl("waiters", "b", "--json").json["waiters"]:
            pass
        for command in ("get", "explain", "waiters"):
            shown = self.pawl(command, "b").out
            self.assertNotIn("\x1b", shown)
            self.assertIn("\\x1b[32mgreen" if command == "waiters" else "\\x1b[31mred", shown)
        waiting.terminate()
        cli_fixture.finish(waiting)

    def test_bytes_that_are_not_text_are_hexadecimal_in_json(self):
        env = dict(cli_fixture.environment(), PAWL_ENDPOINTS=self.endpoints)
        subprocess.run([cli_fixture.PAWL, "acquire", b"\xff\xfe"], env=env, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(self.pawl("ls", "--json").json["keys"][0]["key_hex"], "fffe")

    def test_break_bars_the_holder_from_extending(self):
        lock = self.acquire("a", "--lease", "20s")
        self.assertEqual(self.pawl("break", "nobody-has-it").status, 1)
        self.succeeds(self.pawl("break", "a"))
        self.assertEqual(self.pawl("extend", "a", lock["lock_id"]).status, 1)
        self.assertTrue(self.pawl("get", "a", "--json").json["held"])
        self.succeeds(self.pawl("break", "a", "--token", str(lock["token"]), "--now"))
        self.assertFalse(self.pawl("get", "a", "--json").json["held"])

    def test_status_tells_node_state_and_counts(self):
        self.acquire("a")
        status = self.succeeds(self.pawl("status", "--json")).json
        self.assertEqual((status["state"], status["role"], status["held"]), ("voting", "master", 1))
        self.assertRegex(self.pawl("status").out, r"(?m)^state       voting$")
        nobody = "unix:" + os.path.join(self.folder, "nobody")
        run = pawl("status", "--all", "--json", "--timeout", "300ms",
                   endpoints=self.endpoints + "," + nobody)
        self.assertEqual(run.status, 3)
        self.assertEqual([("error" in n, n["endpoint"]) for n in run.json["nodes"]],
                         [(False, self.endpoints), (True, nobody)])

    def test_status_is_watched_as_lines_of_json(self):
        watch = self.begin("status", "--watch", "--json", "--interval", "10ms")
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["state"], "voting")

    def test_drain_asks_only_the_node_that_is_named(self):
        run = self.pawl("drain", "another")
        self.assertEqual(run.status, 1)
        # The message names the node that is there.
        self.assertIn(self.pawl("status", "--json").json["node"], run.err)
        self.assertEqual(self.pawl("status", "--json").json["state"], "voting")
        self.succeeds(self.pawl("drain", self.pawl("status", "--json").json["node"]))
        self.assertNotEqual(self.pawl("status", "--json").json["state"], "voting")

    def test_bench_measures_every_mode(self):
        counts = {"cycle": "cycles", "handoff": "grants", "extend": "extends", "gap": "cycles",
                  "fill": "leases"}
        for mode, counted in counts.items():
            run = self.succeeds(self.pawl("bench", mode, "--count", "500", "--leases", "500",
                                          "--batch", "100", "--json"))
            self.assertGreaterEqual(run.json[counted], 500, mode)
            self.assertEqual(run.json["errors"], 0, run.out)
            self.assertGreater(run.json["latency_us"]["p50"], 0)
        self.assertIn("p99", self.succeeds(self.pawl("bench", "cycle", "--count", "50")).out)


class Certificates(Case):
    def cert(self, *arguments):
        return pawl("cert", *arguments, "--dir", self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_all(self, *options):
        self.succeeds(self.cert("ca", *options))
        self.succeeds(self.cert("node", "a", "--host", "a.example.org,127.0.0.1,::1", *options))
        self.succeeds(self.cert("client", "backup", *options))

    def handshake(self, host):
        """Runs both sides in this process, and returns what each has seen of the other."""
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context, name in ((server, "a"), (client, "backup")):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path("ca.crt"))
            context.load_cert_chain(self.path(name + ".crt"), self.path(name + ".key"))
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [client.wrap_bio(down, up, server_hostname=host),
                 server.wrap_bio(up, down, server_side=True)]
        for side in sides * 3:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
        return sides[1].getpeercert(), sides[0].getpeercert()

    def test_certificates_carry_names_and_are_believed(self):
        for kind in ("ec", "ed25519"):
            self.make_all("--type", kind, "--force")
            for host in ("a.example.org", "127.0.0.1"):
                client, node = self.handshake(host)
                self.assertIn(("URI", "pawl:client:backup"), client["subjectAltName"])
                self.assertIn(("URI", "pawl:node:a"), node["subjectAltName"])
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.handshake("b.example.org")

    def test_keys_are_private_and_nothing_is_replaced_unasked(self):
        self.make_all()
        for name in ("ca", "a", "backup"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name + ".key")).st_mode), 0o600)
        with open(self.path("a.key")) as f:
            before = f.read()
        run = self.cert("node", "a", "--host", "a")
        self.assertEqual(run.status, 1)
        self.assertIn("--force", run.err)
        with open(self.path("a.key")) as f:
            self.assertEqual(f.read(), before)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         sorted(n + e for n in ("ca", "a", "backup") for e in (".crt", ".key")))

    def test_wrong_names_hosts_and_authorities_are_refused(self):
        self.assertEqual(self.cert("client", "backup").status, 1)
        self.succeeds(self.cert("ca"))
        for arguments in (["node", "a"], ["node", "a/b", "--host", "x"], ["client", "ca"],
                          ["node", "a", "--host", "a b"],
                          ["client", "c", "--host", "x"], ["ca", "x"], ["client"],
                          ["client", "c", "--type", "rsa"]):
            self.assertEqual(self.cert(*arguments).status, 2, arguments)

    def test_no_certificate_outlives_its_authority(self):
        run = self.succeeds(self.cert("ca", "--days", "10", "--json"))
        self.assertEqual(self.succeeds(self.cert("client", "c", "--days", "100",
                                                 "--json")).json["valid_until"],
                         run.json["valid_until"])

    def test_a_cluster_works_with_these_certificates_alone(self):
        self.succeeds(self.cert("ca"))

        def tls(folder, name):
            self.succeeds(self.cert("node", name, "--host", "127.0.0.1,localhost"))
            return "ca = %s\ncert = %s\nkey = %s\n" % tuple(map(self.path,
                                                                ("ca.crt", name + ".crt",
                                                                 name + ".key")))

        self.succeeds(self.cert("client", "me"))
        self.succeeds(pawl("cert", "ca", "--dir", self.path("other")))
        self.succeeds(pawl("cert", "client", "stranger", "--dir", self.path("other")))
        mine = ["--cacert", self.path("ca.crt"), "--cert", self.path("me.crt"), "--key",
                self.path("me.key")]
        strange = ["--cacert", self.path("ca.crt"), "--cert", self.path("other/stranger.crt"),
                   "--key",
                   self.path("other/stranger.key"), "--timeout", "1s"]
        deceived = ["--cacert", self.path("other/ca.crt"), "--timeout", "1s"]
        with pawltest.Cluster(cli_fixture.PAWLD, tls=tls) as cluster:
            endpoints = ",".join("tls://" + address for address in cluster.clients.values())
            self.succeeds(pawl("acquire", "k", *mine, endpoints=endpoints))
            self.assertTrue(pawl("get", "k", "--quorum", "--json", *mine,
                                 endpoints=endpoints).json["held"])
            for wrong in (strange, deceived, ["--cacert", self.path("ca.crt"), "--timeout", "1s"]):
                run = pawl("get", "k", *wrong, endpoints=endpoints)
                self.assertEqual(run.status, 3, run.err + run.out)


if __name__ == "__main__":
    cli_fixture.main()
