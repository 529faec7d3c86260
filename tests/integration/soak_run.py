#!/usr/bin/env python3
"""soak_run.py PAWLD PAWL [SECONDS [SEED]]: attacks pawl run.

Four contenders run one command after the other under one key of a cluster with three masters, while
processes of pawl, guardians and masters are killed and stopped at random. The command takes an
exclusive flock on a file, which its background processes also hold. A command that does not get the
flock at once runs while another one still runs, which is a violation. This prints how the runs
ended.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pawltest

COMMAND = """
import fcntl, os, random, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = open(os.path.join(sys.argv[1], "exclusive"), "a")
try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    with open(os.path.join(sys.argv[1], "violations"), "a") as violations:
        violations.write("token %s\\n" % os.environ["PAWL_TOKEN"])
open(os.path.join(sys.argv[1], "runs"), "a").write(".")
if random.random() < 0.5:
    subprocess.Popen(["setsid", "sleep", "1000"], pass_fds=[file.fileno()])
time.sleep(random.uniform(0, 0.8))
"""


class Soak:
    def __init__(self, pawl, cluster, seconds, seed):
        self.pawl, self.cluster, self.end = pawl, cluster, time.monotonic() + seconds
        self.random, self.folder = random.Random(seed), tempfile.mkdtemp(prefix="pawl-soak-")
        self.running, self.endings, self.timers = {}, {}, []
        # The processes of pawl whose guardian was killed or stopped. They are left alone, because
        # one of the two must work.
        self.alone = set()
        with open(os.path.join(self.folder, "command.py"), "w") as f:
            f.write(COMMAND)

    def over(self):
        return time.monotonic() >= self.end

    def contend(self, number):
        endpoints = list(self.cluster.clients.values())
        endpoints = endpoints[number % 3:] + endpoints[:number % 3]
        env = dict(os.environ, PAWL_ENDPOINTS=",".join(endpoints), PAWL_PREFER_FIRST="yes")
        while not self.over():
            lease = ("400ms", "800ms")[number % 2]
            process = subprocess.Popen([self.pawl, "run", "k", "--lease", lease, "--wait", "5s",
                                        "--", sys.executable,
                                        os.path.join(self.folder, "command.py"), self.folder],
                                       env=env, stderr=subprocess.DEVNULL)
            self.running[number] = process
            status = process.wait()
            self.endings[status] = self.endings.get(status, 0) + 1

    def stop_for(self, seconds, send):
        send(signal.SIGSTOP)
        timer = threading.Timer(seconds, send, [signal.SIGCONT])
        timer.start()
        self.timers.append(timer)

    def attack(self):
        process = self.running.get(self.random.randrange(4))
        if not process or process.poll() is not None or process in self.alone:
            return
        kind = self.random.random()
        if kind < 0.25:
            process.kill()
        elif kind < 0.6:
            self.alone.add(process)
            self.stop_for(self.random.uniform(0.1, 1.5), process.send_signal)
        elif kind < 0.75:
            self.alone.add(process)
            try:
                with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as children:
                    os.kill(int(children.read().split()[0]),
                            self.random.choice([signal.SIGKILL, signal.SIGSTOP]))
            except (OSError, IndexError):
                pass  # It was gone already.
        elif kind < 0.85:
            self.stop_for(0.4, self.cluster.nodes[self.random.choice("abc")].signal)

    def run(self):
        contenders = [threading.Thread(target=self.contend, args=(i,)) for i in range(4)]
        for c in contenders:
            c.start()
        while not self.over():
            self.attack()
            time.sleep(self.random.uniform(0.05, 0.3))
        for t in self.timers + contenders:
            t.join()

    def count(self, name):
        try:
            with open(os.path.join(self.folder, name)) as f:
                return f.read()
        except FileNotFoundError:
            return ""


def main():
    pawld, pawl = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    with pawltest.Cluster(pawld, cluster="max_lease = 2s\npromise_timeout = 600ms\nrequest_timeout "
                                         "= 300ms") as cluster:
        soak = Soak(pawl, cluster, seconds, seed)
        soak.run()
    violations, runs = soak.count("violations"), len(soak.count("runs"))
    crashed = sum(n for status, n in soak.endings.items()
                  if status < 0 and status != -signal.SIGKILL)
    print("seed %d: the command ran %d times; pawl ended with %s"
          % (seed, runs, dict(sorted(soak.endings.items()))))
    if violations or crashed or not runs:
        print("VIOLATION: %s; %d crashes" % (violations or "none", crashed))
        sys.exit(1)


if __name__ == "__main__":
    main()
