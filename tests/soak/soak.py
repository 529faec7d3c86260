"""Attacks real processes, and judges what came of it. See scripts/soak."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nodes  # This puts tests/integration on the path.
import crowd
import nemesis
import netns
import pawltest

KEYS = 6
WORKERS = 8
HEALED_WITHIN = 30.0
AGE_MAX_MS = 1000
VIEWS = 10


def arguments(text):
    parser = argparse.ArgumentParser(prog="soak", description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=3)
    parser.add_argument("--replicas", type=int, choices=range(5), default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--true-clocks", action="store_true",
                        help="no rates of their own: for builds with a sanitizer")
    parser.add_argument("--keep", action="store_true",
                        help="keep histories and logs also after a good run")
    parser.add_argument("--count", action="store_true",
                        help='end with the line "passed=N failed=M skipped=K"')
    return parser.parse_args()


class Failed(Exception):
    """Something happened that must not."""


def wait_until(condition, what, limit=HEALED_WITHIN):
    """Waits until the condition returns True. Any other value is the reason why not."""
    end = time.monotonic() + limit
    while True:
        state = condition()
        if state is True:
            return
        if time.monotonic() > end:
            raise Failed("%s: not within %.0f s (%s)" % (what, limit, state))
        time.sleep(0.1)


def all_well(some):
    """Returns whether every one of these nodes votes or follows, in the same configuration, and is
    linked with all masters: an extension reaches those that its coordinator is linked with."""
    seen = {}
    for node in some:
        status = node.ask("status")
        if status is None:
            return "%s does not answer" % node.name
        if status["state"] not in ("voting", "following"):
            return "%s is %s" % (node.name, status["state"])
        if not status["complete"]:
            return "%s misses %s" % (node.name, status["missing"])
        if status["voting"] < len(status["masters"]):
            return "%s is linked with %d masters that vote, of %d" % (
                node.name, status["voting"], len(status["masters"]))
        age = status["following"]["age_ms"] if status["state"] == "following" else 0
        if age is None or age > AGE_MAX_MS:
            return "the view of %s is %s ms old" % (node.name, age)
        seen[node.name] = status["epoch"]
    return True if len(set(seen.values())) == 1 else "epochs %s" % seen


class Soak:
    def __init__(self, args, cluster):
        self.args, self.cluster = args, cluster
        self.told = self.began = time.monotonic()
        names = [chr(ord("a") + i) for i in range(args.masters + args.replicas)]
        self.masters, self.replicas = names[:args.masters], names[args.masters:]
        self.programs = os.path.join(args.build, "tests", "soak")

    def tell(self, attacker):
        now = time.monotonic()
        if now - self.told > 15:
            self.told = now
            print("%4.0f s: %s" % (now - self.began, line_of(attacker.counts)), flush=True)

    def set_up(self):
        every = self.cluster.nodes
        self.cluster.add(*self.masters, *self.replicas)
        self.cluster.write_configs(self.masters)
        for node in every.values():
            node.start()
        wait_until(lambda: all_well([every[m] for m in self.masters]), "the cluster's birth")
        for name in self.replicas:
            every["a"].ask("cluster_add_replica", timeout=20, name=name,
                           address=every[name].address)
        wait_until(lambda: all_well(every.values()), "the replicas' beginning")

    def restore(self, operators):
        """Lets the operators ask for the first set of nodes, which must be restored."""
        refused = operators.settle(self.masters, HEALED_WITHIN) if self.replicas else None
        if refused:
            raise Failed("the set of nodes could not be restored after the healing: %s" % refused)

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
                        raise Failed("%s does not answer after the healing" % node.name)
                    node.ask("release", key="key%d" % key, lock_id=lock)
                except pawltest.Refused as e:
                    raise Failed("key%d cannot be acquired at %s after the healing: %s"
                                 % (key, node.name, e.error)) from e

    def views(self):
        """Returns what each node shows of the same keys, from its own memory."""
        shown = {}
        for node in self.cluster.nodes.values():
            listed = node.ask("list", prefix="view", limit=100) or {"keys": []}
            shown[node.name] = sorted((str(k["key"]), k["token"], str(k["value"]))
                                      for k in listed["keys"])
        return shown

    def compare_views(self):
        """Checks that masters and replicas show the same soon after a write, while its lease
        lasts."""
        shown = {}
        for attempt in range(5):
            for i in range(VIEWS):
                self.cluster.nodes["a"].ask("acquire", key="view%d" % i, lease_ms=3000,
                                            wait_ms=5000, value="%d" % attempt, timeout=10)
            end = time.monotonic() + 2.0
            while time.monotonic() < end:
                shown = self.views()
                if all(len(v) == VIEWS and v == shown["a"] for v in shown.values()):
                    return
        raise Failed("the nodes show different things after the healing: %s" % shown)

    def look_for_crashes(self, people):
        if self.cluster.crashes or people.dead():
            raise Failed("; ".join(self.cluster.crashes) or "clients ended: %s" % people.dead())

    def judge(self):
        files = [os.path.join(self.cluster.dir, f) for f in sorted(os.listdir(self.cluster.dir))
                 if f.startswith("history-")]
        judged = subprocess.run([os.path.join(self.programs, "soak-judge"), *files],
                                capture_output=True, text=True)
        if judged.returncode:
            raise Failed(judged.stderr)
        return {name: int(number) for name,
                number in (line.split() for line in judged.stdout.splitlines())}

    def run(self):
        self.set_up()
        people = crowd.Crowd(self.cluster, self.programs, WORKERS, KEYS)
        attacker = nemesis.Nemesis(self.cluster, people, self.args.seed, bool(self.replicas),
                                   not self.args.true_clocks)
        try:
            self.began = time.monotonic()
            attacker.run(self.began + self.args.seconds, self.tell)
            self.look_for_crashes(people)
            attacker.heal()
            self.restore(attacker.operators)
            wait_until(lambda: all_well(self.cluster.nodes.values()),
                       "all nodes well after the healing")
            self.probe()
            self.compare_views()
            self.look_for_crashes(people)
            resource = people.end()
            for node in self.cluster.nodes.values():
                status = node.end()
                if status:
                    raise Failed("%s ended with status %d when it was asked to"
                                 % (node.name, status))
        finally:
            people.close()
        return {**attacker.counts, "pauses": people.pauses, **resource, **self.judge()}


def line_of(counts):
    return ", ".join("%s %d" % item for item in sorted(counts.items()))


def least(args):
    """Checks that everything has happened often enough for the run to show something."""
    minutes = args.seconds / 60
    changes = {"change_done": minutes, "disks_lost": minutes / 4} if args.replicas else {}
    return {**changes, "kills": 2 * minutes, "stops": minutes, "cuts": minutes / 2,
            "acquired": 60 * minutes, "extended": 15 * minutes, "updated": 40 * minutes,
            "read": 30 * minutes, "refused": minutes, "lost_open": 2 * minutes}


def verdict(args, counts):
    if counts["lost_fenced"]:
        raise Failed("the resource that compares tokens lost %d writes" % counts["lost_fenced"])
    rare = ["%s only %d times, not %.0f" % (name, counts.get(name, 0), number)
            for name, number in least(args).items() if counts.get(name, 0) < int(number)]
    if rare:
        raise Failed("too little happened: " + ", ".join(rare))


def interrupted(*_):
    raise KeyboardInterrupt


def attempt(args, folder):
    with nodes.Cluster(os.path.abspath(args.build), folder, args.seed) as cluster:
        counts = Soak(args, cluster).run()
    print("happened: " + line_of(counts), flush=True)
    verdict(args, counts)


def main(text):
    args = arguments(text)
    unable = netns.why_not() or (None if os.geteuid() == 0 else "needs root")
    if unable:
        print("skipped: soak: " + unable)
        print("passed=0 failed=0 skipped=1")
        return 0
    args.seed = random.randrange(1 << 31) if args.seed is None else args.seed
    signal.signal(signal.SIGTERM, interrupted)
    folder = tempfile.mkdtemp(prefix="pawl-soak-")
    print("seed %d: %d masters, %d replicas, %.0f s"
          % (args.seed, args.masters, args.replicas, args.seconds), flush=True)
    failure = None
    try:
        attempt(args, folder)
    except Failed as e:
        failure = str(e)
    except KeyboardInterrupt:
        failure = "interrupted"
    finally:
        if failure is None and sys.exc_info()[0] is None and not args.keep:
            shutil.rmtree(folder)
        else:
            print("histories and logs: " + folder, flush=True)
    if failure:
        print("FAILED with seed %d: %s" % (args.seed, failure), flush=True)
    if args.count:
        print("passed=%d failed=%d skipped=0" % (not failure, bool(failure)))
    return 1 if failure else 0
