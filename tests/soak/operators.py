"""Operators who change the cluster while it is under attack: each request goes to a random node,
and some are at cross purposes."""

import threading
import time

import pawltest

# How many requests are under way at a time. More would only be told that another change is under
# way.
ASKED_AT_ONCE = 2
# How long to wait for the answer to a change, in seconds.
PATIENCE = 20.0


class Asked(threading.Thread):
    """One request for a change. Its outcome is read when the thread has ended."""

    def __init__(self, node, method, params):
        super().__init__(daemon=True)
        self.node, self.method, self.params, self.outcome = node, method, params, None
        self.start()

    def run(self):
        try:
            result = self.node.ask(self.method, timeout=PATIENCE, **self.params)
            self.outcome = "unanswered" if result is None else "done"
        except pawltest.Refused as e:
            self.outcome = e.code


class Operators:
    def __init__(self, nemesis):
        self.nemesis, self.random, self.cluster = nemesis, nemesis.random, nemesis.cluster
        self.under_way = []
        # The node that has lost its disk and is not a member again yet.
        self.lost = None

    def look(self):
        """Returns the status of a random node, with the set of nodes that it knows, or None."""
        running = [n for n in self.cluster.nodes.values() if n.running() and not n.stopped]
        try:
            status = self.random.choice(running).ask("status", timeout=0.5) if running else None
        except pawltest.Refused:
            return None
        return status if status and status["masters"] else None

    def ask(self, what, method, **params):
        running = [n for n in self.cluster.nodes.values() if n.running()]
        if running:
            self.nemesis.count("asked_to_" + what)
            asked = Asked(self.random.choice(running), method, params)
            asked.what = what
            self.under_way.append(asked)

    def collect(self):
        for asked in [a for a in self.under_way if not a.is_alive()]:
            self.under_way.remove(asked)
            self.nemesis.count("change_" + asked.outcome)
            if asked.outcome == "done":
                self.nemesis.count("done_" + asked.what)
                if asked.what == "replace_itself":
                    self.lost = None

    def operate(self):
        """Makes one more request, if there is one to make."""
        self.collect()
        status = self.look()
        if status is None or len(self.under_way) >= ASKED_AT_ONCE:
            return
        masters, replicas = sorted(status["masters"]), sorted(status["replicas"])
        outside = sorted(set(self.cluster.nodes) - set(masters) - set(replicas))
        choices = [self.set_timing, self.lose_disk]
        if self.lost:
            choices = [self.replace_itself]
        if outside:
            choices += 2 * [self.add_replica]
        if replicas:
            choices += 2 * [self.swap, self.replace] + [self.remove]
            if len(masters) < 5:
                choices.append(self.promote)
        if len(masters) > 3:
            choices += 2 * [self.demote]
        self.random.choice(choices)(masters, replicas, outside)

    # ---- requests ----

    def set_timing(self, *_):
        self.ask("set_timing", "cluster_set_timing",
                 max_lease_ms=self.random.choice([3000, 3500, 4000]))

    def add_replica(self, _masters, _replicas, outside):
        name = self.random.choice(outside)
        self.ask("add_replica", "cluster_add_replica", name=name,
                 address=self.cluster.nodes[name].address)

    def swap(self, masters, replicas, _):
        """Asks for a new set in one step: one to all of the replicas become masters, and as many
        masters become replicas."""
        count = self.random.randint(1, min(len(masters), len(replicas)))
        up, down = self.random.sample(replicas, count), self.random.sample(masters, count)
        self.ask("set_nodes",
                 "cluster_set_nodes", masters=sorted(set(masters) - set(down) | set(up)),
                 replicas=sorted(set(replicas) - set(up) | set(down)))

    def replace(self, masters, replicas, _):
        self.ask("replace", "cluster_replace", old=self.random.choice(masters),
                 new=self.random.choice(replicas))

    def remove(self, _masters, replicas, _outside):
        self.ask("remove", "cluster_remove", name=self.random.choice(replicas))

    def promote(self, _masters, replicas, _outside):
        self.ask("promote", "cluster_promote", name=self.random.choice(replicas))

    def demote(self, masters, *_):
        self.ask("demote", "cluster_demote", name=self.random.choice(masters))

    # ---- a disk is lost ----

    def lose_disk(self, *_):
        """Loses the disk of one node at a time. The node comes back under its name with a new
        identity, and has to be let in again."""
        node = self.nemesis.node()
        if node and not self.lost:
            self.nemesis.count("disks_lost")
            self.nemesis.busy.add(node.name)
            node.kill()
            node.lose_disk()
            self.lost = node.name
            self.nemesis.until(0.0, 2.0, self.nemesis.start, node)

    def replace_itself(self, *_):
        self.ask("replace_itself", "cluster_replace", old=self.lost, new=self.lost)

    # ---- the end ----

    def settle(self, masters, limit):
        """Restores the first set, with every node in it, and asks until that is done. Returns None,
        or why it failed."""
        end, said = time.monotonic() + limit, "nobody answered"
        while self.under_way:
            self.under_way[0].join()
            self.collect()
        replicas = sorted(set(self.cluster.nodes) - set(masters))
        wanted = {
            "masters": ["%s=%s" % (n, self.cluster.nodes[n].address) for n in sorted(masters)],
                "replicas": ["%s=%s" % (n, self.cluster.nodes[n].address) for n in replicas]}
        while time.monotonic() < end:
            # Some nodes may be outside.
            for node in self.cluster.nodes.values():
                try:
                    if self.lost:
                        node.ask("cluster_replace", timeout=PATIENCE, old=self.lost, new=self.lost)
                        self.lost = None
                    if node.ask("cluster_set_nodes", timeout=PATIENCE, **wanted):
                        return None
                except pawltest.Refused as e:
                    said = "%s: %s" % (node.name, e.error)
                    self.lost = None if e.code == "not_found" else self.lost
            time.sleep(0.2)
        return said
