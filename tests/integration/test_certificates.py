"""Tests certificates that have expired or were revoked, and the roles that certificates allow. The
nodes are real, and pawl cert makes all certificates."""

import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import unittest

import cli_fixture
import pawltest
from cli_fixture import Case, pawl
from pawltest import Closed, Cluster, pack, wait_until

REFUSED = (Closed, ConnectionResetError, BrokenPipeError, ssl.SSLError)


class Certified(Case):
    def setUp(self):
        super().setUp()
        self.cert("ca")
        self.cert("client", "ops")
        self.cert("client", "bob")

    def path(self, name):
        return os.path.join(self.folder, name)

    def cert(self, *arguments):
        return self.succeeds(pawl("cert", *arguments, "--dir", self.folder, "--force"))

    def node(self, name, *arguments):
        self.cert("node", name, "--host", "127.0.0.1,localhost", *arguments)

    def serial(self, name):
        return self.succeeds(pawl("cert", "show", self.path(name + ".crt"), "--dir", self.folder,
                                  "--json")).json["serial"]

    def section(self, _, name):
        return "ca = %s\ncert = %s\nkey = %s\nrevoked = %s\n%s%s" % (
            self.path("ca.crt"), self.path(name + ".crt"), self.path(name + ".key"),
            self.path("revoked"),
            "crl = %s\n" % self.path("ca.crl") if self.crl else "",
            pawltest.rights(self.folder, ("ops", pawltest.ALL), ("everybody", pawltest.KEYS)))

    def cluster(self, masters=3, names="", crl=False):
        """The nodes are configured, but not started yet."""
        self.crl = crl
        self.write("revoked", "# nobody yet\n")
        if crl:
            self.cert("revoke")
        cluster = Cluster(cli_fixture.PAWLD, masters=masters, tls=self.section)
        for name in cluster.names + list(names):
            self.node(name)
        self.addCleanup(cluster.__exit__)
        self.running = cluster
        return cluster

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def ask(self, name, *arguments):
        return pawl(*arguments, "--endpoints", "tls://" + self.running.clients[name], "--cacert",
                    self.path("ca.crt"), "--cert",
                    self.path("ops.crt"), "--key", self.path("ops.key"))

    def connect(self, name, certificate):
        context = pawltest.tls_context(self.path("ca.crt"), self.path(certificate + ".crt"),
                                       self.path(certificate + ".key"))
        client = self.running.client(name, tls=context)
        self.addCleanup(client.close)
        return client

    def refused(self, name, certificate):
        with self.assertRaises(REFUSED) as caught:
            self.connect(name, certificate).call("ping")
        return str(caught.exception)

    def reload(self, name, *words):
        node = self.running.nodes[name]
        lines = len(node.lines)
        node.signal(signal.SIGHUP)
        return node.wait_log(*(words or (" reloaded ",)), start=lines)

    def fails(self, name, *words):
        """Starts the node, which must end at once. Returns what it says."""
        node = self.running.start(name)
        self.assertNotEqual(node.wait(), 0)
        for word in words:
            self.assertIn(word, node.log())


class Revoking(Certified):
    def test_a_clients_connection_ends_with_the_reload_and_it_gets_no_other(self):
        cluster = self.cluster(masters=1).start_all()
        bob, ops = self.connect("a", "bob"), self.connect("a", "ops")
        self.assertEqual(bob.call("ping")["node"], "a")
        self.succeeds(pawl("cert", "revoke", "--list", self.path("revoked"), self.path("bob.crt")))
        lines = len(cluster.nodes["a"].lines)
        self.reload("a")
        cluster.nodes["a"].wait_log(" client_refused ",
                                    "the certificate of client bob (serial %s)"
                                    % self.serial("bob"), start=lines)
        with self.assertRaises(REFUSED):
            bob.call("ping")
        self.assertIn("revoked", self.refused("a", "bob"))
        run = pawl("get", "k", "--endpoints", "tls://" + cluster.clients["a"], "--cacert",
                   self.path("ca.crt"), "--cert",
                   self.path("bob.crt"), "--key", self.path("bob.key"), "--timeout", "3s")
        self.assertEqual(run.status, 3)
        self.assertIn("the node rejects this client's certificate, which is revoked", run.err)
        self.assertEqual(ops.call("ping")["node"], "a")
        # Another serial number means another certificate; a revoked name revokes all of them.
        self.cert("client", "bob")
        again = self.connect("a", "bob")
        self.assertEqual(again.call("ping")["node"], "a")
        self.succeeds(pawl("cert", "revoke", "--list", self.path("revoked"), "client:bob"))
        self.reload("a")
        with self.assertRaises(REFUSED):
            again.call("ping")
        self.write("revoked", "")
        self.reload("a")
        self.assertEqual(self.connect("a", "bob").call("ping")["node"], "a")

    def test_a_node_whose_certificate_is_in_the_crl_is_shut_out(self):
        cluster = self.cluster(crl=True).start_all()
        with self.connect("a", "ops") as ops:
            ops.call("acquire", key="k", lease_ms=20000)
        self.cert("revoke", self.path("c.crt"))
        for name in "ab":
            lines = len(cluster.nodes[name].lines)
            self.reload(name)
            cluster.nodes[name].wait_log(" peer_down ", "peer=c", start=lines)
            cluster.nodes[name].wait_log(" peer_link_failed ",
                                         "the certificate of node c (serial %s)" % self.serial("c"),
                                         "ca.crl", start=lines)
        cluster.nodes["c"].wait_log(" peer_link_failed ",
                                    "refuses this node's certificate as revoked")
        # c itself learns it when it reloads, and goes on with the certificate that it has.
        self.reload("c", " reload_refused ", "the certificate of node c")
        with self.connect("a", "ops") as ops:
            self.assertEqual(ops.call("status")["voting"], 2)
            ops.call("acquire", key="l", lease_ms=1000)
        # With a new certificate c is back.
        self.node("c")
        self.reload("c")
        cluster.nodes["a"].wait_log(" peer_up ", "peer=c", start=len(cluster.nodes["a"].lines) - 1)

    def old_crl(self):
        """Makes a CRL of the right authority that has expired."""
        for name in ("index.txt", "out.crl"):
            self.write(name, "")
        self.write("conf", "[ca]\ndefault_ca = d\n[d]\ndatabase = %s\ndefault_md = sha256\n"
                   % self.path("index.txt"))
        subprocess.run(["openssl", "ca", "-config", self.path("conf"), "-gencrl", "-cert",
                        self.path("ca.crt"), "-keyfile", self.path("ca.key"),
                        "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z",
                        "-out", self.path("out.crl")],
                       check=True, stderr=subprocess.DEVNULL)
        return self.path("out.crl")

    def test_a_wrong_list_or_crl_is_refused_and_changes_nothing(self):
        cluster = self.cluster(masters=1, crl=True).start_all()
        self.cert("revoke", self.path("bob.crt"))
        self.reload("a")
        self.refused("a", "bob")
        ops = self.connect("a", "ops")
        good = self.path("good.crl")
        shutil.copy(self.path("ca.crl"), good)
        other = self.path("other")
        self.succeeds(pawl("cert", "ca", "--dir", other, "--name", "Another"))
        self.succeeds(pawl("cert", "revoke", "--dir", other))
        self.write("garbage", "nothing\n")
        for path, words in ((self.path("garbage"), "contains no CRL in PEM format"),
                            (os.path.join(other, "ca.crl"), "not from an authority in"),
                            (self.old_crl(), "expired on 2020-01-02"), (None, "cannot read")):
            os.remove(self.path("ca.crl"))
            if path:
                shutil.copy(path, self.path("ca.crl"))
            self.reload("a", " reload_refused ", words, "ca.crl")
            self.refused("a", "bob")
            self.assertEqual(ops.call("ping")["node"], "a")
            run = subprocess.run([cli_fixture.PAWLD, "--check-config", cluster.config("a")],
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(words, run.stderr)
        cluster.nodes["a"].terminate()
        self.fails("a", "cannot read", "ca.crl")
        shutil.copy(good, self.path("ca.crl"))
        cluster.start("a").wait_log(" voting ")
        self.refused("a", "bob")
        self.write("revoked", "node:x\nbob\n")
        self.reload("a", " reload_refused ", "revoked:2:", "node:NAME, client:NAME or serial:HEX")
        self.assertEqual(self.connect("a", "ops").call("ping")["node"], "a")

    def test_an_authority_revokes_only_what_it_signed(self):
        other = self.path("other")
        self.succeeds(pawl("cert", "ca", "--dir", other))
        for arguments in ((self.path("bob.crt"),), (os.path.join(other, "ca.crt"),)):
            self.assertEqual(pawl("cert", "revoke", *arguments, "--dir", other).status, 1)
        self.cert("revoke", self.path("bob.crt"))
        self.assertEqual(pawl("cert", "revoke", "--dir", other, "--crl",
                              self.path("ca.crl")).status, 1)
        shown = pawl("cert", "show", self.path("bob.crt"), self.path("ops.crt"), "--dir",
                     self.folder)
        self.assertRegex(shown.out, "(?s)kind +client bob.*revoked +YES, by .*ca.crl.*kind +client "
                                    "ops.*revoked +no")
        self.cert("revoke", "serial:12:34")  # The earlier entries stay.
        self.assertTrue(self.succeeds(pawl("cert", "show", self.path("bob.crt"), "--dir",
                                           self.folder, "--json")).json["revoked"])
        for wrong in (["node:a"], ["serial:xyz"]):
            self.assertEqual(pawl("cert", "revoke", *wrong, "--dir", self.folder).status, 2)

    def test_removing_a_node_tells_what_to_revoke(self):
        cluster = self.cluster(masters=3).start_all()
        serial = self.serial("c")
        self.succeeds(self.ask("a", "cluster", "demote", "c", "--yes"))
        run = self.succeeds(self.ask("a", "cluster", "remove", "c"))
        self.assertIn("pawl cert revoke serial:" + serial, run.out)
        self.assertIn("pawl cert revoke --list FILE node:c", run.out)
        self.cert("revoke", "serial:" + serial)
        self.assertIn("YES", pawl("cert", "show", self.path("c.crt"), "--dir", self.folder).out)
        cluster.nodes["c"].terminate()

    def test_programs_are_told_what_to_revoke(self):
        cluster = self.cluster(masters=3).start_all()
        serial = self.serial("c")
        self.succeeds(self.ask("a", "cluster", "demote", "c", "--yes"))
        run = self.succeeds(self.ask("a", "cluster", "remove", "c", "--json"))
        self.assertEqual(run.json["revoke"], {"name": "c", "serial": serial})
        # Of a node that is not linked only the name is known.
        self.succeeds(self.ask("a", "cluster", "demote", "b", "--yes"))
        cluster.nodes["b"].kill()
        wait_until(self, lambda: not any(peer["node"] == "b" and peer["linked"] for peer in
                                         self.ask("a", "status", "--json").json["peers"]))
        run = self.succeeds(self.ask("a", "cluster", "remove", "b", "--json"))
        self.assertEqual(run.json["revoke"], {"name": "b", "serial": None})


class Making(Certified):
    def test_hosts_that_are_given_one_by_one_are_all_in_the_certificate(self):
        self.cert("node", "a", "--host", "a.example,10.0.0.1", "--host", "b.example")
        shown = self.succeeds(pawl("cert", "show", self.path("a.crt"), "--json",
                                   "--dir", self.folder)).json
        self.assertEqual(shown["names"], "URI:pawl:node:a, DNS:a.example, "
                                         "IP Address:10.0.0.1, DNS:b.example")


class Keeping(Certified):
    def test_a_key_that_others_may_read_is_refused(self):
        cluster = self.cluster(masters=1)
        cluster.write_configs()
        os.chmod(self.path("a.key"), 0o644)
        self.fails("a", "a.key can be read or changed by others (mode 0644): run chmod ")
        with open(cluster.config("a")) as f:
            text = f.read()
        with open(cluster.config("a"), "w") as f:
            f.write(text.replace("[acl]", "any_key_mode = yes\n[acl]"))
        cluster.start("a").wait_log(" voting ")
        with open(cluster.config("a"), "w") as f:
            f.write(text)
        self.reload("a", " reload_refused ", "chmod ")
        cluster.nodes["a"].terminate()
        if os.getuid() == 0:
            os.chmod(self.path("a.key"), 0o600)
            os.chown(self.path("a.key"), 4711, -1)
            self.fails("a", "a.key belongs to another user (4711)", "chown 0 ")
            # root may check a configuration that another user's node will read.
            run = subprocess.run([cli_fixture.PAWLD, "--check-config", cluster.config("a")],
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_certificate_near_its_end_is_told(self):
        cluster = self.cluster(masters=1)
        self.node("a", "--days", "12")
        cluster.start_all()
        cluster.nodes["a"].wait_log(" certificate_ends ", "a.crt",
                                    re.search("days=1[12]", cluster.nodes["a"].log()).group(0))
        run = self.succeeds(self.ask("a", "status"))
        self.assertRegex(run.out, "the certificate of a .serial %s. expires in 1[12] days: issue a "
                                  "new one .pawl cert node a" % self.serial("a"))
        self.assertIn("IT EXPIRES SOON", pawl("cert", "show", self.path("a.crt"), "--dir",
                                              self.folder).out)
        self.node("a")
        self.reload("a")
        self.assertNotIn("expires in", self.succeeds(self.ask("a", "status")).out)

    def test_a_certificate_that_was_changed_since_the_links_began_is_told_of_every_node(self):
        cluster = self.cluster().start_all()
        self.node("b", "--days", "3")
        self.reload("b")

        def told_by_a():
            peers = self.succeeds(self.ask("a", "status", "--json")).json["peers"]
            return {p["node"]: p for p in peers}["b"]["serial"]

        pawltest.wait_until(self, lambda: told_by_a() == self.serial("b"))
        everybody = ",".join("tls://" + cluster.clients[n] for n in "abc")
        run = pawl("cluster", "show", "--cacert", self.path("ca.crt"), "--cert",
                   self.path("ops.crt"), "--key", self.path("ops.key"), endpoints=everybody)
        self.assertRegex(self.succeeds(run).out, "the certificate of b .serial %s. expires in "
                                                 "[23] days" % self.serial("b"))


class Roles(Certified):
    def hello(self, at, name, certificate):
        """Connects to the peer port with this certificate, says that this is the node of that name,
        and returns what happens."""
        said = pack({"pawl": [1, 1], "features": 0, "cluster": "test", "node": name,
                     "id": b"i" * 16, "boot": 1})
        context = pawltest.tls_context(self.path("ca.crt"), self.path(certificate + ".crt"),
                                       self.path(certificate + ".key"))
        raw = socket.create_connection(pawltest.split(self.running.peers[at]), pawltest.PATIENCE)
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as peer:
            peer.sendall(struct.pack(">I", len(said)) + said)
            try:
                while peer.recv(4096):
                    pass
            except (ConnectionResetError, ssl.SSLError):
                pass

    def test_a_certificate_for_a_replica_does_not_allow_a_master(self):
        cluster = self.cluster(names="r").start_all()
        self.node("r", "--role", "replica")
        cluster.join("r")
        self.succeeds(self.ask("a", "cluster", "add-replica", "r", cluster.peers["r"]))
        cluster.nodes["r"].wait_log(" following ")
        peers = {p["node"]: p
                 for p in self.succeeds(self.ask("a", "status", "--json")).json["peers"]}
        self.assertEqual((peers["r"]["certificate_role"], peers["a"]["certificate_role"]),
                         ("replica", "master"))
        self.assertEqual(peers["r"]["serial"], self.serial("r"))
        for change in (("promote", "r"), ("replace", "c", "r"),
                       ("set-nodes", "--masters", "a,b,c,r")):
            for at in "ar":
                run = self.ask(at, "cluster", *change)
                self.assertEqual(run.status, 1, run.out)
                self.assertIn("r cannot be a master: its certificate (serial %s) only allows it to "
                              "be a replica." % self.serial("r"), run.err)
        cluster.nodes["a"].wait_log(" role_refused ", "peer=r")
        # With another certificate it may. As a master it then refuses the first one at a reload.
        self.node("r")
        cluster.nodes["r"].terminate()
        cluster.start("r").wait_log(" following ")
        self.succeeds(self.ask("a", "cluster", "replace", "c", "r"))
        self.node("r", "--role", "replica")
        self.reload("r", " reload_refused ", "node r may only be a replica, but it is a master of "
                                             "the cluster")
        cluster.nodes["r"].terminate()
        self.fails("r", "node r may only be a replica, but it is a master of the cluster")
        # The others do not accept it as a master, either.
        for at in "ab":
            lines = len(cluster.nodes[at].lines)
            self.hello(at, "r", "r")
            cluster.nodes[at].wait_log("r is a master in the configuration, but its certificate",
                                       start=lines)

    def test_a_certificate_for_a_program_and_one_of_an_unknown_role_start_no_node(self):
        cluster = self.cluster(masters=1)
        cluster.write_configs()
        self.cert("node", "a", "--role", "embedded")
        self.fails("a", "is for a node inside a program", "pawl cert node a --role replica")
        self.node("a", "--role", "replica")
        self.fails("a", "node a may only be a replica, but it is a master of the cluster")
        self.assertEqual(pawl("cert", "node", "a", "--host", "a", "--role", "king", "--dir",
                              self.folder).status, 2)
        self.assertEqual(pawl("cert", "client", "a", "--role", "replica", "--dir",
                              self.folder).status, 2)


if __name__ == "__main__":
    cli_fixture.main()
