"""The faults of a run. What goes wrong, when, and for how long is drawn from a seed. Every fault
ends by itself, and several may last at the same time."""

import collections
import heapq
import itertools
import random
import time

import nodes
import operators
import pawltest


class Agenda:
    """A list of what must be done later, in the order of time. Everything runs in one thread."""

    def __init__(self):
        self.heap, self.count = [], itertools.count()

    def at(self, when, do, *arguments):
        heapq.heappush(self.heap, (when, next(self.count), do, arguments))

    def run_until(self, end):
        while self.heap and self.heap[0][0] <= end:
            when, _, do, arguments = heapq.heappop(self.heap)
            time.sleep(max(0.0, when - time.monotonic()))
            do(*arguments)
        time.sleep(max(0.0, end - time.monotonic()))

    def run_all(self):
        """Does at once everything that was due later."""
        while self.heap:
            _, _, do, arguments = heapq.heappop(self.heap)
            do(*arguments)


class Nemesis:
    def __init__(self, cluster, crowd, seed, any_replica, odd_clocks):
        self.cluster, self.crowd, self.random = cluster, crowd, random.Random(seed)
        self.agenda, self.counts = Agenda(), collections.Counter()
        # The nodes whose process is subject to a fault at the moment.
        self.busy = set()
        self.odd_clocks = odd_clocks
        self.operators = operators.Operators(self)
        # Each fault with its weight.
        self.table = [
            (16, self.kill), (12, self.stop), (8, self.cut_pair), (8, self.cut_one_way),
            (6, self.isolate), (5, self.partition), (4, self.cut_clients), (6, self.lose),
            (8, self.delay), (4, self.throttle), (5, self.break_links), (5, self.fill_disk),
            (4, self.drain), (10, self.stop_worker), (5, self.kill_worker)]
        if any_replica:
            self.table.append((35, self.operators.operate))

    # ---- drawing ----

    def node(self):
        """Returns a node whose process runs undisturbed, or None."""
        free = [n for n in self.cluster.nodes.values() if n.running() and n.name not in self.busy]
        return self.random.choice(free) if free else None

    def names(self):
        return sorted(self.cluster.nodes)

    def until(self, low, high, do, *arguments):
        self.agenda.at(time.monotonic() + self.random.uniform(low, high), do, *arguments)

    def rate(self):
        """Draws the rate of a process's clocks: within the bound, often at an edge of it; some
        are true."""
        edge = nodes.DRIFT_PPM * 0.95 / 1e6 if self.odd_clocks else 0.0
        return 1.0 + self.random.choice([0.0, 0.0, self.random.uniform(0, edge), edge])

    def count(self, what):
        self.counts[what] += 1

    # ---- processes ----

    def start(self, node):
        rate = self.rate()
        if rate != 1.0:
            self.count("odd_clocks")
        node.start(rate)
        self.busy.discard(node.name)

    def kill(self):
        """Kills one process, or sometimes all at once, so that nobody remembers anything."""
        everybody = self.random.random() < 0.05
        one = self.node()
        for node in list(self.cluster.nodes.values()) if everybody else [one]:
            if node and node.running() and node.name not in self.busy:
                self.count("kills")
                self.busy.add(node.name)
                node.kill()
                self.until(0.0, 2.0, self.start, node)

    def stop(self):
        node = self.node()
        if node:
            self.count("stops")
            self.busy.add(node.name)
            node.stop()
            self.until(0.1, 3.0, self.go_on, node)

    def go_on(self, node):
        node.go_on()
        self.busy.discard(node.name)

    def drain(self):
        """Makes a planned stop: the node writes what it knows, and has it again after the start."""
        node = self.node()
        if not node:
            return
        self.busy.add(node.name)
        try:
            self.counts["drains"] += node.ask("drain") is not None
        except pawltest.Refused:
            self.count("drains_refused")
        node.terminate()
        self.until(0.5, 1.5, self.drained, node)

    def drained(self, node):
        node.kill()
        self.start(node)

    # ---- the network ----

    def pair(self):
        return self.random.sample(self.names(), 2)

    def cut_pair(self):
        one, other = self.pair()
        self.count("cuts")
        self.cluster.net.cut(one, other)
        self.until(0.3, 4.0, self.cluster.net.mend, one, other)

    def cut_one_way(self):
        one, other = self.pair()
        self.count("cuts_one_way")
        self.cluster.net.cut(one, other, both=False)
        self.until(0.3, 4.0, self.cluster.net.mend, one, other)

    def mend_all(self, name):
        for other in [*self.names(), "clients"]:
            if other != name:
                self.cluster.net.mend(name, other)

    def isolate(self):
        name = self.random.choice(self.names())
        self.count("isolations")
        self.cluster.net.isolate(name, both=self.random.random() < 0.7)
        self.until(0.3, 4.0, self.mend_all, name)

    def partition(self):
        names = self.names()
        self.random.shuffle(names)
        at = self.random.randint(1, len(names) - 1)
        self.count("partitions")
        self.cluster.net.partition(names[:at], names[at:])
        self.until(0.5, 4.0, self.unite)

    def unite(self):
        names = self.names()
        for i, name in enumerate(names):
            for other in names[i + 1:]:
                self.cluster.net.mend(name, other)

    def cut_clients(self):
        name = self.random.choice(self.names())
        self.count("clients_cut_off")
        self.cluster.net.cut("clients", name, both=self.random.random() < 0.5)
        self.until(0.3, 4.0, self.cluster.net.mend, "clients", name)

    def lose(self):
        name = self.random.choice(self.names())
        self.count("losses")
        self.cluster.net.lose(name, self.random.choice([5, 15, 40]))
        self.until(0.5, 4.0, self.cluster.net.lose, name, 0)

    def trouble(self, what, **asked):
        node = self.cluster.nodes[self.random.choice(self.names())]
        self.count(what)
        node.trouble(**asked)
        self.until(0.5, 4.0, node.trouble)

    def delay(self):
        self.trouble("delays",
                     delay_ms=self.random.choice([[0, 5], [0, 50], [20, 200], [100, 700]]))

    def throttle(self):
        self.trouble("throttles", rate=self.random.choice([2000, 20000, 200000]))

    def break_links(self):
        self.trouble("breaks", **{"break": self.random.choice([0.002, 0.02, 0.2])})

    # ---- disks ----

    def fill_disk(self):
        """Fills a disk. Sometimes the process dies and starts while nothing can be written."""
        node = self.cluster.nodes[self.random.choice(self.names())]
        self.count("full_disks")
        node.fill_disk()
        self.until(0.5, 5.0, node.empty_disk)
        if self.random.random() < 0.4 and node.running() and node.name not in self.busy:
            self.busy.add(node.name)
            node.kill()
            self.until(0.0, 1.0, self.start, node)

    # ---- clients ----

    def stop_worker(self):
        self.count("clients_stopped")
        worker = self.random.choice(self.crowd.workers)
        worker.stop()
        self.until(0.1, 5.0, worker.go_on)

    def kill_worker(self):
        self.count("clients_killed")
        self.crowd.replace(self.random.randrange(len(self.crowd.workers)))

    # ---- the run ----

    def look_for_crashes(self):
        """Checks the nodes. A node may refuse to go on where its disk is full; there is no other
        reason to end."""
        for node in self.cluster.nodes.values():
            status = node.crashed()
            if status is None or node.name in self.busy:
                continue
            node.ended()
            if status < 0 or not node.disk_was_full():
                self.cluster.crashes.append("%s ended by itself with status %d"
                                            % (node.name, status))
            self.count("ended_by_full_disk")
            self.busy.add(node.name)
            self.until(0.5, 1.0, self.start, node)

    def attack(self):
        total = sum(weight for weight, _ in self.table)
        dice = self.random.uniform(0, total)
        for weight, fault in self.table:
            dice -= weight
            if dice <= 0:
                return fault()

    def run(self, end, tell):
        while time.monotonic() < end and not self.cluster.crashes:
            self.agenda.run_until(min(end, time.monotonic() + self.random.uniform(0.1, 1.2)))
            self.look_for_crashes()
            self.attack()
            self.crowd.look_after(self.agenda)
            tell(self)

    def heal(self):
        """Ends all faults now, and starts every process."""
        self.agenda.run_all()
        self.cluster.heal()
        self.crowd.go_on()
        self.look_for_crashes()
        self.agenda.run_all()
        assert all(n.running() for n in self.cluster.nodes.values())
