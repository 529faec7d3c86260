#!/usr/bin/env python3
"""test_actions.py PAWLD: what an administrator may do over the admin port, and that nothing else
makes a node do it: no other certificate, no other page, no other method."""

import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import pawltest
from adminhttp import AdminCluster, fetch
from pawltest import ALL, split
from test_tls import Certificates

PAWLD = None


class Actions(unittest.TestCase):
    actions = "actions = yes\n"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-actions-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.certificates = c = Certificates(folder, nodes="a",
                                            clients=("alice", "ann", "bob", "carol"))
        cls.address = "127.0.0.1:%d" % pawltest.free_port()
        rules = pawltest.rights(
            folder, ("alice", ALL), ("ann", ALL),
            ("carol", "allow = cluster\nallow = read on *\nallow = break on mine/\n"),
            ("bob", "allow = read on *\n"), local=False)

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s" \
                "[admin]\nlisten = 0.0.0.0:%d\nreaders = bob\n%s" % (
                    c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"), rules,
                    split(cls.address)[1], cls.actions)

        cls.cluster = pawltest.Cluster(PAWLD, masters=1, tls=section).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.node = cls.cluster.nodes["a"]

    def actions_of(self, name):
        return json.loads(fetch(self.address, "/v1/actions", tls=self.tls(name))[2])

    def tls(self, name):
        return self.certificates.context(name)

    def post(self, path, name="alice", token=None, method="POST", **fields):
        """Sends what the page sends, except for the fields that are named: None leaves one out."""
        token = self.actions_of("alice").get("token") if token is None else token
        sent = {"Origin": "https://" + self.address, "Sec-Fetch-Site": "same-origin",
                "Pawl-Action": token, "Content-Length": "0"}
        sent.update({k.replace("_", "-"): v for k, v in fields.items()})
        return fetch(self.address, path, method=method, tls=self.tls(name),
                     headers={k: v for k, v in sent.items() if v is not None})

    def hold(self, key):
        client = self.cluster.client("a", tls=self.tls("alice"))
        self.addCleanup(client.close)
        return client, client.call("acquire", key=key, lease_ms=60000, owner="worker")


class On(Actions):
    def test_an_administrator_breaks_the_lock_that_he_saw(self):
        client, lock = self.hold("k")
        status, _, text = self.post("/v1/break?key=k&token=%d" % (lock["token"] + 1))
        self.assertEqual((status, json.loads(text)["code"]), (200, "not_found"))
        status, _, text = self.post("/v1/break?key=k&token=%d" % lock["token"])
        self.assertEqual((status, json.loads(text)["broken"]), (200, True))
        self.assertTrue(client.call("explain", key="k")["masters"][0]["records"][0]["barred"])
        line = self.node.wait_log("break_asked")
        self.assertIn("identity=alice", line)
        self.assertIn("from=127.0.0.1:", line)
        orders = json.loads(fetch(self.address, "/v1/recent", tls=self.tls("alice"))[2])["orders"]
        self.assertEqual([(o["method"], o["subject"], o["identity"], o["result"])
                          for o in orders[:2]],
                         [("break", "k", "alice", "ok"), ("break", "k", "alice", "not_found")])

    def test_a_holder_is_asked(self):
        client, _ = self.hold("asked")
        watch = client.call("watch", key="asked")["watch"]
        status, _, text = self.post("/v1/ask_release?key=asked")
        self.assertEqual((status, json.loads(text)["reached"]), (200, 1))
        while (event := client.event())["type"] != "asked":
            pass
        self.assertEqual((event["watch"], event["by"]), (watch, b"alice"))
        self.assertIn("identity=alice", self.node.wait_log("release_asked"))

    def test_whatever_another_page_could_send_is_refused(self):
        client, lock = self.hold("kept")
        path = "/v1/break?key=kept&token=%d" % lock["token"]
        other = "https://127.0.0.1:1"
        for fields in ({"Origin": None}, {"Origin": other}, {"Origin": "null"},
                       {"Origin": "http://" + self.address},
                       {"Origin": "https://%s.example" % self.address},
                       {"Host": "evil.example"}, {"Sec_Fetch_Site": None},
                       {"Sec_Fetch_Site": "same-site"}, {"Sec_Fetch_Site": "cross-site"},
                       {"Sec_Fetch_Site": "none"}, {"Pawl_Action": None},
                       {"Pawl_Action": "0" * 64}, {"Pawl_Action": self.actions_of("alice")[
                           "token"][:-1]}):
            status, headers, text = self.post(path, **fields)
            self.assertEqual((status, headers["Connection"]), (403, "close"), (fields, text))
        # The token of one certificate is none for another, also of an administrator.
        self.assertEqual(self.post(path, name="ann")[0], 403)
        # A page of somebody else may make a browser send a form.
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        self.assertEqual(self.post(path, token="", Pawl_Action=None, **form)[0], 403)
        for method in ("GET", "HEAD"):
            self.assertEqual(self.post(path, method=method)[0], 404)
        self.assertEqual(self.post(path, method="PUT")[0], 405)
        self.assertEqual(self.post("/metrics")[0], 404)
        self.assertIn("identity=alice", self.node.wait_log("action_refused", "own page"))
        self.assertFalse(client.call("explain", key="kept")["masters"][0]["records"][0].get(
            "barred", False))

    def test_a_body_is_refused(self):
        connection = http.client.HTTPSConnection(*split(self.address), context=self.tls("alice"))
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/break?key=k&token=1", body=b"x", headers={
            "Pawl-Action": self.actions_of("alice")["token"]})
        self.assertEqual(connection.getresponse().status, 413)

    def test_only_administrators_with_the_right_to_the_key(self):
        self.assertEqual(self.actions_of("bob"), {"permitted": False})
        self.assertTrue(self.actions_of("alice")["permitted"])
        token = self.actions_of("carol")["token"]
        _, lock = self.hold("theirs")
        path = "/v1/break?key=theirs&token=%d" % lock["token"]
        self.assertEqual(self.post(path, name="bob", token=self.actions_of("alice")["token"])[0],
                         403)
        self.assertEqual(self.post(path, name="carol", token=token)[0], 403)
        self.assertIn("identity=carol", self.node.wait_log("denied"))
        _, lock = self.hold("mine/k")
        self.assertEqual(self.post("/v1/break?key=mine/k&token=%d" % lock["token"], name="carol",
                                   token=token)[0], 200)

    def test_a_key_and_a_token_are_needed(self):
        for path in ("/v1/break?key=k", "/v1/break?token=1", "/v1/break?key=k&token=x",
                     "/v1/break?key=k&token=99999999999999999999", "/v1/ask_release",
                     "/v1/ask_release?key=k&to=" + "x" * 300):
            self.assertEqual(self.post(path)[0], 400, path)


class Audited(Actions):
    actions = "actions = yes\n[audit]\nfile = %s\nwhat = all\n"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-actions-audit-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.file = os.path.join(folder, "audit.log")
        cls.actions = cls.actions % cls.file
        super().setUpClass()

    def lines(self, **wanted):
        for _ in range(100):
            with open(self.file) as f:
                found = [line for line in map(json.loads, f)
                         if wanted.items() <= line.items()]
            if found:
                return found
            time.sleep(0.05)
        self.fail("no such line: %s" % wanted)

    def test_what_is_done_on_the_page_is_in_the_audit_file(self):
        _, lock = self.hold("k")
        self.assertEqual(self.post("/v1/break?key=k&token=%d" % lock["token"])[0], 200)
        done = self.lines(action="break", key="k", result="ok")[0]
        asked = self.lines(action="break", key="k", result="asked")[0]
        self.assertEqual((asked["identity"], asked["token"], done["token"]),
                         ("alice", lock["token"], lock["token"]))
        self.assertTrue(asked["peer"].startswith("127.0.0.1:"))
        self.assertEqual(self.post("/v1/ask_release?key=none")[0], 200)
        self.lines(action="ask_release", key="none", identity="alice")
        token = self.actions_of("carol")["token"]
        self.assertEqual(self.post("/v1/break?key=theirs&token=1", name="carol", token=token)[0],
                         403)
        self.lines(action="break", key="theirs", result="denied", cause="break",
                   identity="carol")


class Strict(Audited):
    actions = Audited.actions + "strict = yes\n"

    def test_what_is_done_on_the_page_is_in_the_audit_file(self):
        client, lock = self.hold("k")
        status, _, text = self.post("/v1/break?key=k&token=%d" % lock["token"])
        self.assertEqual(status, 403)
        self.assertIn("pawl break", text)
        self.assertEqual(client.call("get", key="k")["token"], lock["token"])


class Off(Actions):
    actions = ""

    def test_it_is_off_by_default(self):
        self.assertEqual(self.actions_of("alice"), {"permitted": False})
        _, lock = self.hold("k")
        status, headers, text = self.post("/v1/break?key=k&token=%d" % lock["token"], token="x")
        self.assertEqual((status, headers["Allow"], headers["Connection"]),
                         (405, "GET, HEAD", "close"))
        self.assertIn("actions is off", text)


class Plain(unittest.TestCase):
    def test_without_tls_it_cannot_be_switched_on(self):
        with AdminCluster(PAWLD, masters=1) as cluster:
            with open(cluster.config("a"), "a") as f:
                f.write("actions = yes\n")
            done = subprocess.run([PAWLD, "--check-config", cluster.config("a")],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("[admin] actions = yes needs TLS", done.stderr)
            self.assertEqual(json.loads(cluster.fetch("a", "/v1/actions")[2]),
                             {"permitted": False})


if __name__ == "__main__":
    pawltest.main(globals())
