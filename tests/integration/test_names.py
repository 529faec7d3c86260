#!/usr/bin/env python3
"""test_names.py PAWLD PAWL: the names that other programs rely on are there: commands, variables
for a command that runs under a lock, and the fields of answers as JSON. More fields may be added;
none of these may go, or be called otherwise. And names that others have chosen do no harm to those
who are shown them."""

import json
import os
import pty
import subprocess

import cli_fixture
from cli_fixture import DevCase
from pawltest import PATIENCE

HOLDER = {"held", "owner", "value", "value_seq", "token", "remaining_ms", "lock_id", "key"}
READ = HOLDER | {"node", "role", "age_ms"}
STATUS = set("node role state waits_for left_ms epoch settled complete masters replicas peers keys "
             "promises waiters replication version uptime_ms".split())
CHANGE = {"epoch", "settled", "complete", "missing"}
COMMANDS = set("run elect leader acquire extend update release get ls wait watch waiters break "
               "status cluster drain cert bench explain ask-release top".split())
CHANGES = set("show add-replica promote demote remove replace set-nodes set-timing force".split())


class Names(DevCase):
    def has(self, names, *arguments, status=0):
        run = self.pawl(*arguments, "--json")
        self.assertEqual(run.status, status, run.err)
        said = json.loads(run.out.splitlines()[0])
        self.assertEqual(names - set(said), set(), arguments)
        return said

    def test_the_fields_of_answers(self):
        lock = self.has({"lock_id", "token", "valid_ms", "quorum", "votes", "acks", "waited_ms"},
                        "acquire", "k", "--owner", "anna", "--value", "v")
        self.assertRegex(lock["lock_id"], "^[0-9a-f]{32}$")
        mine = ("k", lock["lock_id"])
        self.has({"valid_ms", "acks", "token"}, "extend", *mine)
        self.has({"value_seq"}, "update", *mine, "w")
        self.has(READ, "get", "k")
        self.has(READ, "wait", "k", "--for", "held")
        self.assertEqual(HOLDER - set(self.has({"keys", "more"}, "ls")["keys"][0]), set())
        self.has({"type", "key", "owner", "token"}, "watch", "k", "--count", "1")
        error = self.has({"error"}, "acquire", "k", status=1)["error"]
        self.assertEqual({"code", "message"} - set(error), set())
        self.assertEqual(error["code"], "held")
        waiter = self.begin("acquire", "k", "--wait", "1m", "--owner", "bert")
        while not (waiters := self.has({"waiters"}, "waiters", "k")["waiters"]):
            pass
        self.assertEqual({"owner", "since_ms", "node", "lock_id"} - set(waiters[0]), set())
        self.has({"released"}, "release", *mine)
        cli_fixture.finish(waiter)
        self.has({"broken"}, "break", "k", "--now")
        peers = self.has(STATUS, "status")["peers"]
        self.assertEqual({"node", "linked", "round_trip_us"} - set(peers[0]), set())
        self.has(CHANGE, "cluster", "set-timing", "--max-lease", "70s")
        self.has({"masters", "epoch", "max_lease_ms"}, "cluster", "show")

    def test_the_commands_and_what_a_command_finds_in_its_environment(self):
        overview = set(self.succeeds(self.pawl("--help")).out.split())
        self.assertEqual(COMMANDS - overview, set())
        changes = set(self.succeeds(self.pawl("cluster", "--help")).out.split())
        self.assertEqual(CHANGES - changes, set())
        said = self.succeeds(self.pawl("run", "k", "--", "env")).out
        for name in ("PAWL_KEY", "PAWL_LOCK_ID", "PAWL_TOKEN"):
            self.assertIn("\n%s=" % name, "\n" + said)


# They clear a screen and go back in the line, end it, turn the writing direction, and are no text.
# tests/unit/cli/test_cli_parts.c tries the characters one by one.
HOSTILE = [b"\x1b[2Jx\ry\x7f", b"a\nb", b"\xe2\x80\xaea\xe2\x80\xa8b\xc2\x9b2J", b"\xff\x1b"]


class Shown(DevCase):
    """Each command is given hostile names, or shows what was chosen with such a name."""

    def run_raw(self, *arguments):
        """Returns the status, and all that was printed."""
        env = dict(cli_fixture.environment(), PAWL_ENDPOINTS=self.endpoints)
        done = subprocess.run([cli_fixture.PAWL, *arguments], env=env, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.folder)
        self.look_at(done.stdout, arguments)
        return done.returncode, done.stdout

    def look_at(self, shown, arguments):
        for line in shown.decode().split("\n"):
            # JSON escapes all but DEL.
            hidden = [c for c in line if not c.isprintable()
                      and not (c == "\x7f" and "--json" in arguments)]
            self.assertEqual(hidden, [], (arguments, line))
            # What stands behind a line end in a name would begin a line.
            self.assertNotEqual(line, "b", arguments)

    def test_no_command_shows_what_a_terminal_obeys(self):
        for n in HOSTILE:
            self.every_command(n)

    def every_command(self, n):
        words = ("acquire", n, "--owner", n, "--value", n, "--label", n)
        self.assertEqual(self.run_raw(*words)[0], 0)
        lock_id = json.loads(self.run_raw("get", n, "--json")[1])["lock_id"]
        waiting = self.begin("acquire", n, "--wait", "1m", "--owner", n, "--label", n)
        while not json.loads(self.run_raw("waiters", n, "--json")[1])["waiters"]:
            pass
        for command in ("get", "leader", "explain", "waiters", "ask-release", "acquire", "lock"):
            self.run_raw(command, n)
        for command in (("run", n, "--", "true"), ("run", n, n), ("lock", n, n),
                        ("acquire", n, "--", n), ("explain", n, "--owner", n), ("ls",),
                        ("ls", "--waiting"), ("ls", n), ("watch", n, "--count", "1"),
                        ("ask-release", n, "--to", n), ("ask-release", n, "--to", b"x" + n),
                        ("extend", n, lock_id), ("extend", n, n), ("extend", n, "01" * 16),
                        ("update", n, lock_id, n), ("update", n, lock_id, "v", "--expect", n),
                        ("transfer", n, lock_id, b"x" + n), ("release", n, "01" * 16),
                        ("downgrade", n, "01" * 16), ("break", n, "--token", "7"),
                        ("clients",), ("clients", "kick", n), ("top", "--count", "1"), ("status",),
                        ("status", "--all"), ("can", n, "acquire", n), ("drain", n), (n,),
                        ("get", n, "--timeout", n), ("get", n, b"--" + n), ("get", n, n),
                        ("get", n, "--endpoints", n), ("bench", n), ("cluster", n),
                        ("get", n, "--endpoints", b"unix:/" + n, "--timeout", "200ms"),
                        ("cluster", "remove", n),
                        ("cert", n), ("cert", "client", n), ("cert", "show", n),
                        ("cert", "ca", "--name", n, "--dir", ".", "--force"),
                        ("cert", "show", "ca.pem"), ("audit", "check", n), ("audit", n),
                        ("fence", n, "7", "--file", n), ("redis-script", n), ("deploy", n)):
            self.run_raw(*command)
        self.ask(n)
        self.assertEqual(self.run_raw("transfer", n, lock_id, n)[0], 0)
        cli_fixture.finish(waiting)
        self.run_raw("break", n, "--now")
        self.assertEqual(self.run_raw("run", n, "--", "sh", "-c", '"$0" break "$PAWL_KEY" --now',
                                      cli_fixture.PAWL)[0], 114)
        self.assertEqual(self.run_raw("run", n, "--", b"/" + n)[0], 127)

    def ask(self, n):
        """break shows the holder on a terminal."""
        near, far = pty.openpty()
        env = dict(cli_fixture.environment(), PAWL_ENDPOINTS=self.endpoints)
        asking = subprocess.Popen([cli_fixture.PAWL, "break", n], env=env, stdin=far, stdout=far,
                                  stderr=far)
        os.close(far)
        shown = b""
        while b"Break it? (yes/no) " not in shown:
            shown += os.read(near, 4096)
        os.write(near, b"no\n")
        self.assertEqual(asking.wait(PATIENCE), 1)
        os.close(near)
        # The terminal itself makes CR LF of each line end.
        self.look_at(shown.replace(b"\r\n", b"\n"), "break")


if __name__ == "__main__":
    cli_fixture.main()
