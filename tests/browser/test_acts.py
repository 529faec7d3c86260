#!/usr/bin/env python3
"""test_acts.py PAWLD: what an administrator may do on the page of the admin port, in a real
browser."""

import contextlib
import shutil
import socket
import tempfile
import threading

import test_page
import pawltest
from pawltest import split
from test_tls import Certificates


class Certified(threading.Thread):
    """Stands for a browser that shows a certificate, which a headless one cannot be made to choose:
    passes connections on over TLS, and says what such a browser would say of host and origin."""

    def __init__(self, address, tls):
        super().__init__(daemon=True)
        self.address, self.tls = address, tls
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.here = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = self.tls.wrap_socket(socket.create_connection(split(self.address)),
                                           server_hostname="127.0.0.1")
            except OSError:
                return
            threading.Thread(target=self.requests, args=(near, far), daemon=True).start()
            threading.Thread(target=self.answers, args=(near, far), daemon=True).start()

    def requests(self, near, far):
        with contextlib.suppress(OSError):
            for line in near.makefile("rb"):
                if line in (b"Host: %s\r\n" % self.here.encode(),
                            b"Origin: http://%s\r\n" % self.here.encode()):
                    line = line.replace(b"http:", b"https:").replace(
                        self.here.encode(), self.address.encode())
                far.sendall(line)

    @staticmethod
    def answers(near, far):
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                near.sendall(data)
        near.close()

    def close(self):
        self.listener.close()


class Acts(test_page.PageTest):
    """What an administrator may do on the page."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="pawl-page-")
        self.addCleanup(shutil.rmtree, folder)
        self.certificates = c = Certificates(folder, nodes="a", clients=("alice", "bob"))
        rules = pawltest.rights(folder, ("alice", pawltest.ALL), ("bob", "allow = read on *\n"),
                                local=False)
        self.admin = "127.0.0.1:%d" % pawltest.free_port()
        self.cluster = pawltest.Cluster(test_page.PAWLD, masters=1, tls=lambda _, name: (
            "ca = %s\ncert = %s\nkey = %s\n%s[admin]\nlisten = 0.0.0.0:%d\nreaders = bob\n"
            "actions = yes\n" % (c.path("ca.crt"), c.path("a.crt"), c.path("a.key"), rules,
                                 split(self.admin)[1])))
        self.addCleanup(self.cluster.__exit__, BaseException)
        self.cluster.__enter__()
        self.client = self.cluster.client("a", tls=c.context("alice"))
        self.addCleanup(self.client.close)
        self.client.call("acquire", key="k", lease_ms=60000, owner="worker")
        self.page = self.browser.page()
        self.addCleanup(self.page.close)
        self.page.size(1000, 900)

    def visit(self, name):
        browser = Certified(self.admin, self.certificates.context(name))
        self.addCleanup(browser.close)
        self.address = "http://%s/" % browser.here
        self.page.open(self.address)
        self.wait_text("verdict", "A quorum votes")

    def barred(self):
        return self.client.call("explain", key="k")["masters"][0]["records"][0].get("barred")

    def shown(self, id_):
        return self.page.run("document.getElementById('%s').checkVisibility()" % id_)

    def test_a_lock_is_broken_by_whoever_is_sure(self):
        self.visit("alice")
        self.wait_text("may", "Your certificate may break locks here.")
        self.assertFalse(self.shown("acts"))
        self.page.run("explain('k')")
        self.wait_text("why", "k is held by worker")
        for no in ("Escape", "Enter"):
            self.page.run("document.getElementById('break').click()")
            self.wait_text("sure", "Break the lock of k?", "worker may not extend it any more")
            self.assertEqual(self.page.run("document.activeElement.innerText"), "Cancel")
            self.page.press(no)
            self.page.wait("!document.getElementById('sure').open")
            self.assertFalse(self.barred())
        self.picture_of_the_question()
        self.page.run("document.getElementById('sure-yes').click()")
        self.wait_text("done", "Broken. worker may not extend it any more.")
        self.assertTrue(self.barred())
        self.wait_text("events", "break\tk\talice")
        self.assertIn("identity=alice", self.cluster.nodes["a"].wait_log("break_asked"))
        self.check_console()

    def picture_of_the_question(self):
        self.page.run("document.getElementById('break').click()")
        self.wait_text("sure", "Break the lock of k?")
        self.assertGreaterEqual(self.page.run(test_page.CONTRAST)[0], 4.5)

    def test_a_holder_is_asked(self):
        self.client.call("watch", key="k")
        self.visit("alice")
        self.page.run("explain('k')")
        self.wait_text("why", "k is held by worker")
        self.page.run("document.getElementById('ask').click()")
        self.wait_text("sure", "Ask worker to release k?")
        self.page.run("document.getElementById('sure-yes').click()")
        self.wait_text("done", "1 client was told.")
        self.check_console()

    def test_a_lock_that_is_another_one_by_now_is_left_alone(self):
        self.visit("alice")
        self.page.run("explain('k')")
        self.wait_text("why", "k is held by worker")
        self.client.call("break", key="k", now=True)
        self.client.call("acquire", key="k", lease_ms=60000, owner="other")
        self.page.run("document.getElementById('break').click()")
        self.wait_text("sure", "Break the lock of k?")
        self.page.run("document.getElementById('sure-yes').click()")
        self.wait_text("done", "Nothing was done: ")
        self.wait_text("why", "k is held by other")
        self.assertFalse(self.barred())

    def test_with_the_keyboard_on_a_phone(self):
        self.page.size(360, 740, phone=True)
        self.visit("alice")
        self.page.run("explain('k')")
        self.wait_text("why", "k is held by worker")
        for name in ("ask", "break"):
            self.page.press("Tab")
            self.assertEqual(self.page.run("document.activeElement.id"), name)
        self.page.press("Enter")
        self.wait_text("sure", "Break the lock of k?")
        self.assertEqual(self.page.run("document.documentElement.scrollWidth"), 360)
        self.assertTrue(self.page.run(
            "(() => { const r = document.getElementById('sure').getBoundingClientRect();"
            " return r.left >= 0 && r.right <= 360 && r.top >= 0 && r.bottom <= 740; })()"))
        self.page.press("Tab")
        self.assertEqual(self.page.run("document.activeElement.id"), "sure-yes")
        self.page.press("Enter")
        self.wait_text("done", "Broken.")
        self.assertTrue(self.barred())
        self.check_console()

    def test_others_see_no_buttons(self):
        self.visit("bob")
        self.page.run("explain('k')")
        self.wait_text("why", "k is held by worker")
        self.assertFalse(self.shown("acts"))
        self.wait_text("may", "This page shows, and changes nothing.")
        self.check_console()


if __name__ == "__main__":
    pawltest.main(vars(test_page))
