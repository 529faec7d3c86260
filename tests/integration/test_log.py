#!/usr/bin/env python3
"""test_log.py PAWLD PAWL: tests what the daemon's log says, and about whom, and that a slow reader
of the log delays nobody."""

import fcntl
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import cli_fixture
import pawltest
from cli_fixture import Case, DevCase
from pawltest import PATIENCE, Client, Closed, Cluster, Refused, split, wait_until
from test_tls import Certificates

F_SETPIPE_SZ = 1031


class UnreadCase(Case):
    """A node whose log is a small pipe that nobody reads."""

    def setUp(self):
        super().setUp()
        self.endpoint = "unix:" + os.path.join(self.folder, "node")
        self.log, end = os.pipe()
        self.addCleanup(os.close, self.log)
        fcntl.fcntl(end, F_SETPIPE_SZ, 4096)
        self.node = subprocess.Popen([cli_fixture.PAWLD, "--dev", "--listen", self.endpoint],
                                     stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=end)
        os.close(end)
        self.addCleanup(self.kill)
        self.node.stdout.readline()  # After this line the node votes.

    def kill(self):
        if self.node.poll() is None:
            self.node.kill()
        self.node.wait(PATIENCE)
        self.node.stdout.close()

    def say(self, client, seconds):
        """Sends requests that are logged, for this many seconds. None of them may wait for
        long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            before = time.monotonic()
            client.call("acquire", key=b"k" * 256, lease_ms=60000)
            client.call("break", key=b"k" * 256, now=True)
            self.assertLess(time.monotonic() - before, 2)
            time.sleep(0.005)


class Unread(UnreadCase):
    def test_a_log_that_nobody_reads_delays_nobody_and_lost_lines_are_counted(self):
        with Client(self.endpoint, timeout=5) as client:
            self.say(client, 7)  # These are more lines than the pipe and the queue hold.
        text = b""
        while b"log_lines_lost" not in text:
            text += os.read(self.log, 1 << 16)
        self.assertRegex(text.decode(), r"warning log_lines_lost lines=[1-9]\d* why=")

    def test_a_node_ends_although_nobody_reads_what_it_says(self):
        with Client(self.endpoint, timeout=5) as client:
            self.say(client, 1)
        self.node.terminate()
        self.assertEqual(self.node.wait(10), 0)


def reset(connection):
    """Closes the connection so that the other side sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Plain(DevCase):
    def line_of(self, *words):
        return self.node.wait_log(*words)

    def test_a_process_on_this_machine_is_named_by_its_user_and_number(self):
        who = " from=%s uid=%d pid=%d" % (self.endpoints, os.getuid(), os.getpid())
        with Client(self.endpoints) as client:
            with self.assertRaises(Refused):
                client.call("break", key="k")
            self.assertIn(who, self.line_of(" break_asked ", "key=k ",
                                            "identity=unix:uid:%d " % os.getuid()))
            client.socket.sendall(b"garbage")
            self.assertIn(who, self.line_of(" client_refused ", "not MessagePack-RPC"))

    def test_a_flood_says_how_many_lines_it_left_out(self):
        for _ in range(3):
            for _ in range(30):
                with Client(self.endpoints) as client:
                    client.socket.sendall(b"garbage")
                    client.read()  # This is the reason of the refusal.
            time.sleep(1)
        line = self.line_of(" client_refused ", "suppressed=")
        self.assertGreaterEqual(int(re.search(r"suppressed=(\d+)", line)[1]), 1)
        self.assertLessEqual(sum(" client_refused " in line for line in self.node.lines), 80)


class Reset(Case):
    def test_a_connection_that_is_reset_at_once_is_not_logged_as_an_unreachable_node(self):
        with Cluster(cli_fixture.PAWLD, masters=1) as cluster:
            node = cluster.nodes["a"]
            node.signal(signal.SIGSTOP)
            for _ in range(20):
                reset(socket.create_connection(split(cluster.clients["a"])))
            node.signal(signal.SIGCONT)
            with cluster.client("a") as client:
                client.call("ping")
            self.assertNotIn("can be reached", node.log())


class Strangers(Case):
    def test_strangers_have_addresses_and_do_not_hide_a_peer_that_fails(self):
        """While c is down, strangers connect to both listeners of a without a pause. Then something
        else answers at c's address."""
        with Cluster(cli_fixture.PAWLD) as cluster:
            node = cluster.nodes["a"]
            cluster.nodes["c"].kill()
            node.wait_log(" peer_link_failed ", "peer=c ", "from=%s " % cluster.peers["c"])
            over = threading.Event()

            def knock():
                while not over.is_set():
                    for address in (cluster.clients["a"], cluster.peers["a"]):
                        with socket.create_connection(split(address)) as stranger:
                            stranger.sendall(b"\xff" * 64)

            knocking = threading.Thread(target=knock)
            knocking.start()
            try:
                node.wait_log(" client_refused ", "suppressed=")
                node.wait_log(" stranger_refused ", "suppressed=", "from=127.0.0.1:")
                with socket.create_server(split(cluster.peers["c"])) as impostor:
                    impostor.settimeout(PATIENCE)
                    while not re.search("peer_link_failed peer=c .*it sent something that is not a "
                                        "packet", node.log()):
                        with impostor.accept()[0] as connection:  # It comes from a or b.
                            connection.sendall(b"\xff" * 64)
                            time.sleep(0.1)
                    node.wait_log(" peer_link_failed ", "peer=c ",
                                  "it sent something that is not a packet")
            finally:
                over.set()
                knocking.join()


class Full(Case):
    def test_a_node_that_is_full_says_so_and_who_filled_it(self):
        with Cluster(cli_fixture.PAWLD, masters=1, node="[limits]\nclients = 5\nadmin_clients = 0\n"
                                                        "keys = 4\nwaiters = 6\n") as cluster:
            node = cluster.nodes["a"]
            first = Client(cluster.unix("a"))
            for i in range(4):
                first.call("acquire", key="k%d" % i, lease_ms=60000,
                           owner="greedy" if i else "modest")
            line = node.wait_log(" full what=keys ", "used=4 limit=4 ", "owner=greedy")
            self.assertIn(" most=3 ", line)
            full = {row["name"]: row for row in first.call("status")["limits"]}
            self.assertEqual(full["keys"], {"name": "keys", "used": 4, "limit": 4,
                                            "reached": True, "most": 3, "whose": "greedy"})
            with self.assertRaises(Refused) as refused:
                first.call("acquire", key="one more", lease_ms=1000)
            self.assertEqual(refused.exception.code, "full")
            node.wait_log(" no_room what=acquire ", "pid=%d" % os.getpid())
            silent = [cluster.client("a") for _ in range(4)]
            end = time.monotonic() + PATIENCE
            # Another listener accepts them than the one that is asked.
            while first.call("status")["handshakes"] != 4:
                self.assertLess(time.monotonic(), end)
            for i in range(6):
                first.send("acquire", key="k1", lease_ms=1000, wait_ms=60000)
            node.wait_log(" full what=waiters ", "limit=6 most=6 ", "pid=%d" % os.getpid())
            self.check_command(cluster)
            # A newcomer can take the place of a silent connection.
            self.assertNotIn(" full what=clients ", node.log())
            others = [cluster.client("a") for _ in range(4)]
            for client in others:
                client.call("ping")  # Without a request it would make room for a newcomer.
            node.wait_log(" full what=clients used=5 limit=5 most=4 ", "from=127.0.0.1:")
            with cluster.client("a") as late, self.assertRaises((Refused, Closed,
                                                                 ConnectionResetError)):
                late.call("ping")
            node.wait_log(" client_refused ", "too many clients", "from=127.0.0.1:")
            for client in others + silent + [first]:
                client.close()
            for what in ("clients", "waiters"):
                node.wait_log(" full_over what=%s " % what)

    def test_a_limit_with_room_again_is_not_said_to_refuse(self):
        with Cluster(cli_fixture.PAWLD, masters=1, node="[limits]\nkeys = 40\n") as cluster, \
                cluster.client("a") as client:
            def keys():
                rows = {row["name"]: row for row in client.call("status")["limits"]}
                return rows["keys"]["used"], rows["keys"]["reached"]

            held = [client.call("acquire", key="k%d" % i, lease_ms=60000) for i in range(40)]
            cluster.nodes["a"].wait_log(" full what=keys ")
            self.assertEqual(keys(), (40, True))
            client.call("release", key="k0", lock_id=held[0]["lock_id"])
            wait_until(self, lambda: keys() == (39, False))
            self.assertNotIn("full_over", cluster.nodes["a"].log())

    def test_what_somebody_has_of_the_memory_is_in_bytes(self):
        with Cluster(cli_fixture.PAWLD, masters=1, node="[limits]\nmemory = 4m\n") as cluster, \
                cluster.client("a") as client:
            for size in (20000, 300):
                with self.assertRaises(Refused) as refused:
                    for i in range(10000):
                        client.call("acquire", key="k%d-%d" % (size, i), lease_ms=60000,
                                    owner="big" if i % 4 else "small", value=b"x" * size)
                self.assertEqual(refused.exception.code, "full")
            cluster.nodes["a"].wait_log(" full what=memory ", "owner=big")
            with Client(cluster.unix("a")) as local:
                row = next(r for r in local.call("status")["limits"] if r["name"] == "memory")
            self.assertEqual((row["reached"], row["whose"]), (True, "big"))
            self.assertTrue(0.6 < row["most"] / row["used"] < 0.9, row)

    def check_command(self, cluster):
        """The command says the same, and that the node is ready nevertheless."""
        for arguments, words in (
                (("status",), ("FULL", "keys, 4 of 4", "of greedy", "a has reached a limit")),
                (("status", "--check"), ("ready\n", "full: waiters, 6 of 6, at least 6 of them"))):
            done = cli_fixture.pawl(*arguments, endpoints=cluster.unix("a"))
            self.assertEqual(done.status, 0, done.out + done.err)
            for word in words:
                self.assertIn(word, done.out)


class Clients(Case):
    """Tests over TLS, with an administrator and three other clients."""
    writer = "allow = status\nallow = read, acquire, wait, watch on all/\n"
    rules = (("alice", pawltest.ALL), ("bob", "allow = status\nallow = read, watch on public/\n"),
             ("carol", writer), ("dave", writer))

    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder, nodes="a",
                                         clients=("alice", "bob", "carol", "dave"))

    def section(self, _, name):
        c = self.certificates
        return "ca = %s\ncert = %s\nkey = %s\n%s" % (c.path("ca.crt"), c.path(name + ".crt"),
                                                     c.path(name + ".key"),
                                                       pawltest.rights(self.folder, *self.rules)
                                                     if self.rules else "")

    def cluster(self):
        cluster = Cluster(cli_fixture.PAWLD, masters=1, tls=self.section)
        cluster.__enter__()
        self.addCleanup(cluster.__exit__)
        return cluster

    def connect(self, cluster, name):
        client = cluster.client("a", tls=self.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def command(self, cluster, name, *arguments):
        path = self.certificates.path
        return cli_fixture.pawl("clients", *arguments, "--endpoints",
                                "tls://" + cluster.clients["a"], "--cacert", path("ca.crt"),
                                "--cert", path(name + ".crt"), "--key", path(name + ".key"))

    def test_denied_requests_are_in_the_log_with_the_client_that_asked(self):
        cluster = self.cluster()
        bob = self.connect(cluster, "bob")
        where = " identity=bob from=127.0.0.1:%d" % bob.socket.getsockname()[1]
        for what, key, params in (("acquire", "x", {"key": "x", "lease_ms": 1000}),
                                  ("get", "secret", {"key": "secret"}),
                                  ("list", "s", {"prefix": "s"}),
                                  ("break", "public/1", {"key": "public/1"}),
                                  ("cluster_remove", "a", {"name": "a"}), ("drain", '""', {}),
                                  ("kick", '""', {"client": 1}),
                                  ("acquire", "two", {"locks": [{"key": "two"}],
                                                      "lease_ms": 1000})):
            with self.assertRaises(Refused) as refused:
                bob.call(what, **params)
            self.assertEqual(refused.exception.code, "denied")
            cluster.nodes["a"].wait_log(" denied what=%s key=%s%s " % (what, key, where))
        carol = self.connect(cluster, "carol")
        got = carol.call("acquire", key="all/1", lease_ms=60000)
        dave = self.connect(cluster, "dave")
        time.sleep(1)  # The lines of one second are counted together.
        with self.assertRaises(Refused):
            dave.call("acquire", key="all/1", lock_id=got["lock_id"], lease_ms=1000)
        cluster.nodes["a"].wait_log(" denied what=acquire lock_id=%s... identity=dave "
                                    % got["lock_id"][:8])

    def test_denied_requests_have_a_rate(self):
        cluster = self.cluster()
        bob = self.connect(cluster, "bob")
        for i in range(100):
            with self.assertRaises(Refused):
                bob.call("get", key="secret")
        time.sleep(1.1)
        with self.assertRaises(Refused):
            bob.call("get", key="secret")
        cluster.nodes["a"].wait_log(" denied ", "suppressed=")
        self.assertLess(sum(" denied " in line for line in cluster.nodes["a"].lines), 60)

    def test_connections_are_listed_with_their_identity_and_what_they_do(self):
        cluster = self.cluster()
        with Client(cluster.unix("a")) as local:
            local.call("acquire", key="all/1", lease_ms=60000)
            carol, bob = self.connect(cluster, "carol"), self.connect(cluster, "bob")
            for _ in range(3):
                carol.send("acquire", key="all/1", lease_ms=1000, wait_ms=60000)
            carol.call("ping")
            bob.call("watch", prefix="public/")
            shown = {c["identity"]: c
                     for c in self.succeeds(self.command(cluster, "alice",
                                                         "--json")).json["clients"]}
            local = "unix:uid:%d" % os.getuid()
            self.assertEqual(set(shown), {local, "alice", "bob", "carol"})
            self.assertEqual([shown["carol"][what]
                              for what in ("requests", "open", "waits", "watches")], [4, 3, 3, 0])
            self.assertEqual(shown["carol"]["address"],
                             "127.0.0.1:%d" % carol.socket.getsockname()[1])
            self.assertEqual(shown["bob"]["watches"], 1)
            self.assertEqual((shown[local]["uid"], shown[local]["pid"]), (os.getuid(), os.getpid()))
            self.assertNotIn("pid", shown["bob"])
            self.assertTrue(shown["alice"]["own"])
            self.assertGreater(shown["bob"]["bytes_in"], 0)
            self.assertGreater(shown["bob"]["bytes_out"], 0)
            table = self.succeeds(self.command(cluster, "alice", "a")).out
            self.assertRegex(table, r"(?m)^a/%d +carol +127\.0\.0\.1:\d+ "
                             % shown["carol"]["client"])
            own = self.succeeds(self.command(cluster, "bob", "--json")).json["clients"]
            self.assertEqual([c["identity"] for c in own], ["bob", "bob"])

    def test_an_administrator_ends_a_connection_and_nobody_else_does(self):
        cluster = self.cluster()
        bob = self.connect(cluster, "bob")
        bob.call("ping")
        [one] = [c for c in self.succeeds(self.command(cluster, "bob", "--json")).json["clients"]
                 if not c.get("own")]
        self.assertEqual(self.command(cluster, "carol", "kick", "a/%d" % one["client"]).status, 1)
        self.succeeds(self.command(cluster, "alice", "kick", "a/%d" % one["client"]))
        with self.assertRaises((Closed, ConnectionResetError)):
            bob.call("ping")
        cluster.nodes["a"].wait_log(" client_kicked client=%d kicked_identity=bob "
                                    "kicked_from=127.0.0.1:" % one["client"], "identity=alice ")
        again = self.command(cluster, "alice", "kick", str(one["client"]), "--json")
        self.assertEqual((again.status, again.json["error"]["code"]), (1, "not_found"))
        # All endpoints have answered, and none of them is that node.
        elsewhere = self.command(cluster, "alice", "kick", "b/1")
        self.assertEqual(elsewhere.status, 1)
        self.assertIn("not among the endpoints", elsewhere.err)

    def test_a_cluster_without_access_rules_says_who_may_do_what(self):
        self.rules = ()
        self.cluster().nodes["a"].wait_log(" warning no_access_rules ",
                                           "everybody with a certificate of this authority may do "
                                           "everything")


class ManyClients(DevCase):
    COUNT = 1100

    def test_very_many_connections_are_told_page_by_page(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < self.COUNT + 100:
            self.skipTest("this user may not open enough files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        connections = []
        for _ in range(self.COUNT):
            connections.append(Client(self.endpoints))
            self.addCleanup(connections[-1].close)
            connections[-1].call("ping")
        asker, seen, pages, after = connections[0], [], 0, {}
        more = True
        while more:
            page = asker.call("clients", limit=300, **after)
            self.assertLessEqual(len(page["clients"]), 300)
            seen += [c["client"] for c in page["clients"]]
            after, more, pages = {"after": seen[-1]}, page["more"], pages + 1
        self.assertEqual((len(seen), pages), (self.COUNT, 4))
        self.assertEqual(seen, sorted(set(seen)))
        self.assertEqual(len(asker.call("clients")["clients"]), 100)
        for limit in (0, 1001):
            with self.assertRaises(Refused):
                asker.call("clients", limit=limit)
        connections[seen.index(seen[500])].close()  # A page may begin after one that is gone.
        self.assertGreater(asker.call("clients", after=seen[500], limit=1)["clients"][0]["client"],
                           seen[500])
        told = self.succeeds(self.pawl("clients", "--json")).json["clients"]
        self.assertEqual(len(told), self.COUNT)


if __name__ == "__main__":
    cli_fixture.main()
