"""test_audit_file.py PAWLD PAWL: tests the audit file of real nodes as a file: when it cannot be
written, when it is rotated and moved, and when the node crashes."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
import tty
import unittest
import unittest.mock

import adminhttp
import cli_fixture
import pawltest
from auditcase import AuditCase, text
from cli_fixture import Case
from pawltest import PATIENCE, Refused


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
        said = self.client.call("status")["audit_trouble"]
        self.assertIn("/dev/full: No space left on device: make room on its disk", said)
        pawltest.wait_until(self, lambda: self.client.call("status")["ready"])
        done = cli_fixture.pawl("status", "--check", endpoints=self.cluster.clients["a"])
        self.assertEqual((done.status, done.out), (0, "ready\naudit file fails: %s\n" % said))
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


class Terminal(AuditCase):
    """A terminal that nobody reads takes the lines, as a disk that hangs for some seconds."""

    def setUp(self):
        self.reader, self.terminal = os.openpty()
        self.addCleanup(os.close, self.terminal)
        tty.setraw(self.terminal)
        # A thread that hangs in a write ends with its process, for which the search for leaks at
        # the end of a sanitized one may wait for ever.
        environment = unittest.mock.patch.dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        environment.start()
        self.addCleanup(environment.stop)
        super().setUp()

    def path(self, name):
        return os.ttyname(self.terminal)


class SlowDisk(Terminal):
    more = "strict = yes\n"

    def test_an_order_that_was_refused_for_a_slow_disk_has_a_line_with_its_result(self):
        for i in range(300):
            self.acquire("%d" % i + "k" * 400)
        self.refused("io", "break", key="0" + "k" * 400, now=True)
        self.assertTrue(self.client.call("get", key="0" + "k" * 400)["held"])
        found = []
        with open(self.reader, "rb") as f:
            while len(found) < 2:
                line = json.loads(f.readline())
                if line["action"] == "break":
                    found.append(line["result"])
            self.assertEqual(found, ["asked", "io"])
            # The node writes its last line, and the terminal takes it.
            self.cluster.nodes["a"].terminate()


class Flood(Terminal):
    """Requests are denied without an end while others take locks, and the disk is slow."""
    what = "holders"

    @property
    def more(self):
        rules = "allow = acquire on public/\nallow = status\n"
        return pawltest.rights(self.folder, ("unix:uid:%d" % os.getuid(), rules), local=False)

    def read_until(self, text, enough):
        while not enough(text):
            if not select.select([self.reader], [], [], PATIENCE)[0]:
                self.fail("no more lines come, and there are %d of grants"
                          % text.count(b'"result":"ok"'))
            text += os.read(self.reader, 65536)
        return text

    def test_every_grant_has_its_line_and_those_that_were_denied_without_one_are_counted(self):
        asked, grants = 0, []
        for i in range(100):
            flood = [self.client.send("acquire", key="secret" + "k" * 400, lease_ms=1000)
                     for _ in range(40)]
            grants.append(self.acquire("public/%d" % i)["token"])
            for request in flood:
                with self.assertRaises(Refused) as refused:
                    self.client.answer(request)
                self.assertEqual(refused.exception.code, "denied")
                asked += 1
        text = self.read_until(b"", lambda text: text.count(b'"result":"ok"') == len(grants)
                               and text.endswith(b"\n"))
        self.cluster.nodes["a"].signal(signal.SIGTERM)
        text = self.read_until(text, lambda text: b'"action":"close"' in text
                               and text.endswith(b"\n"))
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([line["token"] for line in lines if line.get("result") == "ok"], grants)
        self.assertEqual([line["seq"] for line in lines], list(range(1, len(lines) + 1)))
        denied = len([line for line in lines if line.get("result") == "denied"])
        left_out = sum(line.get("denied_left_out", 0) for line in lines)
        self.assertGreater(denied, 300)
        self.assertGreater(left_out, 1000)
        self.assertEqual(denied + left_out, asked)
        self.assertEqual(sum(line.get("dropped", 0) for line in lines), 0)
        self.cluster.nodes["a"].wait_log(" warning audit_denied_left_out lines=")


@unittest.skipUnless(os.getuid() == 0, "only root can mount")
class FullDisk(AuditCase):
    """A small file system that becomes full, and has room again."""
    what = "admin"
    more = "strict = yes\n"

    def setUp(self):
        self.disk = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, self.disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700,size=256k", "none", self.disk],
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
        # On a busy machine the disk may be too slow for all lines; those that are missing are told.
        for before, line in zip(lines, lines[1:]):
            self.assertEqual(line["seq"], before["seq"] + line.get("dropped", 0) + 1)
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
        torn = '\n{"ts":"2026\n'

        def after():
            """Returns the whole lines behind the torn one."""
            with open(self.audit.path) as f:
                text = f.read()
            return text[text.index(torn) + len(torn):].split("\n")[:-1] if torn in text else []
        pawltest.wait_until(self, after)
        self.assertEqual(json.loads(after()[0])["action"], "open")


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
        folder = os.path.join(self.folder, "folder")
        os.mkdir(folder)
        self.fails("file = %s" % folder, "it is no file", "name another path")
        os.chmod(folder, 0o777)
        self.fails("file = %s/audit.log" % folder, "can be written to by others (mode 0777)",
                   "run chmod go-w " + folder)
        link = os.path.join(self.folder, "link")
        os.symlink("elsewhere", link)
        self.fails("file = %s" % link, "it is a symbolic link, which is not followed")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "elsewhere")))
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
