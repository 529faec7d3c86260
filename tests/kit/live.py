#!/usr/bin/env python3
"""live.py --runner NAME [--runner NAME ...] [--pawld FILE] [--pawl FILE] [--only TEXT] [--trace]

Plays steps with three real nodes, which have TLS and rights, and with a runner for each language.
The nodes are killed, stopped and continued, drained, and (as root, with iproute2 and nftables) cut
off. A step is played if its level is not above that of the runner. With --trace, what runners are
told and say goes to standard error.
"""

import argparse
import contextlib
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build", "release", "src")
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
sys.path.append(os.path.join(HERE, "..", "integration"))

import live_locks  # noqa: E402,F401
import live_more  # noqa: E402,F401
import live_nodes  # noqa: E402
import live_steps  # noqa: E402
import netns  # noqa: E402
from driven import hello_of  # noqa: E402
from runner import command_of  # noqa: E402


class Tally:
    """What came of the steps."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def tell(self, what, language, step, more=""):
        setattr(self, what, getattr(self, what) + 1)
        word = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}[what]
        print("%-7s %s: %s%s" % (word, language, step.replace("_", " "), more), flush=True)


def play(options, command, tally):
    """Plays all steps for one runner: first those on loopback, and then those that cut."""
    hello, no_net = hello_of(command), netns.why_not()
    language, level = hello["language"], hello["level"]
    for net in (False, True):
        steps = [s for s in live_steps.STEPS if s[1] == net and options.only in s[2]]
        due = [s for s in steps if s[0] <= level]
        for step in steps:
            if step not in due:
                tally.tell("skipped", language, step[2], ": level %d" % step[0])
            elif net and no_net:
                tally.tell("skipped", language, step[2], ": " + no_net)
        if due and not (net and no_net):
            play_steps(options, language, command, due, net, tally)


def play_steps(options, language, command, steps, net, tally):
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(netns.Net(subnet="10.121.0")) if net else None
        nodes = stack.enter_context(live_nodes.Nodes(options.pawld, command, options.trace,
                                                     network))
        nodes.pawl = options.pawl
        for _, _, name, function in steps:
            begin = time.monotonic()
            try:
                said = function(nodes, "live/" + name)
            except Exception:
                tally.tell("failed", language, name, "\n" + traceback.format_exc())
            else:
                tally.tell("passed", language, name, " (%.1f s%s)" % (
                    time.monotonic() - begin, ", " + said if said else ""))
            nodes.end_clients()
        nodes.well()


def main():
    usage, text = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="live.py", usage=usage[8:], description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", action="append", required=True, metavar="NAME",
                        help="a name in runners/, or the path of a program")
    parser.add_argument("--pawld", default=os.path.join(BUILD, "node", "pawld"))
    parser.add_argument("--pawl", default=os.path.join(BUILD, "cli", "pawl"))
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="only the steps whose names contain this, as the code spells them")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    options.pawld, options.pawl = os.path.abspath(options.pawld), os.path.abspath(options.pawl)
    tally = Tally()
    for name in options.runner:
        play(options, command_of(name), tally)
    print("passed=%d failed=%d skipped=%d" % (tally.passed, tally.failed, tally.skipped))
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
