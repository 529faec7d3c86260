"""The clients, and the resource that their locks protect."""

import os
import select
import signal
import subprocess
import time

import cluster as clusters


class Client:
    """A process that runs at the hosts of the clients, until its input ends."""

    def __init__(self, cluster, arguments, **options):
        self.process = cluster.spawn(cluster.hosts[0], arguments, stdin=subprocess.PIPE, **options)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self, kill=False):
        """Returns its status; None if it was killed."""
        if kill:
            self.process.kill()
        else:
            self.process.stdin.close()
            self.go_on()
        status = self.process.wait(20)
        for stream in (self.process.stdin, self.process.stdout):
            if stream and not stream.closed:
                stream.close()
        return None if kill else status


def endpoints_from(cluster, at):
    """Returns the endpoints of all nodes, of which that with this number comes first."""
    nodes = [n for _, n in sorted(cluster.nodes.items())]
    at %= len(nodes)
    return nodes[at], [n.endpoint for n in nodes[at:] + nodes[:at]]


class People:
    """Clients that the nemesis may stop and replace. Use it in a with statement."""

    def __init__(self, cluster):
        self.cluster, self.workers, self.number = cluster, [], 0

    def __enter__(self):
        return self

    def another(self, at):
        """Starts the client that has this place."""
        self.number += 1
        return self.begin(self.number, at)

    def replace(self, at):
        self.workers[at].end(kill=True)
        self.workers[at] = self.another(at)

    def look_after(self, agenda):
        pass

    def go_on(self):
        for worker in self.workers:
            worker.go_on()

    def look(self):
        """Checks that all of them run."""
        dead = [w.process.returncode for w in self.workers if w.process.poll() is not None]
        if dead:
            raise clusters.Failed("clients ended by themselves: %s" % dead)

    def end(self):
        self.look()
        statuses = [w.end() for w in self.workers]
        self.workers = []
        if any(statuses):
            raise clusters.Failed("clients ended with %s" % statuses)

    def __exit__(self, *_):
        for worker in self.workers:
            worker.end(kill=True)


class Worker(Client):
    def __init__(self, crowd, number):
        cluster = crowd.cluster
        node, endpoints = endpoints_from(cluster, number)
        # Such a client is on the same machine as its node.
        if number % 3 == 0:
            endpoints.insert(0, "unix:" + node.unix)
        super().__init__(cluster, [
            os.path.join(crowd.programs, "soak-worker"), ",".join(endpoints), str(number),
            os.path.join(cluster.folder, "history-%03d.jsonl" % number), crowd.socket,
            str(crowd.keys), str(cluster.seed * 1000 + number)], stdout=subprocess.PIPE)

    def said(self):
        """Returns for how many seconds the client must stand still, if it has stopped itself since
        the last call."""
        if not select.select([self.process.stdout], [], [], 0)[0]:
            return None
        word = self.process.stdout.readline().split()
        return int(word[1]) / 1000 if word else None


class Crowd(People):
    def __init__(self, cluster, programs, size, keys):
        super().__init__(cluster)
        self.programs, self.keys, self.pauses = programs, keys, 0
        self.socket = os.path.join(cluster.folder, "resource.sock")
        self.resource = cluster.spawn(cluster.hosts[0], [
            os.path.join(programs, "soak-resource"), self.socket,
            os.path.join(cluster.folder, "resource.log")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        while not os.path.exists(self.socket) and self.resource.poll() is None:
            time.sleep(0.01)
        self.workers = [self.another(at) for at in range(size)]

    def begin(self, number, at):
        return Worker(self, number)

    def look_after(self, agenda):
        """Lets clients that stopped themselves go on when their pauses are over."""
        for worker in self.workers:
            pause = worker.said()
            if pause is not None:
                self.pauses += 1
                agenda.at(time.monotonic() + pause, worker.go_on)

    def end(self):
        """Returns the counts of the resource."""
        super().end()
        out = self.resource.communicate(timeout=20)[0]
        return {name: int(number) for name, number in (line.split() for line in out.splitlines())}

    def __exit__(self, *_):
        super().__exit__()
        if self.resource.poll() is None:
            self.resource.kill()
            self.resource.wait()
