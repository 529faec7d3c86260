"""Tests that clients and strangers which send nonsense, too much, or nothing harm only
themselves."""

import random
import socket
import struct
import unittest

import pawltest
from pawltest import Closed, Cluster, Refused, pack

PAWLD = None


def resident_kilobytes(node):
    with open("/proc/%d/status" % node.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD, node="[limits]\nclients = 60\nadmin_clients = 0\n"
                                          "requests_per_client = 50\n").__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.good = cls.cluster.client("a")
        cls.addClassCleanup(cls.good.close)
        cls.good.call("acquire", key="good", lease_ms=60000)

    def setUp(self):
        self.before = resident_kilobytes(self.cluster.nodes["a"])

    def tearDown(self):
        """Checks that a connection which was open all the time works, and the cluster, too."""
        got = self.good.call("acquire", key="proof", lease_ms=1000)
        self.good.call("release", key="proof", lock_id=got["lock_id"])
        self.assertLess(resident_kilobytes(self.cluster.nodes["a"]) - self.before, 64 * 1024)

    def connect(self):
        client = self.cluster.client("a")
        self.addCleanup(client.close)
        return client

    def refused_and_closed(self, data, code="bad_request"):
        client = self.connect()
        client.socket.sendall(data)
        kind, msgid, error, _ = client.read()
        self.assertEqual((kind, msgid), (1, 0))
        self.assertEqual(error["code"], code)
        self.assertTrue(error["message"])
        with self.assertRaises((Closed, ConnectionResetError)):
            client.read()

    def test_what_is_not_a_request_gets_one_bad_request_and_is_closed(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"\xc1", pack({"a": 1}), pack([0]),
                     pack([7, 1, "ping", [{}]]),
                     pack([2, "ping", [{}]]), pack([1, 1, None, {}])):
            with self.subTest(data=data):
                self.refused_and_closed(data)

    def test_announced_sizes_are_not_believed(self):
        for data in (b"\xdd\x00\xff\xff\xff", b"\xdf\x10\x00\x00\x00", b"\xc6\xff\xff\xff\xff",
                     b"\x94\x00\x01\xa4ping\xdd\xff\xff\xff\xff",
                     b"\x94\x00\x01\xdb\xff\xff\xff\xff"):
            with self.subTest(data=data):
                client = self.connect()
                client.socket.sendall(data)
                kind, _, error, _ = client.read()
                self.assertEqual(kind, 1)
                self.assertIn(error["code"], ("bad_request", "too_large"))
                with self.assertRaises((Closed, ConnectionResetError)):
                    client.read()

    def test_nesting_has_an_end(self):
        client = self.connect()
        client.socket.sendall(b"\x91" * 100000)
        self.assertEqual(client.read()[0], 1)
        with self.assertRaises((Closed, ConnectionResetError)):
            client.read()

    def test_a_mistake_in_a_request_is_named_and_the_connection_goes_on(self):
        client = self.connect()
        for method, params, field in (("acquire", {"key": "k", "lease_ms": 1000, "wiat_ms": 1},
                                       "wiat_ms"),
                                      ("acquire", {"key": "", "lease_ms": 1000}, "key"),
                                      ("acquire", {"key": "k", "lease_ms": -5}, "lease_ms"),
                                      ("acquire", {"key": "k", "lease_ms": "long"}, "lease_ms"),
                                      ("acquire", {"key": "k"}, "lease_ms"),
                                      ("extend", {"key": "k", "lock_id": "xyz", "lease_ms": 1000},
                                       "lock_id")):
            with self.subTest(method=method, params=params):
                with self.assertRaises(Refused) as caught:
                    client.call(method, **params)
                self.assertEqual(caught.exception.code, "bad_request")
                self.assertEqual(caught.exception.error["field"], field)
        with self.assertRaises(Refused) as caught:
            client.call("conquer")
        self.assertEqual(caught.exception.code, "bad_request")
        with self.assertRaises(Refused) as caught:
            client.call("acquire", key="k", lease_ms=61000)
        self.assertEqual(caught.exception.code, "too_long")
        with self.assertRaises(Refused) as caught:
            client.call("acquire", key="k", lease_ms=5000, value=b"x" * 100000)
        self.assertEqual(caught.exception.code, "too_large")
        self.assertEqual(client.call("ping")["node"], "a")

    def test_a_request_may_come_byte_by_byte(self):
        client = self.connect()
        for byte in pack([0, 9, "ping", [{}]]):
            client.socket.sendall(bytes([byte]))
        self.assertEqual(client.answer(9)["node"], "a")

    def test_half_requests_and_silence_cost_nothing(self):
        half = pack([0, 1, "acquire", [{"key": "k", "lease_ms": 1000}]])[:-3]
        for _ in range(20):
            self.connect().socket.sendall(half)
        with self.cluster.client("a") as client:
            client.socket.sendall(half)

    def test_noise_is_harmless(self):
        noise = random.Random(7)
        request = bytearray(pack([0, 1, "acquire", [{"key": "k", "lease_ms": 1000, "owner": "o"}]]))
        for _ in range(300):
            data = bytes(noise.randrange(256) for _ in range(40))
            if noise.random() < 0.7:
                changed = bytearray(request)
                for _ in range(noise.randrange(1, 4)):
                    changed[noise.randrange(len(changed))] = noise.randrange(256)
                data = bytes(changed)
            with self.cluster.client("a") as client:
                client.socket.sendall(data)

    def test_too_many_requests_under_way_are_told_so(self):
        client = self.connect()
        asked = [client.send("wait", **{"key": "good", "for": "free", "timeout_ms": 60000})
                 for _ in range(60)]
        for msgid in asked[50:]:
            with self.assertRaises(Refused) as caught:
                client.answer(msgid)
            self.assertEqual(caught.exception.code, "busy")

    def test_too_many_connections_are_closed(self):
        clients = [self.connect() for _ in range(70)]
        refused = 0
        for client in clients:
            try:
                client.call("ping")
            except Refused as e:
                self.assertEqual((e.code, e.error["field"]), ("full", "clients"))
                refused += 1
            except (Closed, ConnectionResetError, BrokenPipeError):
                refused += 1  # The close came before the answer was read.
        self.assertGreaterEqual(refused, 10)
        for client in clients:
            client.close()
        while self.good.call("status")["clients"] > 1:
            pass

    def test_no_more_requests_are_read_from_a_client_that_does_not_read_its_answers(self):
        client = self.connect()
        got = self.good.call("acquire", key="big", lease_ms=60000, value=b"x" * 60000)
        client.socket.settimeout(1.0)
        request = pack([0, 1, "get", [{"key": "big"}]])
        with self.assertRaises(TimeoutError):
            for _ in range(1000):
                client.socket.sendall(request * 100)
        self.good.call("release", key="big", lock_id=got["lock_id"])

    def test_strangers_at_the_peer_port_are_sent_away(self):
        host, port = pawltest.split(self.cluster.peers["a"])
        for data in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x0f\xff" + b"x" * 4095,
                     b"GET / HTTP/1.1\r\n\r\n",
                     struct.pack(">I", 5) + b"\xdd\x00\xff\xff\xff"):
            with self.subTest(data=data[:8]), \
                    socket.create_connection((host, port), pawltest.PATIENCE) as stranger:
                stranger.sendall(data)
                while True:  # The node sends its own hello, and then closes.
                    try:
                        if not stranger.recv(4096):
                            break
                    except ConnectionResetError:
                        break
        self.assertEqual(self.good.call("status")["voting"], 3)

    def test_a_hello_of_another_cluster_or_under_a_name_that_does_not_dial_is_refused(self):
        host, port = pawltest.split(self.cluster.peers["a"])
        for cluster, node in (("other", "b"), ("test", "b"), ("test", "nobody"), ("test", "a")):
            hello = pack({"pawl": [1, 1], "features": 0, "cluster": cluster, "node": node,
                          "id": b"i" * 16, "boot": 1})
            with self.subTest(cluster=cluster,
                              node=node), socket.create_connection((host, port),
                                                                   pawltest.PATIENCE) as stranger:
                stranger.sendall(struct.pack(">I", len(hello)) + hello)
                while True:
                    try:
                        if not stranger.recv(4096):
                            break
                    except ConnectionResetError:
                        break
        self.assertEqual(self.good.call("status")["voting"], 3)


class Idle(unittest.TestCase):
    def test_a_silent_connection_is_closed_but_not_one_that_waits(self):
        with Cluster(PAWLD, masters=1, node="[limits]\nidle_timeout = 300ms\n") as cluster:
            with cluster.client("a") as waiting, cluster.client("a") as idle:
                got = waiting.call("acquire", key="k", lease_ms=30000)
                asked = waiting.send("wait", **{"key": "k", "for": "free", "timeout_ms": 30000})
                idle.call("ping")
                with self.assertRaises(Closed):
                    idle.read()
                waiting.call("release", key="k", lock_id=got["lock_id"])
                self.assertFalse(waiting.answer(asked)["held"])


if __name__ == "__main__":
    pawltest.main(globals())
