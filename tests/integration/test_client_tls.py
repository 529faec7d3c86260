"""Tests libpawl over TLS, as the pawl command uses it: whom it trusts, whom it does not, and what
it says then."""

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
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
        cls.certificates = Certificates(cls.dir, nodes="abc", clients=("alice",))
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

    def refused(self, *words, without="\n", **options):
        status, answer = self.pawl("get", "k", **options)
        self.assertEqual((status, answer["error"]["code"]), (3, "tls"), answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])
        self.assertNotIn(without, answer["error"]["message"])

    def test_a_node_of_another_authority_is_not_trusted(self):
        # It says whose certificate that is, for which hosts, and from whom; and no word of OpenSSL.
        self.refused("the certificate there is that of '", "', signed by ",
                     "for the hosts 127.0.0.1;",
                     "it is not signed by an authority in the CA file", ca=self.others,
                     without="self-signed")

    def test_a_certificate_for_another_host_is_not_trusted(self):
        port = self.cluster.clients["a"].rsplit(":", 1)[1]
        self.refused("wanted 'localhost'", "that of 'a', ", "127.0.0.1", "--server-name",
                     endpoints="tls://localhost:" + port, without="mismatch")

    def test_a_client_without_a_certificate_is_told_so(self):
        self.refused("the node requires a client certificate", name=None,
                     without="certificate required")

    def test_a_client_of_another_authority_is_told_so(self):
        self.refused("this client's certificate is not signed by an authority",
                     owner=self.others, name="mallory", without="unknown ca")

    def test_the_certificate_of_a_node_is_refused_at_once_with_the_reason(self):
        status, answer = self.pawl("get", "k", name="a")
        self.assertEqual((status, answer["error"]["code"]), (1, "denied"), answer)
        self.assertIn("pawl:client:NAME", answer["error"]["message"])

    def test_a_client_without_tls_is_told_that_a_silent_port_may_be_one_with_tls(self):
        status, answer = self.pawl("get", "k", endpoints=self.cluster.clients["a"])
        self.assertEqual((status, answer["error"]["code"]), (3, "unreachable"))
        self.assertIn("write tls://%s" % self.cluster.clients["a"], answer["error"]["message"])

    def one_who_says(self, words):
        """Returns the address of a server that says this to whoever has said something."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            try:
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(words)
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_a_port_with_tls_that_says_so_is_recognized(self):
        alert = self.one_who_says(b"\x15\x03\x01\x00\x02\x02\x46")
        self.refused("this is a port with TLS: write tls://", endpoints=alert)

    def test_a_port_without_tls_is_recognized(self):
        for words, said in ((pawltest.pack([1, 0, {"code": "bad_request"}, None]), "leave out tls"),
                            (b"HTTP/1.0 400 Bad Request\r\n\r\n", "does not speak TLS")):
            if words[0] == 0xdd:  # An array of any size; nodes write the short form.
                words = b"\x94" + words[5:]
            self.refused(said, endpoints="tls://" + self.one_who_says(words))

    def one_who_has_moved(self, to):
        """Returns the endpoint of a node with TLS that says so of every request."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.path("a.crt"), self.certificates.path("a.key"))
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            with contextlib.suppress(OSError):  # The client or the test is over.
                while True:
                    with context.wrap_socket(listener.accept()[0], server_side=True) as node:
                        request = pawltest.Unpacker(node.recv(65536)).value()
                        answer = pawltest.pack([1, request[1], {"code": "moved", "message": "",
                                                                "endpoints": to}, None])
                        node.sendall(b"\x94" + answer[5:])
                        node.recv(65536)

        threading.Thread(target=serve, daemon=True).start()
        return "tls://127.0.0.1:%d" % listener.getsockname()[1]

    def test_a_request_that_has_moved_goes_on_over_tls_and_only_so(self):
        there = "tls://" + self.cluster.clients["b"]
        status, answer = self.pawl("get", "k", endpoints=self.one_who_has_moved([there]))
        # Nobody holds the key.
        self.assertEqual((status, answer["node"], answer["held"]), (1, "b", False))
        plain = self.one_who_says(b"")
        status, answer = self.pawl("get", "k", endpoints=self.one_who_has_moved([there, plain]))
        self.assertEqual((status, answer["error"]["code"]), (3, "moved"))

    def test_a_file_that_cannot_be_used_is_named_with_the_reason(self):
        path, ca = self.certificates.path, self.certificates.path("ca.crt")
        rows = ((["--cacert", path("alice.key")], "CA file %s: it has no such" % path("alice.key")),
                (["--cacert", ca, "--cert", path("alice.crt"), "--key", path("a.key")],
                 "key file %s: it is the key of another certificate" % path("a.key")),
                (["--cacert", path("no.crt")], "CA file %s: No such file" % path("no.crt")))
        for options, words in rows:
            done = subprocess.run([PAWL, "get", "k", "--endpoints", "tls://localhost:1", *options],
                                  capture_output=True, text=True, timeout=pawltest.PATIENCE)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
