"""test_memcached.py PAWLD: clients of memcached, pymemcache and pylibmc among them, at real nodes,
and what they are answered by memcached itself."""

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

import pawltest
from pawltest import PATIENCE, wait_until
from test_tls import Certificates

# Debian's Python has the package python3-pymemcache; the one that runs the tests may be another.
sys.path.append("/usr/lib/python3/dist-packages")
from pymemcache.client.base import Client  # noqa: E402
from pymemcache.exceptions import MemcacheServerError  # noqa: E402
from pymemcache.serde import PickleSerde  # noqa: E402

DEBIANS_PYTHON = "/usr/bin/python3"


class MemcachedCluster(pawltest.Cluster):
    """A cluster whose nodes listen for clients of memcached, too."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ports = {}

    def listens(self, name):
        self.ports[name] = pawltest.free_port()
        return super().listens(name) + "listen_memcached = 127.0.0.1:%d, unix:%s\n" % (
            self.ports[name], self.path(name))

    def path(self, name):
        return os.path.join(self.dir, name + "-memcached.sock")

    def memcached(self, name, **options):
        options.setdefault("timeout", PATIENCE)
        options.setdefault("connect_timeout", PATIENCE)
        return Client(("127.0.0.1", self.ports[name]), **options)

    def socket(self, name):
        return connected(self.ports[name])


def connected(port):
    s = socket.create_connection(("127.0.0.1", port), PATIENCE)
    s.settimeout(PATIENCE)
    return s


class Original:
    """The program memcached, for a with statement."""

    def __enter__(self):
        self.port = pawltest.free_port()
        user = ["-u", "nobody"] if os.getuid() == 0 else []
        self.process = subprocess.Popen(["memcached", *user, "-l", "127.0.0.1", "-U", "0", "-p",
                                         str(self.port)])
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connected(self.port).close()
                return self
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)


# What lock clients say, in one conversation; U stands for the unique that the last gets has told.
CONVERSATION = b"""\
get k|add k 16 30 5\r\nvalue|add k 16 30 5\r\nother|get k none k|gets k
cas k 16 30 5 99999999\r\nother|cas k 16 30 5 U\r\nother|cas none 0 30 1 1\r\nx|get k
touch k 20|touch none 20|gat 30 k none|replace k 16 30 5\r\nother|replace none 0 30 1\r\nx|get k
set k 16 30 5\r\nother|delete k|delete k|set k 0 30 0\r\n|get k|delete k 0
add k 0 30 1 noreply\r\nx|add k 0 30 1\r\nx|delete k noreply|get k|touch k -1
add k 0 -1 1\r\nx|get k|set k 0 -1 1\r\nx|get k|add k 0 30 1\r\nx|touch k -1|get k
mn|mg k v k Oabc|mg k q v|ms k 2 ME T30 F7 Oq k\r\nhi|ms k 2 ME T30 Oq k\r\nhi
ms k 2 ME T30 q k\r\nhi|mg k s v f k Oabc|mg k|mg k k t|mg k q k v
ms none 1 T30 MR Ok\r\nx|ms none 1 T30 C99999999 Ok\r\nx|ms k 2 T30 F7 C99999999 k\r\nho
md k C99999999 k|md none k O1|md none q|md k k|mg k v|me none|version|verbosity 1|none|get
"""


def converse(port):
    """Returns the answers to the conversation. Each command is followed by mn, which shows where
    its answer ends. Uniques are left out."""
    answers, unique = [], b"0"
    with connected(port) as s, s.makefile("rb") as reader:
        for said in CONVERSATION.strip(b"\n").replace(b"\n", b"|").replace(b"\r|", b"\r\n").split(
                b"|"):
            said = re.sub(rb" U\b", b" " + unique, said)
            s.sendall(said + b"\r\nmn\r\n")
            answer = b""
            while not answer.endswith(b"MN\r\n"):
                line = reader.readline()
                assert line, (said, answer)
                answer += line
            if said == b"mn":
                assert reader.readline() == b"MN\r\n"
            if said.startswith(b"gets"):
                unique = answer.split(b"\r\n")[0].split()[-1]
                answer = answer.replace(b" " + unique + b"\r\n", b" U\r\n", 1)
            if said in (b"none", b"get"):
                answer = re.sub(rb"(CLIENT_)?ERROR.*\r\n", b"ERROR\r\n", answer)
            answers.append((said, answer))
    return answers


class Three(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = MemcachedCluster(PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        self.a, self.b = self.cluster.memcached("a"), self.cluster.memcached("b")
        self.addCleanup(self.a.close)
        self.addCleanup(self.b.close)

    def test_the_answers_are_those_of_memcached(self):
        with Original() as original:
            expected = converse(original.port)
        for (said, answer), (_, from_pawl) in zip(expected, converse(self.cluster.ports["a"])):
            with self.subTest(said=said):
                # What is left is rounded down, and the original rounds up.
                self.assertEqual(from_pawl, answer.replace(b" t30", b" t29"))

    def test_a_lock_of_pymemcache_holds_at_every_node(self):
        self.assertTrue(self.a.add("lock", "me", expire=20, noreply=False))
        self.assertFalse(self.b.add("lock", "you", expire=20, noreply=False))
        value, unique = self.b.gets("lock")
        self.assertEqual(value, b"me")
        self.assertTrue(self.b.touch("lock", expire=30, noreply=False))
        self.assertTrue(self.a.cas("lock", "me too", unique, expire=20, noreply=False))
        self.assertFalse(self.b.cas("lock", "me", unique, expire=20, noreply=False))
        self.assertEqual(self.b.get("lock"), b"me too")
        uniques = [int(unique), int(self.b.gets("lock")[1])]
        self.assertTrue(self.b.delete("lock", noreply=False))
        self.assertFalse(self.a.cas("lock", "me", unique, expire=20, noreply=False))
        self.assertTrue(self.b.add("lock", "you", expire=20, noreply=False))
        self.assertIs(self.a.cas("lock", "me", unique, expire=20, noreply=False), False)
        uniques.append(int(self.a.gets("lock")[1]))
        self.assertEqual(uniques, sorted(set(uniques)))
        self.b.delete("lock", noreply=False)

    def test_values_come_back_as_what_they_were(self):
        client = self.cluster.memcached("a", serde=PickleSerde())
        self.addCleanup(client.close)
        for value in ("text", 7, {"a": [1, 2]}, b"bytes"):
            self.assertTrue(client.add("typed", value, expire=20, noreply=False))
            self.assertEqual(client.get("typed"), value)
            self.assertEqual(client.get_many(["typed", "other"]), {"typed": value})
            self.assertTrue(client.delete("typed", noreply=False))

    def test_set_renews_and_does_not_overwrite(self):
        self.assertTrue(self.a.set("beat", "me", expire=20, noreply=False))
        self.assertTrue(self.a.set("beat", "me", expire=40, noreply=False))
        native = self.cluster.client("c")
        self.addCleanup(native.close)
        self.assertGreater(native.call("get", key="beat", consistency="quorum")["remaining_ms"],
                           25000)
        with self.assertRaisesRegex(MemcacheServerError, "does not overwrite"):
            self.b.set("beat", "you", expire=20, noreply=False)
        self.assertEqual(self.b.get("beat"), b"me")
        self.a.delete("beat", noreply=False)

    def test_a_lease_ends(self):
        self.assertTrue(self.a.add("short", "v", expire=1, noreply=False))
        wait_until(self, lambda: self.b.add("short", "w", expire=1, noreply=False))

    def test_a_lock_that_was_taken_for_long_is_cut_to_its_length(self):
        """As Symfony's MemcachedStore does it: it adds for 300 s, and sets the length by `cas`."""
        for name in ("cas", "touch"):
            self.assertTrue(self.a.add(name, "me", expire=50, noreply=False))
            unique = self.b.gets(name)[1]
            self.assertTrue(self.b.cas(name, "me", unique, expire=2, noreply=False)
                            if name == "cas" else self.b.touch(name, 2, noreply=False))
            self.assertFalse(self.a.add(name, "other", expire=5, noreply=False))
            wait_until(self, lambda name=name: self.a.add(name, "other", expire=5, noreply=False))

    def test_native_clients_and_these_exclude_each_other(self):
        native = self.cluster.client("c")
        self.addCleanup(native.close)
        got = native.call("acquire", key="both", lease_ms=20000, value="native")
        self.assertFalse(self.a.add("both", "v", expire=20, noreply=False))
        self.assertEqual(self.a.gets("both"), (b"native", str(got["token"]).encode()))
        native.call("release", key="both", lock_id=got["lock_id"])
        self.assertTrue(self.a.add("both", "v", expire=20, noreply=False, flags=16))
        with self.assertRaises(pawltest.Refused) as refused:
            native.call("acquire", key="both", lease_ms=20000)
        self.assertEqual(refused.exception.code, "held")
        entry = native.call("get", key="both", consistency="quorum")
        self.assertEqual(entry["value"], b"v")
        self.assertRegex(entry["owner"], rb"^127\.0\.0\.1")
        self.assertEqual(entry["label"], b"memcached flags=16")
        self.a.delete("both", noreply=False)

    def test_too_long_and_endless_are_errors(self):
        for expire, words in ((60, "60000 ms .* 59300 ms"), (0, "without an end")):
            with self.assertRaisesRegex(MemcacheServerError, words):
                self.a.add("long", "v", expire=expire, noreply=False)
        self.assertIsNone(self.a.get("long"))

    def test_a_value_that_is_too_large_is_an_error(self):
        with self.assertRaisesRegex(MemcacheServerError, "too_large"):
            self.a.add("large", b"x" * 70000, expire=20, noreply=False)
        self.assertTrue(self.a.add("large", b"x" * 60000, expire=20, noreply=False))
        self.assertEqual(self.b.get("large"), b"x" * 60000)
        self.a.delete("large", noreply=False)

    def test_commands_in_one_piece_and_in_many(self):
        piece = b"".join(b"add order 0 30 %d\r\n%d\r\nget order\r\ndelete order\r\n"
                         % (len(str(i)), i) for i in range(50))
        expected = b"".join(b"STORED\r\nVALUE order 0 %d\r\n%d\r\nEND\r\nDELETED\r\n"
                            % (len(str(i)), i) for i in range(50))
        for step in (len(piece), 1):
            with self.cluster.socket("a") as s, s.makefile("rb") as reader:
                for at in range(0, len(piece), step):
                    s.sendall(piece[at:at + step])
                self.assertEqual(reader.read(len(expected)), expected)

    def test_what_is_no_command_ends_the_connection(self):
        for said, answer in ((b"set k 0 5 x\r\n", b"CLIENT_ERROR bad command line format\r\n"),
                             (b"\x80\0\0\0", b"CLIENT_ERROR Pawl speaks the text protocol of "
                              b"memcached, and not the binary one\r\n")):
            with self.cluster.socket("a") as s, s.makefile("rb") as reader:
                s.sendall(said)
                self.assertEqual(reader.read(), answer)

    def test_a_unix_socket(self):
        client = Client("unix:" + self.cluster.path("b"), timeout=PATIENCE)
        self.addCleanup(client.close)
        self.assertTrue(client.add("unix", "v", expire=20, noreply=False))
        self.assertFalse(self.a.add("unix", "v", expire=20, noreply=False))
        self.assertTrue(client.delete("unix", noreply=False))

    def run_debians(self, program):
        run = subprocess.run([DEBIANS_PYTHON, "-c", program, str(self.cluster.ports["a"]),
                              str(self.cluster.ports["b"])], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_pylibmc(self):
        self.run_debians("""
import pylibmc, sys
a, b = (pylibmc.Client(["127.0.0.1:" + p], binary=False, behaviors={"cas": True})
        for p in sys.argv[1:])
assert a.add("libmc", "text", time=20)
assert not b.add("libmc", "other", time=20)
assert b.get("libmc") == "text"
value, unique = b.gets("libmc")
assert a.cas("libmc", "more", unique, time=20)
assert a.set("libmc", "more", time=20) and b.touch("libmc", 20)
assert b.delete("libmc")
assert a.get("libmc") is None
try:
    a.add("libmc", "text", time=600)
    sys.exit("a lock of 600 s")
except pylibmc.Error:
    pass
a.get_stats()
""")

    def test_python_memcached(self):
        self.run_debians("""
import memcache, sys
a, b = (memcache.Client(["127.0.0.1:" + p], cache_cas=True) for p in sys.argv[1:])
assert a.add("pm", "text", time=20)
assert not b.add("pm", "other", time=20)
assert b.gets("pm") == "text"
assert b.cas("pm", "more", time=20)
assert a.get("pm") == "more"
assert b.touch("pm", 20) and b.delete("pm")
assert a.get("pm") is None
a.get_stats()
""")

    def test_many_who_send_before_they_are_answered(self):
        wrong = []

        def client():
            with self.cluster.socket("a") as s, s.makefile("rb") as reader:
                said = b"get many\r\n" * 200
                for at in range(0, len(said), 11):
                    s.sendall(said[at:at + 11])
                answers = [reader.readline() for _ in range(200)]
                if answers != [b"END\r\n"] * 200:
                    wrong.append(answers)

        clients = [threading.Thread(target=client) for _ in range(32)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        self.assertEqual(wrong, [])


class Settings(unittest.TestCase):
    def test_a_lock_without_an_end_is_kept_by_its_node(self):
        cluster = MemcachedCluster(PAWLD)
        # A kept lock is extended many times before this is over.
        cluster.extra = ("max_lease = 2s", "[memcached]\nwithout_end = keep\n")
        with cluster:
            client = cluster.memcached("a")
            self.addCleanup(client.close)
            self.assertTrue(client.add("endless", "v", expire=0, noreply=False))
            end = time.monotonic() + 4
            while time.monotonic() < end:
                with cluster.socket("b") as s:
                    s.sendall(b"mg endless t v\r\n")
                    self.assertEqual(s.recv(100), b"VA 1 t-1\r\nv\r\n")
                time.sleep(0.2)
            cluster.nodes["a"].kill()
            other = cluster.memcached("b")
            self.addCleanup(other.close)

            def taken():
                try:
                    return other.add("endless", "w", expire=1, noreply=False)
                except MemcacheServerError:
                    # It asked the node that has just died.
                    return False

            wait_until(self, taken)

    def test_dev_may_do_what_memcached_does(self):
        folder = tempfile.mkdtemp(prefix="pawl-dev-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "memcached.sock")
        node = pawltest.Node([PAWLD, "--dev", "--listen", "unix:" + os.path.join(folder, "s"),
                              "--listen-memcached", "unix:" + path])
        self.addCleanup(node.kill)
        node.wait_log(" voting ")
        said = [node.process.stdout.readline().decode() for _ in range(4)]
        self.assertEqual(said[3], "clients of memcached: unix:%s\n" % path)
        client = Client("unix:" + path, timeout=PATIENCE)
        self.addCleanup(client.close)
        for i in range(150):
            self.assertTrue(client.set("k%d" % i, "v", noreply=False))
        self.assertTrue(client.set("k7", "w", noreply=False))
        self.assertEqual(client.get("k7"), b"w")
        self.assertTrue(client.flush_all(noreply=False))
        self.assertEqual(client.get_many(["k%d" % i for i in range(60)]), {})
        self.assertTrue(client.add("k149", "v", expire=20, noreply=False))


class Trouble(unittest.TestCase):
    def test_without_a_quorum_nothing_looks_held(self):
        with MemcachedCluster(PAWLD) as cluster:
            client = cluster.memcached("a")
            self.addCleanup(client.close)
            self.assertTrue(client.add("k", "v", expire=20, noreply=False))
            for n in "bc":
                cluster.nodes[n].kill()
            for act in (lambda: client.add("x", "v", expire=1, noreply=False),
                        lambda: client.get("k"), lambda: client.delete("k", noreply=False)):
                with self.assertRaisesRegex(MemcacheServerError, "no_quorum|unsure"):
                    act()

    def test_patience(self):
        cluster = MemcachedCluster(PAWLD, masters=1)
        cluster.extra = ("", "[memcached]\npatience = 20s\n")
        with cluster:
            client = cluster.memcached("a")
            native = cluster.client("a")
            self.addCleanup(client.close)
            self.addCleanup(native.close)
            got = native.call("acquire", key="turn", lease_ms=20000)
            with cluster.socket("a") as waiter:
                waiter.sendall(b"add turn 0 20 1\r\nv\r\n")
                wait_until(self, lambda: native.call("waiters", key="turn")["waiters"])
                native.call("release", key="turn", lock_id=got["lock_id"])
                self.assertEqual(waiter.recv(100), b"STORED\r\n")

    def test_who_leaves_before_the_answer_holds_nothing(self):
        with MemcachedCluster(PAWLD) as cluster:
            client = cluster.memcached("b")
            self.addCleanup(client.close)
            held = []
            for i in range(200):
                with cluster.socket("a") as s:
                    s.sendall(b"add leave%d 0 50 1\r\nv\r\n" % i)
                    # The connection ends while the request is in one of its phases.
                    time.sleep(i % 20 / 10000)
                    s.shutdown(socket.SHUT_WR)
                    if s.recv(100):
                        held.append("leave%d" % i)
            wait_until(self, lambda: [k for k in ("leave%d" % i for i in range(200))
                                      if client.get(k)] == held)

    def test_rights_hold(self):
        cluster = MemcachedCluster(PAWLD, masters=1)
        cluster.extra = ("", pawltest.rights(cluster.dir, (
            "plain", "allow = read, acquire on app/\n"), local=False))
        with cluster:
            client = cluster.memcached("a")
            self.addCleanup(client.close)
            self.assertTrue(client.add("app/k", "v", expire=1, noreply=False))
            with self.assertRaisesRegex(MemcacheServerError, "denied"):
                client.add("other", "v", expire=1, noreply=False)

    def test_tls(self):
        directory = tempfile.mkdtemp(prefix="pawl-tls-")
        self.addCleanup(shutil.rmtree, directory)
        certificates = Certificates(directory, nodes="a", clients=("alice",))
        rights = pawltest.rights(directory, ("alice", pawltest.ALL), ("everybody", pawltest.KEYS))

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\nclient_auth = optional\n%s" % (
                *(certificates.path(f) for f in ("ca.crt", name + ".crt", name + ".key")), rights)

        with MemcachedCluster(PAWLD, masters=1, tls=section) as cluster:
            alice, nobody = (cluster.memcached("a", tls_context=certificates.context(name))
                             for name in ("alice", None))
            native = cluster.client("a", tls=certificates.context("alice"))
            for client in alice, nobody, native:
                self.addCleanup(client.close)
            self.assertTrue(alice.add("tls", "v", expire=20, noreply=False))
            entry = native.call("get", key="tls", consistency="quorum")
            self.assertEqual(entry["identity"], b"alice")
            self.assertEqual(nobody.get("tls"), b"v")
            for act in (lambda: nobody.touch("tls", expire=30, noreply=False),
                        lambda: nobody.set("tls", "v", expire=30, noreply=False)):
                with self.assertRaisesRegex(MemcacheServerError, "another identity"):
                    act()
            with self.assertRaisesRegex(MemcacheServerError, "denied"):
                nobody.delete("tls", noreply=False)
            self.assertTrue(alice.delete("tls", noreply=False))
            # Who may break deletes the lock of another identity.
            self.assertTrue(nobody.add("tls", "v", expire=20, noreply=False))
            self.assertTrue(alice.delete("tls", noreply=False))
            self.assertIsNone(nobody.get("tls"))

    def test_a_stop_ends_connections(self):
        with MemcachedCluster(PAWLD, masters=1) as cluster:
            with cluster.socket("a") as s, s.makefile("rb") as reader:
                s.sendall(b"mn\r\n")
                self.assertEqual(reader.readline(), b"MN\r\n")
                cluster.nodes["a"].signal(signal.SIGTERM)
                reader.read()


if __name__ == "__main__":
    pawltest.main(globals())
