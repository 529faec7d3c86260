"""The suites of clients: from which packages each comes, how it is run, and how its results are
read. scripts/test-clients runs them."""

import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # The packages of Debian are for Debian's Python.
LIMIT_S = 120
# For packages, in seconds.
FETCH_S = 600


class Unable(Exception):
    """A suite cannot be had here; the text says why."""


class Suite:
    """A suite. `kind` is the server's: redis or memcached. `own` is True for the library's own
    tests, and False for those of tests/clients, which are written after its documentation."""

    def __init__(self, name, kind, own, debian=(), npm=()):
        self.name, self.kind, self.own, self.debian, self.npm = name, kind, own, debian, npm

    def fetch(self, folder):
        """Gets the packages, those of npm into the folder."""
        missing = [p for p in self.debian if subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", p], capture_output=True,
            text=True).stdout != "installed"]
        if missing:
            must(["apt-get", "update", "-qq"])
            must(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])
        if self.npm and not os.path.exists(os.path.join(folder, "fetched")):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
                json.dump({"private": True}, f)
            must(["npm", "install", "--no-audit", "--no-fund", "--legacy-peer-deps",
                  "--ignore-scripts", *self.npm], cwd=folder)
            with open(os.path.join(folder, "fetched"), "w", encoding="utf-8"):
                pass

    def command(self, port, folder):
        raise NotImplementedError

    def run(self, port, folder, log):
        """Runs the suite against the server at the port. Returns (passed, failed, the names of what
        failed)."""
        words, env = self.command(port, folder)
        with open(log, "w+", encoding="utf-8", errors="replace") as out:
            try:
                subprocess.run(words, cwd=folder if self.npm else HERE, stdin=subprocess.DEVNULL,
                               stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                               env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
                               check=False)
            except subprocess.TimeoutExpired:
                out.write("\nstopped after %d s\n" % LIMIT_S)
            out.seek(0)
            return self.results(out.read())


def must(words, cwd=None):
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=FETCH_S,
                              env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unable(str(e)) from e
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise Unable("%s: %s" % (" ".join(words[:2]), lines[-1]))


def number(pattern, text):
    """Returns the number in the last match, or 0."""
    found = re.findall(pattern, text, flags=re.M)
    return int(found[-1]) if found else 0


class Unittest(Suite):
    """Programs of Python's unittest."""

    def __init__(self, *of, words, **more):
        super().__init__(*of, **more)
        self.words = words

    def command(self, port, folder):
        return [PYTHON, os.path.join(HERE, self.words[0]), *self.words[1:], str(port)], {}

    def results(self, text):
        failed = re.findall(r"^(?:FAIL|ERROR): (\w+)", text, flags=re.M)
        ran, skipped = number(r"^Ran (\d+) tests?", text), number(r"skipped=(\d+)", text)
        return ran - skipped - len(failed), len(failed), failed


class Tooz(Suite):
    """Tests of tooz that have "lock" in their names."""

    def __init__(self, *of, scheme, **more):
        super().__init__(*of, **more)
        self.scheme = scheme

    def command(self, port, folder):
        return ([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--pyargs",
                 "tooz.tests.test_coordination", "-k", "lock"],
                {"TOOZ_TEST_URL": "%s://127.0.0.1:%d" % (self.scheme, port)})

    def results(self, text):
        failed = re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", text, flags=re.M)
        return number(r"(\d+) passed", text), len(failed), failed


class Mocha(Suite):
    """The tests of redlock 4, a file of its package, which asks for the usual port of Redis."""

    def command(self, port, folder):
        package = os.path.join(folder, "node_modules", "redlock")
        with open(os.path.join(package, "test.js"), encoding="utf-8") as f:
            text = f.read()
        for before, after in ((r"createClient\(\)", "createClient(%d)" % port),
                              (r"createClient\(\{", "createClient({port: %d, " % port),
                              (r"\(require\('ioredis'\)\)\(\)", "(require('ioredis'))(%d)" % port),
                              (r"\(require\('ioredis'\)\)\(\{",
                               "(require('ioredis'))({port: %d, " % port)):
            text, count = re.subn(before, after, text)
            if not count:
                raise Unable("its tests are other ones than those of 4.2.0")
        with open(os.path.join(package, "test-at-port.js"), "w", encoding="utf-8") as f:
            f.write(text)
        return ["node_modules/.bin/mocha", "--exit", "--timeout", "20000",
                "node_modules/redlock/test-at-port.js"], {}

    def results(self, text):
        failed = re.findall(r"^ +\d+\) (?!Redlock:)(.+)$", text, flags=re.M)
        return number(r"(\d+) passing", text), number(r"(\d+) failing", text), failed


class Node(Suite):
    """Programs of node's own test runner."""

    def __init__(self, *of, program, library="", **more):
        super().__init__(*of, **more)
        self.program, self.library = program, library

    def command(self, port, folder):
        shutil.copy(os.path.join(HERE, self.program), folder)
        return (["node", "--test", "--test-reporter=tap", self.program],
                {"PORT": str(port), "LIBRARY": self.library})

    def results(self, text):
        failed = re.findall(r"^ *not ok \d+ - (.+)$", text, flags=re.M)
        return number(r"^# pass (\d+)", text), number(r"^# fail (\d+)", text), failed


class Ruby(Suite):
    def command(self, port, folder):
        return ["ruby", os.path.join(HERE, "ruby_locks.rb"), str(port)], {}

    def results(self, text):
        failed = re.findall(r"^ *(?:Locks#)?(test_\w+).*:$", text, flags=re.M)
        bad = number(r"(\d+) failures", text) + number(r"(\d+) errors", text)
        return number(r"(\d+) runs", text) - bad, bad, failed


class Php(Suite):
    def __init__(self, *of, client, **more):
        super().__init__(*of, **more)
        self.client = client

    def command(self, port, folder):
        return ["php", os.path.join(HERE, "laravel_locks.php"), self.client, str(port)], {}

    def results(self, text):
        return (number(r"^passed=(\d+)", text), number(r"^passed=\d+ failed=(\d+)", text),
                re.findall(r"^FAILED (.+?):", text, flags=re.M))


class RedisPySource(Suite):
    """redis-py's own tests of locks, in a folder with its source."""

    def __init__(self, source):
        super().__init__("redis-py of " + os.path.basename(source.rstrip("/")), "redis", True,
                         debian=["python3-pytest", "python3-pytest-asyncio"])
        self.source = os.path.abspath(source)

    def command(self, port, folder):
        tests = [os.path.join(self.source, "tests", *t) for t in (
            ("test_lock.py",), ("test_asyncio", "test_lock.py"))]
        return ([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "-c", os.devnull,
                 "-o", "asyncio_mode=auto", "--rootdir", self.source, *tests,
                 "--redis-url", "redis://127.0.0.1:%d/0" % port],
                {"PYTHONPATH": self.source})

    def results(self, text):
        failed = re.findall(r"^(?:FAILED|ERROR) \S*?::(\S+)", text, flags=re.M)
        return number(r"(\d+) passed", text), len(failed), failed


LARAVEL = ("php-cli", "php-illuminate-cache", "php-illuminate-redis")

SUITES = [
    Unittest("redis-py 4.3.4", "redis", False, words=["redis_py.py"], debian=["python3-redis"]),
    Mocha("redlock 4.2.0", "redis", True,
          npm=["redlock@4.2.0", "mocha@8", "chai@4", "ioredis@4", "redis@3"]),
    Node("redlock 5.0.0-beta.2", "redis", False, program="redlock.test.js", library="redlock",
         npm=["redlock@5.0.0-beta.2", "ioredis@5.4.1"]),
    Node("@sesamecare-oss/redlock 1.4.0", "redis", False, program="redlock.test.js",
         library="@sesamecare-oss/redlock",
         npm=["@sesamecare-oss/redlock@1.4.0", "ioredis@5.4.1"]),
    Node("redis-semaphore 5.6.2", "redis", False, program="semaphore.test.js",
         npm=["redis-semaphore@5.6.2", "ioredis@5.4.1"]),
    Node("node-redis 4.7.0", "redis", False, program="node_redis.test.js", npm=["redis@4.7.0"]),
    Tooz("tooz redis", "redis", True, scheme="redis",
         debian=["python3-tooz", "python3-redis", "python3-pytest", "python3-oslotest"]),
    Unittest("django-redis cache.lock", "redis", False, words=["django_locks.py", "redis"],
             debian=["python3-django-redis"]),
    Ruby("ruby-redis", "redis", False, debian=["ruby-redis", "ruby-minitest"]),
    Php("Laravel phpredis", "redis", False, client="phpredis", debian=[*LARAVEL, "php-redis"]),
    Php("Laravel predis", "redis", False, client="predis", debian=[*LARAVEL, "php-predis"]),
    Tooz("tooz memcached", "memcached", True, scheme="memcached",
         debian=["python3-tooz", "python3-pymemcache", "python3-pytest", "python3-oslotest"]),
    Unittest("Django memcached", "memcached", False, words=["django_locks.py", "memcached"],
             debian=["python3-django", "python3-pymemcache"]),
    Php("Laravel memcached", "memcached", False, client="memcached",
        debian=[*LARAVEL, "php-memcached"]),
]
