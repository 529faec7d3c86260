#!/usr/bin/env python3
"""test_page.py PAWLD [--pictures DIR]: the page of the admin port in a real browser, a headless
Chromium: every view with and without trouble, dark and light, at a phone's width, and with the
keyboard alone. With --pictures it writes those of docs/operations."""

import glob
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import devtools  # noqa: E402
import pawltest  # noqa: E402
from adminhttp import AdminCluster, fetch  # noqa: E402
from test_tls import Certificates  # noqa: E402

PAWLD = None
PICTURES = None
HOSTILE = "<img src=x onerror=document.title='bad'>"
# The contrast of a text with its background, by WCAG 2.2: 4.5 is level AA.
CONTRAST = """(() => {
  const light = (c) => { c = c.map((v) => { v /= 255;
    return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
  const rgb = (s) => s.match(/[\\d.]+/g).map(Number);
  const under = (e) => { for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  let least = 99, worst = "";
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.offsetParent)
      continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(under(e));
    const c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (c < least) { least = c; worst = e.outerHTML; }
  }
  return [least, worst];
})()"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = devtools.Browser()
        cls.addClassCleanup(cls.browser.close)

    def start(self, **options):
        options.setdefault("cluster", "request_timeout = 300ms\n")
        self.cluster = AdminCluster(PAWLD, **options)
        self.addCleanup(self.cluster.__exit__, BaseException)
        self.cluster.__enter__()
        for name in self.cluster.names:
            self.cluster.wait_ready(name)
        self.page = self.browser.page()
        self.addCleanup(self.page.close)
        self.page.size(1000, 900)
        self.page.scheme("light")

    def fill(self):
        """Gives the page something to show."""
        self.clients = [self.cluster.client(n) for n in "ab"]
        for client in self.clients:
            self.addCleanup(client.close)
        a, b = self.clients
        a.call("acquire", key="leader/web", lease_ms=60000, owner="web-1", election=True)
        a.call("acquire", key="chief", lease_ms=60000, owner="one", election=True)
        a.call("acquire", key="printer", lease_ms=60000, owner="anna")
        b.send("acquire", key="printer", lease_ms=60000, wait_ms=60000, owner="bert")
        for i, client in enumerate((a, b, b)):
            client.send("acquire", key="leader/web", lease_ms=60000, wait_ms=60000,
                        owner="web-%d" % (2 + i), election=True)
            while len(b.call("waiters", key="leader/web")["waiters"]) <= i:
                pass
        for i in range(30):
            key = "orders/%d" % (i * i % 7)
            got = a.call("acquire", key=key, lease_ms=60000, owner="worker")
            a.call("release", key=key, lock_id=got["lock_id"])
        a.call("acquire", key=HOSTILE, lease_ms=60000, owner=HOSTILE)
        a.call("acquire", key=b"\xff", lease_ms=60000, owner="binary")
        a.call("acquire", key="cron/nightly", lease_ms=200, owner="cron-7")
        a.call("acquire", key="billing/run", lease_ms=60000, owner="billing-2")
        a.call("break", key="billing/run", now=True)

    def open(self, node="a"):
        self.address = "http://%s/" % self.cluster.admin[node]
        self.page.open(self.address)

    def text(self, id_):
        return self.page.run("document.getElementById('%s').innerText" % id_)

    def wait_text(self, id_, *words):
        for word in words:
            self.page.wait("document.getElementById(%r).innerText.includes(%r)" % (id_, word))

    def check_console(self, without=()):
        """No error, warning or message; and nothing was asked for elsewhere."""
        self.assertEqual([c for c in self.page.console if c[0] not in without], [])
        self.assertEqual([u for u in self.page.asked if not u.startswith(self.address)], [])

    def picture(self, name):
        if PICTURES:
            self.page.picture(os.path.join(PICTURES, name))


class Views(PageTest):
    def test_every_view_without_trouble(self):
        self.start()
        self.fill()
        self.page.size(1000, 1080)
        self.open()
        self.wait_text("verdict", "A quorum votes: all 3 masters. 1 master may fail.")
        self.assertEqual(self.page.run("document.getElementById('verdict').className"),
                         "verdict good")
        self.wait_text("who", "test as a sees it")
        self.wait_text("nodes", "a\tmaster\tvoting\t", "b\tmaster\tvoting\t", " ms\t", "c\tmaster")
        # Each node's version stands in front of the end of its certificate.
        self.page.wait("[...document.querySelectorAll('#nodes tbody tr')].every((row) => "
                       "/^[0-9]+[.][0-9.]+$/.test(row.cells[5].innerText))")
        self.wait_text("facts", "Held leases", "Grants a second")
        self.wait_text("oldest_holders", "leader/web", HOSTILE, "0xff")
        self.wait_text("oldest_waiters", "leader/web")
        self.wait_text("most_granted", "orders/")
        self.wait_text("leaders", "chief\tone", "leader/web\tweb-1",
                       "web-2\nweb-3\nweb-4")
        self.wait_text("queues", "printer\tanna", "bert")
        self.assertNotIn("leader/", self.text("queues"))
        self.assertNotIn("printer", self.text("leaders"))
        self.assertFalse(self.page.run("document.getElementById('more').offsetParent"))
        self.wait_text("events", "Lease ended", "cron/nightly\tcron-7", "Broken, or lost",
                       "billing/run", "break")
        self.assertFalse(self.page.run("document.getElementById('calm').offsetParent"))
        self.picture("page.png")
        self.page.run("search('leader')")
        self.wait_text("results", "leader/web\tweb-1\texclusive")
        self.page.run("explain('leader/web')")
        self.wait_text("why", "leader/web is held by web-1 since", "the lease ends in",
                       "3 of 3 voting masters know a holder: a, b, c.", "3 requests wait for it")
        self.page.run("explain('nothing')")
        self.wait_text("why", "Nobody holds nothing.", "Nobody waits for it.")
        self.page.run("search('none/')")
        self.wait_text("found", "0 keys")
        # What a client has named is a text.
        self.page.run("search('<')")
        self.wait_text("results", HOSTILE)
        self.page.run("explain(%r)" % HOSTILE)
        self.wait_text("why", "Why: " + HOSTILE)
        self.assertEqual(self.page.run("document.images.length"), 0)
        self.assertEqual(self.page.run("document.title"), "Pawl test")
        self.check_console()

    def test_it_is_live(self):
        self.start()
        self.open()
        self.wait_text("verdict", "A quorum votes")
        self.wait_text("calm", "Nothing was lost, broken or changed")
        with self.cluster.client("b") as client:
            client.call("acquire", key="new", lease_ms=60000)
            self.wait_text("oldest_holders", "new")
        self.wait_text("beat", "Last news")
        self.check_console()

    def test_a_master_is_down_and_comes_back(self):
        self.start()
        self.fill()
        self.open()
        self.cluster.nodes["c"].kill()
        self.wait_text("verdict", "only 2 of 3 masters. No further master may fail.")
        self.wait_text("todo", "c has no link with a", "If not, start it, or replace it: pawl "
                       "cluster add-replica NEW HOST:PORT, then pawl cluster replace c NEW")
        self.wait_text("nodes", "c\tmaster\tnot linked")
        self.assertEqual(self.page.run("document.getElementById('verdict').className"),
                         "verdict warn")
        self.page.run("explain('leader/web')")
        self.wait_text("why", "No word from c (silent).")
        self.cluster.start("c")
        self.wait_text("verdict", "all 3 masters")
        self.page.wait("document.getElementById('remedies').hidden")
        self.check_console()

    def test_what_was_refused_is_not_shown_as_done(self):
        self.start()
        with self.cluster.client("a") as client:
            self.assertRaises(pawltest.Refused, client.call, "break", key="nothing", token=1)
            self.assertRaises(pawltest.Refused, client.call, "cluster_promote", name="nobody")
        self.open()
        self.wait_text("events", "break: not done (not found)\tnothing",
                       "cluster promote: not done (not found)\tnobody")
        self.check_console()

    def test_recent_is_folded(self):
        self.start()
        with self.cluster.client("a") as client:
            for i in range(15):
                client.call("acquire", key="k%d" % i, lease_ms=60000, owner="o")
                client.call("break", key="k%d" % i, now=True)
        rows = "document.querySelectorAll('#events tbody tr').length"
        self.open()
        self.wait_text("fold", "Show all 30")
        self.assertEqual(self.page.run(rows), 10)
        self.page.run("document.getElementById('fold').click()")
        self.page.wait(rows + " === 30")
        self.wait_text("fold", "Show the last 10")
        self.page.run("document.getElementById('fold').click()")
        self.page.wait(rows + " === 10")
        self.check_console()

    def test_no_quorum(self):
        self.start()
        self.fill()
        self.page.size(1000, 700)
        self.open()
        self.wait_text("leaders", "leader/web")
        for name in "bc":
            self.cluster.nodes[name].kill()
        self.wait_text("verdict", "No quorum: 1 master votes, 2 are needed.")
        self.wait_text("todo", "start the masters that are down.", "b has no link with a",
                       "read pawl cluster force --help")
        self.wait_text("queues", "Not known: ")
        self.page.run("explain('leader/web')")
        self.wait_text("why", "No word from b (silent), c (silent).")
        self.page.run("search('leader')")
        self.wait_text("results", "web-1")
        self.page.run("window.scrollTo(0, 0)")
        self.picture("page-trouble.png")
        self.assertIn("!", self.page.run("document.title"))
        self.check_console()

    def test_a_limit_is_full(self):
        self.start(node="[limits]\nkeys = 10\n")
        a = self.cluster.client("a")
        self.addCleanup(a.close)
        self.open()
        self.wait_text("verdict", "A quorum votes: all 3 masters.")
        for i in range(9):
            got = a.call("acquire", key="k%d" % i, lease_ms=60000, owner="\x1bgreedy")
        self.wait_text("limits", "A limit of this node is nearly reached: keys, 9 of 10.")
        a.call("acquire", key="the last", lease_ms=60000, owner="modest")
        self.wait_text("limits", "A limit of this node is reached, and it refuses what needs more: "
                       "keys, 10 of 10, at least 9 of them of ?greedy.")
        self.wait_text("verdict", "A quorum votes: all 3 masters.")
        self.assertIn("!", self.page.run("document.title"))
        self.assertGreaterEqual(self.page.run(CONTRAST)[0], 4.5)
        for i in (0, 1):
            a.call("break", key="k%d" % i, now=True)
        a.call("release", key="k8", lock_id=got["lock_id"])
        self.page.wait("document.getElementById('limits').innerText === ''")
        self.check_console()

    def test_an_audit_file_fails(self):
        folder = tempfile.mkdtemp(prefix="pawl-page-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "audit.log")
        os.symlink("/dev/full", path)
        self.start(node="[audit]\nfile = %s\n" % path)
        self.open()
        self.wait_text("limits", "The audit file of this node lacks lines: cannot write %s: "
                       "No space left on device: make room on its disk" % path)
        self.assertIn("!", self.page.run("document.title"))
        self.check_console()

    def test_a_certificate_has_ended(self):
        folder = tempfile.mkdtemp(prefix="pawl-page-")
        self.addCleanup(shutil.rmtree, folder)
        c = Certificates(folder)
        for name in "abc":
            c.make(name, "pawl:node:" + name, serial=ord(name), days=2 if name == "b" else 1)
        self.start(tls=lambda _, name: "ca = %s\ncert = %s\nkey = %s\n%s" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
            pawltest.rights(c.dir, ("alice", pawltest.ALL))))
        self.open()
        self.wait_text("verdict", "A quorum votes: all 3 masters.")
        self.assertEqual(self.text("limits"), "")
        self.page.run("Date.now = ((now) => () => now() + 1.5 * 86400000)(Date.now)")
        self.wait_text("limits", "The certificate of a has ended: over TLS it gets no new ",
                       "The certificate of c has ended")
        self.wait_text("todo", "(pawl cert node a --host ...), install it, and reload:")
        self.assertNotIn("of b ", self.text("limits"))
        self.assertIn("!", self.page.run("document.title"))
        self.check_console()

    def wait_deadlock(self):
        """Of two requests that came at almost the same time either may count as the younger one,
        whose node tells of it."""
        pawltest.wait_until(self, lambda: any(" deadlock " in node.log()
                                              for node in self.cluster.nodes.values()))

    def test_a_deadlock_is_explained(self):
        self.start()
        clients = [self.cluster.client(n) for n in "ab"]
        for i, client in enumerate(clients):
            self.addCleanup(client.close)
            client.call("acquire", key="k%d" % i, lease_ms=60000, owner="o%d" % i)
        for i, client in enumerate(clients):
            client.send("acquire", key="k%d" % (1 - i), lease_ms=60000, wait_ms=60000,
                        owner="o%d" % i)
        self.wait_deadlock()
        self.open("a")
        self.wait_text("verdict", "A quorum votes")
        self.page.wait("explain('k0').then(() => document.getElementById('why').innerText"
                       ".includes('o0 waits for k1, which o1 holds (at a)'))")
        self.wait_text("why", "o1 waits for k0, which o0 holds (at b)",
                       "One of them must release what it holds")
        self.check_console()

    def test_a_deadlock_is_hidden_from_those_who_may_not_read_its_keys(self):
        folder = tempfile.mkdtemp(prefix="pawl-page-")
        self.addCleanup(shutil.rmtree, folder)
        self.start(node=pawltest.rights(folder, ("plain", "allow = acquire, wait, status on *\n"
                                                 "allow = read on seen/\n"), local=False))
        clients, keys = [self.cluster.client(n) for n in "ab"], ("seen/0", "other/1")
        for i, client in enumerate(clients):
            self.addCleanup(client.close)
            client.call("acquire", key=keys[i], lease_ms=60000, owner="o%d" % i)
        for i, client in enumerate(clients):
            client.send("acquire", key=keys[1 - i], lease_ms=60000, wait_ms=60000, owner="o%d" % i)
        self.wait_deadlock()
        self.open("a")
        self.page.wait("explain('seen/0').then(() => document.getElementById('why').innerText"
                       ".includes('o1 waits for seen/0, which (hidden) holds'))")
        self.wait_text("why", "(hidden) waits for (a key that you may not read), which o1 holds")
        self.assertNotIn("other/", self.text("why"))
        self.check_console(without=("network",))

    def test_the_node_is_gone_and_comes_back(self):
        self.start()
        self.open("c")
        self.wait_text("verdict", "A quorum votes")
        self.cluster.nodes["c"].kill()
        self.wait_text("trouble", "The node has said nothing for")
        self.cluster.start("c")
        self.page.wait("document.getElementById('trouble').hidden")
        # The browser itself notes requests that reach nobody.
        self.check_console(without=("network",))

    def test_a_replica(self):
        self.start()
        self.cluster.join("r")
        with self.cluster.client("a") as client:
            client.call("cluster_add_replica", name="r", address=self.cluster.peers["r"])
        self.open("r")
        self.wait_text("nodes", "r\treplica\tfollowing")
        self.wait_text("verdict", "A quorum votes: all 3 masters.")
        self.page.open("http://%s/" % self.cluster.admin["a"])
        self.wait_text("events", "cluster add replica\tr\t")
        self.assertEqual(self.page.console, [])

    def test_a_planned_stop(self):
        self.start(admin="drain_wait = 5s")
        self.open()
        self.wait_text("verdict", "A quorum votes")
        self.cluster.nodes["a"].process.terminate()
        self.wait_text("verdict", "This node is not ready: drain: a planned stop has begun.")
        self.assertEqual(self.cluster.nodes["a"].wait(), 0)
        self.check_console(without=("network",))

    def test_without_the_right_to_read_the_page_says_so(self):
        folder = tempfile.mkdtemp(prefix="pawl-page-")
        self.addCleanup(shutil.rmtree, folder)
        rules = pawltest.rights(folder, ("plain", "allow = status\n"), local=False)
        self.start(masters=1, node=rules)
        self.open()
        self.wait_text("trouble", "the access rules do not let you read these keys")
        self.wait_text("queues", "the access rules do not let you read these keys")
        self.check_console(without=("network",))


class Looks(PageTest):
    def setUp(self):
        self.start()
        self.fill()
        self.open()
        self.wait_text("leaders", "leader/web")
        self.page.run("search('leader')")
        self.page.run("explain('leader/web')")
        self.wait_text("why", "is held by")
        self.wait_text("events", "Lease ended")

    def test_dark_and_light_can_be_read(self):
        papers = []
        for scheme in ("light", "dark"):
            self.page.scheme(scheme)
            for trouble in (False, True):
                if trouble:
                    self.page.run("trouble('Something is wrong.')")
                least, worst = self.page.run(CONTRAST)
                self.assertGreaterEqual(least, 4.5, (scheme, worst))
            papers.append(self.page.run("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*papers)

    def test_a_phone(self):
        self.page.scheme("dark")
        self.page.size(360, 740, phone=True)
        self.assertEqual(self.page.run("document.documentElement.scrollWidth"), 360)
        # The font is not made smaller, and links can be hit.
        self.assertGreaterEqual(self.page.run(
            "Math.min(...[...document.querySelectorAll('nav a, button')]"
            ".filter((e) => e.checkVisibility())"
            ".map((e) => e.getBoundingClientRect().height))"), 24)
        # Each loss shows its key, and nothing of it is cut off.
        self.assertEqual(self.page.run(
            "[...document.querySelectorAll('#events tbody td')].filter((e) => e.innerText)"
            ".filter((e) => { const r = e.getBoundingClientRect();"
            " return r.left < 0 || r.right > 360 || r.width === 0; }).length"), 0)
        self.assertEqual(self.page.run(
            "[...document.querySelectorAll('#events tbody tr')].filter((row) =>"
            " row.querySelector('.key').getBoundingClientRect().top"
            " > row.cells[0].getBoundingClientRect().top).length"), 0)
        self.page.run("window.scrollTo(0, 0)")
        self.picture("page-phone.png")
        self.check_console()

    def test_the_keyboard_alone(self):
        self.page.open(self.address)
        self.wait_text("leaders", "leader/web")

        def focus():
            return self.page.run("document.activeElement.id || document.activeElement.name"
                                 " || document.activeElement.innerText"
                                 " || document.activeElement.tagName")

        def tab_to(name):
            for _ in range(40):
                if focus() == name:
                    # What has the focus is seen to have it.
                    self.assertNotEqual(self.page.run(
                        "getComputedStyle(document.activeElement).outlineStyle"), "none")
                    return
                self.page.press("Tab")
            self.fail("%s does not get the focus" % name)

        tab_to("Skip to the content")
        self.page.press("Enter")
        self.page.wait("document.activeElement.id === 'main'")
        self.page.open(self.address)
        self.wait_text("verdict", "A quorum votes")
        tab_to("Search")
        self.page.press("Enter")
        self.assertEqual(self.page.run("location.hash"), "#search")
        tab_to("prefix")
        for letter in "lead":
            self.page.press(letter)
        self.page.press("Enter")
        self.wait_text("results", "leader/web")
        tab_to("Explain")
        self.page.press("Enter")
        self.wait_text("why", "leader/web is held by web-1")
        self.assertEqual(focus(), "why")
        self.check_console()

    def test_everything_has_a_name(self):
        """For whoever does not see the page."""
        self.assertEqual(self.page.run("document.documentElement.lang"), "en")
        self.assertEqual(self.page.run(
            "[...document.querySelectorAll('section')].filter((s) => !document.getElementById("
            "s.getAttribute('aria-labelledby'))).length"), 0)
        self.assertEqual(self.page.run("document.querySelector('#prefix').labels.length"), 1)
        self.assertEqual(self.page.run(
            "new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size"
            " === document.querySelectorAll('[id]').length"), True)


class Bytes(PageTest):
    def test_it_is_small_and_takes_nothing_from_elsewhere(self):
        self.start(masters=1)
        size = 0
        for path in ("/", "/page/page.css", "/page/trouble.js", "/page/page.js", "/page/icon.svg"):
            status, fields, text = fetch(self.cluster.admin["a"], path)
            self.assertEqual(status, 200)
            self.assertTrue(fields["Content-Security-Policy"].startswith("default-src 'self';"))
            size += len(text.encode())
        self.assertLess(size, 60 << 10)
        self.assertEqual(size, sum(os.path.getsize(f) for f in glob.glob(os.path.join(
            ROOT, "src", "node", "monitor", "page", "*")) if not f.endswith(".py")))
        self.open()
        self.wait_text("verdict", "the only master")
        # The policy holds.
        self.assertEqual(self.page.run(
            "new Promise((resolve) => { document.addEventListener('securitypolicyviolation',"
            " () => resolve('refused')); const s = document.createElement('script');"
            " s.textContent = 'document.title = \"bad\"'; document.body.append(s);"
            " setTimeout(() => resolve('ran'), 2000); })"), "refused")


def main():
    global PICTURES
    if "--pictures" in sys.argv:
        at = sys.argv.index("--pictures")
        PICTURES = os.path.abspath(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    pawltest.main(globals())


if __name__ == "__main__":
    main()
