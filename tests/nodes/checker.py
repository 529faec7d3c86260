#!/usr/bin/env python3
"""checker.py HISTORY...: judges histories by docs/client-protocol.md and docs/guarantees.md. It
prints each violation with its story. The status is 1 if there is one."""

import sys

import beliefs
import history
import judge_answers
import judge_locks
import judge_values
import judge_watches

CHECKS = [judge_locks.exclusion, judge_locks.continuity, judge_locks.order_of_answers,
          judge_locks.order_of_beliefs, judge_locks.falling, judge_locks.twice,
          judge_locks.lock_delay, judge_answers.complaints, judge_answers.results,
          judge_answers.forgotten, judge_answers.reads, judge_answers.calm,
          judge_answers.waiting, judge_values.values, judge_values.shown, judge_watches.in_order,
          judge_watches.complete, judge_watches.leaders]
# After a forced start only these checks are possible.
JUMPS = {judge_locks.exclusion, judge_answers.complaints}


def judge(first, lines):
    """Returns (a list of violations, each as (check, what, story); counts of what happened)."""
    run = beliefs.Run(first, lines)
    found = []
    for check in CHECKS:
        if not first.get("jumps") or check in JUMPS:
            found += check(run)
    return found, judge_answers.happened(run)


def say(violations, most=5, out=sys.stdout):
    kinds = {}
    for kind, what, lines in violations:
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= most:
            print("VIOLATION of %s: %s" % (kind, what), *lines, sep="\n", file=out, flush=True)
    for kind, number in kinds.items():
        print("%d violations of %s" % (number, kind), file=out, flush=True)


def main():
    status = 0
    for path in sys.argv[1:]:
        for first, lines in history.load(path):
            violations, counts = judge(first, lines)
            say(violations)
            print("%s, run %s: %s" % (path, first.get("seed"),
                                      ", ".join("%s %d" % c for c in sorted(counts.items()))))
            status = 1 if violations else status
    return status


if __name__ == "__main__":
    sys.exit(main())
