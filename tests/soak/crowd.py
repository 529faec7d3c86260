"""The clients, and the resource that their locks protect."""

import os
import select
import signal
import subprocess
import time

import nodes


class Worker:
    def __init__(self, crowd, number):
        cluster = crowd.cluster
        endpoints = [n.endpoint for _, n in sorted(cluster.nodes.items())]
        at = number % len(endpoints)
        endpoints = endpoints[at:] + endpoints[:at]
        # Such a client is on the same machine as its node.
        if number % 3 == 0:
            endpoints.insert(0, "unix:" + sorted(cluster.nodes.items())[at][1].unix)
        self.history = os.path.join(cluster.dir, "history-%03d" % number)
        self.process = nodes.spawn(cluster.net, "clients",
            [os.path.join(crowd.programs, "soak-worker"), ",".join(endpoints), str(number),
            self.history, crowd.socket, str(crowd.keys), str(cluster.seed * 1000 + number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def said(self):
        """Returns for how many seconds the client must stand still, if it has stopped itself since
        the last call."""
        if not select.select([self.process.stdout], [], [], 0)[0]:
            return None
        word = self.process.stdout.readline().split()
        return int(word[1]) / 1000 if word else None

    def end(self, kill):
        """Returns its status; None if it was killed."""
        if kill:
            self.process.kill()
        else:
            self.process.stdin.close()
            self.go_on()
        status = self.process.wait(20)
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return None if kill else status


class Crowd:
    def __init__(self, cluster, programs, size, keys):
        self.cluster, self.programs, self.keys = cluster, programs, keys
        self.pauses, self.number = 0, 0
        self.socket = os.path.join(cluster.dir, "resource.sock")
        self.resource = subprocess.Popen([os.path.join(programs, "soak-resource"),
            self.socket, os.path.join(cluster.dir, "resource.log")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=nodes.die_with_parent)
        while not os.path.exists(self.socket) and self.resource.poll() is None:
            time.sleep(0.01)
        self.workers, self.paused = [], set()
        for _ in range(size):
            self.workers.append(self.another())

    def another(self):
        self.number += 1
        return Worker(self, self.number)

    def replace(self, at):
        self.paused.discard(self.workers[at])
        self.workers[at].end(kill=True)
        self.workers[at] = self.another()

    def look_after(self, agenda):
        """Lets clients that stopped themselves go on when their pauses are over."""
        for worker in self.workers:
            pause = worker.said()
            if pause is not None:
                self.pauses += 1
                agenda.at(time.monotonic() + pause, worker.go_on)

    def go_on(self):
        for worker in self.workers:
            worker.go_on()

    def dead(self):
        return [w.process.returncode for w in self.workers if w.process.poll() is not None]

    def end(self):
        """Returns the counts of the resource."""
        statuses = [w.end(kill=False) for w in self.workers]
        assert not any(statuses), "clients ended with %s" % statuses
        self.workers = []
        out = self.resource.communicate(timeout=20)[0]
        return {name: int(number) for name, number in (line.split() for line in out.splitlines())}

    def close(self):
        for worker in self.workers:
            worker.end(kill=True)
        self.workers = []
        if self.resource.poll() is None:
            self.resource.kill()
            self.resource.wait()
