"""Operators who change the set of nodes while it is under attack: each request goes to a random
node, and some are at cross purposes."""

import threading
import time

import history
import pawltest

# How many requests are under way at a time. More would only be told that another change is under
# way.
ASKED_AT_ONCE = 2
# How long to wait for the answer to a change, in seconds.
PATIENCE = 20.0
RESTORED_WITHIN = 30.0


class Operators:
    """Its method `operate` is a fault for the nemesis."""

    def __init__(self, cluster, log):
        self.cluster, self.log, self.nemesis, self.under_way = cluster, log, None, []
        # The node that has lost its disk and is not a member again yet.
        self.lost = None

    def ask(self, node, method, **params):
        """Asks for a change, and writes it to the history. Returns (what came of it, the text of a
        refusal)."""
        invoke, message = history.now(), None
        try:
            answer = node.ask(method, timeout=PATIENCE, **params)
            result = "unknown" if answer is None else "ok"
        except pawltest.Refused as e:
            result, message = e.code, str(e.error)
        returned = history.now() if result != "unknown" else None
        self.log.line(op="change", process=0, method=method, asked=params, node=node.name,
                      invoke=invoke, **{"return": returned}, result=result, message=message)
        return result, message

    # ---- under attack ----

    def look(self):
        """Returns the status of a random node, with the set of nodes that it knows, or None."""
        running = self.cluster.running()
        try:
            status = self.random.choice(running).ask("status", timeout=0.5) if running else None
        except pawltest.Refused:
            return None
        return status if status and status["masters"] else None

    def operate(self):
        """Makes one more request, if there is one to make."""
        self.random = self.nemesis.random
        self.under_way = [t for t in self.under_way if t.is_alive()]
        status = self.look()
        if status is None or len(self.under_way) >= ASKED_AT_ONCE:
            return
        masters, replicas = sorted(status["masters"]), sorted(status["replicas"])
        outside = sorted(set(self.cluster.nodes) - set(masters) - set(replicas))
        node, change = self.nemesis.node(), self.drawn(masters, replicas, outside)
        if node and change:
            thread = threading.Thread(target=self.request, args=(node, *change), daemon=True)
            self.under_way.append(thread)
            thread.start()

    def request(self, node, method, params):
        result, _ = self.ask(node, method, **params)
        if result == "ok" and params.get("old") == params.get("new") == self.lost:
            self.lost = None

    def drawn(self, masters, replicas, outside):
        """Draws a change that is sensible for this set: (method, parameters). None: a disk is lost
        instead."""
        draw = self.random.choice
        if self.lost:
            return "cluster_replace", {"old": self.lost, "new": self.lost}
        count, named = len(self.cluster.masters), self.cluster.named(self.cluster.nodes)
        self.random.shuffle(named)
        possible = [lambda: ("cluster_set_nodes", {"masters": named[:count],
                                                   "replicas": named[count:]})] * 2
        if self.cluster.rough:
            possible += [self.lose_disk, lambda: ("cluster_set_timing", {
                "max_lease_ms": draw([3000, 3500, 4000])})]
        if outside:
            possible += [lambda: self.add_replica(draw(outside))] * 3
        if replicas:
            possible += [lambda: ("cluster_remove", {"name": draw(replicas)})]
            possible += [lambda: ("cluster_replace", {"old": draw(masters),
                                                      "new": draw(replicas)})] * 3
            if len(masters) < 5:
                possible += [lambda: ("cluster_promote", {"name": draw(replicas)})]
        if len(masters) > 3:
            possible += [lambda: ("cluster_demote", {"name": draw(masters)})] * 2
        return draw(possible)()

    def add_replica(self, name):
        return "cluster_add_replica", {"name": name, "address": self.cluster.nodes[name].address}

    def lose_disk(self):
        """Loses the disk of one node at a time. The node comes back under its name with a new
        identity, and has to be let in again."""
        node = self.nemesis.node()
        if node:
            self.nemesis.tell("lose_disk", node=node.name)
            self.nemesis.kill(node)
            node.lose_disk()
            self.lost = node.name

    # ---- at rest ----

    def restore(self):
        """Restores the first set, with every node in it, and asks until that is done. Returns None,
        or why it failed."""
        for thread in self.under_way:
            thread.join()
        end, said = time.monotonic() + RESTORED_WITHIN, "nobody answered"
        while time.monotonic() < end:
            for node in self.cluster.nodes.values():  # Some of them may be outside.
                if self.lost:
                    result, _ = self.ask(node, "cluster_replace", old=self.lost, new=self.lost)
                    self.lost = None if result in ("ok", "unknown", "not_found") else self.lost
                result, message = self.ask(node, "cluster_set_nodes",
                                           masters=self.cluster.named(self.cluster.masters),
                                           replicas=self.cluster.named(self.cluster.spares))
                if result == "ok":
                    return None
                said = "%s: %s: %s" % (node.name, result, message)
            time.sleep(0.2)
        return said
