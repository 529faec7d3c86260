"""test_redis_operator.py PAWLD: what an operator allows to clients of Redis, at real nodes: locks
without an end, overwriting, Redlock, mapped scripts; Sentinel, TLS, Unix sockets."""

import hashlib
import os
import signal
import socket
import subprocess
import threading
import unittest

import pawltest
from auditcase import Audit
from pawltest import PATIENCE, wait_until
from rediscluster import RedisCluster, command, redis
from test_tls import Certificates

SHORT = "max_lease = 4s\nrequest_timeout = 1s\npromise_timeout = 2s\n"


def reload(cluster, name, change):
    """Changes the file of a node, and waits until the node has read it."""
    with open(cluster.config(name), encoding="utf-8") as f:
        text = f.read()
    with open(cluster.config(name), "w", encoding="utf-8") as f:
        f.write(change(text))
    node = cluster.nodes[name]
    start = len(node.log())
    node.signal(signal.SIGHUP)
    node.wait_log(" reloaded", start=start)


class WithoutEnd(unittest.TestCase):
    def setUp(self):
        self.cluster = RedisCluster(PAWLD, "without_end = keep\n", cluster=SHORT).__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.a, self.b = self.cluster.redis("a"), self.cluster.redis("b")
        self.addCleanup(self.a.close)
        self.addCleanup(self.b.close)
        self.native = self.cluster.client("c")
        self.addCleanup(self.native.close)

    def held_ms(self, key):
        return self.native.call("get", key=key, consistency="quorum").get("held_ms", 0)

    def taken(self, key):
        """Tries to take the key. A node may have died only now."""
        try:
            return self.b.set(key, "w", nx=True, px=500)
        except redis.exceptions.ResponseError as e:
            self.assertIn("NOREPLICAS", str(e))
            return False

    def test_a_lock_without_an_end_lasts_until_it_is_released(self):
        self.assertTrue(self.a.setnx("k", "v"))
        self.assertFalse(self.b.setnx("k", "w"))
        reload(self.cluster, "a", lambda text: text + "\n")
        # Its holder may be gone; the lock lasts for longer than two leases.
        self.a.close()
        wait_until(self, lambda: self.held_ms("k") > 8500)
        self.assertEqual((self.b.ttl("k"), self.b.pttl("k")), (-1, -1))
        self.assertTrue(self.native.call("get", key="k", consistency="quorum")["without_end"])
        self.assertEqual(self.b.delete("k"), 1)
        self.assertTrue(self.b.set("k", "w", nx=True, px=500))
        self.cluster.nodes["a"].wait_log("kept_lock_lost")

    def test_to_let_go_of_it_in_vain_leaves_it_without_an_end(self):
        native = self.cluster.client("a")
        self.addCleanup(native.close)
        for method, more in (("transfer", {"to": "nobody"}), ("release", {"expect": "other"})):
            self.assertTrue(self.a.setnx(method, "v"))
            lock_id = native.call("get", key=method, consistency="quorum")["lock_id"]
            with self.assertRaises(pawltest.Refused):
                native.call(method, key=method, lock_id=lock_id, **more)
        for method in "transfer", "release":
            wait_until(self, lambda: self.held_ms(method) > 4500)
            self.assertEqual(self.a.ttl(method), -1)
            self.assertEqual(self.a.delete(method), 1)
        self.assertNotIn("kept_lock_lost", self.cluster.nodes["a"].log())

    def test_the_connection_of_one_that_was_lost_is_closed(self):
        with self.cluster.socket("a") as taker, self.cluster.socket("a") as other:
            taker.sendall(command("SETNX", "k", "v"))
            self.assertEqual(taker.recv(100), b":1\r\n")
            self.native.call("break", key="k", now=True,
                             token=self.native.call("get", key="k", consistency="quorum")["token"])
            self.assertTrue(self.b.set("k", "w", nx=True, px=3000))
            self.assertEqual(taker.recv(100), b"")
            other.sendall(command("GET", "k"))
            self.assertEqual(other.recv(100), b"$1\r\nw\r\n")
        self.cluster.nodes["a"].wait_log("kept_lock_lost")

    def test_its_extensions_are_audited(self):
        path = os.path.join(self.cluster.dir, "audit.log")
        alone = RedisCluster(PAWLD, "without_end = keep\n[audit]\nfile = %s\nwhat = all\n" % path,
                             masters=1, cluster=SHORT).__enter__()
        self.addCleanup(alone.__exit__)
        with alone.redis("a") as r, alone.client("a") as native:
            self.assertTrue(r.setnx("k", "v"))
            token = native.call("get", key="k", consistency="quorum")["token"]
        lines = Audit(path).wait(2, action="extend", key="k", result="ok", cause="without_end")
        self.assertEqual([line["token"] for line in lines], [token] * len(lines))
        # The length is the whole lease, less the drift, from when the extension began.
        self.assertTrue(all(line["valid_ms"] == 3960 and line["took_us"] < 1000000
                            for line in lines))

    def test_it_ends_with_its_node(self):
        lock = self.a.lock("n")
        self.assertTrue(lock.acquire(blocking=False))
        self.assertEqual(self.b.ttl("n"), -1)
        self.cluster.nodes["a"].kill()
        wait_until(self, lambda: self.taken("n"))

    def test_it_ends_when_its_holder_may_not_have_it(self):
        self.assertTrue(self.a.set("secret", "v", nx=True))
        reload(self.cluster, "a", lambda text: text + pawltest.rights(
            self.cluster.dir, ("plain", "allow = read, acquire on app/\n"), local=False))
        self.cluster.nodes["a"].wait_log("kept_lock_lost", "secret")
        wait_until(self, lambda: self.taken("secret"))


class Operator(unittest.TestCase):
    def start(self, settings="", **options):
        cluster = RedisCluster(PAWLD, settings, **options).__enter__()
        self.addCleanup(cluster.__exit__)
        return cluster

    def client(self, cluster, name, **options):
        client = cluster.redis(name, **options)
        self.addCleanup(client.close)
        return client

    def test_a_plain_set_overwrites_only_if_it_may(self):
        r = self.client(self.start(masters=1), "a")
        r.set("k", "v", nx=True, px=20000)
        with self.assertRaises(redis.exceptions.NoPermissionError):
            r.set("k", "w", px=20000)
        other = self.client(self.start("overwrite = break\n", masters=1), "a")
        other.set("k", "v", nx=True, px=20000)
        self.assertTrue(other.set("k", "w", px=20000))
        self.assertEqual(other.get("k"), b"w")

    def test_redlock_over_three_nodes(self):
        cluster = self.start("redlock = yes\n")
        clients = [self.client(cluster, n) for n in "abc"]
        release = ("if redis.call('get', KEYS[1]) == ARGV[1] then "
                   "return redis.call('del', KEYS[1]) else return 0 end")

        def at_all(act):
            """Returns what all nodes say who are asked at the same time."""
            said = [None] * 3

            def ask(i):
                said[i] = act(clients[i])
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            return said

        def let_go(r, value):
            """The lock may end by another node's release while this node's is under way. Which of
            them has ended it is not known then."""
            try:
                return r.eval(release, 1, "k", value)
            except redis.exceptions.TryAgainError:
                return None

        for i in range(20):
            value = "value%d" % i
            self.assertEqual(at_all(lambda r: r.set("k", value, nx=True, px=20000)), [True] * 3)
            self.assertEqual(at_all(lambda r: r.set("k", "x", nx=True, px=20000)), [None] * 3)
            self.assertEqual(at_all(lambda r: r.eval(release, 1, "k", "x")), [0] * 3)
            told = at_all(lambda r: let_go(r, value))
            self.assertTrue(1 in told and set(told) <= {1, None}, told)
            self.assertIsNone(clients[0].get("k"))

    def test_a_script_that_the_operator_names(self):
        cluster = self.start(masters=1)
        r = self.client(cluster, "a")
        script = "local mine = ARGV[2]; return redis.call('special', KEYS[1], mine)"
        sha1 = hashlib.sha1(script.encode()).hexdigest()
        self.assertTrue(r.set("k", "v", nx=True, px=20000))
        with self.assertRaises(redis.exceptions.NoPermissionError) as refused:
            r.eval(script, 1, "k", "x", "v")
        self.assertIn(sha1, str(refused.exception))
        cluster.nodes["a"].wait_log("unknown_script", "sha1=" + sha1)
        good = "\n[redis.scripts]\n%s = release value=2 held=-7\n" % sha1
        with open(cluster.config("a"), encoding="utf-8") as f:
            text = f.read()
        bad = os.path.join(cluster.dir, "bad.conf")
        with open(bad, "w", encoding="utf-8") as f:
            f.write(text + good.replace("value=2", "value=none"))
        checked = subprocess.run([PAWLD, "--check-config", bad], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("[redis.scripts] %s = release value=none" % sha1, checked.stderr)
        reload(cluster, "a", lambda text: text + good)
        self.assertEqual(r.evalsha(sha1, 1, "k", "x", "w"), -7)
        self.assertEqual(r.eval(script, 1, "k", "x", "v"), 1)
        self.assertIsNone(r.get("k"))

    def test_a_sentinel_names_a_node_that_reaches_a_quorum(self):
        cluster = self.start()
        nodes = [("127.0.0.1", cluster.redis_ports[n]) for n in "abc"]
        sentinel = redis.sentinel.Sentinel(nodes, socket_timeout=PATIENCE)
        self.assertEqual(sentinel.discover_master("mymaster"), nodes[0])
        master = sentinel.master_for("mymaster")
        self.addCleanup(master.close)
        self.assertTrue(master.set("k", "v", nx=True, px=20000))
        cluster.nodes["a"].kill()
        self.assertEqual(sentinel.discover_master("mymaster"), nodes[1])
        wait_until(self, lambda: master.get("k") == b"v")
        cluster.nodes["b"].kill()
        with self.assertRaises(redis.sentinel.MasterNotFoundError):
            sentinel.discover_master("mymaster")
        with cluster.socket("c") as s:
            s.sendall(command("SENTINEL", "get-master-addr-by-name", "mymaster"))
            self.assertEqual(s.recv(100), b"*-1\r\n")

    def test_a_release_is_let_through_where_there_is_no_room(self):
        cluster = self.start(masters=1, node="[limits]\nrequests_per_identity = 2\n")
        r = self.client(cluster, "a")
        lock = r.lock("mine", timeout=20)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertTrue(r.set("busy", "v", nx=True, px=20000))
        native = cluster.client("a")
        self.addCleanup(native.close)
        with cluster.socket("a") as one, cluster.socket("a") as two:
            one.sendall(command("PAWL.WAIT", "busy", "w", 20000, 20000))
            two.sendall(command("PAWL.WAIT", "busy", "w", 20000, 20000))

            def full():
                try:
                    r.get("mine")
                except redis.exceptions.ResponseError as e:
                    return "TRYAGAIN" in str(e)
                return False
            wait_until(self, full)
            lock.release()
            self.assertEqual(r.delete("busy"), 1)

    def test_an_acquire_whose_answer_could_not_be_sent_is_released(self):
        cluster = self.start(masters=1)
        r = self.client(cluster, "a")
        for i in range(20):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(PATIENCE)
                s.connect(cluster.redis_path("a"))
                # The answer of the first command fills the buffers; nobody reads it.
                s.sendall(command("ECHO", b"x" * 250000)
                          + command("SET", "unsent%d" % i, "v", "NX", "PX", 50000))
                if i % 2 == 0:
                    wait_until(self, lambda: r.get("unsent%d" % i) == b"v")
            wait_until(self, lambda: r.get("unsent%d" % i) is None)

    def test_what_could_be_sent_stays(self):
        cluster = self.start(masters=1)
        r = self.client(cluster, "a")
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(cluster.redis_path("a"))
            s.sendall(command("ECHO", b"x" * 250000)
                      + command("SET", "sent", "v", "NX", "PX", 50000)
                      + command("GET", "sent"))
            with s.makefile("rb") as reader:
                self.assertEqual(reader.readline(), b"$250000\r\n")
                self.assertEqual(len(reader.readline()), 250002)
                self.assertEqual([reader.readline() for _ in range(3)],
                                 [b"+OK\r\n", b"$1\r\n", b"v\r\n"])
        self.assertEqual(r.get("sent"), b"v")


class Transports(unittest.TestCase):
    """TLS, with and without a certificate of the client, and Unix sockets."""

    def start(self, auth):
        cluster = RedisCluster(PAWLD, tls=self.section, masters=1)
        self.auth = auth
        self.certificates = Certificates(cluster.dir, nodes="a", clients=("alice", "bob", "root"))
        cluster.__enter__()
        self.addCleanup(cluster.__exit__)
        return cluster

    def section(self, _, name):
        c = self.certificates
        return "ca = %s\ncert = %s\nkey = %s\nclient_auth = %s\n%s" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"), self.auth,
            pawltest.rights(c.dir, ("root", pawltest.ALL), ("everybody", pawltest.KEYS)))

    def client(self, cluster, name=None):
        c = self.certificates
        own = {"ssl_certfile": c.path(name + ".crt"),
               "ssl_keyfile": c.path(name + ".key")} if name else {}
        client = cluster.redis("a", host="127.0.0.1", ssl=True, ssl_ca_certs=c.path("ca.crt"),
                               **own)
        self.addCleanup(client.close)
        return client

    def test_a_lock_belongs_to_the_name_in_the_certificate(self):
        cluster = self.start("required")
        alice, bob, root = (self.client(cluster, n) for n in ("alice", "bob", "root"))
        lock = alice.lock("k", timeout=20)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertFalse(bob.lock("k", timeout=20).acquire(blocking=False))
        with self.assertRaises(redis.exceptions.NoPermissionError):
            bob.delete("k")
        lock.extend(30)
        self.assertEqual(root.delete("k"), 1)
        cluster.nodes["a"].wait_log("break_asked", "key=k", "identity=root")
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()
        with self.assertRaises(redis.exceptions.ConnectionError):
            self.client(cluster).ping()

    def test_a_client_without_a_certificate(self):
        cluster = self.start("optional")
        nobody, alice = self.client(cluster), self.client(cluster, "alice")
        with nobody.lock("k", timeout=20):
            self.assertEqual(len(alice.get("k")), 32)
            with self.assertRaises(redis.exceptions.NoPermissionError):
                alice.delete("k")
        self.assertIsNone(alice.get("k"))

    def test_a_unix_socket_knows_the_account(self):
        cluster = self.start("required")
        local, alice = cluster.redis_unix("a"), self.client(cluster, "alice")
        self.addCleanup(local.close)
        with local.lock("k", timeout=20):
            native = cluster.client("a", tls=self.certificates.context("alice"))
            self.addCleanup(native.close)
            found = native.call("get", key="k", consistency="quorum")
            self.assertEqual(found["identity"], b"unix:uid:%d" % os.getuid())
            self.assertFalse(alice.set("k", "v", nx=True, px=1000))
        self.assertIsNone(local.get("k"))


class Ended(unittest.TestCase):
    """The node ends a connection that holds a lock, has one without an end, and waits for a third
    one."""

    def begin(self, sock, r, native):
        """Returns the number of the connection once it waits."""
        self.assertTrue(r.set("wanted", "w", nx=True, px=20000))
        sock.sendall(command("CLIENT", "ID") + command("SET", "held", "v", "NX", "PX", 20000)
                     + command("SETNX", "endless", "v")
                     + command("PAWL.WAIT", "wanted", "v", 20000, 20000))
        with sock.makefile("rb") as reader:
            number = int(reader.readline()[1:])
            self.assertEqual([reader.readline() for _ in range(2)], [b"+OK\r\n", b":1\r\n"])
        wait_until(self, lambda: native.call("waiters", key="wanted")["waiters"])
        return number

    def end(self, sock, r, native):
        """What it waits for it does not get, and what it holds stays."""
        self.assertEqual(sock.recv(1000), b"")
        wait_until(self, lambda: not native.call("waiters", key="wanted")["waiters"])
        self.assertEqual(r.delete("wanted"), 1)
        self.assertTrue(r.set("wanted", "next", nx=True, px=20000))
        self.assertEqual((r.get("held"), r.ttl("endless")), (b"v", -1))

    def test_by_a_kick(self):
        with RedisCluster(PAWLD, "without_end = keep\n", masters=1) as cluster:
            with cluster.socket("a") as sock, cluster.client("a") as native, \
                    cluster.redis("a") as r:
                native.call("kick", client=self.begin(sock, r, native))
                self.end(sock, r, native)

    def test_by_a_certificate_that_is_revoked(self):
        cluster = RedisCluster(PAWLD, "without_end = keep\n", masters=1, tls=lambda _, name: (
            "ca = %s\ncert = %s\nkey = %s\nrevoked = %s\n" % tuple(c.path(f) for f in (
                "ca.crt", name + ".crt", name + ".key", "revoked"))))
        c = Certificates(cluster.dir)
        for name, who in (("a", "node:a"), ("alice", "client:alice"), ("bob", "client:bob")):
            c.make(name, "pawl:" + who)
        revoked = c.path("revoked")
        with open(revoked, "w", encoding="utf-8"):
            pass
        with cluster, cluster.client("a", tls=c.context("bob")) as native:
            plain = cluster.socket("a")
            with c.context("alice").wrap_socket(plain, server_hostname="127.0.0.1") as sock, \
                    cluster.redis("a", host="127.0.0.1", ssl=True, ssl_ca_certs=c.path("ca.crt"),
                                  ssl_certfile=c.path("bob.crt"),
                                  ssl_keyfile=c.path("bob.key")) as r:
                self.begin(sock, r, native)
                with open(revoked, "w", encoding="utf-8") as f:
                    f.write("client:alice\n")
                reload(cluster, "a", lambda text: text)
                self.end(sock, r, native)


class Dev(unittest.TestCase):
    def test_all_keys_may_be_listed_and_deleted(self):
        port = pawltest.free_port()
        node = pawltest.Node([PAWLD, "--dev", "--listen", "127.0.0.1:0", "--listen-redis",
                              "127.0.0.1:%d" % port])
        self.addCleanup(node.kill)
        node.wait_log(" voting ")
        r, other = (redis.Redis(port=port, db=db, socket_timeout=PATIENCE) for db in (0, 3))
        self.addCleanup(r.close)
        self.addCleanup(other.close)
        for i in range(150):
            self.assertTrue(r.setnx("key%d" % i, "v"))
        self.assertTrue(other.set("elsewhere", "v"))
        self.assertEqual(sorted(r.keys("key14?")), [b"key%d" % i for i in range(140, 150)])
        self.assertEqual((r.dbsize(), other.keys()), (150, [b"elsewhere"]))
        r.flushdb()
        self.assertEqual((r.dbsize(), other.dbsize()), (0, 1))
        r.flushall()
        self.assertEqual(other.dbsize(), 0)
        for words in (("DPING",), ("SADD", "s", "1")):
            with self.assertRaises(redis.exceptions.ResponseError):
                r.execute_command(*words)


if __name__ == "__main__":
    pawltest.main(globals())
