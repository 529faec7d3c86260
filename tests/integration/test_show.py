"""What the admin port shows as JSON under /v1/, to whom, and its streams of events."""

import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import unittest
import urllib.parse

import adminhttp
import pawltest
from adminhttp import AdminCluster, fetch
from pawltest import ALL, KEYS, PATIENCE, split
from test_tls import Certificates

PAWLD = None


def path_of(path, **params):
    return path + "?" + urllib.parse.urlencode(params, quote_via=urllib.parse.quote)


class Live:
    """A stream of events."""

    def __init__(self, address, path="/v1/live"):
        self.socket = socket.create_connection(split(address), PATIENCE)
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
        self.input = self.socket.makefile("rb")
        self.status = int(self.input.readline().split()[1])
        self.fields = dict(line.decode().strip().lower().split(": ", 1)
                           for line in iter(self.input.readline, b"\r\n"))

    def event(self):
        line = self.input.readline()
        assert line.startswith(b"data: "), line
        assert self.input.readline() == b"\n"
        return json.loads(line[6:])

    def close(self):
        self.input.close()
        self.socket.close()


class Show(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = AdminCluster(PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.wait_ready("a")
        cls.client = cls.cluster.client("a")
        cls.addClassCleanup(cls.client.close)
        cls.held = cls.client.call("acquire", key="a b/é", lease_ms=60000, owner="keeper",
                                   value=b"\xff")
        cls.client.send("acquire", key="a b/é", lease_ms=60000, wait_ms=60000, owner="next")
        for i in range(150):
            cls.client.call("acquire", key="many/%03d" % i, lease_ms=60000)

    def json(self, path, status=200, node="a", **params):
        got, fields, text = self.cluster.fetch(node, path_of(path, **params))
        self.assertEqual((got, fields["Content-Type"]), (status, "application/json"), text)
        self.assertNotIn(self.held["lock_id"], text)
        return json.loads(text)

    def test_a_key(self):
        for more in ({}, {"quorum": ""}):
            shown = self.json("/v1/get", key="a b/é", **more)
            self.assertEqual((shown["held"], shown["owner"], shown["value_hex"], shown["token"]),
                             (True, "keeper", "ff", self.held["token"]))
        self.assertFalse(self.json("/v1/get", key="other")["held"])

    def test_who_waits(self):
        shown = self.json("/v1/waiters", node="b", key="a b/é")
        self.assertEqual([w["owner"] for w in shown["waiters"]], ["next"])
        shown = self.json("/v1/waiters", prefix="a ")
        self.assertEqual([(w["key"], w["owner"]) for w in shown["waiters"]], [("a b/é", "next")])
        self.assertEqual(self.json("/v1/waiters", prefix="b")["waiters"], [])

    def test_explain(self):
        shown = self.json("/v1/explain", key="a b/é")
        self.assertEqual(shown["owner"], "keeper")
        self.assertEqual({m["node"] for m in shown["masters"]}, set("abc"))
        self.assertEqual([m["waiting"] for m in shown["masters"] if m["home"]], [1])

    def test_keys_by_prefix(self):
        shown = self.json("/v1/list", prefix="many/")
        self.assertEqual((len(shown["keys"]), shown["more"]), (100, True))
        self.assertEqual(shown["keys"][7]["key"], "many/007")
        self.assertEqual([k["key"] for k in self.json("/v1/list", prefix="a b")["keys"]],
                         ["a b/é"])

    def test_status_is_under_both_paths(self):
        self.assertEqual(set(self.json("/v1/status")), set(self.json("/status")))

    def test_what_is_wrong_with_a_request(self):
        for path in ("/v1/get", "/v1/get?key=", "/v1/explain?key=%zz", "/v1/get?key=" + "x" * 513,
                     "/v1/list?prefix=%2"):
            self.assertEqual(self.cluster.fetch("a", path)[0], 400, path)
        self.assertEqual(self.cluster.fetch("a", "/v1/nothing")[0], 404)

    def test_an_answer_that_comes_later_to_whoever_is_still_there(self):
        for _ in range(20):
            with socket.create_connection(split(self.cluster.admin["a"]), PATIENCE) as s:
                s.sendall(b"GET /v1/explain?key=x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # One behind the other, on one connection.
        with socket.create_connection(split(self.cluster.admin["a"]), PATIENCE) as s:
            s.sendall(b"GET /v1/explain?key=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
                      b"HEAD /v1/get?key=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
                      b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            got = b"".join(iter(lambda: s.recv(1 << 16), b""))
        self.assertEqual(got.count(b"HTTP/1.1 200 OK\r\n"), 3, got)
        self.assertTrue(got.endswith(b"\r\n\r\nok\n"))

    def test_a_stream_of_events(self):
        live = Live(self.cluster.admin["a"])
        self.addCleanup(live.close)
        self.assertEqual((live.status, live.fields["content-type"]), (200, "text/event-stream"))
        begun = time.monotonic()
        events = [live.event() for _ in range(3)]
        self.assertGreater(time.monotonic() - begun, 1)
        for event in events:
            self.assertEqual(event["status"]["node"], "a")
            self.assertEqual(event["top"]["node"], "a")
        self.assertGreater(events[2]["status"]["uptime_ms"], events[0]["status"]["uptime_ms"])
        # Others are answered meanwhile.
        self.assertEqual(self.cluster.fetch("a", "/livez")[0], 200)

    def test_not_too_many_streams(self):
        node = "c"
        streams = [Live(self.cluster.admin[node]) for _ in range(9)]
        for live in streams:
            self.addCleanup(live.close)
        self.assertEqual([live.status for live in streams], [200] * 8 + [503])
        streams[0].close()
        end = time.monotonic() + PATIENCE
        while True:
            again = Live(self.cluster.admin[node])
            self.addCleanup(again.close)
            if again.status == 200:
                break
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        long = Live(self.cluster.admin[node], "/v1/live?" + "x" * 300)
        self.addCleanup(long.close)
        self.assertEqual(long.status, 414)

    def test_what_happened_last(self):
        with self.cluster.client("c") as client:
            client.call("acquire", key="short", lease_ms=200, owner=b"\xfe")
            client.call("acquire", key="cut", lease_ms=60000, owner="victim")
            client.call("break", key="cut", now=True)
            end = time.monotonic() + PATIENCE
            while True:
                said = self.json("/v1/recent", node="c")
                losses = {e["key"]: e for e in said["losses"]}
                if {"short", "cut"} <= set(losses):
                    break
                self.assertLess(time.monotonic(), end)
        self.assertEqual((losses["short"]["cause"], losses["short"]["owner_hex"]),
                         ("expired", "fe"))
        self.assertEqual((losses["cut"]["cause"], losses["cut"]["owner"]), ("taken", "victim"))
        self.assertEqual([(o["method"], o["subject"], o["identity"], o["result"])
                          for o in said["orders"]], [("break", "cut", "plain", "ok")])

    def test_what_was_refused_is_told_as_refused(self):
        with self.cluster.client("b") as client:
            for method, params, code in (
                    ("break", {"key": "nothing", "token": 1}, "not_found"),
                    ("cluster_promote", {"name": "nobody"}, "not_found")):
                with self.assertRaises(pawltest.Refused) as refused:
                    client.call(method, **params)
                self.assertEqual(refused.exception.code, code)
        orders = self.json("/v1/recent", node="b")["orders"]
        self.assertEqual([(o["method"], o["subject"], o["result"]) for o in orders],
                         [("cluster_promote", "nobody", "not_found"),
                          ("break", "nothing", "not_found")])

    def test_who_asks_by_a_name_is_refused(self):
        """Otherwise a page of somebody else could read the port through a browser."""
        for host, status in (("evil.example", 403), ("localhost:7119", 200), ("127.0.0.1", 200),
                             ("[::1]:7119", 200)):
            for path in ("/v1/list", "/v1/status"):
                self.assertEqual(self.cluster.fetch("a", path, headers={"Host": host})[0], status)
            self.assertEqual(self.cluster.fetch("a", "/metrics", headers={"Host": host})[0], 200)

    def test_the_page(self):
        """scripts/test-page looks at it in a browser."""
        status, fields, text = self.cluster.fetch("a", "/")
        self.assertEqual((status, fields["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(fields["Content-Security-Policy"].startswith("default-src 'self';"))
        for path in re.findall(r'(?:href|src)="(/[^"]*)"', text):
            self.assertEqual(self.cluster.fetch("a", path)[0], 200, path)
        self.assertNotRegex(text, "https?:")

    def test_without_a_quorum_there_is_an_error(self):
        with AdminCluster(PAWLD, cluster="request_timeout = 300ms\n") as cluster:
            for name in "bc":
                cluster.nodes[name].kill()
            status, _, text = cluster.fetch("a", "/v1/get?key=x&quorum")
            self.assertEqual((status, json.loads(text)["code"]), (200, "no_quorum"))


class Rights(unittest.TestCase):
    """Whoever reads the port sees the keys that the rules let read."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-show-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.certificates = c = Certificates(folder, nodes="a", clients=("alice", "bob", "carol"))
        cls.address = "127.0.0.1:%d" % pawltest.free_port()
        cls.rules = pawltest.rights(
            folder, ("alice", ALL), ("carol", "allow = read on mine/\n"), local=False)
        port = split(cls.address)[1]

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s" \
                "[admin]\nlisten = 0.0.0.0:%d\nreaders = bob, carol\n" % (
                    c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"), cls.rules,
                    port)

        cls.cluster = pawltest.Cluster(PAWLD, masters=1, tls=section).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def status(self, name, path):
        return fetch(self.address, path, tls=self.certificates.context(name))[0]

    def test_over_tls_the_name_counts(self):
        for path in ("/v1/top", "/v1/live", "/v1/list", "/v1/get?key=x", "/v1/explain?key=x",
                     "/v1/waiters?key=x", "/v1/waiters", "/v1/recent"):
            self.assertEqual(self.status("bob", path), 403, path)
            self.assertEqual(self.status("carol", path), 403, path)
            if path != "/v1/live":
                self.assertEqual(self.status("alice", path), 200, path)
        for path in ("/v1/top?prefix=mine/", "/v1/list?prefix=mine/", "/v1/get?key=mine/x",
                     "/v1/explain?key=mine/x", "/v1/waiters?prefix=mine/x"):
            self.assertEqual(self.status("bob", path), 403, path)
            self.assertEqual(self.status("carol", path), 200, path)
        self.assertEqual(self.status("bob", "/v1/status"), 200)
        self.assertEqual(self.status("bob", "/metrics"), 200)

    def test_on_this_machine_plain_or_the_account_counts(self):
        folder = tempfile.mkdtemp(prefix="pawl-show-")
        self.addCleanup(shutil.rmtree, folder)
        rules = pawltest.rights(folder, ("plain", "allow = read on open/\n"),
                                ("unix:uid:%d" % os.getuid(), KEYS), local=False)
        with AdminCluster(PAWLD, masters=1, node=rules) as cluster:
            self.assertEqual(cluster.fetch("a", "/v1/list")[0], 403)
            self.assertEqual(cluster.fetch("a", "/v1/list?prefix=open/")[0], 200)
        path = os.path.join(folder, "admin.sock")
        with pawltest.Cluster(PAWLD, masters=1, node=rules,
                              cluster="[admin]\nlisten = unix:%s\n" % path):
            self.assertEqual(adminhttp.fetch("unix:" + path, "/v1/list")[0], 200)


if __name__ == "__main__":
    sys.argv[2:3] = []
    pawltest.main(globals())
