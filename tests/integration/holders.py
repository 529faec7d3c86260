"""Clients of every kind that hold locks and wait for others, for tests of what happens to the nodes
meanwhile. A crew is one client, or a few processes, with many locks:

    take(count)     takes so many locks, of every mode that the kind of client has
    told()          which it was told it has lost, or can no longer keep, and when
    check()         raises unless each other one is still held, and has the token that it had at
                    first
    forget(key)     what happens to this lock does not matter any more
    wait(key)       begins to wait for a key that somebody else holds
    granted()       returns when every wait has been granted; then the locks are released
    release()       releases what take() took

Those of Redis and memcached are in dialectholders.py."""

import asyncio
import itertools
import os
import ssl
import subprocess
import sys
import threading
import time

import pawltest
from pawltest import PATIENCE
from rediscluster import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
import pawl  # noqa: E402
import pawl.aio  # noqa: E402

# Debian's Python has the package python3-pymemcache; the one that runs the tests may be another.
sys.path.append("/usr/lib/python3/dist-packages")
from pymemcache.client.base import Client as Memcached  # noqa: E402

LEASE = 3.0
# Nodes of these tests have this slack for clients of Redis and memcached, who wait as long for an
# answer.
SLACK = 1.0


def each_mode(name, count, modes):
    """Keys of the crew of that name, with a mode each."""
    return [("%s/%s/%d" % (name, mode, i), mode)
            for i, mode in zip(range(count), itertools.cycle(modes))]


class Tls:
    """The files of a client, which may change while it runs, and the addresses of the nodes."""

    def __init__(self, ca, cert, key, native, dialects):
        """`native` are endpoints of libpawl, `dialects` pairs of ports for Redis and memcached."""
        self.ca, self.cert, self.key = ca, cert, key
        self.native, self.dialects = native, dialects

    def first_two(self):
        """For those who wait: they know two nodes, of which each stops once while they are
        connected to it."""
        return Tls(self.ca, self.cert, self.key, self.native[:2], self.dialects[:2])

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        return dict(env, PAWL_ENDPOINTS=",".join(self.native), PAWL_CACERT=self.ca,
                    PAWL_CERT=self.cert, PAWL_CERT_KEY=self.key,
                    **({"PAWL_PREFER_FIRST": "yes"} if self.prefer() else {}))

    def prefer(self):
        return len(self.native) == 2

    def python(self):
        return {"endpoints": self.native, "ca_file": self.ca, "cert_file": self.cert,
                "key_file": self.key, "prefer_first": self.prefer()}

    def redis(self, node):
        return redis.Redis(port=self.dialects[node][0], ssl=True, ssl_ca_certs=self.ca,
                           ssl_certfile=self.cert, ssl_keyfile=self.key, socket_timeout=SLACK,
                           socket_connect_timeout=SLACK)

    def memcached(self, node):
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.cert, self.key)
        return Memcached(("127.0.0.1", self.dialects[node][1]), tls_context=context, timeout=SLACK,
                         connect_timeout=SLACK)


class Crew:
    modes = ("exclusive", "exclusive", "exclusive", "shared", "permits", "bound")

    def __init__(self, name, tls):
        self.name, self.tls, self.tokens, self.waits = name, tls, {}, []

    def keys(self, count):
        return each_mode(self.name, count, self.modes)

    def check(self):
        """now() has the tokens as the client knows them."""
        lost = {key: why for key, why in self.told().items() if key in self.tokens}
        assert not lost, (self.name, lost)
        now = self.now()
        # A lock that is bound to a connection may be acquired again under its lock_id when it goes
        # on over another one, and then has a greater token (docs/client-protocol.md).
        grown = {key: token for key, token in now.items()
                 if "/bound/" in key and token > self.tokens.get(key, token)}
        self.tokens.update(grown)
        assert now == self.tokens, "%s: %r is not %r" % (self.name, now, self.tokens)

    def forget(self, key):
        self.tokens.pop(key, None)


# ---- the programs: pawl, and one with libpawl ----

class Lines:
    """A program whose lines are read as they come."""

    def __init__(self, arguments, env):
        self.process = subprocess.Popen(arguments, env=env, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.seen, self.errors = [], threading.Condition(), []
        # When each line has come, and the end.
        self.times, times = [], []
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in (
            (self.process.stdout, self.lines, self.times),
            (self.process.stderr, self.errors, times))]
        for reader in self.readers:
            reader.start()

    def _read(self, file, lines, times):
        for line in itertools.chain(file, [None]):
            with self.seen:
                lines.append(line and line.split())
                times.append(time.monotonic())
                self.seen.notify_all()

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def until(self, condition, start=0):
        """Waits until the lines from number `start` on meet the condition, and returns them."""
        end = time.monotonic() + PATIENCE
        with self.seen:
            while not condition(self.lines[start:]):
                left = end - time.monotonic()
                assert left > 0 and None not in self.lines and self.seen.wait(left), (
                    self.process.args[:3], self.lines[start:], self.errors)
            return self.lines[start:]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for reader in self.readers:
            reader.join(PATIENCE)
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            file.close()


class Library(Crew):
    """A program with libpawl, in one of its styles. One that waits is another process, because in
    the blocking style nothing else is asked while an acquire waits."""

    def __init__(self, style, program, tls):
        super().__init__("libpawl-" + style, tls)
        self.command = [program, style, str(int(LEASE * 1000))]
        self.program = Lines(self.command, tls.environment())

    def take(self, count):
        for key, mode in self.keys(count):
            self.program.say("take", key, mode, 0)
        lines = self.program.until(lambda lines: sum(x[0] == "held" for x in lines) == count)
        self.tokens = {x[1]: int(x[2]) for x in lines if x[0] == "held"}

    def told(self):
        return {x[1]: (when, x[2]) for x, when in zip(self.program.lines, self.program.times)
                if x and x[0] == "lost"}

    def now(self):
        start = len(self.program.lines)
        self.program.say("tell")
        lines = self.program.until(lambda lines: ["told"] in lines, start)
        return {x[1]: int(x[2]) for x in lines
                if x[0] == "token" and x[1] in self.tokens and int(x[3]) > 0}

    def wait(self, key):
        program = Lines(self.command, self.tls.first_two().environment())
        program.say("take", key, "exclusive", "forever")
        self.waits.append((key, program))

    def granted(self):
        for key, program in self.waits:
            program.until(lambda lines: any(x[0] in ("held", "failed") for x in lines))
            assert any(x[0] == "held" for x in program.lines), (self.name, key, program.lines)
            program.say("release", key)
            program.until(lambda lines: ["released", key, "ok"] in lines)

    def release(self):
        for key in self.tokens:
            self.program.say("release", key)
        self.program.until(lambda lines: sum(x[0] == "released" for x in lines)
                           == len(self.tokens))

    def end(self):
        for program in [self.program] + [program for _, program in self.waits]:
            program.end()


class Command(Crew):
    """Processes of pawl, which hold keys while a command runs. `words` is the subcommand."""

    def __init__(self, words, program, tls):
        super().__init__("pawl-" + words[0], tls)
        self.program, self.words, self.running = program, words, []

    def start(self, words, options, tls):
        script = ('trap "echo ended; exit 1" TERM; echo "$PAWL_TOKENS $PAWL_TOKEN"; '
                  'read end; exit 0')
        return Lines([self.program, self.words[0], *words, "--lease", "%gs" % LEASE, *options,
                      *self.words[1:], "--", "sh", "-c", script], tls.environment())

    def take(self, count):
        options = {"exclusive": (), "shared": ("--shared",), "bound": ("--release-on-disconnect",),
                   "permits": ("--permits", "2", "--of", "5")}
        for mode in dict.fromkeys(self.modes):
            keys = [key for key, its in self.keys(count) if its == mode]
            if keys:
                self.running.append((keys, self.start(keys, options[mode], self.tls)))
        for keys, program in self.running:
            line = program.until(len)[0]
            self.tokens.update(zip(keys, map(int, line[0].split(","))))
        self.first = dict(self.tokens)

    def told(self):
        """The command was ended; or it, and whatever it has started, is gone."""
        return {key: (when, program.errors) for keys, program in self.running for key in keys
                for line, when in reversed(list(zip(program.lines, program.times)))
                if line in (["ended"], None)}

    def now(self):
        return {key: self.first[key] for key in self.tokens}

    def wait(self, key):
        options = () if self.words[0] == "elect" else ("--wait", "10m")
        self.waits.append((key, self.start([key], options, self.tls.first_two())))

    def granted(self):
        for key, program in self.waits:
            program.until(len)
            self.finish(key, program)

    def release(self):
        for keys, program in self.running:
            self.finish(keys, program)

    @staticmethod
    def finish(keys, program):
        program.say("end")
        assert program.process.wait(PATIENCE) == 0, (keys, program.lines, program.errors)

    def end(self):
        for _, program in self.running + self.waits:
            program.end()


class Election(Command):
    modes = ("exclusive", "bound")

    def take(self, count):
        for key, mode in self.keys(count):
            options = ("--release-on-disconnect",) if mode == "bound" else ()
            program = self.start([key], options, self.tls)
            self.running.append(([key], program))
            self.tokens[key] = int(program.until(len)[0][-1])
        self.first = dict(self.tokens)


# ---- Python ----

class Blocking(Crew):
    def __init__(self, tls):
        super().__init__("python", tls)
        self.locks, self.lost = {}, {}
        self.client, self.waiting = (pawl.connect(**each.python())
                                     for each in (tls, tls.first_two()))

    def lock(self, key, mode, wait):
        options = {"shared": {"mode": "shared"}, "permits": {"permits": 2, "of": 5},
                   "bound": {"release_on_disconnect": True}}
        client = self.client if wait == 0 else self.waiting
        return client.lock(key, lease=LEASE, wait=wait, **options.get(mode, {}),
                           on_lost=self.on_lost)

    def on_lost(self, lock, error):
        self.lost[lock.key.decode()] = time.monotonic(), error

    def take(self, count):
        for key, mode in self.keys(count):
            self.locks[key] = self.lock(key, mode, 0)
            self.locks[key].acquire()
        self.tokens = {key: lock.token for key, lock in self.locks.items()}

    def told(self):
        return dict(self.lost)

    def now(self):
        return {key: self.locks[key].token for key in self.tokens if self.locks[key].valid > 0}

    def wait(self, key):
        lock, outcome = self.lock(key, "exclusive", None), []

        def acquire():
            try:
                lock.acquire()
                lock.release()
                outcome.append(None)
            except BaseException as error:  # granted() raises it.
                outcome.append(error)
        thread = threading.Thread(target=acquire, daemon=True)
        thread.start()
        self.waits.append((thread, outcome))

    def granted(self):
        for thread, outcome in self.waits:
            thread.join(PATIENCE)
            assert outcome == [None], (self.name, outcome)

    def release(self):
        for lock in self.locks.values():
            lock.release()

    def end(self):
        self.client.close()
        self.waiting.close()


class Asyncio(Blocking):
    def __init__(self, tls):
        Crew.__init__(self, "asyncio", tls)
        self.locks, self.lost, self.loop = {}, {}, asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.client, self.waiting = (self.run(self.connect(each))
                                     for each in (tls, tls.first_two()))

    async def connect(self, tls):
        return pawl.aio.connect(**tls.python())

    def run(self, coroutine, patience=PATIENCE):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(patience)

    def take(self, count):
        async def acquire():
            self.locks = {key: self.lock(key, mode, 0) for key, mode in self.keys(count)}
            await asyncio.gather(*(lock.acquire() for lock in self.locks.values()))
        self.run(acquire())
        self.tokens = {key: lock.token for key, lock in self.locks.items()}

    def wait(self, key):
        async def acquire():
            async with self.lock(key, "exclusive", None):
                pass
        self.waits.append(asyncio.run_coroutine_threadsafe(acquire(), self.loop))

    def granted(self):
        for wait in self.waits:
            wait.result(PATIENCE)

    def release(self):
        async def release():
            await asyncio.gather(*(lock.release() for lock in self.locks.values()))
        self.run(release())

    def end(self):
        self.run(self.client.close())
        self.run(self.waiting.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()
