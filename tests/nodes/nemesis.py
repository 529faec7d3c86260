"""The faults of a run. What goes wrong, when, and for how long is drawn from a seed. Every fault
ends by itself, and several may last at the same time."""

import collections
import heapq
import itertools
import random
import time

import cluster as clusters
import history
import pawltest

# Faults of nodes and networks, each with its weight.
FAULTS = {"kill": 14, "kill_all": 2, "stop": 12, "cut": 8, "cut_one_way": 12, "isolate": 5,
          "partition": 4, "cut_clients": 8, "lose": 4, "planned_stop": 6, "planned_stop_of_all": 1,
          "swap": 6}
# Faults of rough nodes.
ROUGH = {"delay": 8, "throttle": 4, "break_links": 5, "fill_disk": 5}
# Faults of the clients of a crowd.
CLIENTS = {"stop_client": 10, "kill_client": 5}
LONGEST_S = 4.0


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
    """Strikes for some time, and then heals. It writes what it does to the history."""

    def __init__(self, cluster, log, options, weights, crowd=None, wrong=(), pauses=(0.05, 1.0)):
        """`weights` says which faults there are: methods of this class, or functions. `crowd` are
        clients that it may stop and kill. `wrong` are rates of clocks beyond the bound, of nodes
        that are wrong on purpose. Between two faults are `pauses`, from and to so many seconds."""
        self.cluster, self.log, self.crowd, self.pauses = cluster, log, crowd, pauses
        self.random = random.Random("faults %d" % options.seed)
        self.odd_clocks, self.wrong = not getattr(options, "true_clocks", False), dict(wrong)
        self.agenda, self.counts, self.over = Agenda(), collections.Counter(), False
        # The nodes whose process is subject to a fault at the moment.
        self.busy = set()
        # After how many seconds the run says how it goes, and what it says then.
        self.tells_every, self.progress = 15, lambda: line_of(self.counts)
        self.faults = [f if callable(f) else getattr(self, f) for f in weights]
        self.weights = list(weights.values())

    # ---- drawing ----

    def node(self):
        """Returns a node whose process runs undisturbed, or None."""
        free = [n for n in self.cluster.nodes.values() if n.running() and n.name not in self.busy]
        return self.random.choice(free) if free else None

    def names(self):
        return sorted(self.cluster.nodes)

    def until(self, low, high, do, *arguments):
        self.agenda.at(time.monotonic() + self.random.uniform(low, high), do, *arguments)

    def rate(self, node):
        """Draws the rate of a process's clocks: within the bound, often at an edge of it; some
        are true."""
        edge = clusters.DRIFT_PPM * 0.95 / 1e6 if self.odd_clocks else 0.0
        drawn = 1.0 + self.random.choice([0.0, 0.0, self.random.uniform(0, edge), edge])
        return self.wrong.get(node.name, drawn)

    def tell(self, what, /, **where):
        self.counts[what] += 1
        self.log.moment("fault", history.now(), what=what, **where)

    # ---- processes ----

    def start(self, node):
        rate = self.rate(node)
        node.start(rate)
        self.tell("start", node=node.name, rate=rate)
        self.busy.discard(node.name)

    def start_all(self):
        for node in self.cluster.nodes.values():
            self.start(node)

    def kill(self, node=None, pause=2.0):
        node = node or self.node()
        if node:
            self.busy.add(node.name)
            self.tell("kill", node=node.name)
            node.kill()
            self.until(0.0, pause, self.start, node)

    def undisturbed(self):
        return [n for n in self.cluster.nodes.values() if n.running() and n.name not in self.busy]

    def kill_all(self):
        """Kills all nodes, so that none remembers anything."""
        pause = self.random.choice([0.1, 1.0, 2.0])
        for node in self.undisturbed():
            self.kill(node, pause)

    def stop(self):
        node = self.node()
        if node:
            self.busy.add(node.name)
            self.tell("stop", node=node.name)
            node.stop()
            self.until(0.1, LONGEST_S, self.go_on, node)

    def go_on(self, node):
        node.go_on()
        self.tell("go_on", node=node.name)
        self.busy.discard(node.name)

    def planned_stop(self, node=None):
        """Drains the node, ends it, and starts it later. The node must know everything then."""
        node = node or self.node()
        if node:
            self.busy.add(node.name)
            self.tell("planned_stop", node=node.name)
            try:
                if self.random.random() < 0.7:
                    self.counts["drain"] += node.ask("drain", timeout=3.0) is not None
            except pawltest.Refused:
                self.counts["drain_refused"] += 1
            node.end()
            self.until(0.0, 1.5, self.start, node)

    def planned_stop_of_all(self):
        for node in self.undisturbed():
            self.planned_stop(node)

    # ---- the network ----

    def network(self, what, do, undo, /, **where):
        def mend():
            undo()
            self.tell("mend", **where)
        self.tell(what, **where)
        do()
        self.until(0.3, LONGEST_S, mend)

    def between(self, what, one, others, both, /, **where):
        """Cuts one host off from others; if not both ways, only what it sends is lost."""
        net = self.cluster.net
        self.network(what, lambda: [net.cut(one, other, both) for other in others],
                     lambda: [net.mend(one, other) for other in others], **where)

    def cut(self):
        one, other = self.random.sample(self.names(), 2)
        self.between("cut", one, [other], True, between=[one, other])

    def cut_one_way(self):
        one, other = self.random.sample(self.names(), 2)
        self.between("cut_one_way", one, [other], False, sender=one, receiver=other)

    def isolate(self):
        """Cuts a node off from the other nodes, and sometimes from the clients as well."""
        name, both = self.random.choice(self.names()), self.random.random() < 0.6
        others = [n for n in self.names() if n != name]
        others += self.cluster.hosts if self.random.random() < 0.4 else []
        self.between("isolate" if both else "isolate_one_way", name, others, both, node=name,
                     others=others)

    def partition(self):
        names, net = self.names(), self.cluster.net
        self.random.shuffle(names)
        at = self.random.randint(1, len(names) - 1)
        one, other = names[:at], names[at:]
        self.network("partition", lambda: net.partition(one, other),
                     lambda: [net.mend(a, b) for a in one for b in other], groups=[one, other])

    def cut_clients(self):
        host, name = self.random.choice(self.cluster.hosts), self.random.choice(self.names())
        both, answers = self.random.random() < 0.3, self.random.random() < 0.6
        sender, receiver = (name, host) if answers else (host, name)
        self.between("cut_clients", sender, [receiver], both, sender=sender, receiver=receiver,
                     both=both)

    def lose(self):
        name, percent, net = (self.random.choice(self.names()), self.random.choice([5, 15, 40]),
                              self.cluster.net)
        self.network("lose", lambda: net.lose(name, percent), lambda: net.lose(name, 0), node=name,
                     percent=percent)

    def swap(self):
        """First some masters cannot be reached, and then others. A master that can be reached all
        the time dies in between and is started again at once. So a quorum of the first time and one
        of the second have no master in common that remembers, unless all masters vote by the
        rules."""
        masters = self.random.sample(self.cluster.masters, len(self.cluster.masters))
        some = (len(masters) - 1) // 2
        first, second, node = (masters[:some], masters[some:2 * some],
                               self.cluster.nodes[masters[-1]])
        net = self.cluster.net

        def each(do, names):
            for name in names:
                for other in self.names():
                    if other not in names:
                        do(name, other)

        def go_on():
            each(net.cut, second)
            node.kill()
            each(net.mend, first)
            self.start(node)
            self.until(1.0, 3.0, each, net.mend, second)
        if node.running() and node.name not in self.busy:
            self.busy.add(node.name)
            self.tell("swap", without=first, restarted=node.name, then_without=second)
            each(net.cut, first)
            self.until(0.5, 1.5, go_on)

    # ---- rough nodes ----

    def trouble(self, what, **asked):
        node = self.cluster.nodes[self.random.choice(self.names())]
        self.tell(what, node=node.name)
        node.trouble(**asked)
        self.until(0.5, LONGEST_S, node.trouble)

    def delay(self):
        self.trouble("delay", delay_ms=self.random.choice([[0, 5], [0, 50], [20, 200], [100, 700]]))

    def throttle(self):
        self.trouble("throttle", rate=self.random.choice([2000, 20000, 200000]))

    def break_links(self):
        self.trouble("break_links", **{"break": self.random.choice([0.002, 0.02, 0.2])})

    def fill_disk(self):
        """Fills a disk. Sometimes the process dies and starts while nothing can be written."""
        node = self.cluster.nodes[self.random.choice(self.names())]
        self.tell("fill_disk", node=node.name)
        node.fill_disk()
        self.until(0.5, 5.0, node.empty_disk)
        if self.random.random() < 0.4 and node in self.undisturbed():
            self.kill(node, 1.0)

    # ---- clients ----

    def pause_client(self, worker):
        worker.stop()
        self.until(0.1, 5.0, worker.go_on)

    def stop_client(self):
        self.counts["stop_client"] += 1
        self.pause_client(self.random.choice(self.crowd.workers))

    def kill_client(self):
        self.counts["kill_client"] += 1
        self.crowd.replace(self.random.randrange(len(self.crowd.workers)))

    # ---- the run ----

    def look(self):
        """Checks the nodes, and starts those again whose disk was full."""
        for node in self.cluster.nodes.values():
            if node.name not in self.busy and not node.look():
                self.tell("ended_by_full_disk", node=node.name)
                self.busy.add(node.name)
                self.until(0.5, 1.0, self.start, node)

    def strike(self, seconds):
        """Strikes for this many seconds. Then everything heals, and every process runs."""
        end, told = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end and not self.over:
            self.agenda.run_until(min(end, time.monotonic() + self.random.uniform(*self.pauses)))
            self.look()
            self.random.choices(self.faults, self.weights)[0]()
            if self.crowd:
                self.crowd.look_after(self.agenda)
            if time.monotonic() > told + self.tells_every:
                told = time.monotonic()
                print("%4.0f s: %s" % (told - end + seconds, self.progress()), flush=True)
        self.heal()

    def heal(self):
        self.agenda.run_all()
        self.cluster.heal()
        if self.crowd:
            self.crowd.go_on()
        self.look()
        self.agenda.run_all()
        self.tell("healed")


def line_of(counts):
    return ", ".join("%s %d" % item for item in sorted(counts.items()))
