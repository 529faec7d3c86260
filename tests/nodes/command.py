"""What the commands that attack real nodes share: their options, a folder for each run, and what
they say in the end."""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile

import checker
import cluster as clusters
import history
import nemesis
import netns
import porcupine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def options(name, text):
    """Returns a parser of the options that all have. `text` is the description of the command,
    whose first paragraph is its usage."""
    parser = argparse.ArgumentParser(prog=name, description=text.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", help="the build directory (default: build/release, which is "
                                        "built if it is missing)")
    parser.add_argument("--keep", action="store_true",
                        help="keep histories and logs even after a good run")
    parser.add_argument("--count", action="store_true",
                        help='end with the line "passed=N failed=M skipped=K"')
    parser.set_defaults(name=name)
    return parser


def add_true_clocks(parser):
    parser.add_argument("--true-clocks", action="store_true",
                        help="give no clock a rate of its own: for builds with a sanitizer")


def add_proofs(parser):
    parser.add_argument("--pawld", help="use this pawld instead of the build's")
    parser.add_argument("--prove", action="store_true",
                        help="check that nodes which are broken on purpose are found")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="with --prove: only those whose names contain this")


def interrupted(*_):
    raise KeyboardInterrupt


def main(parser, run):
    """Reads the options, and calls run(options), which returns a list of verdicts: whether each
    run was good; None: it could not be made. Returns the status of the command."""
    chosen = parser.parse_args()
    if not chosen.build:
        chosen.build = os.path.join(ROOT, "build", "release")
        if not os.path.exists(os.path.join(chosen.build, "tests", "rates", "librate.so")):
            subprocess.run(["bash", "-c", ". scripts/lib.sh; build_release"], cwd=ROOT, check=True)
    chosen.build = os.path.abspath(chosen.build)
    chosen.seed = random.randrange(1 << 31) if chosen.seed is None else chosen.seed
    unable = netns.why_not()
    if unable:
        print("skipped: %s: %s" % (chosen.name, unable))
        verdicts = [None]
    else:
        signal.signal(signal.SIGTERM, interrupted)
        verdicts = run(chosen)
    if unable or chosen.count:
        print("passed=%d failed=%d skipped=%d" % tuple(map(verdicts.count, (True, False, None))))
    return 1 if False in verdicts else 0


@contextlib.contextmanager
def folder_of(chosen):
    """A folder for the files of a run, which is kept if the run is not good or if that is asked
    for. The block says that the run was good by good["is"]."""
    folder, good = tempfile.mkdtemp(prefix="pawl-%s-" % chosen.name), {"is": False}
    try:
        yield folder, good
    finally:
        if good["is"] and not chosen.keep:
            shutil.rmtree(folder)
        else:
            print("histories and logs: " + folder, flush=True)


def histories(folder):
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".jsonl")]


def judge(folder, judged):
    """Judges the histories in a folder, which are of one run. Returns (violations, counts)."""
    [(first, lines)] = history.load(*histories(folder))
    return judged(first, lines)


def attempt(chosen, folder, attack, judged=checker.judge):
    """Lets attack(chosen, folder) happen, which returns counts, and judges what came of it. Returns
    (violations, counts, another reason to fail or None)."""
    counts, failure = {}, None
    try:
        counts = attack(chosen, folder)
    except clusters.Failed as e:
        failure = str(e)
    violations, happened = judge(folder, judged)
    return violations, {**happened, **counts}, failure


def too_little(chosen, counts, least):
    """Names what has happened too rarely; such a run shows nothing. `least` is for a minute."""
    numbers = [(name, number * chosen.seconds / 60) for name, number in least.items()]
    rare = ["%s only %d times, not %d" % (name, counts.get(name, 0), number)
            for name, number in numbers if counts.get(name, 0) < int(number)]
    return "too little happened: " + ", ".join(rare) if rare else None


def one_run(chosen, what, attack, least, judged=checker.judge):
    """Makes a run and prints what came of it. Returns whether it was good."""
    print("seed %d: %s, %.0f s" % (chosen.seed, what, chosen.seconds), flush=True)
    with folder_of(chosen) as (folder, good):
        try:
            violations, counts, failure = attempt(chosen, folder, attack, judged)
        except KeyboardInterrupt:
            violations, counts, failure = [], {}, "interrupted"
        checker.say(violations)
        print("happened: " + nemesis.line_of(counts), flush=True)
        failure = failure or (violations and "%d violations" % len(violations)
                              or too_little(chosen, counts, least))
        if judged is checker.judge and failure != "interrupted":
            fine, said = porcupine.judge(histories(folder))
            print("Porcupine: " + said.strip(), flush=True)
            failure = failure or ("Porcupine finds something wrong" if fine is False else None)
        if failure:
            print("FAILED with seed %d: %s" % (chosen.seed, failure), flush=True)
        good["is"] = not failure
    return not failure


def quiet_run(chosen, attack, judged=checker.judge):
    """Makes a run, and returns its violations and why it failed without printing them, and what
    Porcupine finds: None if there is none."""
    with folder_of(chosen) as (folder, good):
        violations, _, failure = attempt(chosen, folder, attack, judged)
        fine, said = porcupine.judge(histories(folder)) if judged is checker.judge else (None, "")
        good["is"] = True
    return violations, failure, said.splitlines()[0] if fine is False else None
