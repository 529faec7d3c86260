"""The admin port: metrics, health and status by HTTP, under trouble of the cluster and of those who
read."""

import http.client
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import adminhttp
import netns
import pawltest
from adminhttp import AdminCluster, fetch
from pawltest import split
from test_tls import Certificates

PAWLD = None
PAWL = None

# What is to be there on a master of a cluster of three, and with which labels.
FAMILIES = """
pawl_build_info{version} pawl_node_info{node,cluster,role} pawl_node_state{state}
pawl_quorum_required pawl_masters pawl_voting_masters pawl_quorum_reachable
pawl_quorum_probe_seconds_bucket{le} pawl_epoch pawl_epoch_complete
pawl_changes_total{kind,result} pawl_peer_up{peer} pawl_peer_round_trip_seconds{peer}
pawl_peer_link_resets_total{peer} pawl_requests_total{method,result}
pawl_request_duration_seconds_bucket{method,le} pawl_acquire_wait_seconds_bucket{le}
pawl_hold_seconds_bucket{le} pawl_leases{mode} pawl_keys pawl_promises pawl_waiters
pawl_longest_queue pawl_oldest_waiter_seconds pawl_oldest_holder_seconds pawl_grants_total{mode}
pawl_releases_total pawl_leases_lost_total{cause} pawl_events_total pawl_event_overflows_total
pawl_watches pawl_clients{listener} pawl_clients_refused_total{why} pawl_limit{name}
pawl_limit_used{name} pawl_state_file_writes_total pawl_state_file_failures_total
pawl_state_file_sync_seconds_bucket{le} pawl_paused_seconds_total pawl_clock_refused_total
pawl_contested_keys pawl_log_events_total{level} process_cpu_seconds_total
process_resident_memory_bytes process_open_fds process_max_fds process_start_time_seconds
""".split()


def families(text):
    """The names of the samples, each with the names of its labels."""
    found = set()
    for name in adminhttp.samples(text):
        name, _, labels = name.partition("{")
        keys = [pair.split("=")[0] for pair in labels.rstrip("}").split(",") if pair]
        found.add(name + ("{%s}" % ",".join(keys) if keys else ""))
    return found


class Shown(unittest.TestCase):
    """What the port of a cluster without trouble shows."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = AdminCluster(PAWLD, admin="groups = billing/, cron/").__enter__()
        cls.cluster.wait_ready("a")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def test_every_metric_is_there_with_its_labels(self):
        status, fields, text = self.cluster.fetch("a", "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(fields["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(set(FAMILIES) - families(text), set())

    def test_promtool_finds_nothing(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is missing (Debian: prometheus)")
        for path in self.cluster.admin.values():
            text = fetch(path, "/metrics")[2]
            done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(),
                                  capture_output=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_what_happens_to_locks_is_counted(self):
        before = {n: self.cluster.metrics(n) for n in "ab"}
        with self.cluster.client("a") as a, self.cluster.client("b") as b:
            held = a.call("acquire", key="billing/x", lease_ms=20000)
            waits = b.send("acquire", key="billing/x", lease_ms=20000, wait_ms=20000)
            b.call("ping")
            a.call("release", key="billing/x", lock_id=held["lock_id"])
            got = b.answer(waits)
            with self.assertRaises(pawltest.Refused):
                a.call("acquire", key="billing/x", lease_ms=20000)
            after = {n: self.cluster.metrics(n) for n in "ab"}
            b.call("release", key="billing/x", lock_id=got["lock_id"])

        def grown(node, name):
            return after[node].get(name, 0) - before[node].get(name, 0)

        self.assertEqual(grown("a", 'pawl_requests_total{method="acquire",result="ok"}'), 1)
        self.assertEqual(grown("a", 'pawl_requests_total{method="acquire",result="held"}'), 1)
        self.assertEqual(grown("a", 'pawl_requests_total{method="release",result="ok"}'), 1)
        self.assertEqual(grown("b", 'pawl_grants_total{mode="exclusive"}'), 1)
        self.assertEqual(grown("b", 'pawl_acquire_wait_seconds_count'), 1)
        self.assertEqual(grown("b", 'pawl_group_grants_total{group="billing/"}'), 1)
        self.assertEqual(grown("a", 'pawl_group_holders{group="billing/"}'), 1)
        self.assertEqual(grown("a", 'pawl_leases{mode="exclusive"}'), 1)
        self.assertEqual(grown("a", 'pawl_releases_total'), 1)
        self.assertEqual(grown("a", 'pawl_hold_seconds_count'), 1)
        # Nothing that a client has named is a label.
        self.assertNotIn("billing/x", self.cluster.fetch("a", "/metrics")[2])

    def test_a_waiter_is_counted_while_it_waits(self):
        with self.cluster.client("a") as a, self.cluster.client("b") as b:
            held = a.call("acquire", key="cron/y", lease_ms=20000)
            waits = b.send("acquire", key="cron/y", lease_ms=20000, wait_ms=20000)
            end = time.monotonic() + pawltest.PATIENCE
            while True:
                m = self.cluster.metrics("b")
                longest = max(self.cluster.metrics(n)["pawl_longest_queue"] for n in "abc")
                if m["pawl_waiters"] == 1 and longest == 1:
                    break
                self.assertLess(time.monotonic(), end)
            self.assertEqual(m['pawl_group_waiters{group="cron/"}'], 1)
            self.assertGreater(self.cluster.metrics("b")["pawl_oldest_waiter_seconds"], 0)
            a.call("release", key="cron/y", lock_id=held["lock_id"])
            got = b.answer(waits)
            m = self.cluster.metrics("b")
            self.assertEqual((m["pawl_waiters"], m["pawl_oldest_waiter_seconds"],
                              m['pawl_group_waiters{group="cron/"}']), (0, 0, 0))
            b.call("release", key="cron/y", lock_id=got["lock_id"])

    def test_status_is_that_of_the_client_protocol(self):
        shown = self.cluster.status("a")
        with self.cluster.client("a") as client:
            said = client.call("status")
        self.assertEqual(set(shown), set(said))
        self.assertTrue(shown["ready"])
        self.assertEqual(shown["config_hash"], "%016x" % said["config_hash"])
        self.assertEqual(shown["masters"], ["a", "b", "c"])
        # A node has told its version to the others when it voted with them.
        self.assertEqual([p["version"] for p in shown["peers"]], [shown["version"]] * 3)

    def test_health(self):
        for path in ("/livez", "/healthz"):
            self.assertEqual(self.cluster.fetch("a", path)[0::2], (200, "ok\n"))
        self.assertEqual(self.cluster.fetch("a", "/readyz")[0::2], (200, "ready\n"))
        self.assertEqual(self.cluster.fetch("a", "/readyz?verbose")[2],
                         "[+]loop ok\n[+]drain ok\n[+]vote ok\n[+]quorum ok\nready\n")
        done = subprocess.run([PAWL, "status", "--check", "--endpoints",
                               self.cluster.clients["a"]], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "ready\n"))

    def test_only_get_and_head_of_what_is_there(self):
        self.assertEqual(self.cluster.fetch("a", "/nothing")[0], 404)
        status, fields, text = self.cluster.fetch("a", "/metrics", method="HEAD")
        self.assertEqual((status, text), (200, ""))
        self.assertGreater(int(fields["Content-Length"]), 1000)
        status, fields, _ = self.cluster.fetch("a", "/metrics", method="POST")
        self.assertEqual((status, fields["Allow"], fields["Connection"]),
                         (405, "GET, HEAD", "close"))
        status, fields, _ = self.cluster.fetch("a", "/", headers={"X": "x" * 10000})
        self.assertEqual((status, fields["Connection"]), (431, "close"))

    def raw(self, data):
        """Sends bytes and returns all that comes until the node closes."""
        with socket.create_connection(split(self.cluster.admin["a"]), pawltest.PATIENCE) as s:
            s.sendall(data)
            got = b""
            while True:
                try:
                    more = s.recv(1 << 16)
                except ConnectionResetError:
                    return got
                if not more:
                    return got
                got += more

    def test_a_smuggled_request_is_not_read(self):
        hidden = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
        for head in (b"Transfer-Encoding: chunked\r\n", b"Content-Length: %d\r\n" % len(hidden),
                     b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(hidden)):
            got = self.raw(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n" + hidden)
            self.assertEqual(got.count(b"HTTP/1.1 "), 1, got)
            self.assertIn(got.split()[1], (b"400", b"413"))

    def test_requests_one_behind_the_other_are_answered_in_order(self):
        got = self.raw(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
                       b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                       b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", got), [b"200", b"404", b"200"])


class Trouble(unittest.TestCase):
    """What the port says when the cluster, or the node, is in trouble."""

    def cluster(self, **options):
        cluster = AdminCluster(PAWLD, **options)
        self.addCleanup(cluster.__exit__)
        cluster.__enter__()
        for n in cluster.names:
            cluster.wait_ready(n)
        return cluster

    def test_without_a_quorum_a_node_lives_and_is_not_ready(self):
        cluster = self.cluster(cluster="request_timeout = 500ms\n")
        for n in "bc":
            cluster.nodes[n].signal(signal.SIGSTOP)
        took, text = cluster.wait_ready("a", 503)
        self.assertLess(took, 0.5 + 1)
        self.assertIn("[-]quorum failed: 1 of 2\n", text)
        self.assertIn("[+]vote ok\n", text)
        self.assertEqual(cluster.fetch("a", "/livez")[0], 200)
        self.assertEqual(cluster.metrics("a")["pawl_quorum_reachable"], 0)
        self.assertFalse(cluster.status("a")["ready"])
        done = subprocess.run([PAWL, "status", "--check", "--endpoints", cluster.clients["a"]],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("not ready: quorum: "), done.stdout)
        for n in "bc":
            cluster.nodes[n].signal(signal.SIGCONT)
        cluster.wait_ready("a")

    def test_a_drain_is_announced_before_the_vote_ends(self):
        cluster = self.cluster(admin="drain_wait = 3s")
        cluster.nodes["a"].signal(signal.SIGTERM)
        _, text = cluster.wait_ready("a", 503)
        self.assertIn("[-]drain failed: a planned stop has begun\n", text)
        self.assertIn("[+]vote ok\n", text)
        self.assertEqual(cluster.status("a")["state"], "voting")
        self.assertEqual(cluster.nodes["a"].wait(), 0)

    def test_check_without_an_admin_port_asks_a_quorum_itself(self):
        with pawltest.Cluster(PAWLD, cluster="request_timeout = 500ms\n") as cluster:
            command = [PAWL, "status", "--check", "--endpoints", cluster.clients["a"]]
            self.assertEqual(subprocess.run(command, stdout=subprocess.DEVNULL).returncode, 0)
            for n in "bc":
                cluster.nodes[n].signal(signal.SIGSTOP)
            done = subprocess.run(command + ["--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertFalse(json.loads(done.stdout)["ready"])
            done = subprocess.run([PAWL, "status", "--check", "--endpoints", cluster.clients["b"],
                                   "--timeout", "1s"], capture_output=True)
            self.assertEqual(done.returncode, 3)

    def test_a_cut_in_one_direction_is_seen(self):
        reason = netns.why_not()
        if reason:
            self.skipTest(reason)
        net = netns.Net()
        self.addCleanup(net.close)
        folder = tempfile.mkdtemp(prefix="pawl-admin-")
        self.addCleanup(shutil.rmtree, folder)
        for n in "abc":
            net.add(n)
        masters = "".join("%s = %s:7118\n" % (n, net.address(n)) for n in "abc")
        for n in "abc":
            with open(os.path.join(folder, n), "w") as f:
                f.write("[node]\nname = %s\nstate_dir = %s/state-%s\ninsecure = yes\n"
                        "[cluster]\nname = t\nrequest_timeout = 500ms\n[cluster.masters]\n%s"
                        "[admin]\nlisten = unix:%s/%s.sock\n"
                        % (n, folder, n, masters, folder, n))
            process = net.popen(n, [PAWLD, "--config", os.path.join(folder, n)],
                                stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        end = time.monotonic() + pawltest.PATIENCE

        def wait(status):
            while True:
                try:
                    got, _, text = fetch("unix:%s/a.sock" % folder, "/readyz?verbose")
                except OSError:
                    got, text = 0, "it does not listen yet"
                if got == status:
                    return text
                self.assertLess(time.monotonic(), end, text)
                time.sleep(0.02)

        wait(200)
        # What a sends arrives, and nothing of what the others send.
        for n in "bc":
            net.cut(n, "a", both=False)
        self.assertIn("[-]quorum failed: 1 of 2", wait(503))
        net.heal()
        wait(200)


class BadReaders:
    """Those who read slowly, send garbage, or ask without end: a process of its own, so that they
    share no interpreter with whoever measures."""

    def __init__(self, address):
        self.address = address
        self.over = multiprocessing.Event()
        self.process = multiprocessing.Process(target=self.run)
        self.process.start()

    def connect(self):
        s = socket.create_connection(split(self.address), pawltest.PATIENCE)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return s

    def read_slowly(self):
        kept = []
        while not self.over.is_set():
            kept.append(self.connect())
            try:
                kept[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            except OSError:
                pass
            if len(kept) > 20:
                kept.pop(0).close()
        for s in kept:
            s.close()

    def send(self, data):
        while not self.over.is_set():
            with self.connect() as s:
                try:
                    s.sendall(data)
                    s.recv(100)
                except OSError:
                    pass

    def scrape(self):
        while not self.over.is_set():
            try:
                fetch(self.address, "/metrics")
            except (OSError, http.client.HTTPException):
                pass

    def run(self):
        threads = [threading.Thread(target=t, args=a) for t, a in (
            (self.read_slowly, ()), (self.scrape, ()),
            (self.send, (b"\x16\x03\x01" + os.urandom(2000),)),
            (self.send, (b"GET / HTTP/1.1\r\nX: " + b"x" * 20000,)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def end(self):
        self.over.set()
        self.process.join()


def p99(client):
    times = []
    for _ in range(3000):
        begun = time.monotonic()
        client.call("get", key="k")
        times.append(time.monotonic() - begun)
    return sorted(times)[int(len(times) * 0.99)]


class Readers(unittest.TestCase):
    """Whoever reads badly, or is many, delays nobody."""

    def test_bad_readers_do_not_delay_clients(self):
        with AdminCluster(PAWLD, masters=1) as cluster, cluster.client("a") as client:
            cluster.wait_ready("a")
            alone = p99(client)
            readers = BadReaders(cluster.admin["a"])
            try:
                beside = p99(client)
            finally:
                readers.end()
            self.assertEqual(cluster.fetch("a", "/livez")[0], 200)
        sys.stderr.write("p99 alone %.2f ms, next to bad readers %.2f ms\n"
                         % (alone * 1000, beside * 1000))
        # The readers take processor time, too, on which this machine may be short.
        self.assertLess(beside, max(20 * alone, 0.1))

    def test_more_connections_than_there_is_room_for(self):
        with AdminCluster(PAWLD, masters=1) as cluster:
            cluster.wait_ready("a")
            many = [socket.create_connection(split(cluster.admin["a"]), pawltest.PATIENCE)
                    for _ in range(100)]
            self.assertEqual(cluster.fetch("a", "/livez")[0], 200)
            # The oldest have made room.
            self.assertEqual(many[0].recv(1), b"")
            for s in many:
                s.close()


class OverTls(unittest.TestCase):
    """Outside of loopback, a certificate says who reads."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-admin-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.certificates = c = Certificates(folder, nodes="a",
                                            clients=("alice", "prometheus", "bob"))
        port = pawltest.free_port()
        cls.address = "127.0.0.1:%d" % port

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\nclient_auth = required\n%s" \
                "[admin]\nlisten = 0.0.0.0:%d\nreaders = prometheus\n" % (
                    c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
                    pawltest.rights(folder, ("alice", pawltest.ALL),
                                    ("everybody", pawltest.KEYS)), port)

        cls.cluster = pawltest.Cluster(PAWLD, masters=1, tls=section).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def test_administrators_and_readers(self):
        c = self.certificates
        for name, status in (("alice", 200), ("prometheus", 200), ("bob", 403)):
            self.assertEqual(fetch(self.address, "/metrics", tls=c.context(name))[0], status)
        self.cluster.nodes["a"].wait_log("admin_refused", "readers")
        metrics = adminhttp.samples(fetch(self.address, "/metrics", tls=c.context("alice"))[2])
        self.assertIn('pawl_certificate_not_after_seconds{file="%s"}' % c.path("a.crt"), metrics)
        with self.assertRaises(OSError):
            fetch(self.address, "/metrics", tls=c.context())
        with self.assertRaises((OSError, http.client.HTTPException)):
            fetch(self.address, "/metrics")

    def reader(self):
        """A connection that stays open, and has read once."""
        reader = http.client.HTTPSConnection(*split(self.address), timeout=pawltest.PATIENCE,
                                             context=self.certificates.context("prometheus"))
        self.addCleanup(reader.close)
        self.read(reader)
        return reader

    def read(self, reader):
        reader.request("GET", "/livez")
        answer = reader.getresponse()
        self.assertEqual((answer.status, answer.read()), (200, b"ok\n"))

    def test_connections_without_a_certificate_make_room_first(self):
        reader = self.reader()
        kept = reader.sock
        many = [socket.create_connection(split(self.address), pawltest.PATIENCE)
                for _ in range(40)]
        self.assertEqual(many[0].recv(1), b"")
        self.read(reader)
        self.assertIs(reader.sock, kept)
        for s in many:
            s.close()

    def test_a_reload_closes_connections(self):
        reader = self.reader()
        self.cluster.nodes["a"].signal(signal.SIGHUP)
        self.assertEqual(reader.sock.recv(1), b"")
        self.reader()


class Log(unittest.TestCase):
    def test_lines_are_objects_of_json(self):
        cluster = pawltest.Cluster(PAWLD, masters=1, node="log_format = json\n")
        self.addCleanup(cluster.__exit__)
        cluster.write_configs()
        node = cluster.start("a")
        node.wait_log('"event":"voting"')
        with cluster.client("a") as client:
            client.call("acquire", key=b"\xff", lease_ms=20000)
            client.call("break", key=b"\xff", now=True)
        node.wait_log('"event":"broken"')
        node.terminate()
        lines = [json.loads(line) for line in node.lines if line]
        self.assertTrue(all({"ts", "level", "event"} <= set(line) for line in lines))
        broken = next(line for line in lines if line["event"] == "broken")
        self.assertEqual(broken["key_hex"], "ff")
        started = next(line for line in lines if line["event"] == "started")
        self.assertEqual((started["level"], started["node"]), ("notice", "a"))


def main():
    global PAWL
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())


if __name__ == "__main__":
    main()
