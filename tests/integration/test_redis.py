"""test_redis.py PAWLD: clients of Redis, redis-py among them, at real nodes."""

import hashlib
import os
import signal
import socket
import threading
import time
import unittest

import pawltest
from pawltest import PATIENCE, wait_until
from rediscluster import RedisCluster, command, redis

class Three(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = RedisCluster(PAWLD).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        self.a, self.b = self.cluster.redis("a"), self.cluster.redis("b")
        self.addCleanup(self.a.close)
        self.addCleanup(self.b.close)

    def test_a_lock_of_redis_py_holds_at_every_node(self):
        here, there = self.a.lock("lock", timeout=20), self.b.lock("lock", timeout=20)
        self.assertTrue(here.acquire(blocking=False))
        self.assertFalse(there.acquire(blocking=False))
        self.assertTrue(there.locked())
        self.assertTrue(here.owned())
        self.assertFalse(there.owned())
        here.extend(5)
        self.assertGreater(self.b.pttl("lock"), 20000)
        here.reacquire()
        here.release()
        self.assertTrue(there.acquire(blocking=False))
        with self.assertRaises(redis.exceptions.LockError):
            here.release()
        there.release()

    def test_scripts_of_redis_py_need_not_be_loaded(self):
        Lock = redis.lock.Lock
        self.a.script_flush()
        for text, arguments in ((Lock.LUA_RELEASE_SCRIPT, ["v"]),
                                (Lock.LUA_EXTEND_SCRIPT, ["v", 1000, "0"]),
                                (Lock.LUA_REACQUIRE_SCRIPT, ["v", 1000])):
            sha1 = hashlib.sha1(text.encode()).hexdigest()
            self.assertEqual(self.a.evalsha(sha1, 1, "nobody has it", *arguments), 0)
        with self.assertRaises(redis.exceptions.NoScriptError):
            self.a.evalsha("0" * 40, 1, "nobody has it", "v")

    def test_a_lock_that_was_lost_is_not_released(self):
        lock = self.a.lock("lost", timeout=20)
        lock.acquire()
        self.assertEqual(self.b.delete("lost"), 1)
        self.assertTrue(self.b.set("lost", "other", nx=True, px=20000))
        for act in (lock.release, lambda: lock.extend(5), lock.reacquire):
            lock.local.token = lock.local.token or b"mine"
            with self.assertRaises(redis.exceptions.LockNotOwnedError):
                act()
        self.assertEqual(self.a.get("lost"), b"other")
        self.b.delete("lost")

    def test_a_lease_ends(self):
        self.assertTrue(self.a.set("short", "v", nx=True, px=300))
        wait_until(self, lambda: self.b.set("short", "w", nx=True, px=300))

    def test_native_clients_and_these_exclude_each_other(self):
        native = self.cluster.client("c")
        self.addCleanup(native.close)
        got = native.call("acquire", key="both", lease_ms=20000, value="native")
        self.assertIsNone(self.a.set("both", "v", nx=True, px=20000))
        self.assertEqual(self.a.get("both"), b"native")
        native.call("release", key="both", lock_id=got["lock_id"])
        self.a.client_setname("web1")
        self.assertTrue(self.a.set("both", "v", nx=True, px=20000))
        with self.assertRaises(pawltest.Refused) as refused:
            native.call("acquire", key="both", lease_ms=20000)
        self.assertEqual(refused.exception.code, "held")
        self.assertEqual(native.call("get", key="both", consistency="quorum")["owner"], b"web1")
        self.a.delete("both")

    def test_a_token_grows(self):
        tokens = []
        for value in ("v", "w"):
            self.a.set("token", value, nx=True, px=20000)
            tokens.append(self.a.execute_command("PAWL.TOKEN", "token", value))
            self.assertIsNone(self.b.execute_command("PAWL.TOKEN", "token", "x"))
            self.assertGreater(self.b.execute_command("PAWL.VALID", "token", value), 10000)
            self.a.delete("token")
        self.assertLess(tokens[0], tokens[1])

    def test_waiting_for_a_turn(self):
        self.a.set("turn", "v", nx=True, px=20000)
        with self.cluster.socket("b") as waiter:
            waiter.sendall(command("PAWL.WAIT", "turn", "w", 20000, 20000))
            native = self.cluster.client("a")
            self.addCleanup(native.close)
            wait_until(self, lambda: native.call("waiters", key="turn")["waiters"])
            self.a.delete("turn")
            self.assertEqual(waiter.recv(100), b"+OK\r\n")
        self.assertEqual(self.a.get("turn"), b"w")
        self.a.delete("turn")

    def test_commands_in_one_piece_and_in_many(self):
        words = [command("SET", "order", i, "NX", "PX", 20000) + command("GET", "order")
                 + command("DEL", "order") for i in range(50)]
        expected = b"".join(b"+OK\r\n$%d\r\n%d\r\n:1\r\n" % (len(str(i)), i) for i in range(50))
        with self.cluster.socket("a") as whole:
            whole.sendall(b"".join(words))
            got = b""
            while len(got) < len(expected):
                got += whole.recv(65536)
            self.assertEqual(got, expected)
        with self.cluster.socket("a") as bytewise:
            for byte in words[7]:
                bytewise.sendall(bytes([byte]))
            got = b""
            while got.count(b"\r\n") < 4:
                got += bytewise.recv(100)
            self.assertEqual(got, b"+OK\r\n$1\r\n7\r\n:1\r\n")

    def test_who_leaves_with_much_behind_a_command_that_waits_does_not_get_the_key(self):
        native = self.cluster.client("a")
        self.addCleanup(native.close)
        for size in (1000, 70000, 300000, 900000):
            key = "gone%d" % size
            self.a.set(key, "v", nx=True, px=20000)
            with self.cluster.socket("b") as waiter:
                waiter.sendall(command("PAWL.WAIT", key, "w", 20000, 20000)
                               + command("ECHO", b"x" * 90) * (size // 110))
                wait_until(self, lambda: native.call("waiters", key=key)["waiters"])
            wait_until(self, lambda: not native.call("waiters", key=key)["waiters"])
            self.a.delete(key)
            self.assertIsNone(self.b.get(key))

    def test_too_much_behind_a_command_that_waits_ends_the_connection(self):
        native = self.cluster.client("a")
        self.addCleanup(native.close)
        self.a.set("much", "v", nx=True, px=20000)
        with self.cluster.socket("b") as s, self.cluster.socket("b") as next_one:
            s.sendall(command("PAWL.WAIT", "much", "w", 20000, 20000))
            wait_until(self, lambda: native.call("waiters", key="much")["waiters"])
            more = command("ECHO", b"x" * 100000)
            with self.assertRaises((ConnectionResetError, BrokenPipeError)):
                for _ in range(400):
                    s.sendall(more)
            # Who waits behind it gets the key, and it is not told that it has it.
            wait_until(self, lambda: not native.call("waiters", key="much")["waiters"])
            next_one.sendall(command("PAWL.WAIT", "much", "n", 20000, 20000))
            wait_until(self, lambda: native.call("waiters", key="much")["waiters"])
            self.a.delete("much")
            self.assertEqual(next_one.makefile("rb").readline(), b"+OK\r\n")
        self.assertEqual(self.a.delete("much"), 1)

    def test_many_who_send_before_they_are_answered(self):
        # Bytes arrive while commands are under way and others have their turn.
        commands = b"".join(command("GET", "many") for _ in range(20))
        wrong = []

        def client():
            with self.cluster.socket("a") as s, s.makefile("rb") as reader:
                for _ in range(10):
                    for at in range(0, len(commands), 11):
                        s.sendall(commands[at:at + 11])
                answers = [reader.readline() for _ in range(200)]
                if answers != [b"$-1\r\n"] * 200:
                    wrong.append(answers)

        clients = [threading.Thread(target=client) for _ in range(48)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        self.assertEqual(wrong, [])
        self.assertTrue(self.a.ping())

    def test_what_is_no_command_ends_the_connection(self):
        with self.cluster.socket("a") as s:
            s.sendall(b"*1\r\n$x\r\n")
            got = b""
            while True:
                some = s.recv(1000)
                if not some:
                    break
                got += some
            self.assertEqual(got, b"-ERR Protocol error: invalid bulk length: "
                             b"an argument has at most 1 MiB\r\n")

    def test_a_page_in_a_browser_deletes_nothing(self):
        self.assertTrue(self.a.set("page", "v", nx=True, px=20000))
        with self.cluster.socket("a") as s, s.makefile("rb") as reader:
            s.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nDEL page\r\n")
            self.assertRegex(reader.readline(), b"^-ERR Protocol error: .* HTTP")
            self.assertEqual(reader.readline(), b"")
        self.assertEqual(self.a.get("page"), b"v")

    def test_resp3(self):
        with self.cluster.socket("a") as s:
            s.sendall(command("HELLO", 3) + command("GET", "nothing"))
            got = b""
            while not got.endswith(b"_\r\n"):
                got += s.recv(1000)
            self.assertTrue(got.startswith(b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"))

    def test_an_unknown_script_is_named(self):
        with self.assertRaises(redis.exceptions.ResponseError) as refused:
            self.a.eval("return 'something else'", 1, "k")
        self.assertIn("does not run scripts",
                      str(refused.exception))


class Trouble(unittest.TestCase):
    def test_without_a_quorum_nothing_looks_held(self):
        with RedisCluster(PAWLD) as cluster:
            r = cluster.redis("a")
            self.addCleanup(r.close)
            self.assertTrue(r.set("k", "v", nx=True, px=20000))
            for n in "bc":
                cluster.nodes[n].kill()
            for act in (lambda: r.set("x", "v", nx=True, px=1000), lambda: r.get("k"),
                        lambda: r.delete("k")):
                with self.assertRaises(redis.exceptions.RedisError) as refused:
                    act()
                self.assertRegex(str(refused.exception), "too few masters|NOREPLICAS|TRYAGAIN")

    def test_who_leaves_before_the_answer_holds_nothing(self):
        with RedisCluster(PAWLD) as cluster:
            r = cluster.redis("b")
            self.addCleanup(r.close)
            held = []
            for i in range(200):
                with cluster.socket("a") as s:
                    s.sendall(command("SET", "leave%d" % i, "v", "NX", "PX", 50000))
                    # The connection ends while the request is in one of its phases.
                    time.sleep(i % 20 / 10000)
                    s.shutdown(socket.SHUT_WR)
                    if s.recv(100):
                        held.append("leave%d" % i)
            wait_until(self, lambda: [k for k in ("leave%d" % i for i in range(200)) if r.get(k)]
                  == held)

    def test_rights_hold(self):
        rules = "".join("allow = %s on %s/\n" % (rights, key) for key, rights in (
            ("acquire", "acquire"), ("read", "read"), ("both", "read, acquire")))
        cluster = RedisCluster(PAWLD, masters=1)
        cluster.extra = ("", pawltest.rights(cluster.dir, ("plain", rules), local=False))
        take, renew, release, read = "take renew release read".split()
        table = ((take, "SET %s v NX PX 20000"), (take, "PAWL.WAIT %s v 20000 0"),
                 (renew, "SET %s v XX PX 20000"), (renew, "PEXPIRE %s 20000"),
                 (release, "DEL %s"), (release, "DELIFEQ %s v"), (read, "GET %s"),
                 (read, "PTTL %s"), (read, "PAWL.TOKEN %s v"), (read, "PAWL.VALID %s v"),
                 (read, "EXISTS %s"), (read, "MGET %s"), (read, "STRLEN %s"))
        # What docs/redis.md says: renewing and releasing read the key first.
        needs = {take: {"acquire"}, renew: {"read", "acquire"}, release: {"read", "acquire"},
                 read: {"read"}}
        with cluster:
            r = cluster.redis("a")
            self.addCleanup(r.close)
            for key, rights in (("acquire", {"acquire"}), ("read", {"read"}),
                                ("both", {"read", "acquire"}), ("other", set())):
                for kind, words in table:
                    try:
                        r.execute_command(*(words % (key + "/k")).split())
                        refused = None
                    except redis.exceptions.NoPermissionError as e:
                        refused = str(e)
                    lacks = needs[kind] - rights
                    # A key that nobody holds needs no act, so only its read is refused.
                    may = not lacks or (key == "read" and kind in (renew, release))
                    self.assertEqual(refused is None, may, (key, words, refused))
                    self.assertTrue(may or any(right in refused for right in lacks),
                                    (key, words, refused))


if __name__ == "__main__":
    pawltest.main(globals())
