"""Operators who change the set of nodes while it is under attack, and check that all is well."""

import asyncio

import clients
import cluster as clusters
import history
import rpc

CHANGE_S = 20.0


class Operator(clients.Client):
    """Asks random nodes, on their own machines, where an operator has all rights. A request that is
    refused is not repeated."""

    async def ask(self, node, method, timeout=2.0, **params):
        connection = await rpc.connect_here(self.cluster.nodes[node].unix, node)
        if not connection:
            return rpc.Answer(rpc.now(), None, "unknown", {})
        answer = await connection.call(method, timeout, **params)
        self.examine(answer, method)
        connection.close()
        answer.data = history.text(answer.data)
        return answer

    def somebody(self):
        running = [n.name for n in self.cluster.running()]
        return self.random.choice(running) if running else None

    async def look(self):
        """Returns the set of nodes as a random node sees it: (masters, replicas, outside), or
        None."""
        answer = await self.ask(self.somebody(), "status") if self.somebody() else None
        if not answer or not answer.ok or not answer.data.get("masters"):
            return None
        masters, replicas = (answer.data[kind] for kind in ("masters", "replicas"))
        return masters, replicas, [n for n in self.cluster.nodes if n not in masters + replicas]

    # ---- changes ----

    def drawn(self, masters, replicas, outside):
        """Draws a change that is sensible for this set: (method, parameters)."""
        named = ["%s=%s" % (n.name, n.address) for n in self.cluster.nodes.values()]
        possible = []
        if outside:
            name = self.random.choice(outside)
            possible += [("cluster_add_replica", {"name": name,
                                                  "address": self.cluster.nodes[name].address})] * 3
        if replicas:
            possible += [("cluster_promote", {"name": self.random.choice(replicas)}),
                         ("cluster_remove", {"name": self.random.choice(replicas)})]
            possible += [("cluster_replace", {"old": self.random.choice(masters),
                                              "new": self.random.choice(replicas)})] * 3
        if len(masters) > 3:
            possible += [("cluster_demote", {"name": self.random.choice(masters)})] * 2
        self.random.shuffle(named)
        possible.append(("cluster_set_nodes", {"masters": named[:len(self.cluster.masters)],
                                               "replicas": named[len(self.cluster.masters):]}))
        return self.random.choice(possible)

    async def change(self):
        seen = await self.look()
        node = self.somebody()
        if not seen or not node:
            return
        method, params = self.drawn(*seen)
        answer = await self.ask(node, method, CHANGE_S, **params)
        self.write("change", answer, method=method, asked=params, node=node)

    async def run(self, stop, pause):
        while not stop.is_set():
            await asyncio.sleep(self.random.uniform(0.3, 1.7) * pause)
            if not stop.is_set():
                await self.change()

    # ---- all is well ----

    async def trouble(self):
        """Returns why not all nodes vote or follow in one epoch, each linked with all masters; None
        if they do."""
        epochs = set()
        for node in self.cluster.nodes.values():
            answer = await self.ask(node.name, "status")
            if not answer.ok:
                return "%s does not answer (%s)" % (node.name, answer.result)
            state = answer.data["state"]
            if state not in ("voting", "following") and answer.data["role"] != "outside":
                return "%s is %s" % (node.name, state)
            if answer.data["role"] != "outside" and not answer.data["complete"]:
                return "%s misses %s" % (node.name, answer.data["missing"])
            if (answer.data["role"] != "outside" and answer.data["voting"]
                < len(answer.data["masters"])):
                return "%s is linked with %d masters that vote, of %d" % (
                    node.name, answer.data["voting"], len(answer.data["masters"]))
            epochs |= {answer.data["epoch"]} if answer.data["role"] != "outside" else set()
        return None if len(epochs) == 1 else "several epochs: %s" % sorted(epochs)

    async def all_well(self, seconds):
        """Waits until all is well. Returns None, or what is still wrong after this many seconds."""
        end = rpc.now() + seconds * 1e9
        while True:
            trouble = await self.trouble()
            if trouble is None or rpc.now() > end:
                return trouble
            await asyncio.sleep(0.1)

    async def restore(self, seconds):
        """Restores the first set of nodes, with the spare nodes as replicas. Returns None, or why
        that failed."""
        end, said = rpc.now() + seconds * 1e9, "nobody answered"
        wanted = [["%s=%s" % (n, self.cluster.nodes[n].address) for n in names]
                  for names in (self.cluster.masters, self.cluster.spares)]
        while rpc.now() < end:
            for name in self.cluster.nodes:  # Some of them may be outside.
                answer = await self.ask(name, "cluster_set_nodes", CHANGE_S, masters=wanted[0],
                                        replicas=wanted[1])
                self.write("change", answer, method="cluster_set_nodes", node=name)
                if answer.ok:
                    return None
                said = "%s: %s: %s" % (name, answer.result, answer.data.get("message"))
            await asyncio.sleep(0.2)
        return said


RECOVERY_S = (clusters.MAX_LEASE_MS / 1000 * (1 + 2 * clusters.DRIFT_PPM / 1e6)
              + clusters.REQUEST_TIMEOUT_MS / 1000 + 4.0)
