"""test_audit.py PAWLD PAWL: tests the audit file of real nodes: what stands in it, when it is
written, and what happens when it cannot be written."""

import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import adminhttp
import cli_fixture
import pawltest
from cli_fixture import Case
from pawltest import PATIENCE, Client, Cluster, Refused
from test_tls import Certificates

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FIRST = ["ts", "seq", "node", "epoch", "action"]


def digest(lock_id):
    return hashlib.sha256(bytes.fromhex(lock_id)).hexdigest()[:32]


def text(lock_id):
    return lock_id if isinstance(lock_id, str) else lock_id.decode()


class Audit:
    """The audit file of a node, which a thread writes."""

    def __init__(self, path):
        self.path = path

    def lines(self, path=None):
        with open(path or self.path) as f:
            return [json.loads(line) for line in f.read().split("\n") if line]

    def find(self, **wanted):
        return [line for line in self.lines()
                if all(line.get(name) == value for name, value in wanted.items())]

    def wait(self, count=1, **wanted):
        """Waits until as many lines have these fields, and returns them."""
        end = time.monotonic() + PATIENCE
        while len(self.find(**wanted)) < count:
            assert time.monotonic() < end, (wanted, self.lines())
            time.sleep(0.02)
        return self.find(**wanted)


class AuditCase(Case):
    what = "all"
    more = ""
    masters = 1

    def setUp(self):
        super().setUp()
        self.cluster = self.make()
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.audit = Audit(self.path("a"))
        self.client = self.connect()

    def path(self, name):
        return os.path.join(self.folder, "audit-%s.log" % name)

    def make(self):
        case = self

        class Audited(Cluster):
            def write_configs(self):
                super().write_configs()
                for name in self.names:
                    with open(self.config(name), "a") as f:
                        f.write("[audit]\nfile = %s\nwhat = %s\n%s\n"
                                % (case.path(name), case.what, case.more))

        return Audited(cli_fixture.PAWLD, masters=self.masters, node=self.node(),
                       cluster=self.timing())

    def node(self):
        return ""

    def timing(self):
        return ""

    def connect(self, name="a"):
        client = Client(self.cluster.unix(name))
        self.addCleanup(client.close)
        return client

    def acquire(self, key, client=None, **more):
        got = (client or self.client).call("acquire", key=key, **{"lease_ms": 60000, **more})
        got["lock_id"] = text(got["lock_id"])
        return got

    def refused(self, code, method, **params):
        with self.assertRaises(Refused) as refused:
            self.client.call(method, **params)
        self.assertEqual(refused.exception.code, code)
        return refused.exception


class Actions(AuditCase):
    def test_a_lock_from_its_grant_to_its_release(self):
        got = self.acquire("k", owner="me", trace=TRACE)
        self.client.call("extend", key="k", lock_id=got["lock_id"], lease_ms=30000)
        self.client.call("update", key="k", lock_id=got["lock_id"], value="v")
        self.refused("held", "acquire", key="k", lease_ms=1000)
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.audit.wait(2, action="release")
        opened, epoch = self.audit.lines()[0], self.audit.lines()[-1]["epoch"]
        self.assertEqual((opened["action"], opened["cause"], opened["format"], opened["what"],
                          opened["seq"], opened["node"], opened["boot"]),
                         ("open", "start", 1, "all", 1, "a", 1))
        self.assertEqual((epoch, opened["max_lease_ms"], opened["drift_ppm"]), (1, 60000, 10000))
        [grant] = self.audit.find(action="acquire", result="ok")
        self.assertEqual((grant["key"], grant["token"], grant["lock"], grant["owner"],
                          grant["identity"], grant["peer"], grant["mode"], grant["trace"]),
                         ("k", got["token"], digest(got["lock_id"]), "me",
                          "unix:uid:%d" % os.getuid(),
                          "unix:uid=%d,pid=%d" % (os.getuid(), os.getpid()), "exclusive", TRACE))
        # The answer was made a little after the request had come.
        self.assertLessEqual(got["valid_ms"], grant["valid_ms"] + 1)
        self.assertLess(grant["took_us"], 5e6)
        [extended] = self.audit.find(action="extend")
        self.assertEqual((extended["lock"], extended["token"], extended["result"]),
                         (grant["lock"], got["token"], "ok"))
        self.assertGreater(extended["valid_ms"], 20000)
        self.assertEqual(len(self.audit.find(action="update", result="ok", key="k")), 1)
        self.assertEqual(len(self.audit.find(action="acquire", result="held", key="k")), 1)
        released, again = self.audit.find(action="release", result="ok", lock=grant["lock"])
        self.assertNotIn("cause", released)
        self.assertEqual(again["cause"], "not_held")

    def test_every_line_has_a_number_and_two_times_and_never_a_lock_id(self):
        got = self.acquire("k")
        self.refused("not_found", "transfer", key="k", lock_id=got["lock_id"], to="nobody")
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.audit.wait(action="release")
        lines = self.audit.lines()
        self.assertEqual([line["seq"] for line in lines], list(range(1, len(lines) + 1)))
        for line in lines:
            self.assertEqual(list(line)[:5], FIRST)
            self.assertRegex(line["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        times = [line["mono_us"] for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[-1] - time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6), 60e6)
        with open(self.audit.path) as f:
            self.assertNotIn(got["lock_id"][:8], f.read())

    def test_shared_locks_permits_and_several_keys_say_their_modes(self):
        first = self.acquire("s", mode="exclusive")
        self.client.call("downgrade", key="s", lock_id=first["lock_id"])
        self.acquire("s", mode="shared")
        self.acquire("p", permits=2, of=5)
        self.client.call("acquire", lease_ms=60000,
                         locks=[{"key": "one"}, {"key": "two", "permits": 1, "of": 3}])
        self.audit.wait(key="two")
        [down] = self.audit.find(action="downgrade")
        self.assertEqual((down["result"], down["mode"], down["lock"]),
                         ("ok", "shared", digest(first["lock_id"])))
        self.assertEqual([line["mode"] for line in self.audit.find(key="s", action="acquire")],
                         ["exclusive", "shared"])
        [permits] = self.audit.find(key="p")
        self.assertEqual((permits["mode"], permits["permits"], permits["of"], permits["slots"]),
                         ("permits", 2, 5, [0, 1]))
        [one], [two] = self.audit.find(key="one"), self.audit.find(key="two")
        self.assertEqual((one["action"], one["mode"], two["mode"], two["slots"]),
                         ("acquire", "exclusive", "permits", [0]))
        self.assertLess(one["token"], two["token"] + 1)
        self.assertNotEqual(one["lock"], two["lock"])

    def test_locks_that_end_without_a_release(self):
        expired = self.acquire("expires", lease_ms=200, owner="gone")
        other = self.connect()
        bound = self.acquire("bound", other, release_on_disconnect=True)
        other.close()
        [line] = self.audit.wait(action="lost", key="expires")
        self.assertEqual((line["cause"], line["token"], line["lock"], line["owner"]),
                         ("expired", expired["token"], digest(expired["lock_id"]), "gone"))
        [line] = self.audit.wait(action="release", key="bound")
        self.assertEqual((line["cause"], line["lock"]), ("disconnect", digest(bound["lock_id"])))

    def test_a_client_that_leaves_before_its_answer(self):
        self.acquire("k")
        waiting = self.connect()
        waiting.send("acquire", key="k", lease_ms=1000, wait_ms=60000, owner="impatient")
        waiting.call("ping")
        waiting.close()
        [line] = self.audit.wait(action="acquire", result="gone")
        self.assertEqual((line["key"], line["owner"]), ("k", "impatient"))

    def test_many_locks_that_are_extended_together_have_a_line_each(self):
        locks = [self.acquire("k%d" % i) for i in range(3)]
        self.client.call("extend", trace=TRACE,
                         locks=[{"key": "k%d" % i, "lock_id": lock["lock_id"], "lease_ms": 1000}
                                for i, lock in enumerate(locks)])
        lines = self.audit.wait(3, action="extend", trace=TRACE)
        self.assertEqual([(line["key"], line["lock"]) for line in lines],
                         [("k%d" % i, digest(lock["lock_id"])) for i, lock in enumerate(locks)])

    def test_bytes_that_are_no_text(self):
        self.acquire(b"\xff\x00", owner='with "quotes"\n')
        [line] = self.audit.wait(action="acquire")
        self.assertEqual((line["key_hex"], line["owner"]), ("ff00", 'with "quotes"\n'))

    def test_a_wrong_traceparent_is_refused_and_named(self):
        for wrong in ("x", TRACE.upper(), 7, TRACE.replace("0af7651916cd43dd8448eb211c80319c",
                                                           "0" * 32)):
            error = self.refused("bad_request", "get", key="k", trace=wrong)
            self.assertEqual(error.error["field"], "trace")
        for method in ("ping", "status"):
            self.client.call(method, trace=TRACE)


class Orders(AuditCase):
    """What administrators ask for."""
    what = "admin"

    def test_each_order_is_in_the_file_before_and_after_it_is_done(self):
        self.acquire("k")
        kicked = self.connect()
        kicked.call("ping")
        number = max(c["client"] for c in self.client.call("clients")["clients"])
        self.client.call("break", key="k", now=True, trace=TRACE)
        self.client.call("kick", client=number)
        self.refused("not_found", "cluster_promote", name="nobody")
        self.client.call("cluster_set_timing", max_lease_ms=50000)
        self.client.call("drain")
        for action, target, result in (("break", None, "ok"), ("kick", str(number), "ok"),
                                       ("cluster_promote", "nobody", "not_found"),
                                       ("cluster_set_timing", "max_lease_ms=50000", "ok"),
                                       ("drain", None, "ok")):
            asked, done = self.audit.wait(2, action=action)
            self.assertEqual((asked["result"], done["result"]), ("asked", result))
            self.assertEqual((asked.get("target"), done.get("target")), (target, target))
            self.assertEqual(asked["peer"], "unix:uid=%d,pid=%d" % (os.getuid(), os.getpid()))
        asked, done = self.audit.find(action="break")
        self.assertEqual((asked["now"], asked["trace"], asked["key"]), (True, TRACE, "k"))
        [epoch] = self.audit.find(action="epoch", max_lease_ms=50000)
        self.assertEqual(epoch["epoch"], 2)
        # Holders are for another level.
        self.assertEqual(self.audit.find(action="acquire") + self.audit.find(action="lost"), [])

    def test_an_order_is_on_the_disk_before_its_answer(self):
        self.acquire("k")
        self.client.call("break", key="k", now=True)
        self.cluster.nodes["a"].kill()
        self.assertEqual([line["result"] for line in self.audit.find(action="break")][:1],
                         ["asked"])

    def test_the_last_line_says_that_the_node_ended_in_order(self):
        self.cluster.nodes["a"].terminate()
        self.assertEqual(self.audit.lines()[-1]["action"], "close")
        self.cluster.start("a").wait_log(" voting ")
        starts = self.audit.find(action="open")
        self.assertEqual([(line["boot"], line["seq"]) for line in starts], [(1, 1), (2, 1)])


class Levels(Case):
    def lines(self, what):
        class Level(Actions):
            def runTest(self):
                pass

        case = Level()
        case.what = what
        case.setUp()
        try:
            got = case.acquire("k")
            case.client.call("extend", key="k", lock_id=got["lock_id"], lease_ms=30000)
            case.client.call("break", key="k", now=True)
            case.client.call("release", key="k", lock_id=got["lock_id"])
            case.cluster.nodes["a"].terminate()
            return [(line["action"], line.get("result")) for line in case.audit.lines()
                    if line["action"] not in ("open", "epoch", "close")]
        finally:
            case.doCleanups()

    def test_each_level_has_what_the_one_before_has(self):
        orders = [("break", "asked"), ("break", "ok")]
        self.assertEqual(self.lines("denied"), [])
        self.assertEqual(self.lines("admin"), orders)
        holders = self.lines("holders")
        self.assertEqual(sorted(holders, key=str),
                         sorted(orders + [("acquire", "ok"), ("release", "ok"), ("lost", None)],
                                key=str))
        self.assertEqual(sorted(self.lines("all"), key=str),
                         sorted(holders + [("extend", "ok")], key=str))


class Masters(AuditCase):
    masters = 3
    what = "holders"

    def test_every_master_tells_of_a_loss_and_the_coordinator_of_a_grant(self):
        got = self.acquire("k", lease_ms=300)
        for name in "abc":
            [line] = Audit(self.path(name)).wait(action="lost", key="k")
            self.assertEqual((line["node"], line["lock"]), (name, digest(got["lock_id"])))
            self.assertEqual(len(Audit(self.path(name)).find(action="acquire")), name == "a")


class Denied(Case):
    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder)
        self.certificates.make("a", "pawl:node:a")
        for name in ("alice", "bob"):
            self.certificates.make(name, "pawl:client:" + name)
        self.audit = Audit(os.path.join(self.folder, "audit.log"))
        self.cluster = Cluster(cli_fixture.PAWLD, masters=1, tls=self.section)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def section(self, _, name):
        c = self.certificates
        rules = (("alice", "allow = all on *\n"),
                 ("bob", "allow = acquire on public/\nallow = read on *\n"))
        return "ca = %s\ncert = %s\nkey = %s\n%s\n[audit]\nfile = %s\nwhat = denied\n" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
            pawltest.rights(self.folder, *rules), self.audit.path)

    def connect(self, name):
        client = self.cluster.client("a", tls=self.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def test_denied_requests_are_in_the_file_with_who_and_why(self):
        alice, bob = self.connect("alice"), self.connect("bob")
        held = alice.call("acquire", key="public/1", lease_ms=60000)
        for method, params in (("acquire", {"key": "secret", "lease_ms": 1000, "trace": TRACE}),
                               ("watch", {"key": "secret"}), ("drain", {}),
                               ("acquire", {"key": "public/1", "lock_id": held["lock_id"],
                                            "lease_ms": 1000})):
            with self.assertRaises(Refused) as refused:
                bob.call(method, **params)
            self.assertEqual(refused.exception.code, "denied")
        lines = self.audit.wait(4, result="denied")
        self.assertEqual([(line["action"], line.get("key"), line["cause"]) for line in lines],
                         [("acquire", "secret", "acquire"), ("watch", "secret", "watch"),
                          ("drain", None, "cluster"), ("acquire", "public/1", "not_yours")])
        for line in lines:
            self.assertEqual((line["identity"], line["peer"]),
                             ("bob", "127.0.0.1:%d" % bob.socket.getsockname()[1]))
        self.assertEqual(lines[0]["trace"], TRACE)
        self.cluster.nodes["a"].wait_log(" denied what=acquire key=secret ", "trace=" + TRACE)
        alice.call("break", key="public/1", now=True)
        self.assertEqual(self.audit.find(action="break"), [])


class Unwritable(AuditCase):
    """The disk of the file is full."""
    what = "all"

    def path(self, name):
        return "/dev/full"

    def node(self):
        self.port = pawltest.free_port()
        return "[admin]\nlisten = 127.0.0.1:%d\n" % self.port

    def test_without_strict_everything_goes_on_and_the_log_says_so(self):
        self.acquire("k")
        self.assertTrue(self.client.call("break", key="k", now=True)["broken"])
        line = self.cluster.nodes["a"].wait_log(" error audit_failed ", "No space left on device")
        self.assertIn("make room", line)
        shown = adminhttp.samples(adminhttp.fetch("127.0.0.1:%d" % self.port, "/metrics")[2])
        self.assertEqual(shown["pawl_audit_lines_total"], 0)
        for name in ("pawl_audit_dropped_total", "pawl_audit_failures_total"):
            self.assertGreater(shown[name], 0)


class Strict(Unwritable):
    more = "strict = yes\n"

    def test_without_strict_everything_goes_on_and_the_log_says_so(self):
        """With strict an order is refused, and nothing is done."""
        self.acquire("k")
        error = self.refused("io", "break", key="k", now=True)
        self.assertIn("[audit] strict = yes", text(error.error["message"]))
        self.assertTrue(self.client.call("get", key="k")["held"])
        self.refused("io", "drain")
        self.assertEqual(self.client.call("status")["state"], "voting")
        self.cluster.nodes["a"].wait_log(" error audit_failed ")


@unittest.skipUnless(os.getuid() == 0, "only root can mount")
class FullDisk(AuditCase):
    """A small file system that becomes full, and has room again."""
    what = "admin"
    more = "strict = yes\n"

    def setUp(self):
        self.disk = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, self.disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", self.disk],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)
        super().setUp()

    def path(self, name):
        return os.path.join(self.disk, "audit-%s.log" % name)

    def test_lines_are_whole_when_there_is_room_again(self):
        self.refused("not_found", "kick", client=1000)
        filler = os.path.join(self.disk, "filler")
        with open(filler, "wb", buffering=0) as f, self.assertRaises(OSError):
            while True:
                f.write(b"x" * 4096)
        size = os.path.getsize(self.audit.path)
        room = 4096 - size % 4096
        for _ in range(room // 100 + 2):
            error = None
            try:
                self.client.call("kick", client=1000)
            except Refused as refused:
                error = refused.code
            if error == "io":
                break
        self.assertEqual(error, "io")
        os.unlink(filler)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.call("kick", client=1001)
            except Refused as refused:
                if refused.code == "not_found":
                    break
            self.assertLess(time.monotonic(), end)
        self.cluster.nodes["a"].wait_log(" notice audit_goes_on ")
        lines = self.audit.lines()  # None of them is torn.
        missing = [b["seq"] for a, b in zip(lines, lines[1:]) if b["seq"] != a["seq"] + 1]
        self.assertTrue(missing)
        self.assertEqual(sum(line.get("dropped", 0) for line in lines),
                         lines[-1]["seq"] - len(lines))


class Rotation(AuditCase):
    more = "max_bytes = 1m\nkeep = 2\n"

    def fill(self, megabytes):
        owner = "o" * 256
        for _ in range(megabytes * 1700):
            got = self.client.call("acquire", key="k" * 400, lease_ms=60000, owner=owner)
            self.client.call("release", key="k" * 400, lock_id=got["lock_id"])

    def test_files_are_rotated_and_the_oldest_goes(self):
        self.fill(4)
        self.cluster.nodes["a"].terminate()
        files = [self.audit.path + end for end in (".2", ".1", "")]
        self.assertFalse(os.path.exists(self.audit.path + ".3"))
        lines = []
        for path in files:
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
            self.assertLess(os.path.getsize(path), 1.1 * (1 << 20))
            found = self.audit.lines(path)
            self.assertEqual((found[0]["action"], found[0]["cause"]), ("open", "rotated"))
            lines += found
        self.assertEqual([line["seq"] for line in lines],
                         list(range(lines[0]["seq"], lines[-1]["seq"] + 1)))
        self.assertGreater(os.path.getsize(files[0]), 1 << 20)

    def test_sighup_opens_the_file_anew_even_if_the_configuration_is_wrong(self):
        self.acquire("before")
        self.audit.wait(key="before")
        for i, more in enumerate(("", "nonsense = 1\n")):
            moved = self.audit.path + ".moved%d" % i
            os.rename(self.audit.path, moved)
            with open(self.cluster.config("a"), "a") as f:
                f.write(more)
            self.cluster.nodes["a"].signal(signal.SIGHUP)
            self.cluster.nodes["a"].wait_log(" reload_refused " if more else " reloaded")
            self.acquire("after%d" % i)
            [line] = self.audit.wait(key="after%d" % i)
            first = self.audit.lines()[0]
            self.assertEqual((first["action"], first["cause"]), ("open", "reload"))
            self.assertEqual(self.audit.lines(moved)[-1]["seq"] + 1, first["seq"])

    def test_a_reload_changes_what_is_told(self):
        with open(self.cluster.config("a")) as f:
            config = f.read()
        with open(self.cluster.config("a"), "w") as f:
            f.write(config.replace("what = all", "what = denied"))
        self.cluster.nodes["a"].signal(signal.SIGHUP)
        self.cluster.nodes["a"].wait_log(" reloaded")
        self.acquire("untold")
        self.cluster.nodes["a"].terminate()
        self.assertEqual(self.audit.find(action="acquire"), [])
        self.assertEqual([line["what"] for line in self.audit.find(action="open")],
                         ["all", "denied"])


class Torn(AuditCase):
    def test_a_line_that_a_crash_has_cut_is_ended_at_the_next_start(self):
        self.acquire("k")
        self.audit.wait(key="k")
        self.cluster.nodes["a"].kill()
        with open(self.audit.path, "a") as f:
            f.write('{"ts":"2026')
        self.cluster.start("a").wait_log(" recovering")
        with open(self.audit.path) as f:
            lines = f.read().split("\n")
        self.assertIn('{"ts":"2026', lines)
        self.assertEqual(json.loads(lines[lines.index('{"ts":"2026') + 1])["action"], "open")


class Start(Case):
    def config(self, audit):
        path = os.path.join(self.folder, "a.conf")
        with open(path, "w") as f:
            f.write("[node]\nname = a\nstate_dir = %s/state\nlisten_client = unix:%s/sock\n"
                    "[cluster]\nname = test\n[cluster.masters]\na = 127.0.0.1:%d\n[audit]\n%s\n"
                    % (self.folder, self.folder, pawltest.free_port(), audit))
        return path

    def fails(self, audit, *words):
        path = self.config(audit)
        for arguments, status in ((["--check-config", path], 2), (["--config", path], None)):
            run = subprocess.run([cli_fixture.PAWLD, *arguments], capture_output=True, text=True,
                                 timeout=PATIENCE)
            self.assertIn(run.returncode, (status,) if status else (1, 2))
            for word in words:
                self.assertIn(word, run.stderr)

    def test_what_cannot_be_opened_is_refused_with_its_path_and_a_remedy(self):
        self.fails("file = %s/none/audit.log" % self.folder, "none/audit.log",
                   "No such file or directory", "make the directory")
        self.fails("file = %s" % self.folder, "it is no file", "name another path")
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        self.fails("file = %s" % pipe, "name another path")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "none")))

    def test_wrong_settings_are_named(self):
        file = "file = %s/audit.log\n" % self.folder
        self.fails("what = all", "[audit] file is missing")
        self.fails(file + "what = some", "write denied, admin, holders or all")
        self.fails(file + "max_bytes = 64k", "write a size from 1m to 16384g")
        self.fails(file + "keep = 0", "keep = 0")
        self.fails(file + "keep = 1001", "at most 1000 older files")
        self.fails("file = audit.log", "write an absolute path")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "audit.log")))

    def test_a_check_makes_no_file(self):
        path = self.config("file = %s/audit.log" % self.folder)
        subprocess.run([cli_fixture.PAWLD, "--check-config", path], check=True,
                       stdout=subprocess.DEVNULL)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "audit.log")))


if __name__ == "__main__":
    cli_fixture.main()
