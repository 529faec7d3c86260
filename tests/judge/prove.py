"""Checks that the judge finds clusters which are broken on purpose: its checker must see a
violation in each of them."""

import copy
import importlib.machinery
import importlib.util
import os
import tempfile

import checker
import command
import judge

TRIES, SECONDS = 4, 20.0
CRASH = "nodes that end by themselves"

# The name, the rates of the nodes' clocks, the rates of the clients' clocks, and the violations of
# which the judge must find one.
CLOCKS = [
    ("two nodes whose clocks run twice as fast", {"a": 2.0, "b": 2.0}, {}, {"exclusion"}),
    ("four clients whose clocks run at half speed", {}, {n: 0.5 for n in range(1, 5)},
     {"exclusion"}),
]
# The name of a row of tests/mutants, whose rule is removed from every node, and the violations of
# which the judge must find one.
MUTANTS = [
    ("R1 dropped", {"exclusion"}),
    ("acceptances of fewer than q suffice for a commit", {"exclusion", "protocol"}),
    ("a repeat turns held into promised", {"exclusion", "forgotten"}),
    ("a start takes up a clock below its reservation", {"tokens"}),
    ("R4 dropped: a recovering master votes", {"exclusion", "tokens"}),
    ("shared locks do not exclude exclusive ones", {"exclusion"}),
    ("a record lasts for its lease alone", {"lock delay"}),
    ("update without ballots", {"values"}),
    ("home grants out of order", {"order of waiting"}),
    ("a hand-over is a plain release", {"calm", "protocol"}),
    ("no missed events when a link is back", {"watches"}),
]


def load_mutants():
    path = os.path.join(command.ROOT, "scripts", "mutants")
    loader = importlib.machinery.SourceFileLoader("mutants", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(module)
    return module


def broken_nodes(build, name, mutants=None):
    """Builds a pawld without this rule, and returns its path."""
    mutants = mutants or load_mutants()
    return changed_nodes(build, next(r for r in mutants.read_rows() if r["name"] == name), mutants)


def changed_nodes(build, row, mutants):
    """Builds a pawld with the edits of this row, and returns its path."""
    program = "src/node/pawld"
    builder = mutants.Builder(build, [program], quick=True)
    number = sum(map(ord, row["name"])) % 100000
    folder = os.path.join(builder.build, "mutants", "judge-%d" % number)
    return builder.link(program, builder.objects(row, folder), folder)


def crashing_nodes(options, folder):
    """Makes a pawld that ends by itself some seconds after its start, and returns its path."""
    path = os.path.join(folder, "pawld")
    with open(path, "w") as script:
        script.write("#!/bin/sh\n(sleep 9; kill -ABRT $$) &\nexec %s/src/node/pawld \"$@\"\n"
                     % os.path.abspath(options.build))
    os.chmod(path, 0o755)
    return path


def crash(options):
    """Returns what the judge says of nodes that end by themselves; None if it does not notice
    them."""
    with tempfile.TemporaryDirectory(prefix="pawl-judge-") as folder:
        one = copy.copy(options)
        vars(one).update(pawld=crashing_nodes(options, folder), seconds=SECONDS)
        _, failure, _ = command.quiet_run(one, judge.attack)
    return failure if "ended by itself" in (failure or "") else None


def everything(options):
    """Returns for each of the broken clusters whether it was found."""
    found = []
    if options.only in CRASH:
        said = crash(options)
        print("%s: %s" % ("found: " + CRASH if said else "NOT FOUND: " + CRASH, said), flush=True)
        found.append(bool(said))
    proofs = [(name, {"node_rates": nodes, "client_rates": clients}, kinds)
              for name, nodes, clients, kinds in CLOCKS]
    proofs += [(name, {"mutant": name}, kinds) for name, kinds in MUTANTS]
    proofs = [proof for proof in proofs if options.only in proof[0]]
    for name, broken, kinds in proofs:
        if "mutant" in broken:
            broken = {"pawld": broken_nodes(options.build, name)}
        said = attempts(options, broken, kinds)
        print("%s: %s" % ("found: " + name if said else "NOT FOUND: " + name, said), flush=True)
        found.append(bool(said))
    return found


def attempts(options, broken, wanted):
    """Makes a few runs of a broken cluster. Returns what the judge finds; None if it finds none of
    the wanted violations."""
    for attempt in range(TRIES):
        one = copy.copy(options)
        vars(one).update(broken, seed=options.seed + attempt, seconds=SECONDS)
        violations, failure, others = command.quiet_run(one, judge.attack)
        found = [v for v in violations if v[0] in wanted]
        if found:
            if options.keep:
                checker.say(found, most=1)
            checks = ", ".join(sorted({k for k, _, _ in found}))
            return "run %d, seed %d: %d violations of %s: %s%s; Porcupine: %s" % (
                attempt + 1, one.seed, len(found), checks, found[0][1],
                "; " + failure if failure else "", others or "nothing")
    return None
