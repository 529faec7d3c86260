#!/usr/bin/env python3
"""judge-mixed [--runners NAME,...] [--holders 50] [--seconds 600] [--seed S] [--build DIR]
            [--pawld FILE] [--keep] [--prove [--only TEXT]]

Attacks real nodes while holders of several languages take the same keys by their own clients, and
judges from outside whether two of them ever believed what excludes each other. The holders are
driven by the runners of tests/kit; they take exclusive and shared locks, permits, several keys at
once, and leaderships. The nodes are killed, stopped and continued, drained, started again, and cut
off from each other and from the holders; each is in a network namespace of its own, and its clocks
go wrong within the bound. The runners are stopped and continued, and killed.

A belief lasts for as long as a client says that its lock is valid, in true time. No overlap is
allowed, tokens must grow in the order of acquisitions and of beliefs, and a loss must be told
before somebody else can believe, unless the runner was stopped. A runner that ends or falls silent
is a failure, too.

--prove instead breaks something on purpose, each of which the judge must find: a runner that
breaks a rule, nodes with wrong clocks, and nodes without one of their rules.

This needs root. It builds build/release if it is missing. The faults are drawn from the seed, but
real processes never do the same twice. The status is 0 only if nothing was wrong and enough
happened.
"""

import argparse
import copy
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from driven import hello_of  # noqa: E402
from runner import command_of  # noqa: E402

sys.path[1:1] = [os.path.join(HERE, "..", "nodes"), os.path.join(HERE, "..", "judge")]

import beliefs  # noqa: E402
import checker  # noqa: E402
import cluster as clusters  # noqa: E402
import command  # noqa: E402
import history  # noqa: E402
import judge_answers  # noqa: E402
import judge_locks  # noqa: E402
import mixed_checks  # noqa: E402
import mixed_holders  # noqa: E402
import nemesis  # noqa: E402

CHECKS = [judge_locks.exclusion, judge_locks.order_of_answers, judge_locks.order_of_beliefs,
          judge_locks.falling, judge_locks.twice, judge_answers.complaints,
          judge_answers.forgotten, mixed_checks.losses, mixed_checks.permits]
FAULTS = {**nemesis.FAULTS, **{name: 3 * weight for name, weight in nemesis.CLIENTS.items()}}
# From one fault to the next, in seconds.
PAUSES = (0.2, 2.5)
MAX_LEASE_MS, REQUEST_TIMEOUT_MS = 3000, 800
BIRTH_S, TELLS_EVERY_S = 30, 10
# What has to happen in a minute, or the run shows nothing.
LEAST = {"acquired": 120, "released": 60, "lost": 2, "beliefs": 100, "kill": 2, "stop_client": 2}

LIAR = os.path.join(HERE, "liar.py")
TRIES, TRY_S = 4, 40.0
# What is broken, how, and the violations of which the judge must find one.
PROOFS = [
    ("a runner that trusts its locks for 3 s longer", {"lie": "valid"}, {"exclusion"}),
    ("a runner that tells losses 2 s later", {"lie": "late"}, {"losses"}),
    ("a runner that tells no losses", {"lie": "mute"}, {"protocol"}),
    ("a runner that tells the tokens of earlier locks", {"lie": "token"}, {"tokens"}),
    ("a runner that dies", {"lie": "crash"}, {"protocol"}),
    ("two nodes whose clocks run twice as fast", {"node_rates": {"a": 2.0, "b": 2.0}},
     {"exclusion"}),
    ("R1 dropped", {"mutant": "R1 dropped"}, {"exclusion"}),
    ("shared locks do not exclude exclusive ones",
     {"mutant": "shared locks do not exclude exclusive ones"}, {"exclusion"}),
]


def judged(first, lines):
    """Returns (violations, counts), as the checker does."""
    run = beliefs.Run(first, lines)
    found = [violation for check in CHECKS for violation in check(run)]
    return found, judge_answers.happened(run)


def attack(options, folder):
    log = history.History(os.path.join(folder, "history.jsonl"), seed=options.seed)
    try:
        with clusters.Cluster(options, folder, 3, hosts=mixed_holders.HOSTS,
                              settings=clusters.timing(MAX_LEASE_MS, REQUEST_TIMEOUT_MS)) as nodes:
            attacker = nemesis.Nemesis(nodes, log, options, FAULTS, pauses=PAUSES,
                                       wrong=options.node_rates)
            attacker.tells_every = TRY_S * 2 if options.prove else TELLS_EVERY_S
            attacker.start_all()
            clusters.wait_until(nodes.well, "the cluster's birth", BIRTH_S)
            with mixed_holders.Crowd(options.commands, options.holders, nodes, folder, log,
                                     options.seed) as crowd:
                attacker.crowd = crowd
                attacker.progress = lambda: "%d hold, %s; %s" % (
                    crowd.holding(), nemesis.line_of(crowd.counts()),
                    nemesis.line_of(attacker.counts))
                attacker.strike(options.seconds)
            for node in nodes.nodes.values():
                node.end()
            return {**crowd.counts(), **attacker.counts}
    finally:
        log.close()


def commands_of(names, lie=None):
    """Returns a list of (language, command). The first runner lies, if one is to."""
    found = [(hello_of(line)["language"], line) for line in map(command_of, names)]
    if lie:
        language, line = found[0]
        found[0] = (language + " (lies)", [sys.executable, LIAR, lie, *line])
    return found


def proved(options, name, how, wanted):
    """Returns whether the judge finds what is broken here on purpose."""
    one = copy.copy(options)
    one.commands = commands_of(options.runners, how.get("lie"))
    one.node_rates, one.seconds = how.get("node_rates", {}), TRY_S
    if "mutant" in how:
        import prove  # This builds nodes, and needs what only some runs have.
        one.pawld = prove.broken_nodes(options.build, how["mutant"])
    for attempt in range(TRIES):
        one.seed = options.seed + attempt
        violations, failure, _ = command.quiet_run(one, attack, judged)
        found = [v for v in violations if v[0] in wanted]
        if found:
            print("found: %s, run %d, seed %d: %d violations of %s: %s" % (
                name, attempt + 1, one.seed, len(found), found[0][0], found[0][1]), flush=True)
            return True
    print("NOT FOUND: %s%s" % (name, ", " + failure if failure else ""), flush=True)
    return False


def run(options):
    options.node_rates = {}
    options.runners = options.runner or options.runners.split(",")
    options.commands = commands_of(options.runners)
    if options.prove:
        verdicts = [proved(options, *proof) for proof in PROOFS if options.only in proof[0]]
    else:
        verdicts = [command.one_run(options, "%d holders by %s" % (
            options.holders, ", ".join(language for language, _ in options.commands)),
            attack, LEAST, judged)]
    print("%d passed, %d failed" % (verdicts.count(True), verdicts.count(False)))
    return verdicts


def main():
    parser = command.options("judge-mixed", __doc__)
    command.add_proofs(parser)
    command.add_true_clocks(parser)
    parser.add_argument("--runners", default="python", metavar="NAME,...",
                        help="names in tests/kit/runners, or paths of programs (default: python)")
    parser.add_argument("--runner", action="append", metavar="NAME", help="the same, one by one")
    parser.add_argument("--holders", type=int, default=50)
    return command.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
