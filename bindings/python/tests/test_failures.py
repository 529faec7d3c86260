"""Tests locks while nodes die or hang, and TLS."""

import os
import shutil
import signal
import socket
import socketserver
import tempfile
import threading
import time
import unittest

import nodes
import pawl
import pawltest
from nodes import Case
from test_tls import Certificates


class Failures(Case):
    """Each test leaves all nodes voting."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = nodes.start().__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        self.key = self.id()
        self.client = pawl.connect(nodes.endpoints(self.cluster), silence=1, prefer_first=True)
        self.addCleanup(self.client.close)

    def node(self):
        return self.cluster.nodes[self.client.ping()["node"]]

    def back(self, node):
        self.cluster.start(node.name).wait_log(" voting ")

    def test_a_lock_survives_the_death_of_the_node_that_the_client_talks_to(self):
        with self.client.lock(self.key, lease=3) as lock:
            node = self.node()
            node.kill()
            self.until(lambda: self.client.ping()["node"] != node.name)
            time.sleep(2.5)  # Without extensions the lease would nearly be over.
            lock.check()
            self.assertGreater(lock.valid, 1)
            self.back(node)

    def test_a_lock_survives_the_hang_of_the_node_that_the_client_talks_to(self):
        with self.client.lock(self.key, lease=3) as lock:
            node = self.node()
            node.signal(signal.SIGSTOP)
            try:
                time.sleep(3.2)
                lock.check()
                self.assertGreater(lock.valid, 0.5)
                self.assertNotEqual(self.client.ping()["node"], node.name)
            finally:
                node.signal(signal.SIGCONT)

    def test_a_wait_goes_on_at_another_node(self):
        with pawl.connect(nodes.endpoints(self.cluster, "c")) as holder:
            lock = holder.lock(self.key, lease=10).acquire()
            waiting = nodes.InBackground(lambda: self.client.lock(self.key, wait=20).acquire())
            self.until_waiting(holder, self.key)
            self.assertEqual(self.node().name, "a")
            self.cluster.nodes["a"].kill()
            self.until(lambda: any(w.node != "a" for w in holder.waiters(self.key)))
            lock.release()
            self.assertTrue(waiting.result().held)
            self.back(self.cluster.nodes["a"])

    def test_without_a_majority_the_lock_is_given_up_before_its_time_is_over(self):
        lock = self.client.lock(self.key, lease=2).acquire()
        stopped = [self.cluster.nodes[name] for name in self.cluster.names
                   if name != self.node().name]
        for node in stopped:
            node.signal(signal.SIGSTOP)
        try:
            error = lock.wait_lost(10)
            left = lock.valid
        finally:
            for node in stopped:
                node.signal(signal.SIGCONT)
        self.assertIsInstance(error, (pawl.NoQuorumError, pawl.WaitTimeoutError,
                                      pawl.UnreachableError))
        self.assertGreater(left, 0.0)
        with self.assertRaises(type(error)):
            lock.check()
        self.until(lambda: not lock.held)

    def test_a_watch_goes_on_at_another_node(self):
        with self.client.watch(self.key) as watch:
            self.assertEqual(watch.get(10).type, "current")
            node = self.node()
            node.kill()
            with pawl.connect(nodes.endpoints(self.cluster)) as other, other.lock(self.key) as lock:
                seen = []
                while not any(e.entry and e.entry.token == lock.token for e in seen):
                    seen.append(watch.get(10))
            self.until(lambda: watch.get(10).type == "released")
            self.back(node)

    def test_an_update_whose_answer_is_lost_is_unsure(self):
        with self.client.lock(self.key, lease=10) as lock:
            node = self.node()
            node.signal(signal.SIGSTOP)
            update = nodes.InBackground(lock.update, "v")
            time.sleep(0.1)  # By now the update has been sent.
            node.kill()
            with self.assertRaises(pawl.UnsureError):
                update.result()
            self.back(node)


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-python-tls-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.certificates = Certificates(folder)
        for name in "abc":
            cls.certificates.make(name, "pawl:node:" + name)
        cls.certificates.make("alice", "pawl:client:alice")
        os.mkdir(os.path.join(folder, "other"))
        cls.others = Certificates(os.path.join(folder, "other"))
        path = cls.certificates.path
        settings = ("ca = {0}/ca.crt\ncert = {0}/{1}.crt\nkey = {0}/{1}.key\nclient_auth = "
                    "required\n")
        folder_of = os.path.dirname(path("ca.crt"))
        cls.cluster = pawltest.Cluster(os.environ["PAWLD"], tls=lambda _,
                                       name: settings.format(folder_of, name))
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.start_all()

    def setUp(self):
        self.key = self.id()
        self.path = self.certificates.path
        self.endpoints = ["tls://" + address for address in self.cluster.clients.values()]

    def test_a_lock_is_renewed_over_tls_and_shows_the_name_in_the_certificate(self):
        files = dict(ca_file=self.path("ca.crt"), cert_file=self.path("alice.crt"),
                     key_file=self.path("alice.key"))
        with pawl.connect(self.endpoints,
                          **files) as client, client.lock(self.key, lease=1,
                                                          value="x" * 60000) as lock:
            entry = client.get(self.key)
            self.assertEqual((entry.lock_id, len(entry.value)), (lock.lock_id, 60000))
            self.assertIn("alice", entry.identity)
            time.sleep(1.2)
            lock.check()

    def test_files_that_were_renewed_on_disk_count_for_the_next_connection(self):
        folder = tempfile.mkdtemp(prefix="pawl-python-renewed-")
        self.addCleanup(shutil.rmtree, folder)
        self.certificates.make("carol", "pawl:client:carol")

        def put(name, source):
            # A renewal replaces the file in one step.
            shutil.copy(source, os.path.join(folder, "new"))
            os.rename(os.path.join(folder, "new"), os.path.join(folder, name))

        def put_pair(name):
            put("crt", self.path(name + ".crt"))
            put("key", self.path(name + ".key"))

        def reconnect(client):
            client._runner.do(lambda: client._client._failover.link.fail(
                pawl.UnreachableError("the test has cut the connection")))

        def identity(client):
            with client.lock(self.key):
                return client.get(self.key).identity

        put("ca", self.path("ca.crt"))
        put_pair("alice")
        ca, cert, key = (os.path.join(folder, name) for name in ("ca", "crt", "key"))
        with pawl.connect(self.endpoints, ca_file=ca, cert_file=cert, key_file=key) as client:
            self.assertIn("alice", identity(client))
            put_pair("carol")
            self.assertIn("alice", identity(client))  # The connection that is up stays as it is.
            reconnect(client)
            self.assertIn("carol", identity(client))
            # The key of the new certificate is not there yet: the old pair stays in use.
            put("crt", self.path("alice.crt"))
            reconnect(client)
            self.assertIn("carol", identity(client))
            put_pair("alice")
            reconnect(client)
            self.assertIn("alice", identity(client))
            put("ca", self.others.path("ca.crt"))
            reconnect(client)
            with self.assertRaises(pawl.TlsError) as caught:
                client.ping()
            self.assertIn("not signed by an authority in ca_file", str(caught.exception))
            os.unlink(ca)
            with self.assertRaises(pawl.TlsError) as caught:
                client.ping()
            self.assertIn("the files have changed, and those from before are still in use: " + ca,
                          str(caught.exception))
            put("ca", self.path("ca.crt"))
            self.assertIn("alice", identity(client))

    def test_untrusted_certificates_are_refused_at_once_on_both_sides(self):
        began = time.monotonic()
        for files, words in (
                (dict(ca_file=self.others.path("ca.crt")), "not signed by an authority in ca_file"),
                (dict(ca_file=self.path("ca.crt"), server_name="other.example"),
                 "does not contain this host"),
                # This client has no certificate of its own.
                (dict(ca_file=self.path("ca.crt")), "the node requires a client certificate")):
            with pawl.connect(self.endpoints, timeout=20, **files) as client:
                with self.assertRaises(pawl.TlsError, msg=files) as caught:
                    client.ping()
                self.assertIn(words, str(caught.exception))
        self.assertLess(time.monotonic() - began, 10)

    def test_a_client_that_does_not_speak_tls_gets_no_answer(self):
        with pawl.connect(list(self.cluster.clients.values()), timeout=0.5) as client:
            with self.assertRaises(pawl.PawlError) as caught:
                client.ping()
            self.assertIn("write tls://", str(caught.exception))

    def test_a_port_that_speaks_the_other_way_is_recognized(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = "127.0.0.1:%d" % listener.getsockname()[1]

            def serve(words):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(words)

            for endpoint, words, said in (
                    (address, b"\x15\x03\x01\x00\x02\x02\x46", "this is a port with TLS"),
                    ("tls://" + address, b"\x94\x01\x00\x80\xc0", "does not speak TLS")):
                threading.Thread(target=serve, args=(words,), daemon=True).start()
                with pawl.connect(endpoint, ca_file=self.path("ca.crt"), timeout=5) as client:
                    with self.assertRaises(pawl.TlsError) as caught:
                        client.ping()
                self.assertIn(said, str(caught.exception))
                self.assertNotIn("said nothing", str(caught.exception))

    def test_an_answer_that_is_not_of_pawl_is_no_silence(self):
        class Other(socketserver.BaseRequestHandler):
            def handle(self):
                if self.request.recv(4096):
                    self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Other) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with pawl.connect("127.0.0.1:%d" % server.server_address[1], timeout=1) as client:
                with self.assertRaises(pawl.ProtocolError) as caught:
                    client.ping()
            server.shutdown()
        self.assertIn("is this the client port", str(caught.exception))
        self.assertNotIn("said nothing", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
