"""Tests the pages of docs/guide about clients of Redis and memcached, with their programs. Tests of
libraries that are not installed are skipped; scripts/test-clients installs all of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import guide
import pawltest
from guide import Recipe

PYTHON = "/usr/bin/python3"  # The packages of Debian are for Debian's Python.
sys.path.append("/usr/lib/python3/dist-packages")
import redis  # noqa: E402

# Where scripts/test-clients puts the packages of npm.
MODULES = os.path.join(guide.GUIDE, "..", "..", "out", "clients", "redlock-5.0.0-beta.2",
                       "node_modules")


class Cluster(pawltest.Cluster):
    """A cluster whose nodes listen for clients of Redis and of memcached, too. `redis` and
    `memcached` are the addresses of the first one."""

    def write_configs(self):
        self.all_redis, self.memcached = {}, "127.0.0.1:%d" % pawltest.free_port()
        super().write_configs()
        self.redis = self.all_redis["a"]

    def listens(self, name):
        self.all_redis[name] = "127.0.0.1:%d" % pawltest.free_port()
        return "listen_redis = %s\n%s" % (
            self.all_redis[name], "listen_memcached = %s\n" % self.memcached if name == "a" else "")


def lacks_python(*modules):
    done = subprocess.run([PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True,
                          check=False)
    return done.returncode and "Debian's Python lacks one of " + ", ".join(modules)


def lacks_laravel():
    if not shutil.which("php"):
        return "php is not installed"
    done = subprocess.run(["php", "-r", "class_exists('Redis') || exit(1);"
                           "require 'Illuminate/Redis/autoload.php';"
                           "require 'Illuminate/Cache/autoload.php';"],
                          capture_output=True, check=False)
    return done.returncode and "php-redis or the packages php-illuminate-* are not installed"


def lacks_redlock():
    return not (shutil.which("node") and os.path.isdir(MODULES)) and "redlock is not installed"


class Dialects(Recipe):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(guide.Paths.pawld).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.endpoints = ",".join(cls.cluster.clients[n] for n in "abc")

    def env(self, **more):
        return super().env(NODE_PATH=MODULES, **more)

    def check(self, lacks, stored, *words):
        """Checks that the program takes the lock and releases it, says a token that grows, and is
        refused while another holds it. `words` are the command without the key. `stored` is what
        the key `job` is called in Pawl."""
        if lacks:
            self.skipTest(lacks)
        tokens = []
        for _ in range(2):
            # tooz warns of heartbeats that are late, which they may be on a busy machine.
            said = "\n".join(self.finish(*words, "job"))
            token = re.search(r"^mine, with token (\d+)$", said, flags=re.M)
            self.assertTrue(token, said)
            tokens.append(int(token[1]))
        self.assertLess(*tokens)
        held = self.call("acquire", key=stored, lease_ms=30000)
        self.assertGreater(held["token"], tokens[1])
        self.assertIn("somebody else has it", self.finish(*words, "job", status=1))
        self.call("release", key=stored, lock_id=held["lock_id"])

    def test_redis_py(self):
        self.check(lacks_python("redis"), "job", PYTHON, guide.EXAMPLES + "/" + "lock_redis.py",
                   self.cluster.redis)

    def test_redlock(self):
        self.check(lacks_redlock(), "job", "lock_redlock.js", self.cluster.redis)

    def test_laravel(self):
        self.check(lacks_laravel(), "app:cache:job", "lock_laravel.php", self.cluster.redis)

    def test_tooz(self):
        self.check(lacks_python("tooz", "pymemcache"), "__TOOZ_LOCK_job", PYTHON,
                   guide.EXAMPLES + "/" + "lock_tooz.py", self.cluster.memcached)

    def test_django(self):
        self.check(lacks_python("django", "pymemcache"), ":1:job", PYTHON,
                   guide.EXAMPLES + "/" + "lock_django.py", self.cluster.memcached)


class WithoutQuorum(Dialects):
    """No program takes an outage for a lock that somebody else has."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in "bc":
            cls.cluster.nodes[name].signal(signal.SIGSTOP)

    def check(self, lacks, stored, *words):
        if lacks:
            self.skipTest(lacks)
        program = self.start(*words, "job")
        self.assertNotEqual(program.end(), 0)
        self.assertNotIn("somebody else has it", program.lines)


class Sentinels(unittest.TestCase):
    """from-redis-py.md, Several nodes"""

    @unittest.skipIf(lacks_python("redis"), "Debian's Python lacks redis")
    def test_a_lock_outlives_the_node_that_granted_it(self):
        with Cluster(guide.Paths.pawld) as cluster:
            host = subprocess.Popen(
                [PYTHON, os.path.join(guide.EXAMPLES, "lock_sentinel.py"),
                 ",".join(cluster.all_redis.values()), "job"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            with host:
                self.addCleanup(host.kill)
                self.assertEqual(self.say(host, "one"), "renewed: one\n")
                cluster.nodes["a"].kill()
                end = time.monotonic() + guide.PATIENCE
                while self.say(host, "two") != "renewed: two\n":
                    self.assertLess(time.monotonic(), end)
                with cluster.client("b") as native:
                    left = native.call("get", key="job", consistency="quorum")["remaining_ms"]
                self.assertGreater(left, 5000)
                host.stdin.close()
                self.assertEqual(host.wait(guide.PATIENCE), 0)

    @staticmethod
    def say(host, line):
        host.stdin.write(line + "\n")
        host.stdin.flush()
        return host.stdout.readline()


class Java(unittest.TestCase):
    """from-spring.md and from-shedlock.md: what these libraries send, besides their scripts."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(guide.Paths.pawld).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        host, port = cls.cluster.redis.rsplit(":", 1)
        cls.redis = redis.Redis(host, int(port))
        cls.addClassCleanup(cls.redis.close)

    def say(self, *words):
        return self.redis.execute_command(*words)

    def test_what_spring_sends(self):
        self.assertTrue(self.say("SET", "locks:a", "process", "NX", "PX", 30000))
        self.assertIsNone(self.say("SET", "locks:a", "other", "NX", "PX", 30000))
        self.assertTrue(self.say("SET", "locks:a", "process", "IFEQ", "process", "PX", 30000))
        self.assertIsNone(self.say("SET", "locks:a", "other", "IFEQ", "other", "PX", 30000))
        self.assertGreater(self.say("PAWL.TOKEN", "locks:a", self.say("GET", "locks:a")), 0)
        self.assertEqual(self.say("DELEX", "locks:a", "IFEQ", "other"), 0)
        self.assertEqual(self.say("DELEX", "locks:a", "IFEQ", "process"), 1)

    def test_what_shedlock_sends(self):
        key = "job-lock:production:a"
        self.assertTrue(self.say("SET", key, "host", "NX", "PX", 30000))
        self.assertIsNone(self.say("SET", key, "other", "NX", "PX", 30000))
        self.assertTrue(self.say("SET", key, "host", "XX", "PX", 2000))
        # A late task, or a version before 6.7.
        with self.assertRaises(redis.exceptions.NoPermissionError):
            self.say("SET", key, "host later", "XX", "PX", 2000)
        self.assertEqual(self.say("GET", key), b"host")
        # lockAtLeastFor is shorter than lockAtMostFor.
        self.assertLess(self.say("PTTL", key), 2000)
        self.assertEqual(self.say("DEL", key), 1)


if __name__ == "__main__":
    guide.main("__main__", counts=True)
