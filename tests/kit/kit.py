#!/usr/bin/env python3
"""kit.py --runner NAME [--case NAME]... [--level N] [--jobs N] [--part I/N] [--trace]
kit.py --explain
kit.py --list

Plays the cases in cases/ with the runner of a language (runners/NAME, or the path of an executable
file), and ends with a line `passed=N failed=M skipped=K` and the status 1 if one has failed. A
failed case is shown with what was wanted, what came, and the whole conversation.

--case NAME   plays this case; a * stands for anything
--level N     plays the cases up to this level; default: the runner's own
--jobs N      plays so many cases at a time; default: 8
--part I/N    plays one of N parts of the cases
--trace       shows the conversation of each case, also of those that pass
--explain     prints the language of cases: rules, answers, steps and comparisons
--list        prints the cases with their levels and reasons
"""

import argparse
import asyncio
import fnmatch
import glob
import json
import os
import sys
import textwrap
import time

import certificates
import language
from play import Play
from runner import Runner, RunnerProblem, command_of
from scripted_node import BadCase, Conversation

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")


def load(patterns=()):
    """Returns the cases by name."""
    found = {}
    for path in sorted(glob.glob(os.path.join(CASES, "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        if patterns and not any(fnmatch.fnmatch(name, one) for one in patterns):
            continue
        with open(path, encoding="utf-8") as f:
            try:
                found[name] = json.load(f)
            except ValueError as error:
                raise SystemExit("kit: %s: %s" % (path, error)) from None
    if not found:
        raise SystemExit("kit: there is no such case; --list names all of them")
    return found


async def hello(command):
    """Returns what the runner says of itself."""
    talk = Conversation()
    runner = Runner(command, talk, {"PAWL_ENDPOINTS": "127.0.0.1:1"})
    await runner.start()
    try:
        said = await runner.answer(runner.begin("hello", {}), 60)
    except RunnerProblem as error:
        raise SystemExit("kit: %s" % error) from None
    finally:
        wrong = await runner.end()
    if talk.problems or wrong or said is None or "level" not in said.get("ok", {}):
        raise SystemExit("kit: the runner does not answer hello: %s" % (
            " ".join(talk.problems) or wrong or said))
    return said["ok"]


async def play(name, case, command, starts, trace):
    """Plays a case, and returns 1 if it has passed, 0 if it has failed, and None if the language
    does not have what it is about."""
    began = time.monotonic()
    try:
        one = Play(case, command, starts)
        why = await one.run()
    except BadCase as error:
        raise SystemExit("kit: case %s: %s" % (name, error)) from None
    outcome = "FAIL" if why else "skip" if one.skipped else "pass"
    lines = ["%s  %s  (%.1f s)" % (outcome, name, time.monotonic() - began)]
    if why:
        lines += ["  why the case is there: " + case["why"], "  " + why]
    if why or trace:
        lines += ["  the conversation:"] + ["  " + line for line in one.talk.lines]
    if why and one.runner.errors:
        lines += ["  the runner's standard error:",
                  textwrap.indent(one.runner.errors.decode(errors="replace"), "    ")]
    print("\n".join(lines), flush=True)
    return None if one.skipped else 0 if why else 1


async def play_all(cases, command, level, jobs, trace):
    """Returns how many cases have passed, failed and been skipped."""
    wanted = {name: case for name, case in cases.items() if case["level"] <= level}
    turn, starts = asyncio.Semaphore(jobs), asyncio.Semaphore(os.cpu_count() or 1)
    certificates.folder()  # It takes a moment, in which no case is to run.

    async def in_turn(name, case):
        async with turn:
            return await play(name, case, command, starts, trace)
    came = await asyncio.gather(*(in_turn(name, case) for name, case in wanted.items()))
    return came.count(1), came.count(0), came.count(None) + len(cases) - len(wanted)


async def main(given):
    command, cases = command_of(given.runner), load(given.case)
    part, parts = map(int, given.part.split("/"))
    cases = dict(list(cases.items())[part - 1::parts])
    said = await hello(command)
    level = said["level"] if given.level is None else given.level
    print("runner %s: %s, level %d; playing up to level %d" % (
        given.runner, " ".join(str(said.get(one, "?")) for one in ("language", "version")),
        said["level"], level), flush=True)
    passed, failed, skipped = await play_all(cases, command, level, given.jobs, given.trace)
    print("passed=%d failed=%d skipped=%d" % (passed, failed, skipped))
    return 1 if failed or not passed else 0


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runner")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--level", type=int)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--part", default="1/1")
    for flag in ("--trace", "--explain", "--list"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    if not (given.runner or given.explain or given.list):
        parser.error("name the runner: --runner NAME")
    return given


if __name__ == "__main__":
    asked = parse()
    if asked.explain:
        print(language.text())
    elif asked.list:
        for its_name, its_case in load(asked.case).items():
            print("%d  %-36s %s" % (its_case["level"], its_name, its_case["why"]))
    else:
        sys.exit(asyncio.run(main(asked)))
