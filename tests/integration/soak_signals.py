#!/usr/bin/env python3
"""soak_signals.py PAWLD PAWL [ROUNDS [SEED]]: interrupts pawl run and pawl elect at random moments.

In each round one of them is started, and gets one or two signals (INT, TERM or HUP) some time
between its start and long after. The key may be held by another one, so that it waits, and its
command may end by itself meanwhile. When pawl has ended, its command has to be gone, the key has to
be free for others, and nobody may wait for it or go on renewing it. This prints how the rounds
ended.
"""

import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

import cli_fixture
import pawltest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The command that only a signal ends, one that is slow to obey, and one that ends by itself.
COMMANDS = ("exec sleep 1000", "trap 'exit 9' INT TERM HUP; while :; do sleep 0.002; done", ":")


class Soak:
    def __init__(self, pawl, endpoint, seed):
        self.pawl, self.random = pawl, random.Random(seed)
        self.env = cli_fixture.environment(PAWL_ENDPOINTS=endpoint)
        self.client = pawltest.Client(endpoint)
        self.endings, self.violations = {}, []

    def check(self, good, what):
        if not good:
            self.violations.append(what)

    def start(self, verb, key):
        """Starts pawl with a pipe that ends when pawl, its guardian and its command are gone."""
        reader, writer = os.pipe()
        wait = ["--wait", "60s"] if verb == "run" else []
        process = subprocess.Popen(
            [self.pawl, verb, key, *wait, "--lease", "10s", "--", "sh", "-c",
             self.random.choice(COMMANDS)],
            pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=self.env)
        os.close(writer)
        return process, reader

    def interrupt(self, process):
        """Most moments are in the milliseconds in which pawl and its command start."""
        sent = []
        time.sleep(self.random.choice((0.004, 0.015, 0.04)) * self.random.random())
        for gap in (0, self.random.choice((0, 0.0005, 0.005)))[:self.random.choice((1, 2))]:
            time.sleep(gap)
            sent.append(self.random.choice(SIGNALS))
            process.send_signal(sent[-1])
        return sent

    def becomes_free(self, key):
        """A node goes on with a release after the client has left. That takes a round trip."""
        end = time.monotonic() + 1
        while self.client.call("get", key=key)["held"]:
            if time.monotonic() > end:
                return False
        return True

    def one(self, number):
        verb, key = self.random.choice(("run", "elect")), "k%d" % number
        held = self.random.random() < 0.25
        if held:
            lock = self.client.call("acquire", key=key, lease_ms=60000)["lock_id"]
        process, reader = self.start(verb, key)
        sent = self.interrupt(process)
        name = "round %d: %s%s, %s" % (number, verb, " of a held key" if held else "",
                                       " ".join(s.name for s in sent))
        try:
            status = process.wait(20)
        except subprocess.TimeoutExpired:
            self.violations.append(name + ": pawl did not end")
            process.kill()
            status = process.wait()
        self.check(select.select([reader], [], [], 5)[0] and os.read(reader, 1) == b"",
                   name + ": the command is not gone")
        os.close(reader)
        if held:
            self.check(not self.client.call("waiters", key=key)["waiters"],
                       name + ": it still waits")
            self.client.call("release", key=key, lock_id=lock)
        self.check(self.becomes_free(key), name + ": the key is not free (status %d)" % status)
        word = "%s %d" % (verb, status)
        self.endings[word] = self.endings.get(word, 0) + 1


def main():
    pawld, pawl = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    with tempfile.TemporaryDirectory(prefix="pawl-signals-") as folder:
        endpoint = "unix:" + os.path.join(folder, "node")
        node = pawltest.Node([pawld, "--dev", "--listen", endpoint])
        try:
            node.wait_log(" voting ")
            soak = Soak(pawl, endpoint, seed)
            for number in range(rounds):
                soak.one(number)
        finally:
            node.terminate()
    print("seed %d: %s" % (seed, dict(sorted(soak.endings.items()))))
    for violation in soak.violations[:20]:
        print("VIOLATION: " + violation)
    print("%d rounds, %d violations" % (rounds, len(soak.violations)))
    sys.exit(1 if soak.violations else 0)


if __name__ == "__main__":
    main()
