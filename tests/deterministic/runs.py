"""Runs seeds and crash points, and says what was wrong."""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import time

import checker
import prove
import world

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRELOAD = "tests/deterministic/libconducted.so"
KINDS = (world.PROCESS, world.MACHINE, world.ALL)
TAIL = 40
LIES = "a disk that syncs nothing"
# Nodes that forget a sync. No other test can notice that, so these are no rows of tests/mutants.
SYNCS = [
    {"name": "the state file is not synced", "edit": [
        {"in": "state_put",
         "old": "return error ? error : fdatasync(f->fd) == 0 ? 0 : PAWL_EIO;",
         "new": "return error;"}]},
    {"name": "the name of a new state file is not synced", "edit": [
        {"in": "state_create", "old": "&& synced_dir(f->dir) == 0;", "new": ";"},
        {"in": "state_make_sure", "old": "&& synced_dir(f->dir) == 0 ?", "new": "?"}]},
]
# The rows of tests/mutants without which a node must be found.
MUTANTS = ["a start takes up a clock below its reservation", "R1 dropped",
           "R4 dropped: a recovering master votes", "rejoin from too few", "waiting too short",
           "drift ignored", "acceptances of fewer than q suffice for a commit",
           "rejoin from masters that do not vote"]
# How many crash points, and then seeds, are tried on a broken node until something is found.
PROOF_POINTS, PROOF_SEEDS = "60", 100


def crash_of(text):
    node, point, kind = text.split(":")
    if node not in world.NAMES or kind not in KINDS:
        raise ValueError(text)
    return world.Crash(node, int(point), kind)


def arguments(doc, argv):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--crash-points", metavar="all|N")
    parser.add_argument("--crash", type=crash_of, metavar="NODE:POINT:KIND")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--log", metavar="FILE")
    parser.add_argument("--lying-disk", action="store_true")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--pawld")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args(argv)
    options.build = os.path.abspath(options.build)
    options.preload = os.path.join(options.build, PRELOAD)
    options.pawld = os.path.abspath(options.pawld or os.path.join(options.build, "src/node/pawld"))
    return options


# ---- runs ----

def run(options, plan):
    """Returns the outcome of one run. With --twice it is made twice, and the logs must agree."""
    try:
        outcome = world.World(options, plan).run()
    except Exception as error:
        raise RuntimeError("a run could not be made: %s" % replay(options, plan)) from error
    if options.twice:
        again = world.World(options, plan).run()
        if again.log != outcome.log:
            outcome.violations.append(("determinism", difference(outcome.log, again.log), []))
    return outcome


def difference(one, other):
    for number, lines in enumerate(zip(one.splitlines(), other.splitlines()), 1):
        if lines[0] != lines[1]:
            return "line %d of the log is\n  %s\nand the second time\n  %s" % (number, *lines)
    return "one log goes on where the other ends"


def crash_plans(options, seed, points):
    """Returns the plans with one crash more: at every point, or at some that are drawn."""
    drawn = random.Random("crashes %d" % seed)
    every = [(node, point) for node in world.NAMES for point in range(1, points[node] + 1)]
    if options.crash_points != "all":
        every = sorted(drawn.sample(every, min(int(options.crash_points), len(every))))
    return [world.plain(seed, [world.Crash(node, point, drawn.choice(KINDS))])
            for node, point in every]


def plans(options):
    """Yields the plans of the command line."""
    if options.crash:
        yield world.plain(options.seed, [options.crash])
        return
    for seed in range(options.seed, options.seed + (options.seeds or 1)):
        if options.crash_points:
            first = world.plain(seed)
            yield first
            yield from crash_plans(options, seed, run(options, first).points)
        else:
            yield world.stormy(seed)


def replay(options, plan):
    words = ["scripts/deterministic", "--seed", str(plan.seed)]
    if plan.plain:
        words += (["--crash", "%s:%d:%s" % plan.crashes[0]] if plan.crashes
                  else ["--crash-points", "0"])
    words += ["--lying-disk"] if options.lying_disk else []
    default = os.path.join(options.build, "src/node/pawld")
    words += ["--pawld", options.pawld] if options.pawld != default else []
    return " ".join(words)


def say(options, outcome):
    """Prints what was wrong, the end of the log, and how to see the run again."""
    checker.say(outcome.violations)
    print("the last lines of the log:", *outcome.log.splitlines()[-TAIL:], sep="\n")
    print("again, with the whole log: %s --log FILE" % replay(options, outcome.plan), flush=True)


class Tally:
    def __init__(self):
        self.runs, self.failed, self.calls, self.counts = 0, 0, 0, {}

    def add(self, outcome):
        self.runs += 1
        self.failed += bool(outcome.violations)
        self.calls += outcome.calls
        for name, number in outcome.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number


def outcomes(options):
    """Yields the outcomes as they come. Whoever has seen enough closes the generator."""
    pool = concurrent.futures.ProcessPoolExecutor(options.jobs)
    waiting = set()
    try:
        for plan in plans(options):
            waiting.add(pool.submit(run, options, plan))
            if len(waiting) >= 4 * options.jobs:
                done, waiting = concurrent.futures.wait(
                    waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in concurrent.futures.as_completed(waiting))
    finally:
        pool.shutdown(cancel_futures=True)


def go(options):
    """Returns whether nothing was wrong."""
    tally, began, told = Tally(), time.monotonic(), time.monotonic()
    for outcome in outcomes(options):
        tally.add(outcome)
        if outcome.violations:
            say(options, outcome)
        if options.log:
            with open(options.log, "w") as file:
                file.write(outcome.log)
        if time.monotonic() - told > 15:
            told = time.monotonic()
            print("%d runs, %d of them with violations" % (tally.runs, tally.failed), flush=True)
    print("%d runs, %d of them with violations; %d calls of nodes, in %.0f s; %s" % (
        tally.runs, tally.failed, tally.calls, time.monotonic() - began,
        ", ".join("%s %d" % c for c in sorted(tally.counts.items()) if c[0].endswith("_ok"))))
    if options.count:
        print("passed=%d failed=%d skipped=0" % (tally.runs - tally.failed, tally.failed))
    return tally.failed == 0 and tally.counts.get("acquire_ok", 0) > 0


# ---- the proof ----

def found(options):
    """Returns what the first run that has a violation says; None if none has."""
    number, running = 0, outcomes(options)
    for number, outcome in enumerate(running, 1):
        if outcome.violations:
            running.close()
            kind, what, _ = outcome.violations[0]
            return "run %d: %s: %s\n  %s" % (number, kind, what.splitlines()[0],
                                             replay(options, outcome.plan))
    return None


def proof(options):
    """Runs nodes that are broken on purpose. Returns whether each was found."""
    every, mutants = [], prove.load_mutants()
    known = {row["name"]: row for row in mutants.read_rows()}
    rows = [{"name": LIES}, *SYNCS, *(known[name] for name in MUTANTS)]
    for row in [row for row in rows if options.only in row["name"]]:
        changes = ({"pawld": prove.changed_nodes(options.build, row, mutants)} if "edit" in row
                   else {"lying_disk": True})
        of = {**vars(options), **changes}
        said = (found(argparse.Namespace(**{**of, "crash_points": PROOF_POINTS}))
                or found(argparse.Namespace(**{**of, "seeds": PROOF_SEEDS})))
        every.append(said)
        print("%s: %s" % (("found: " if said else "NOT FOUND: ") + row["name"], said), flush=True)
    return bool(every) and all(every)


def main(doc, argv=None):
    options = arguments(doc, argv)
    if not os.path.exists(options.preload):
        subprocess.run(["bash", "-c", ". scripts/lib.sh; build_release"], cwd=ROOT, check=True)
    return 0 if (proof if options.prove else go)(options) else 1


if __name__ == "__main__":
    sys.exit(main(__doc__))
