"""Tests which certificates let whom in. The openssl program makes the certificates."""

import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import unittest

import pawltest
from pawltest import Closed, Cluster, Refused, pack

PAWLD = None
REFUSED = (Closed, ConnectionResetError, BrokenPipeError, ssl.SSLError)


class Certificates:
    """An authority in a directory, with the certificates that it has signed."""

    def __init__(self, directory, days=2, nodes=(), clients=(), hosts=("127.0.0.1",)):
        self.dir, self.days, self.hosts = directory, days, hosts
        self.run("req", "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt",
                 "-days", str(days))
        for name in nodes:
            self.make(name, "pawl:node:" + name)
        for name in clients:
            self.make(name, "pawl:client:" + name)

    def run(self, *arguments, **options):
        subprocess.run(("openssl",) + arguments + (("-newkey", "ec", "-pkeyopt",
                                                    "ec_paramgen_curve:P-256", "-nodes")
                       if arguments[0] == "req" else ()), cwd=self.dir, check=True,
                       stderr=subprocess.DEVNULL, **options)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, name, uri, serial=None, days=None):
        self.run("req", "-subj", "/CN=%s" % name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(self.path(name + ".ext"), "w") as f:
            f.write("subjectAltName = URI:%s, %s\n"
                    % (uri, ", ".join("IP:" + host for host in self.hosts)))
        self.run("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                 "-set_serial", str(serial or 7),
                 "-days", str(days or self.days), "-extfile", name + ".ext", "-out", name + ".crt")

    def context(self, name=None):
        return pawltest.tls_context(self.path("ca.crt"), *([self.path(name + ".crt"),
                                                            self.path(name + ".key")]
                                                           if name else []))


class Tls(unittest.TestCase):
    auth = "required"

    def setUp(self):
        directory = tempfile.mkdtemp(prefix="pawl-tls-")
        self.addCleanup(shutil.rmtree, directory)
        self.certificates = Certificates(directory, nodes="abc", clients=("alice",))
        self.certificates.make("bob", "pawl:client:bob")

    def section(self, _, name):
        c = self.certificates
        return "ca = %s\ncert = %s\nkey = %s\nclient_auth = %s\n%s" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"), self.auth,
            pawltest.rights(c.dir, ("alice", pawltest.ALL), ("everybody", pawltest.KEYS)))

    def cluster(self, **options):
        cluster = Cluster(PAWLD, tls=self.section, **options)
        self.addCleanup(cluster.__exit__)
        return cluster

    def connect(self, cluster, name, certificate):
        client = cluster.client(name, tls=self.certificates.context(certificate))
        self.addCleanup(client.close)
        return client

    def refused(self, cluster, context):
        """Checks that the client is refused, at the latest with the first answer: in TLS 1.3 a
        client learns of it after its own handshake."""
        with self.assertRaises(REFUSED):
            with cluster.client("a", tls=context) as client:
                client.call("ping")

    def test_nodes_and_clients_with_certificates_work_together(self):
        cluster = self.cluster().__enter__()
        alice, bob = self.connect(cluster, "a", "alice"), self.connect(cluster, "b", "bob")
        got = bob.call("acquire", key="k", lease_ms=20000)
        # The lock_id is the proof of holding: for the identity that acquired it, and for
        # administrators.
        self.assertIn("lock_id", bob.call("get", key="k"))
        self.assertIn("lock_id", alice.call("get", key="k", consistency="quorum"))
        self.certificates.make("carol", "pawl:client:carol")
        carol = self.connect(cluster, "b", "carol")
        self.assertNotIn("lock_id", carol.call("get", key="k"))
        with self.assertRaises(Refused) as caught:
            carol.call("acquire", key="k", lease_ms=20000, lock_id=got["lock_id"])
        self.assertIn(caught.exception.code, ("denied", "held"))
        with self.assertRaises(Refused) as caught:
            bob.call("drain")
        self.assertEqual(caught.exception.code, "denied")
        # The right to write a key is not a right to take it from its holder.
        with self.assertRaises(Refused) as caught:
            carol.call("break", key="k", now=True)
        self.assertEqual(caught.exception.code, "denied")
        self.assertTrue(alice.call("break", key="k", now=True)["broken"])
        self.stranger_cannot_speak_as_a_peer(cluster)
        self.nobody_gets_in_without(cluster)

    def nobody_gets_in_without(self, cluster):
        self.refused(cluster, self.certificates.context())  # This client has no certificate.
        with self.assertRaises(REFUSED):
            with cluster.client("a") as plain:
                plain.call("ping")
        old = self.certificates.context("alice")
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        self.refused(cluster, old)
        # The certificate of a node is not one for a client.
        node = self.connect(cluster, "a", "b")
        self.assertEqual(node.read()[2]["code"], "denied")
        self.refused(cluster, self.certificates.context("b"))

    def stranger_cannot_speak_as_a_peer(self, cluster):
        """b waits for the link from a. Alice, who has a certificate of the same authority, says
        that she is a; and so does node c."""
        for certificate, voting in (("alice", 3), ("c", 3)):
            lines = len(cluster.nodes["b"].lines)
            hello = pack({"pawl": [1, 1], "features": 0, "cluster": "test", "node": "a",
                          "id": b"i" * 16, "boot": 1})
            raw = socket.create_connection(pawltest.split(cluster.peers["b"]), pawltest.PATIENCE)
            context = self.certificates.context(certificate)
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as peer:
                peer.sendall(struct.pack(">I", len(hello)) + hello)
                try:
                    while peer.recv(4096):
                        pass
                except (ConnectionResetError, ssl.SSLError):
                    pass
            cluster.nodes["b"].wait_log("but it shows the certificate of", start=lines)
            self.assertEqual(self.connect(cluster, "b", "bob").call("status")["voting"], voting)

    def test_a_node_does_not_start_with_anothers_certificate(self):
        cluster = self.cluster()
        cluster.write_configs()
        shutil.copy(self.certificates.path("b.crt"), self.certificates.path("a.crt"))
        shutil.copy(self.certificates.path("b.key"), self.certificates.path("a.key"))
        node = cluster.start("a")
        self.assertNotEqual(node.wait(), 0)
        self.assertIn("pawl:node:a", node.log())

    def test_certificates_are_reloaded_for_new_connections(self):
        cluster = self.cluster(masters=1).__enter__()
        before = self.connect(cluster, "a", "alice")
        self.assertEqual(int(before.socket.getpeercert()["serialNumber"], 16), 7)
        self.certificates.make("a", "pawl:node:a", serial=4711)
        cluster.nodes["a"].signal(signal.SIGHUP)
        cluster.nodes["a"].wait_log(" reloaded ")
        after = self.connect(cluster, "a", "alice")
        self.assertEqual(int(after.socket.getpeercert()["serialNumber"], 16), 4711)
        self.assertEqual(before.call("ping")["node"], "a")
        lines = len(cluster.nodes["a"].lines)
        with open(self.certificates.path("a.crt"), "w") as f:
            f.write("no certificate\n")
        cluster.nodes["a"].signal(signal.SIGHUP)
        cluster.nodes["a"].wait_log(" reload_refused ", "a.crt", start=lines)
        self.assertEqual(self.connect(cluster, "a", "alice").call("ping")["node"], "a")

    def test_a_client_that_loses_its_rights_gets_no_more_events(self):
        cluster = self.cluster(masters=1).__enter__()
        node = cluster.nodes["a"]
        watchers = {name: self.connect(cluster, "a", name) for name in ("alice", "bob")}
        staying = self.connect(cluster, "a", "bob")
        staying.call("watch", prefix="public/")
        for watcher in watchers.values():
            watcher.call("watch", prefix="secret/")
        pawltest.rights(self.certificates.dir, ("bob", "allow = read, watch on public/\n"),
                        ("alice", "allow = acquire, watch on secret/\n"))
        node.signal(signal.SIGHUP)
        node.wait_log(" reloaded ")
        # Alice may watch it, and may not see the lock_ids of others any more.
        for watcher in watchers.values():
            with self.assertRaises(REFUSED):
                watcher.event()
        self.assertEqual(staying.call("ping")["node"], "a")
        again = self.connect(cluster, "a", "alice")
        again.call("watch", prefix="secret/")
        got = again.call("acquire", key="secret/1", lease_ms=1000)
        self.assertEqual(again.event()["lock_id"], got["lock_id"])
        with self.assertRaises(Refused) as refused:
            self.connect(cluster, "a", "bob").call("watch", prefix="secret/")
        self.assertEqual(refused.exception.code, "denied")


    def test_a_reload_with_very_many_watches_delays_nobody(self):
        cluster = self.cluster(masters=1,
                               node="[limits]\nwatches_per_client = 100000\n").__enter__()
        node = cluster.nodes["a"]
        watcher, other = self.connect(cluster, "a", "bob"), self.connect(cluster, "a", "alice")
        for _ in range(100):
            asked = [pack([0, i, "watch", [{"prefix": "p%d/" % i}]]) for i in range(1000)]
            watcher.socket.sendall(b"".join(asked))
            for i in range(1000):
                watcher.answer(i)
        pawltest.rights(self.certificates.dir, ("alice", pawltest.ALL),
                        ("bob", "allow = watch on q\n" * 500 + "allow = watch on p\n"))
        node.signal(signal.SIGHUP)
        longest, end = 0, time.monotonic() + 3
        while time.monotonic() < end:
            before = time.monotonic()
            other.call("ping")
            longest = max(longest, time.monotonic() - before)
        self.assertLess(longest, 0.4)
        node.wait_log(" reloaded ")
        other.call("acquire", key="p7/", lease_ms=60000)
        self.assertEqual(watcher.event()["key"], b"p7/")


class TlsOptional(Tls):
    """The same tests with client_auth = optional. A client without a certificate has no name, and
    no rights of an administrator."""
    auth = "optional"

    def nobody_gets_in_without(self, cluster):
        nameless = self.connect(cluster, "a", None)
        nameless.call("acquire", key="n", lease_ms=1000)
        self.assertNotIn("lock_id", nameless.call("get", key="k"))
        with self.assertRaises(Refused):
            nameless.call("drain")

    test_a_node_does_not_start_with_anothers_certificate = None
    test_certificates_are_reloaded_for_new_connections = None
    test_a_client_that_loses_its_rights_gets_no_more_events = None
    test_a_reload_with_very_many_watches_delays_nobody = None


if __name__ == "__main__":
    pawltest.main(globals())
