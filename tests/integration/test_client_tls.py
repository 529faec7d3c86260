"""Tests libpawl over TLS, as the pawl command uses it: whom it trusts, whom it does not, and what
it says then."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import pawltest
from pawltest import Cluster
from test_tls import Certificates

PAWLD = PAWL = None


class ClientTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="pawl-client-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.certificates = Certificates(cls.dir)
        for name in "abc":
            cls.certificates.make(name, "pawl:node:" + name)
        cls.certificates.make("alice", "pawl:client:alice")
        os.mkdir(os.path.join(cls.dir, "other"))
        cls.others = Certificates(os.path.join(cls.dir, "other"))
        cls.others.make("mallory", "pawl:client:alice")
        path = cls.certificates.path
        cls.cluster = Cluster(PAWLD, tls=lambda _, name: "ca = %s\ncert = %s\nkey = %s\n"
                                                         "client_auth = required\n" % (
            path("ca.crt"), path(name + ".crt"), path(name + ".key")))
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.start_all()

    def pawl(self, *arguments, endpoints=None, ca=None, owner=None, name="alice"):
        c = owner or self.certificates
        tls = ["--cacert", (ca or self.certificates).path("ca.crt")]
        if name:
            tls += ["--cert", c.path(name + ".crt"), "--key", c.path(name + ".key")]
        endpoints = (endpoints or ",".join("tls://" + address
                                           for address in self.cluster.clients.values()))
        done = subprocess.run([PAWL, *arguments, "--endpoints", endpoints, *tls, "--timeout", "3s",
                               "--json"],
                              capture_output=True, text=True, timeout=pawltest.PATIENCE,
                              stdin=subprocess.DEVNULL)
        return done.returncode, json.loads(done.stdout)

    def test_a_lock_is_taken_and_released_over_tls(self):
        status, lock = self.pawl("acquire", "k", "--lease", "10s")
        self.assertEqual(status, 0)
        self.assertTrue(self.pawl("get", "k", "--quorum")[1]["held"])
        self.assertEqual(self.pawl("release", "k", lock["lock_id"])[1]["released"], True)

    def test_a_large_value_goes_through(self):
        value = "x" * 60000
        status, lock = self.pawl("acquire", "large", "--lease", "10s", "--value", value)
        self.assertEqual(status, 0)
        self.assertEqual(self.pawl("get", "large")[1]["value"], value)
        self.pawl("release", "large", lock["lock_id"])

    def refused(self, *words, **options):
        status, answer = self.pawl("get", "k", **options)
        self.assertEqual((status, answer["error"]["code"]), (3, "tls"), answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])

    def test_a_node_of_another_authority_is_not_trusted(self):
        self.refused("self-signed", "the node's certificate is not signed by an authority in the "
                                    "CA file", ca=self.others)

    def test_a_certificate_for_another_host_is_not_trusted(self):
        port = self.cluster.clients["a"].rsplit(":", 1)[1]
        self.refused("hostname mismatch", "set server_name to a name in it",
                     endpoints="tls://localhost:" + port)

    def test_a_client_without_a_certificate_is_told_so(self):
        self.refused("certificate required", "the node requires a client certificate", name=None)

    def test_a_client_of_another_authority_is_told_so(self):
        self.refused("unknown ca", "this client's certificate is not signed by an authority",
                     owner=self.others, name="mallory")

    def test_the_certificate_of_a_node_is_refused_at_once_with_the_reason(self):
        status, answer = self.pawl("get", "k", name="a")
        self.assertEqual((status, answer["error"]["code"]), (1, "denied"), answer)
        self.assertIn("pawl:client:NAME", answer["error"]["message"])

    def test_a_client_without_tls_gets_no_answer_from_a_tls_listener(self):
        status, answer = self.pawl("get", "k", endpoints=self.cluster.clients["a"])
        self.assertEqual((status, answer["error"]["code"]), (3, "unreachable"))


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
