"""Runs many candidates among real nodes under attack, and judges what came of it. See
scripts/soak-elections."""

import os
import select
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), os.path.join(HERE, "..", "soak")]

import cluster as clusters  # noqa: E402
import command  # noqa: E402
import crowd  # noqa: E402
import history  # noqa: E402
import nemesis  # noqa: E402
import told  # noqa: E402

ELECTIONS = ["mayor", "warden", "smith"]
LEASE_MS = 1500
HEALED_WITHIN = 20.0
QUIET = 2.0
BIRTH = 60.0
# What has to happen in a minute, or the run shows nothing. The faults are drawn at random, so less
# than half of the usual number is enough.
LEAST = {"beliefs": 60, "kill": 0.5, "kill_leader": 1, "stop_leader": 1, "observed": 1000,
         "event": 1000}


def leader_at(node, election):
    """Returns the name of the leader that the node shows; "" if it shows none."""
    shown = node.ask("get", key=election)
    return bytes((shown or {}).get("owner") or b"").decode()


class Candidate(crowd.Client):
    """One candidate process. Its number decides what it asks for, so that all kinds occur."""

    def __init__(self, people, number, slot):
        cluster = people.cluster
        self.name, self.number, self.killed = "c%d" % slot, number, None
        self.priority, self.takeover = number // 2 % 3, number % 7 == 0
        self.path = os.path.join(cluster.folder, "history-%04d" % number)
        kind = {"disconnect": number % 2, "priority": self.priority,
                "takeover": int(self.takeover), "again": number % 3 == 0,
                "delay": 300 if number % 5 == 0 else 0, "watch": number % 2,
                "elections": ",".join(ELECTIONS), "lease": LEASE_MS, "others": people.size,
                "wild": cluster.seed % 1000000 * 1000 + number}
        super().__init__(cluster, [
            people.program, ",".join(crowd.endpoints_from(cluster, number)[1]), self.name,
            self.path, *("%s=%d" % item if isinstance(item[1], int) else "%s=%s" % item
                         for item in kind.items())], bufsize=0)

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def end(self, kill=False):
        self.killed = history.now() if kill else None
        return super().end(kill)


class Candidates(crowd.People):
    def __init__(self, cluster, program, size):
        super().__init__(cluster)
        self.program, self.size, self.all = program, size, []
        self.workers = [self.another(at) for at in range(size)]

    def begin(self, number, at):
        self.all.append(Candidate(self, number, at + 1))
        return self.all[-1]

    def say(self, line):
        for worker in self.workers:
            worker.say(line)

    def __exit__(self, *_):
        super().__exit__()
        for c in self.all:
            told.write(c.path, c.path + ".jsonl", c.name, c.number, c.killed)


class Nemesis(nemesis.Nemesis):
    """The faults of the soak, with more of those that strike candidates, and leaders above all."""

    def __init__(self, cluster, log, options, people):
        super().__init__(cluster, log, options, {
            **nemesis.FAULTS, **nemesis.ROUGH, "stop_client": 20, "kill_client": 15,
            self.stop_leader: 30, self.kill_leader: 30}, people, pauses=(0.1, 1.2))

    def leader(self):
        """Returns the slot of a candidate that leads, as some node sees it; None if no leader was
        found."""
        election, node = self.random.choice(ELECTIONS), self.node()
        owner = leader_at(node, election) if node else ""
        return int(owner[1:]) - 1 if owner else None

    def stop_leader(self):
        at = self.leader()
        if at is not None:
            self.counts["stop_leader"] += 1
            self.pause_client(self.crowd.workers[at])

    def kill_leader(self):
        at = self.leader()
        if at is not None:
            self.counts["kill_leader"] += 1
            self.crowd.replace(at)


class Answers:
    """The answers of the candidates to "ask", which are read from the ends of their files."""

    def __init__(self, people):
        self.people, self.tails = people, {w: told.Tail(w.path) for w in people.workers}

    def ask(self):
        """Returns for each election the set of those who say that they lead, and the set of those
        that others believe to lead; or returns why that is not known, or is not to last."""
        led, taken = {e: set() for e in ELECTIONS}, {e: set() for e in ELECTIONS}
        leaving = []
        self.people.say("ask")
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
        return {leader_at(node, election) or "-" for node in self.people.cluster.nodes.values()}

    def close(self):
        for tail in self.tails.values():
            tail.close()


def settle(people):
    """Returns in how many milliseconds after the healing everybody agrees, and checks that it stays
    so."""
    began = time.monotonic()
    people.say("calm")
    answers = Answers(people)
    try:
        clusters.wait_until(answers.agreement, "one leader, known to all, after the healing",
                            HEALED_WITHIN)
        took = time.monotonic() - began
        before = answers.ask()
        while time.monotonic() - began < took + QUIET:
            now = answers.ask()
            if now != before:
                raise clusters.Failed("not so any more although nothing happens: %s, then %s"
                                      % (before, now))
    finally:
        answers.close()
    return int(took * 1000)


def strike(options, cluster, log):
    for node in cluster.nodes.values():
        node.start()
    clusters.wait_until(cluster.well, "the cluster's birth", BIRTH)
    program = os.path.join(options.build, "tests", "elections", "candidate")
    with Candidates(cluster, program, options.candidates) as people:
        attacker = Nemesis(cluster, log, options, people)
        attacker.strike(options.seconds)
        clusters.wait_until(cluster.well, "all nodes well after the healing", HEALED_WITHIN)
        took = settle(people)
        attacker.look()
        people.end()
    return {**attacker.counts, "settled_ms": took}


def attack(options, folder):
    log = history.History(os.path.join(folder, "faults.jsonl"), seed=options.seed)
    try:
        with clusters.Cluster(options, folder, options.masters, rough=True) as cluster:
            return strike(options, cluster, log)
    finally:
        log.close()


def run(options):
    least = {**LEAST, "step_down": 0.25 if options.seconds >= 180 else 0}
    return [command.one_run(options, "%d candidates, %d masters" % (
        options.candidates, options.masters), attack, least)]


def main(text):
    parser = command.options("soak-elections", text)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=5)
    parser.add_argument("--candidates", type=int, default=50)
    command.add_true_clocks(parser)
    return command.main(parser, run)
