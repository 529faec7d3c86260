"""Tests pawld as a process: --dev, --check-config, signals, reloads, planned stops, and what it
refuses to start with."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from pawltest import Client, Cluster, Node, Refused, lock_id

PAWLD = None
SHORT_TIMES = "max_lease = 1s\nrequest_timeout = 200ms\npromise_timeout = 400ms"


def run(*arguments):
    done = subprocess.run([PAWLD, *arguments], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


class Dev(unittest.TestCase):
    def start(self, *more):
        began = time.monotonic()
        node = Node([PAWLD, "--dev", "--listen", "127.0.0.1:0", *more])
        lines = [node.process.stdout.readline().decode() for _ in range(3)]
        return node, lines, time.monotonic() - began

    def test_dev_is_ready_in_under_a_second_says_where_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as tmp:
            os.environ["TMPDIR"] = tmp
            try:
                node, lines, took = self.start()
            finally:
                del os.environ["TMPDIR"]
            self.assertLess(took, 1.0)
            self.assertRegex(lines[1], r"^endpoint: 127\.0\.0\.1:\d+\n$")
            with Client(lines[1].split()[1]) as client:
                self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                               lock_id=lock_id())["token"], 0)
            self.assertEqual(len(os.listdir(tmp)), 1)
            self.assertEqual(node.terminate(), 0)
            self.assertEqual(os.listdir(tmp), [])

    def test_a_port_that_is_taken_is_named(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            address = "127.0.0.1:%d" % s.getsockname()[1]
            status, _, err = run("--dev", "--listen", address)
        self.assertEqual(status, 1)
        self.assertIn(address, err)
        self.assertIn("in use", err)
        self.assertIn("--listen 127.0.0.1:0", err)

    def test_dev_ends_with_its_terminal(self):
        node, _, _ = self.start()
        node.signal(signal.SIGHUP)
        self.assertEqual(node.wait(), 0)

    def test_dev_leaves_loopback_only_if_somebody_says_insecure(self):
        status, _, err = run("--dev", "--listen", "0.0.0.0:0")
        self.assertEqual(status, 2)
        self.assertIn("loopback", err)
        self.assertIn("add --insecure", err)
        node = Node([PAWLD, "--dev", "--listen", "0.0.0.0:0", "--insecure"])
        self.addCleanup(node.kill)
        lines = [node.process.stdout.readline().decode() for _ in range(2)]
        self.assertIn("INSECURE", lines[0])
        node.wait_log(" insecure ", "other machines")
        # It answers at each address of the machine, as at that of a container.
        with Client("127.9.8.7:" + lines[1].rsplit(":", 1)[1].strip()) as client:
            self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                           lock_id=lock_id())["token"], 0)
        self.assertEqual(node.terminate(), 0)


class Commands(unittest.TestCase):
    def test_version_and_help(self):
        self.assertRegex(run("--version")[1], r"^pawld \d+\.\d+\.\d+\nspeaks versions 1 to 1 of "
                                              r"the protocol between nodes\n$")
        self.assertIn("--check-config", run("--help")[1])

    def test_a_wrong_command_line_is_status_2(self):
        self.assertEqual(run()[0], 2)
        self.assertEqual(run("--nonsense")[0], 2)

    def test_check_config_names_the_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write("[node]\nname = a\nnonsense = 1\n")
            f.flush()
            for arguments in (["--check-config", f.name], ["--check-config", "--config", f.name],
                              ["--config", f.name]):
                status, _, err = run(*arguments)
                self.assertEqual(status, 2)
                self.assertIn(f.name + ":3: [node] has no setting nonsense", err)

    def test_check_config_reads_the_certificates(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write("[node]\nname = a\n[cluster]\nname = t\n[cluster.masters]\na = 127.0.0.1:1\n"
                    "[tls]\nca = /nonexistent/ca\ncert = /nonexistent/c\nkey = /nonexistent/k\n")
            f.flush()
            status, _, err = run("--check-config", f.name)
            self.assertEqual(status, 2)
            self.assertIn("/nonexistent/", err)


class OneMaster(unittest.TestCase):
    """A cluster of one node, so a lease survives only because of this node."""

    def cluster(self, **options):
        return Cluster(PAWLD, 1, **options)

    def test_leases_survive_a_planned_stop(self):
        with self.cluster() as cluster:
            held = lock_id()
            with cluster.client("a") as client:
                token = client.call("acquire", key="k", lease_ms=30000, lock_id=held,
                                    value="v")["token"]
            node = cluster.nodes["a"]
            self.assertEqual(node.terminate(), 0)
            node.wait_log(" drained ")
            self.assertTrue(os.path.exists(os.path.join(cluster.dir, "state-a", "drained")))
            cluster.start("a").wait_log(" voting ", "drain")
            self.assertFalse(os.path.exists(os.path.join(cluster.dir, "state-a", "drained")))
            with cluster.client("a") as client:
                found = client.call("get", key="k")
                self.assertEqual((found["held"], found["token"]), (True, token))
                with self.assertRaises(Refused) as refused:
                    client.call("acquire", key="k", lease_ms=1000, lock_id=lock_id())
                self.assertEqual(refused.exception.code, "held")
                client.call("extend", key="k", lock_id=held, lease_ms=1000)

    def test_a_start_that_fails_leaves_the_planned_stop_for_the_next_one(self):
        with self.cluster() as cluster:
            held = lock_id()
            with cluster.client("a") as client:
                client.call("acquire", key="k", lease_ms=30000, lock_id=held)
            self.assertEqual(cluster.nodes["a"].terminate(), 0)
            drained = os.path.join(cluster.dir, "state-a", "drained")
            with open(cluster.config("a")) as f:
                good = f.read()
            state = os.path.join(cluster.dir, "state-a")
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                port = "127.0.0.1:%d" % taken.getsockname()[1]
                bad = {
                    "a client's port in use": (good.replace(cluster.clients["a"], port), "in use"),
                    "the peers' port in use": (good.replace(cluster.peers["a"] + "\nlisten_client",
                                                            port + "\nlisten_client"), "in use"),
                    "a certificate that is not there": (
                        good + "[tls]\nca = %s/x\ncert = %s/x\nkey = %s/x\n" % (
                            state, state, state), "/x"),
                }
                for story, (text, expected) in bad.items():
                    with self.subTest(story):
                        self.assertNotEqual(text, good)
                        with open(cluster.config("a"), "w") as f:
                            f.write(text)
                        status, _, err = run("--config", cluster.config("a"))
                        self.assertEqual(status, 1)
                        self.assertIn(expected, err)
                        self.assertTrue(os.path.exists(drained))
            with open(cluster.config("a"), "w") as f:
                f.write(good)
            cluster.start("a").wait_log(" voting ", "drain")
            self.assertFalse(os.path.exists(drained))
            with cluster.client("a") as client:
                client.call("extend", key="k", lock_id=held, lease_ms=1000)

    def test_a_damaged_side_file_is_ignored_and_the_node_waits(self):
        with self.cluster(cluster=SHORT_TIMES) as cluster:
            with cluster.client("a") as client:
                token = client.call("acquire", key="k", lease_ms=1000, lock_id=lock_id())["token"]
            cluster.nodes["a"].terminate()
            with open(os.path.join(cluster.dir, "state-a", "drained"), "r+b") as f:
                f.seek(40)
                f.write(b"XXXX")
            node = cluster.start("a")
            node.wait_log(" side_file_ignored ")
            node.wait_log(" voting ", "waiting")
            with cluster.client("a") as client:
                self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                               lock_id=lock_id())["token"], token)

    def test_after_a_kill_the_node_recovers_by_waiting_and_tokens_grow(self):
        with self.cluster(cluster=SHORT_TIMES) as cluster:
            with cluster.client("a") as client:
                token = client.call("acquire", key="k", lease_ms=1000, lock_id=lock_id())["token"]
            cluster.nodes["a"].kill()
            began = time.monotonic()
            cluster.start("a").wait_log(" voting ", "waiting")
            self.assertGreater(time.monotonic() - began, 1.0)
            with cluster.client("a") as client:
                self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                               lock_id=lock_id())["token"], token)

    def test_a_state_directory_has_one_user(self):
        with self.cluster() as cluster:
            other = cluster.config("a") + "2"
            with open(cluster.config("a")) as f, open(other, "w") as g:
                g.write(f.read().replace(cluster.clients["a"] + ", ",
                                         "127.0.0.1:0, ").replace("a.sock", "a2.sock"))
            status, _, err = run("--config", other)
            self.assertEqual(status, 1)
            self.assertIn("in use by another pawld", err)

    def test_a_state_directory_of_another_cluster_is_refused(self):
        with self.cluster() as cluster:
            cluster.nodes["a"].terminate()
            with open(cluster.config("a")) as f:
                text = f.read()
            with open(cluster.config("a"), "w") as f:
                f.write(text.replace("name = test", "name = other"))
            status, _, err = run("--config", cluster.config("a"))
            self.assertEqual(status, 1)
            self.assertIn("belongs to cluster test", err)

    def test_a_reload_applies_good_settings_and_refuses_wrong_ones(self):
        with self.cluster() as cluster:
            node = cluster.nodes["a"]
            with open(cluster.config("a"), "a") as f:
                f.write("[limits]\nclients = 1\n")
            node.signal(signal.SIGHUP)
            node.wait_log(" reloaded ")
            with open(cluster.config("a"), "a") as f:
                f.write("nonsense = 1\n")
            node.signal(signal.SIGHUP)
            self.assertIn("has no setting nonsense", node.wait_log(" reload_refused "))
            with cluster.client("a") as client:
                self.assertEqual(client.call("ping")["node"], "a")

    def test_a_node_serves_its_clients_while_it_reads_files_that_take_long(self):
        with self.cluster() as cluster, tempfile.TemporaryDirectory() as tmp:
            node, rules = cluster.nodes["a"], os.path.join(tmp, "rules")
            os.mkfifo(rules)  # A reader waits until somebody writes.
            with open(cluster.config("a"), "a") as f:
                f.write("[acl]\nfile = %s\n" % rules)
            node.signal(signal.SIGHUP)
            # This open returns when the node reads.
            with open(rules, "w") as slow, cluster.client("a") as client:
                node.signal(signal.SIGHUP)
                self.assertEqual(client.call("ping")["node"], "a")
                self.assertGreater(client.call("acquire", key="k", lease_ms=1000,
                                               lock_id=lock_id())["token"], 0)
                slow.write("[plain]\nallow = all on *\n")
            node.wait_log(" reloaded ")
            with open(rules, "w") as again:  # Another reload was requested meanwhile.
                again.write("[nobody]\nallow = nothing\n")
            self.assertIn("'nothing' is not a right", node.wait_log(" reload_refused "))

    def test_signals_do_not_kill_a_node_that_ends(self):
        with self.cluster() as cluster:
            node = cluster.nodes["a"]
            while node.process.poll() is None:
                node.signal(signal.SIGTERM)
            self.assertEqual(node.wait(), 0)

    def test_systemd_hears_what_happens(self):
        with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX,
                                                                 socket.SOCK_DGRAM) as s:
            s.bind(os.path.join(tmp, "notify"))
            s.settimeout(10)
            os.environ["NOTIFY_SOCKET"] = os.path.join(tmp, "notify")
            try:
                cluster = self.cluster()
                with cluster:
                    def hear(word):
                        while word not in s.recv(4096):
                            pass
                    hear(b"READY=1")
                    cluster.nodes["a"].signal(signal.SIGHUP)
                    hear(b"RELOADING=1\nMONOTONIC_USEC=")
                    hear(b"READY=1")
                    cluster.nodes["a"].signal(signal.SIGTERM)
                    hear(b"STOPPING=1")
                    self.assertEqual(cluster.nodes["a"].wait(), 0)
            except socket.timeout:
                self.skipTest("built without libsystemd")
            finally:
                del os.environ["NOTIFY_SOCKET"]


class Unit(unittest.TestCase):
    """What share/pawld.service asks of systemd. tests/packages has systemd read it."""

    def setUp(self):
        build = os.path.dirname(os.path.dirname(os.path.dirname(PAWLD)))
        with open(os.path.join(build, "share", "pawld.service"), encoding="utf-8") as f:
            unit, service = f.read().split("[Service]")
        self.unit, self.service = unit.splitlines(), service.splitlines()

    def test_a_node_is_never_given_up(self):
        self.assertIn("StartLimitIntervalSec=0", self.unit)
        self.assertIn("Restart=on-failure", self.service)

    def test_the_watchdog_hears_the_loop(self):
        notifies = "Type=notify" in self.service
        # A node that cannot answer the watchdog would be ended by it.
        self.assertEqual("WatchdogSec=30s" in self.service, notifies)
        if not notifies:
            self.skipTest("built without libsystemd")
        with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX,
                                                                 socket.SOCK_DGRAM) as s:
            s.bind(os.path.join(tmp, "notify"))
            s.settimeout(20)
            told = {"NOTIFY_SOCKET": os.path.join(tmp, "notify"), "WATCHDOG_USEC": "300000"}
            os.environ.update(told)
            try:
                node = Node([PAWLD, "--dev", "--listen", "127.0.0.1:0"])
            finally:
                for name in told:
                    del os.environ[name]
            self.addCleanup(node.kill)
            alive = 0
            while alive < 3:
                alive += s.recv(4096) == b"WATCHDOG=1"
            node.signal(signal.SIGSTOP)
            os.waitpid(node.process.pid, os.WUNTRACED)
            s.settimeout(0.5)
            with self.assertRaises(socket.timeout):
                while True:  # What it said before it stood still.
                    s.recv(4096)
            node.signal(signal.SIGCONT)
            s.settimeout(20)
            self.assertEqual(s.recv(4096), b"WATCHDOG=1")
            self.assertEqual(node.terminate(), 0)


if __name__ == "__main__":
    PAWLD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
