"""test_rights.py PAWLD PAWL: tests the access rules of real nodes: who may do what."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import cli_fixture
from cli_fixture import Case
from pawltest import PATIENCE, Client, Cluster, Refused
from test_terminal import Shell
from test_tls import REFUSED, Certificates

RULES = """[group:ops]
members = alice, unix:uid:%d
allow = all on *

[billing]
allow = read, acquire, wait, watch, priority 10 on billing/
deny = acquire on billing/archive/

[monitor]
allow = status
allow = read on *
deny = read on secret/

[unix:uid:4711]
allow = read on public/

[unix:gid:4712]
allow = acquire on public/
"""
# The parameters of each method of docs/client-protocol.md, and the right that it needs.
METHODS = {
    "read": [("get", {"key": "k"}), ("list", {"prefix": "k"}), ("waiters", {"key": "k"}),
             ("explain", {"key": "k"})],
    "acquire": [("acquire", {"key": "k", "lease_ms": 1000}),
                ("extend", {"key": "k", "lock_id": "0" * 31 + "1", "lease_ms": 1000}),
                ("update", {"key": "k", "lock_id": "0" * 31 + "1", "value": "v"}),
                ("release", {"key": "k", "lock_id": "0" * 31 + "1"}),
                ("downgrade", {"key": "k", "lock_id": "0" * 31 + "1"}),
                ("transfer", {"key": "k", "lock_id": "0" * 31 + "1", "to": "x"}),
                ("ask_release", {"key": "k"}), ("acquire",
                                                {"locks": [{"key": "k"}], "lease_ms": 1000}),
                ("extend", {"locks": [{"key": "k", "lock_id": "0" * 31 + "1", "lease_ms": 1000}]})],
    "wait": [("wait", {"key": "k", "for": "held", "timeout_ms": 1})],
    "watch": [("watch", {"key": "k"}), ("watch", {"prefix": "k"})],
    "break": [("break", {"key": "k"})],
    "status": [("status", {}), ("clients", {})],
    "cluster": [("kick", {"client": 99999}), ("cluster_add_replica", {"name": "x"}),
                ("cluster_promote", {"name": "x"}),
                ("cluster_demote", {"name": "x"}), ("cluster_remove", {"name": "x"}),
                ("cluster_replace", {"old": "x", "new": "y"}),
                ("cluster_set_nodes", {"masters": ["x"]}),
                ("cluster_set_timing", {"max_lease_ms": 1}), ("drain", {})],
}


def on(right):
    return "allow = %s%s\n" % (right, "" if right in ("status", "cluster") else " on *")


class Rights(Case):
    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder, nodes=("a", "b", "c"),
                                         clients=("alice", "billing", "monitor", "nobody"))
        self.write(RULES % os.getuid())

    def path(self, node=None):
        return os.path.join(self.folder, "rights-%s.conf" % node if node else "rights.conf")

    def write(self, text, node=None):
        with open(self.path(node), "w") as f:
            f.write(text)
        os.chmod(self.path(node), 0o644)

    def section(self, _, name):
        c, own = self.certificates, self.path(name)
        return "ca = %s\ncert = %s\nkey = %s\nclient_auth = optional\n[acl]\nfile = %s\n" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
            own if os.path.exists(own) else self.path())

    def cluster(self, **options):
        cluster = Cluster(cli_fixture.PAWLD, tls=self.section, **options)
        cluster.__enter__()
        self.addCleanup(cluster.__exit__)
        return cluster

    def connect(self, cluster, name, node="a"):
        client = cluster.client(node, tls=self.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def pawl(self, cluster, name, *arguments, node="a"):
        path = self.certificates.path
        return cli_fixture.pawl(*arguments, "--endpoints",
                                ",".join("tls://" + cluster.clients[n] for n in node), "--cacert",
                                path("ca.crt"),
                                "--cert", path(name + ".crt"), "--key", path(name + ".key"))

    def denied(self, client, method, /, **params):
        with self.assertRaises(Refused) as refused:
            client.call(method, **params)
        self.assertEqual(refused.exception.code, "denied", (method, params))
        return refused.exception

    def test_each_method_needs_its_right_and_no_other(self):
        cluster = self.cluster(masters=1)
        node = cluster.nodes["a"]
        for right, calls in METHODS.items():
            others = [other for other in METHODS if other != right]
            for allow in (others, [right]):
                self.write("[nobody]\n" + "".join(map(on, allow)))
                start = len(node.lines)
                node.signal(signal.SIGHUP)
                node.wait_log(" reloaded ", start=start)
                client = self.connect(cluster, "nobody")
                for method, params in calls:
                    if allow != [right]:
                        self.denied(client, method, **params)
                    else:
                        try:
                            client.call(method, **params)
                        except Refused as refused:
                            self.assertNotEqual(refused.code, "denied", (method, params, refused))
                client.call("ping")  # This needs no right.

    def test_prefixes_denies_and_priorities(self):
        cluster = self.cluster(masters=1)
        billing, monitor, nobody = (self.connect(cluster, n)
                                    for n in ("billing", "monitor", "nobody"))
        billing.call("acquire", key="billing/1", lease_ms=1000, priority=10)
        self.assertEqual(self.denied(billing, "acquire", key="billing/1", lease_ms=1000,
                                     priority=11).error["field"], "priority")
        self.denied(billing, "ask_release", key="billing/1", priority=11)
        self.denied(billing, "acquire", locks=[{"key": "billing/2"}, {"key": "billing/archive/1"}],
                    lease_ms=1000)
        self.denied(billing, "acquire", locks=[{"key": "billing/2"}], lease_ms=1000, priority=11)
        self.denied(billing, "acquire", key="billing/archive/1", lease_ms=1000)
        billing.call("get", key="billing/archive/1")
        billing.call("list", prefix="billing/")
        self.denied(billing, "list", prefix="billing")
        self.denied(monitor, "list", prefix="")  # Some of these keys are secret.
        monitor.call("list", prefix="billing/")
        self.denied(nobody, "get", key="k")
        self.denied(nobody, "status")
        self.denied(self.connect(cluster, None), "get", key="k")
        cluster.nodes["a"].wait_log(" denied what=acquire key=billing/archive/1 identity=billing ",
                                    "right=acquire rule=7")
        cluster.nodes["a"].wait_log(" denied what=status ", "identity=nobody ", "right=status")

    def test_a_certificate_cannot_have_the_name_of_an_account(self):
        cluster = self.cluster(masters=1)
        for name in ("unix:uid:%d" % os.getuid(), "plain", "everybody", "group:ops"):
            self.certificates.make("wrong", "pawl:client:" + name)
            with self.assertRaises(REFUSED + (Refused, AssertionError)):
                with cluster.client("a", tls=self.certificates.context("wrong")) as client:
                    client.call("status")
            cluster.nodes["a"].wait_log(" client_refused identity=%s " % name,
                                        "reserved for clients without a certificate")

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_clients_on_a_unix_socket_are_known_by_their_account(self):
        cluster = self.cluster(masters=1)
        os.chmod(self.folder, 0o755)
        socket = cluster.unix("a")
        os.chmod(os.path.dirname(socket[len("unix:"):]), 0o755)
        os.chmod(socket[len("unix:"):], 0o777)

        def ask(uid, gids, *arguments):
            run = subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(gids[0]),
                                  *(["--groups", ",".join(map(str, gids[1:]))]
                                    if gids[1:] else ["--clear-groups"]),
                                  cli_fixture.PAWL, *arguments, "--endpoints", socket, "--json"],
                                 capture_output=True, text=True)
            return run.returncode, json.loads(run.stdout or run.stderr)

        self.assertFalse(ask(4711, [4711], "get", "public/1")[1]["held"])
        status, answer = ask(4711, [4711], "acquire", "public/1")
        self.assertEqual((status, answer["error"]["code"]), (1, "denied"))
        # Another one of its groups has the right.
        self.assertEqual(ask(4711, [4711, 4712], "acquire", "public/1")[0], 0)
        self.assertEqual(ask(4713, [4712], "acquire", "public/2")[0], 0)
        self.assertEqual(ask(4713, [4713], "status")[1]["error"]["code"], "denied")
        status, answer = ask(4711, [4711], "can", "-", "acquire", "public/1")
        self.assertEqual((status, answer["allowed"], answer["identity"]),
                         (1, False, "unix:uid:4711"))
        with Client(socket) as root:
            self.assertEqual(root.call("get", key="public/2")["identity"], b"unix:uid:4713")
            root.call("break", key="public/1", now=True)
        cluster.nodes["a"].wait_log(" denied what=acquire key=public/1 identity=unix:uid:4711 ",
                                    "uid=4711")

    def test_who_may_not_read_is_not_told_on_the_terminal_for_whom_it_waits(self):
        self.write("[alice]\nallow = all on *\n[billing]\nallow = acquire on *\n"
                   "[monitor]\nallow = acquire, read on *\n")
        cluster = self.cluster(masters=1)
        self.connect(cluster, "alice").call("acquire", key="k", lease_ms=20000, owner="holder")
        self.endpoints, path = "tls://" + cluster.clients["a"], self.certificates.path
        for name, told in (("billing", "waiting for 'k'\r\n"),
                           ("monitor", "waiting for 'k': held by holder (")):
            Shell(self, "$PAWL run k --wait 1m --cacert %s --cert %s --key %s -- true" % (
                path("ca.crt"), path(name + ".crt"), path(name + ".key"))).wait(told)

    def test_loopback_without_tls_is_plain(self):
        with Cluster(cli_fixture.PAWLD, masters=1, node="[acl]\nfile = %s\n"
                     % self.path()) as cluster:
            with cluster.client("a") as plain:
                self.assertEqual(self.denied(plain, "get", key="k").error["field"], "key")
                cluster.nodes["a"].wait_log(" denied what=get key=k identity=plain ")
                self.write("[plain]\nallow = read on *\n")
                cluster.nodes["a"].signal(signal.SIGHUP)
                cluster.nodes["a"].wait_log(" rights_warning ", "nobody has the right 'cluster'")
                plain.call("get", key="k")
                self.denied(plain, "drain")

    def test_nodes_tell_which_of_them_has_other_rules(self):
        self.write(RULES % os.getuid() + "# other\n", "c")
        cluster = self.cluster()
        for name, peer in (("a", "c"), ("b", "c"), ("c", "a")):
            cluster.nodes[name].wait_log(" rights_differ peer=%s " % peer)
        digests = {n: self.digest(n) for n in "ac"}
        shown = self.succeeds(self.pawl(cluster, "alice", "status", "--json")).json
        self.assertEqual(shown["rights"], digests["a"])
        self.assertEqual({p["node"]: p["rights"] for p in shown["peers"]},
                         {"a": digests["a"], "b": digests["a"], "c": digests["c"]})
        for command in ("cluster", "show"), ("status",):
            told = self.succeeds(self.pawl(cluster, "alice", *command)).out
            self.assertIn("c has other access rules (%s) than the rest (%s)"
                          % (digests["c"][:8], digests["a"][:8]), told)
        start = {n: len(node.lines) for n, node in cluster.nodes.items()}
        self.write(RULES % os.getuid(), "c")
        cluster.nodes["c"].signal(signal.SIGHUP)
        cluster.nodes["c"].wait_log(" reloaded ", start=start["c"])
        end = time.monotonic() + PATIENCE
        while "other access rules" in self.succeeds(self.pawl(cluster, "alice", "cluster",
                                                              "show")).out:
            self.assertLess(time.monotonic(), end)

    def digest(self, node):
        own = self.path(node)
        with open(own if os.path.exists(own) else self.path(), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def test_a_reload_with_a_wrong_file_changes_nothing(self):
        cluster = self.cluster(masters=1)
        node, billing = cluster.nodes["a"], self.connect(cluster, "billing")
        self.write("[billing]\nallow = reed on billing/\n")
        node.signal(signal.SIGHUP)
        node.wait_log(" reload_refused ", "rights.conf:2: 'reed' is not a right")
        billing.call("acquire", key="billing/1", lease_ms=1000)
        self.write("[billing]\nallow = read on billing/\n")
        node.signal(signal.SIGHUP)
        node.wait_log(" reloaded ")
        self.denied(billing, "acquire", key="billing/2", lease_ms=1000)
        checked = subprocess.run([cli_fixture.PAWLD, "--check-config", cluster.config("a")],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0)
        self.assertIn("warning: %s: nobody has the right 'cluster'" % self.path(), checked.stdout)
        self.write("[billing]\nallow = read\n")
        checked = subprocess.run([cli_fixture.PAWLD, "--check-config", cluster.config("a")],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("%s:2: allow: on which keys? Write `on PREFIX`" % self.path(), checked.stderr)

    def test_can_says_whether_and_why(self):
        cluster = self.cluster(masters=1)
        rows = [  # Each has identity, method, key, further arguments, allowed, line.
            ("billing", "acquire", "billing/1", [], True, 6),
            ("billing", "acquire", "billing/archive/1", [], False, 7),
            ("billing", "acquire", "billing/1", ["--priority", "10"], True, 6),
            ("billing", "acquire", "billing/1", ["--priority", "11"], False, 6),
            ("billing", "watch", "billing/", ["--prefix"], True, 6),
            ("monitor", "list", "", [], False, 12),
            ("monitor", "status", None, [], True, 10),
            ("monitor", "cluster-remove", None, [], False, 0),
            ("alice", "drain", None, [], True, 3),
            ("unix:uid:4711", "get", "public/1", [], True, 15),
            ("plain", "get", "public/1", [], False, 0),
            ("anonymous", "get", "public/1", [], False, 0),
            ("anonymous", "ping", None, [], True, 0),
        ]
        for identity, method, key, more, allowed, line in rows:
            words = ["can", identity, method] + ([key]
                                                 if key is not None else []) + more + ["--json"]
            for asked in (cli_fixture.pawl(*words, "--file", self.path()),
                          self.pawl(cluster, "alice", *words)):
                self.assertEqual(asked.status, 0 if allowed else 1, (words, asked.out, asked.err))
                self.assertEqual((asked.json["allowed"], asked.json["line"], asked.json["file"]),
                                 (allowed, line, self.path()), words)
        told = cli_fixture.pawl("can", "billing", "acquire", "billing/archive/1", "--file",
                                self.path())
        self.assertIn("%s:7, in [billing]: deny = acquire on billing/archive/" % self.path(),
                      told.out)
        own = self.pawl(cluster, "billing", "can", "-", "acquire", "billing/1", "--json")
        self.assertEqual((own.status, own.json["identity"], own.json["node"]), (0, "billing", "a"))
        other = self.pawl(cluster, "billing", "can", "monitor", "status", "--json")
        self.assertEqual((other.status, other.json["error"]["code"]), (1, "denied"))
        for words in (["can", "x", "no-such"], ["can", "group:ops", "get", "k"],
                      ["can", "unix:user:no-such-account", "get"], ["can", "x"]):
            self.assertEqual(cli_fixture.pawl(*words, "--file", self.path()).status, 2, words)

    def test_without_a_file_the_log_says_so_and_can_too(self):
        with Cluster(cli_fixture.PAWLD, masters=1) as cluster:
            for identity, method, allowed in (("plain", "drain", True),
                                              ("anonymous", "drain", False),
                                              ("x", "acquire", True)):
                asked = cli_fixture.pawl("can", identity, method, "k", "--endpoints",
                                         cluster.clients["a"], "--json")
                self.assertEqual((asked.status, asked.json["allowed"], asked.json["rights"]),
                                 (0 if allowed else 1, allowed, "none"))


if __name__ == "__main__":
    cli_fixture.main()
