#!/usr/bin/env python3
"""test_names.py PAWLD PAWL: the names that other programs rely on are there: commands, variables
for a command that runs under a lock, and the fields of answers as JSON. More fields may be added;
none of these may go, or be called otherwise."""

import json

import cli_fixture
from cli_fixture import DevCase

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


if __name__ == "__main__":
    cli_fixture.main()
