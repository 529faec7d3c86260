"""The faults of a run. What goes wrong, when, and for how long is drawn from a seed. Every fault
ends by itself, and several may last at the same time."""

import asyncio
import concurrent.futures
import random

import cluster as clusters
import rpc

LONGEST_S = 4.0


class Faults:
    """Strikes until it is told to heal. Work that blocks (processes, packet filters) runs in a
    thread of its own, which lives as long as this object."""

    def __init__(self, cluster, history, seed, odd_clocks=True, wrong=None, pauses=(0.05, 1.0)):
        """Between two faults is a pause of `pauses`, from and to so many seconds."""
        self.pauses = pauses
        self.cluster, self.history, self.random = (cluster, history,
                                                   random.Random("faults %d" % seed))
        self.hands = concurrent.futures.ThreadPoolExecutor(1)
        # Clock rates beyond the bound, of nodes that are wrong on purpose.
        self.wrong = wrong or {}
        self.odd_clocks, self.busy, self.ends, self.counts = odd_clocks, set(), set(), {}
        # Each row has a weight and a fault.
        self.table = [
            (14, self.kill), (2, self.kill_all), (12, self.stop), (8, self.cut),
            (12, self.cut_one_way), (5, self.isolate),
            (4, self.partition), (8, self.cut_clients), (4, self.lose), (6, self.planned_stop),
            (1, self.planned_stop_of_all), (6, self.swap)]

    async def do(self, function, *arguments):
        return await asyncio.get_running_loop().run_in_executor(self.hands, function, *arguments)

    def tell(self, what, **where):
        self.counts[what] = self.counts.get(what, 0) + 1
        self.history.moment("fault", rpc.now(), what=what, **where)

    # ---- drawing ----

    def rate(self, node):
        """Draws the rate of a process's clocks: within the bound, often at an edge of it; some are
        true."""
        if node.name in self.wrong:
            return self.wrong[node.name]
        edge = clusters.DRIFT_PPM * 0.95 / 1e6 if self.odd_clocks else 0.0
        return 1.0 + self.random.choice([0.0, 0.0, self.random.uniform(0, edge), edge])

    def node(self):
        """Draws a node whose process runs undisturbed, or returns None."""
        free = [n for n in self.cluster.nodes.values() if n.running() and n.name not in self.busy]
        return self.random.choice(free) if free else None

    def names(self):
        return sorted(self.cluster.nodes)

    def later(self, low, high, end):
        """Calls the coroutine function `end` after a while, or when everything heals."""
        seconds = self.random.uniform(low, high)

        async def wait_and_end():
            await self.pause(seconds)
            await end()
        self.ends.add(asyncio.ensure_future(wait_and_end()))

    async def pause(self, seconds):
        """Waits for this many seconds, or until everything heals."""
        try:
            async with asyncio.timeout(seconds):
                await self.healed.wait()
        except TimeoutError:
            pass

    # ---- processes ----

    async def start(self, node):
        node_rate = self.rate(node)
        await self.do(node.start, node_rate)
        self.tell("start", node=node.name, rate=node_rate)
        self.busy.discard(node.name)

    async def kill(self, node=None, pause=2.0):
        node = node or self.node()
        if node:
            self.busy.add(node.name)
            self.tell("kill", node=node.name)
            await self.do(node.kill)
            self.later(0.0, pause, lambda: self.start(node))

    async def kill_all(self):
        """Kills all nodes, so that none remembers anything."""
        pause = self.random.choice([0.1, 1.0])
        for node in [n for n in self.cluster.nodes.values()
                     if n.running() and n.name not in self.busy]:
            await self.kill(node, pause)

    async def stop(self):
        node = self.node()
        if not node:
            return
        self.busy.add(node.name)
        self.tell("stop", node=node.name)
        node.stop()

        async def go_on():
            node.go_on()
            self.tell("go_on", node=node.name)
            self.busy.discard(node.name)
        self.later(0.1, LONGEST_S, go_on)

    async def planned_stop(self, node=None):
        """Drains the node, ends it, and starts it later. The node must know everything then."""
        node = node or self.node()
        if not node:
            return
        self.busy.add(node.name)
        self.tell("planned_stop", node=node.name)
        connection = await rpc.connect_here(node.unix, node.name)
        if connection and self.random.random() < 0.7:
            await connection.call("drain", 3.0)
        if connection:
            connection.close()
        await self.do(node.end)
        self.later(0.0, 1.0, lambda: self.start(node))

    async def planned_stop_of_all(self):
        for node in [n for n in self.cluster.nodes.values()
                     if n.running() and n.name not in self.busy]:
            await self.planned_stop(node)

    # ---- the network ----

    async def network(self, what, do, undo, **where):
        self.tell(what, **where)
        await self.do(do)

        async def mend():
            await self.do(undo)
            self.tell("mend", **where)
        self.later(0.3, LONGEST_S, mend)

    async def cut(self):
        one, other = self.random.sample(self.names(), 2)
        net = self.cluster.net
        await self.network("cut", lambda: net.cut(one, other), lambda: net.mend(one, other),
                           between=[one, other])

    async def cut_one_way(self):
        one, other = self.random.sample(self.names(), 2)
        net = self.cluster.net
        await self.network("cut_one_way", lambda: net.cut(one, other, both=False),
                           lambda: net.mend(one, other), sender=one, receiver=other)

    async def isolate(self):
        """Cuts a node off from the other nodes, and sometimes from the clients as well."""
        name, both, net = (self.random.choice(self.names()), self.random.random() < 0.5,
                           self.cluster.net)
        others = [n for n in self.names() if n != name] + (clusters.CLIENT_HOSTS
                                                           if self.random.random() < 0.3 else [])

        def do():
            for other in others:
                net.cut(name, other, both)

        def undo():
            for other in others:
                net.mend(name, other)
        await self.network("isolate" if both else "isolate_one_way", do, undo, node=name,
                           others=others)

    async def partition(self):
        names, net = self.names(), self.cluster.net
        self.random.shuffle(names)
        at = self.random.randint(1, len(names) - 1)
        one, other = names[:at], names[at:]

        def undo():
            for a in one:
                for b in other:
                    net.mend(a, b)
        await self.network("partition", lambda: net.partition(one, other), undo,
                           groups=[one, other])

    async def swap(self):
        """First some masters cannot be reached, and then others. A master that can be reached all
        the time dies in between and is started again at once. So a quorum of the first time and one
        of the second have no master in common that remembers, unless all masters vote by the
        rules."""
        masters = self.random.sample(self.cluster.masters, len(self.cluster.masters))
        some = (len(masters) - 1) // 2
        first, second, node = (masters[:some], masters[some:2 * some],
                               self.cluster.nodes[masters[-1]])
        if not node.running() or node.name in self.busy:
            return
        self.busy.add(node.name)
        self.tell("swap", without=first, restarted=node.name, then_without=second)
        await self.do(self.apart, first)

        async def go_on():
            await self.pause(self.random.uniform(0.5, 1.5))
            await self.do(self.apart, second)
            await self.do(node.kill)
            await self.do(self.together, first)
            await self.start(node)
            await self.pause(self.random.uniform(1.0, 3.0))
            await self.do(self.together, second)
        self.ends.add(asyncio.ensure_future(go_on()))

    def apart(self, names):
        for name in names:
            for other in self.names():
                if other not in names:
                    self.cluster.net.cut(name, other)

    def together(self, names):
        for name in names:
            for other in self.names():
                if other not in names:
                    self.cluster.net.mend(name, other)

    async def cut_clients(self):
        host, name, net = (self.random.choice(clusters.CLIENT_HOSTS),
                           self.random.choice(self.names()), self.cluster.net)
        both, answers = self.random.random() < 0.3, self.random.random() < 0.6
        sender, receiver = (name, host) if answers else (host, name)
        await self.network("cut_clients", lambda: net.cut(sender, receiver, both),
                           lambda: net.mend(sender, receiver),
                           sender=sender, receiver=receiver, both=both)

    async def lose(self):
        name, percent, net = (self.random.choice(self.names()), self.random.choice([5, 20]),
                              self.cluster.net)
        await self.network("lose", lambda: net.lose(name, percent), lambda: net.lose(name, 0),
                           node=name, percent=percent)

    # ---- the run ----

    async def strike(self):
        dice = self.random.uniform(0, sum(weight for weight, _ in self.table))
        for weight, fault in self.table:
            dice -= weight
            if dice <= 0:
                return await fault()

    async def run(self, seconds):
        """Strikes for this many seconds. Then everything heals, and every process runs."""
        self.healed = asyncio.Event()
        end = rpc.now() + seconds * 1e9
        while rpc.now() < end:
            await asyncio.sleep(self.random.uniform(*self.pauses))
            self.look()
            await self.strike()
        self.healed.set()
        while self.ends:
            ends, self.ends = self.ends, set()
            await asyncio.gather(*ends)
        await self.do(self.cluster.net.heal)
        self.look()
        self.tell("healed")

    def look(self):
        for node in self.cluster.nodes.values():
            if node.name not in self.busy:
                node.look()

    def close(self):
        self.hands.shutdown(wait=True)
