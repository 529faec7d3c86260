"""Tests what a stranger may ask a node to compute in a TLS handshake, at each of its listeners. The
openssl program is the stranger."""

import shutil
import subprocess
import tempfile
import unittest

import pawltest
from test_tls import Certificates

PAWLD = None
LISTENERS = ("peer", "client", "redis", "memcached", "admin")
ACCEPTED = ("X25519", "P-256", "P-384")
REFUSED = ("ffdhe2048", "ffdhe8192", "X448", "P-521")
# An authority, and one that signed for it, and so on.
CHAIN = 60


class Handshakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix="pawl-handshakes-")
        cls.addClassCleanup(shutil.rmtree, directory)
        cls.certificates = c = Certificates(directory, nodes="a", clients=("alice",))
        cls.ports = {name: pawltest.free_port() for name in LISTENERS[2:]}

        def section(folder, name):
            return ("ca = %s\ncert = %s\nkey = %s\n%s\n[admin]\nlisten = 0.0.0.0:%d\n" % (
                c.path("ca.crt"), c.path("a.crt"), c.path("a.key"),
                pawltest.rights(c.dir, ("alice", pawltest.ALL)), cls.ports["admin"]))
        cls.cluster = pawltest.Cluster(
            PAWLD, masters=1, tls=section,
            node="listen_redis = 127.0.0.1:%(redis)d\nlisten_memcached = 127.0.0.1:%(memcached)d"
            % cls.ports).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def address(self, listener):
        known = {"peer": self.cluster.peers, "client": self.cluster.clients}
        return (known[listener]["a"] if listener in known
                else "127.0.0.1:%d" % self.ports[listener])

    def shake(self, listener, *options):
        """Returns what openssl says of a handshake, and ends the connection."""
        return subprocess.run(("openssl", "s_client", "-connect", self.address(listener)) + options,
                              input=b"Q\n", capture_output=True, timeout=30, check=False)

    def test_the_exchange_of_keys_is_on_an_elliptic_curve_at_every_listener(self):
        for listener in LISTENERS:
            for group in ACCEPTED + REFUSED:
                with self.subTest(listener=listener, group=group):
                    said = self.shake(listener, "-groups", group).stdout
                    self.assertEqual(b"BEGIN CERTIFICATE" in said, group in ACCEPTED, said)

    def make_chain(self, count, name, uri):
        """Makes a certificate of the last of `count` authorities, each of which the one before it
        has signed. The certificates of these are in NAME-chain.crt."""
        c, before = self.certificates, ("ca.crt", "ca.key")
        with open(c.path(name + "-chain.crt"), "wb") as chain:
            for number in range(count):
                one = "%s-authority-%d" % (name, number)
                with open(c.path(one + ".ext"), "w", encoding="ascii") as f:
                    f.write("basicConstraints = critical, CA:TRUE\n")
                c.run("req", "-subj", "/CN=" + one, "-keyout", one + ".key", "-out", "x.csr")
                c.run("x509", "-req", "-in", "x.csr", "-CA", before[0], "-CAkey", before[1],
                      "-set_serial", str(100 + number), "-extfile", one + ".ext", "-days", "2",
                      "-out", one + ".crt")
                before = (one + ".crt", one + ".key")
                with open(c.path(before[0]), "rb") as f:
                    chain.write(f.read())
        with open(c.path(name + ".ext"), "w", encoding="ascii") as f:
            f.write("subjectAltName = URI:%s\n" % uri)
        c.run("req", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", "x.csr")
        c.run("x509", "-req", "-in", "x.csr", "-CA", before[0], "-CAkey", before[1],
              "-set_serial", "1000", "-extfile", name + ".ext", "-days", "2",
              "-out", name + ".crt")

    def test_a_chain_of_four_authorities_is_read_and_one_of_five_is_not(self):
        node = self.cluster.nodes["a"]
        for count in (4, 5):
            name = "alice-of-%d" % count
            self.make_chain(count, name, "pawl:client:alice")
            with open(self.certificates.path(name + "-chain.crt"), encoding="ascii") as f:
                chain = f.read()
            with open(self.certificates.path(name + ".crt"), "a", encoding="ascii") as f:
                f.write(chain)
            context, lines = self.certificates.context(name), len(node.lines)
            if count == 4:
                with self.cluster.client("a", tls=context) as client:
                    client.call("get", key="k")
            else:
                with self.assertRaises((OSError, pawltest.Closed)):
                    with self.cluster.client("a", tls=context) as client:
                        client.call("get", key="k")
                node.wait_log("_refused ", "chain too long", start=lines)

    def test_a_chain_of_many_authorities_is_refused_before_it_is_read(self):
        c = self.certificates
        self.make_chain(CHAIN, "late", "pawl:client:late")
        node = self.cluster.nodes["a"]
        for listener in LISTENERS:
            with self.subTest(listener=listener):
                lines = len(node.lines)
                self.shake(listener, "-cert", c.path("late.crt"), "-key", c.path("late.key"),
                           "-cert_chain", c.path("late-chain.crt"), "-ign_eof")
                node.wait_log("_refused ", "excessive message size", start=lines)


if __name__ == "__main__":
    pawltest.main(globals())
