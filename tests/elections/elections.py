"""Runs many candidates among real nodes under attack, and judges what came of it. See
scripts/soak-elections."""

import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "soak"))

import soak  # noqa: E402
import nodes  # noqa: E402
import nemesis  # noqa: E402
import netns  # noqa: E402
import judge  # noqa: E402

ELECTIONS = ["mayor", "warden", "smith"]
LEASE_MS = 1500
HEALED_WITHIN = 20.0
QUIET = 2.0
BIRTH = 60.0


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def leader_at(node, election):
    """Returns the name of the leader that the node shows; "" if it shows none."""
    shown = node.ask("get", key=election)
    return bytes((shown or {}).get("owner") or b"").decode()


class Candidate:
    """One candidate process. Its number decides what it asks for, so that all kinds occur."""

    def __init__(self, crowd, number, slot):
        cluster = crowd.cluster
        self.name, self.killed = "c%d" % slot, None
        self.priority, self.takeover = number // 2 % 3, number % 7 == 0
        self.path = os.path.join(cluster.dir, "history-%04d" % number)
        endpoints = [n.endpoint for _, n in sorted(cluster.nodes.items())]
        at = number % len(endpoints)
        kind = {"disconnect": number % 2, "priority": self.priority,
                "takeover": int(self.takeover), "again": number % 3 == 0,
                "delay": 300 if number % 5 == 0 else 0, "watch": number % 2}
        self.process = nodes.spawn(cluster.net, "clients", [
            crowd.program, ",".join(endpoints[at:] + endpoints[:at]), self.name, self.path,
            "elections=" + ",".join(ELECTIONS),
            "lease=%d" % LEASE_MS, "wild=%d" % (cluster.seed % 1000000 * 1000 + number),
            "others=%d" % crowd.size,
            *("%s=%d" % item for item in kind.items())], stdin=subprocess.PIPE, bufsize=0)

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.killed = boottime()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def end(self):
        self.process.stdin.close()
        self.go_on()
        return self.process.wait(20)


class Crowd:
    """All candidates, with what nemesis.Nemesis needs: workers that it can stop and replace."""

    def __init__(self, cluster, program, size):
        self.cluster, self.program, self.size, self.number = cluster, program, size, 0
        self.workers, self.gone = [], []
        for slot in range(size):
            self.workers.append(self.another(slot))

    def another(self, slot):
        self.number += 1
        return Candidate(self, self.number, slot + 1)

    def replace(self, at):
        self.workers[at].kill()
        self.gone.append(self.workers[at])
        self.workers[at] = self.another(at)

    def look_after(self, _agenda):
        """Does nothing, because candidates do not stop themselves."""

    def go_on(self):
        for worker in self.workers:
            worker.go_on()

    def dead(self):
        return [(w.name, w.process.returncode) for w in self.workers
                if w.process.poll() is not None]

    def say(self, line):
        for worker in self.workers:
            worker.say(line)

    def end(self):
        for worker in self.workers:
            status = worker.end()
            if status:
                raise soak.Failed("%s ended with status %d" % (worker.name, status))
        self.gone += self.workers
        self.workers = []

    def close(self):
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()

    def histories(self):
        return [judge.load(c.path, c.name, c.killed) for c in self.gone + self.workers]


class Nemesis(nemesis.Nemesis):
    """The faults of the soak, with more of those that strike candidates, and leaders above all."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.table += [(30, self.stop_leader), (30, self.kill_leader), (10, self.stop_worker),
                       (10, self.kill_worker)]

    def leader(self):
        """Returns the slot of a candidate that leads, as some node sees it; None if no leader was
        found."""
        election, node = self.random.choice(ELECTIONS), self.node()
        owner = leader_at(node, election) if node else ""
        return int(owner[1:]) - 1 if owner else None

    def stop_leader(self):
        at = self.leader()
        if at is not None:
            self.count("leaders_stopped")
            worker = self.crowd.workers[at]
            worker.stop()
            self.until(0.1, 4.0, worker.go_on)

    def kill_leader(self):
        at = self.leader()
        if at is not None:
            self.count("leaders_killed")
            self.crowd.replace(at)


class Answers:
    """The answers of the candidates to "ask", which are read from the ends of their files."""

    def __init__(self, crowd):
        self.crowd, self.tails = crowd, {w: judge.Tail(w.path) for w in crowd.workers}

    def ask(self):
        """Returns for each election the set of those who say that they lead, and the set of those
        that others believe to lead; or returns why that is not known, or is not to last."""
        led, taken = {e: set() for e in ELECTIONS}, {e: set() for e in ELECTIONS}
        leaving = []
        self.crowd.say("ask")
        missing = {(w, e) for w in self.tails for e in ELECTIONS}
        end = time.monotonic() + 5
        while missing and time.monotonic() < end:
            for worker, tail in self.tails.items():
                for line in tail.lines():
                    words = line.split()
                    if words[0] == "S":
                        missing.discard((worker, words[2]))
                        taken[words[2]].add(words[5])
                        if words[3] == "1":
                            led[words[2]].add(worker.name)
                            if words[6] == "1" or self.is_outranked(worker):
                                leaving.append("%s is to hand %s over" % (worker.name, words[2]))
            select.select([], [], [], 0.02)
        if missing:
            return "%d answers are missing" % len(missing)
        return "; ".join(leaving) or (led, taken)

    def is_outranked(self, leader):
        """Tells whether some candidate takes over from a leader of that priority."""
        return any(w.takeover and w.priority > leader.priority for w in self.tails)

    def agreement(self):
        """Returns True once each election has one leader and everybody knows who it is: also each
        node, because a candidate may move to another one at any time."""
        answer = self.ask()
        if isinstance(answer, str):
            return answer
        led, taken = answer
        shown = {e: self.shown(e) for e in ELECTIONS}
        wrong = ["%s: leaders %s, taken for it %s, shown by nodes %s"
                 % (e, sorted(led[e]), sorted(taken[e]), sorted(shown[e]))
                 for e in ELECTIONS
                 if len(led[e]) != 1 or led[e] != taken[e] or led[e] != shown[e]]
        return "; ".join(wrong) or True

    def shown(self, election):
        """Returns the set of those whom some node shows as the leader."""
        return {leader_at(node, election) or "-" for node in self.crowd.cluster.nodes.values()}

    def close(self):
        for tail in self.tails.values():
            tail.close()


class Run:
    def __init__(self, args, cluster):
        self.args, self.cluster, self.told = args, cluster, time.monotonic()

    def tell(self, attacker):
        if time.monotonic() - self.told > 15:
            self.told = time.monotonic()
            print("%s" % soak.line_of(attacker.counts), flush=True)

    def settle(self, crowd):
        """Returns in how many seconds after the healing everybody agrees, and checks that it stays
        so."""
        began = time.monotonic()
        crowd.say("calm")
        answers = Answers(crowd)
        try:
            soak.wait_until(answers.agreement, "one leader, known to all, after the healing",
                            HEALED_WITHIN)
            took = time.monotonic() - began
            before = answers.ask()
            while time.monotonic() - began < took + QUIET:
                now = answers.ask()
                if now != before:
                    raise soak.Failed("not so any more although nothing happens: %s, then %s"
                                      % (before, now))
        finally:
            answers.close()
        return took

    def run(self):
        names = [chr(ord("a") + i) for i in range(self.args.masters)]
        self.cluster.add(*names)
        self.cluster.write_configs(names)
        for node in self.cluster.nodes.values():
            node.start()
        soak.wait_until(lambda: soak.all_well(self.cluster.nodes.values()), "the cluster's birth",
                        BIRTH)
        crowd = Crowd(self.cluster, os.path.join(self.args.build, "tests", "elections",
                                                 "candidate"), self.args.candidates)
        try:
            attacker = Nemesis(self.cluster, crowd, self.args.seed, False,
                               not self.args.true_clocks)
            attacker.run(time.monotonic() + self.args.seconds, self.tell)
            attacker.heal()
            soak.wait_until(lambda: soak.all_well(self.cluster.nodes.values()),
                            "all nodes well after the healing")
            took = self.settle(crowd)
            if self.cluster.crashes or crowd.dead():
                raise soak.Failed("ended by themselves: %s %s"
                                  % (self.cluster.crashes, crowd.dead()))
            crowd.end()
        finally:
            crowd.close()
            verdict = judge.Verdict(crowd.histories())
            print("judged: " + soak.line_of(verdict.counts), flush=True)
            if verdict.wrong:
                raise soak.Failed("%d violations:\n%s"
                                  % (len(verdict.wrong), "\n".join(verdict.wrong[:20])))
        return {**attacker.counts, **verdict.counts, "settled_ms": int(took * 1000)}


def too_little(args, counts):
    minutes = args.seconds / 60
    # The faults are drawn at random, so in a minute less than half of the usual number is enough.
    least = {"leaderships": 60 * minutes, "kills": minutes / 2, "leaders_killed": minutes,
             "leaders_stopped": minutes,
             "observed": 1000 * minutes, "events": 1000 * minutes,
             "stepped_down": minutes / 4 if minutes >= 3 else 0}
    return ["%s only %d times, not %.0f" % (name, counts.get(name, 0), number)
            for name, number in least.items()
            if counts.get(name, 0) < int(number)]


def attempt(args, folder):
    with nodes.Cluster(os.path.abspath(args.build), folder, args.seed) as cluster:
        counts = Run(args, cluster).run()
    print("happened: " + soak.line_of(counts), flush=True)
    rare = too_little(args, counts)
    if rare:
        raise soak.Failed("too little happened: " + ", ".join(rare))


def arguments(text):
    parser = argparse.ArgumentParser(prog="soak-elections", description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=5)
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--true-clocks", action="store_true",
                        help="no rates of their own: for builds with a sanitizer")
    parser.add_argument("--keep", action="store_true",
                        help="keep histories and logs also after a good run")
    parser.add_argument("--count", action="store_true",
                        help='end with the line "passed=N failed=M skipped=K"')
    return parser.parse_args()


def main(text):
    args = arguments(text)
    unable = netns.why_not()
    if unable:
        print("skipped: soak-elections: " + unable)
        print("passed=0 failed=0 skipped=1")
        return 0
    args.seed = random.randrange(1 << 31) if args.seed is None else args.seed
    signal.signal(signal.SIGTERM, soak.interrupted)
    folder = tempfile.mkdtemp(prefix="pawl-elections-")
    print("seed %d: %d masters, %d candidates, %.0f s"
          % (args.seed, args.masters, args.candidates, args.seconds), flush=True)
    failure = "interrupted"
    try:
        attempt(args, folder)
        failure = None
    except soak.Failed as e:
        failure = str(e)
    except KeyboardInterrupt:
        pass
    finally:
        if failure is None and not args.keep:
            shutil.rmtree(folder)
        else:
            print("histories and logs: " + folder, flush=True)
    if failure:
        print("FAILED with seed %d: %s" % (args.seed, failure), flush=True)
    if args.count:
        print("passed=%d failed=%d skipped=0" % (not failure, bool(failure)))
    return 1 if failure else 0
