"""Attacks real processes, and judges what came of it. See scripts/soak."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes"))

import cluster as clusters  # noqa: E402
import command  # noqa: E402
import history  # noqa: E402
import nemesis  # noqa: E402
import operators  # noqa: E402
import pawltest  # noqa: E402  (cluster puts tests/integration on the path)
import crowd  # noqa: E402

KEYS = 6
WORKERS = 8
HEALED_WITHIN = 30.0
VIEWS = 10
# What has to happen in a minute, or the run shows nothing.
LEAST = {"kill": 2, "stop": 1, "cut": 0.5, "acquire_ok": 60, "extend_ok": 15, "update_ok": 40,
         "get_ok": 30, "refused": 1, "lost_open": 2}
LEAST_OF_CHANGES = {"change_ok": 1, "lose_disk": 0.25}


class Soak:
    def __init__(self, options, cluster, log):
        self.options, self.cluster, self.log = options, cluster, log
        self.operators = operators.Operators(cluster, log)

    def set_up(self):
        every = self.cluster.nodes
        for node in every.values():
            node.start()
        clusters.wait_until(self.cluster.well, "the cluster's birth", HEALED_WITHIN)
        for name in self.cluster.spares:
            self.operators.ask(every["a"], "cluster_add_replica", name=name,
                               address=every[name].address)
        clusters.wait_until(self.cluster.well, "the replicas' beginning", HEALED_WITHIN)

    def probe(self):
        """Checks that every key is granted again, at every node, within the longest lease and a
        little more."""
        for node in self.cluster.nodes.values():
            for key in range(KEYS):
                try:
                    lock = pawltest.lock_id()
                    got = node.ask("acquire", timeout=20, key="key%d" % key, lease_ms=1000,
                                   wait_ms=15000, lock_id=lock)
                    if got is None:
                        raise clusters.Failed("%s does not answer after the healing" % node.name)
                    node.ask("release", key="key%d" % key, lock_id=lock)
                except pawltest.Refused as e:
                    raise clusters.Failed("key%d cannot be acquired at %s after the healing: %s"
                                          % (key, node.name, e.error)) from e

    def views(self):
        """Returns what each node shows of the same keys, from its own memory."""
        shown = {}
        for node in self.cluster.nodes.values():
            listed = node.ask("list", prefix="view", limit=100) or {"keys": []}
            shown[node.name] = sorted((str(k["key"]), k["token"], str(k["value"]))
                                      for k in listed["keys"])
        if all(len(v) == VIEWS and v == shown["a"] for v in shown.values()):
            return True
        return "the nodes show different things: %s" % shown

    def compare_views(self):
        """Checks that masters and replicas show the same soon after a write, while its lease
        lasts."""
        for attempt in range(5):
            for i in range(VIEWS):
                self.cluster.nodes["a"].ask("acquire", key="view%d" % i, lease_ms=3000,
                                            wait_ms=5000, value="%d" % attempt, timeout=10)
            try:
                return clusters.wait_until(self.views, "the same views after the healing", 2.0)
            except clusters.Failed as e:
                failure = e
        raise failure

    def run(self):
        self.set_up()
        weights = {**nemesis.FAULTS, **nemesis.ROUGH, **nemesis.CLIENTS}
        if self.cluster.spares:
            weights[self.operators.operate] = 35
        programs = os.path.join(self.options.build, "tests", "soak")
        with crowd.Crowd(self.cluster, programs, WORKERS, KEYS) as people:
            attacker = nemesis.Nemesis(self.cluster, self.log, self.options, weights, people,
                                       pauses=(0.1, 1.2))
            self.operators.nemesis = attacker
            attacker.strike(self.options.seconds)
            people.look()
            refused = self.operators.restore() if self.cluster.spares else None
            if refused:
                raise clusters.Failed("the set of nodes could not be restored after the healing: "
                                      + refused)
            clusters.wait_until(self.cluster.well, "all nodes well after the healing",
                                HEALED_WITHIN)
            self.probe()
            self.compare_views()
            attacker.look()
            resource = people.end()
            for node in self.cluster.nodes.values():
                node.end()
        if resource["lost_fenced"]:
            raise clusters.Failed("the resource that compares tokens lost %d writes"
                                  % resource["lost_fenced"])
        return {**attacker.counts, "pauses": people.pauses, **resource}


def attack(options, folder):
    log = history.History(os.path.join(folder, "faults.jsonl"), seed=options.seed)
    try:
        with clusters.Cluster(options, folder, options.masters, options.replicas, rough=True,
                              settings=clusters.timing(3000, 500) + "auto_replace = %s\n" % (
                                  "yes" if options.seed % 2 else "no")) as cluster:
            return Soak(options, cluster, log).run()
    finally:
        log.close()


def run(options):
    what = "%d masters, %d replicas" % (options.masters, options.replicas)
    least = {**LEAST, **(LEAST_OF_CHANGES if options.replicas else {})}
    return [command.one_run(options, what, attack, least)]


def main(text):
    parser = command.options("soak", text)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=3)
    parser.add_argument("--replicas", type=int, choices=range(5), default=2)
    command.add_true_clocks(parser)
    return command.main(parser, run)
