#!/usr/bin/env python3
"""test_history.py PAWL-SIM: what pawl-sim writes down is enough for scripts/history-check to judge
exclusion and tokens, and changes in it are found."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = importlib.machinery.SourceFileLoader(
    "history_check", os.path.join(ROOT, "scripts", "history-check"))
CHECK = importlib.util.module_from_spec(importlib.util.spec_from_loader("history_check", LOADER))
LOADER.exec_module(CHECK)


def written(program, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history.jsonl")
        subprocess.run([program, "--history", path, *arguments], check=True,
                       stdout=subprocess.DEVNULL)
        return CHECK.load(path)


def found(first, lines):
    return [what for what, _ in CHECK.judge(first, lines)]


def neighbours(lines, wanted):
    """Yields pairs of locks of a key of which the second is believed later than the first."""
    for locks in CHECK.gather(lines, 0.0).values():
        every = sorted(((p, x) for x in locks for p in x.beliefs), key=lambda e: e[0][0])
        for (one, of), (other, lock) in zip(every, every[1:]):
            if of is not lock and wanted(one, other):
                yield (one, of), (other, lock)


def changed(lines, change):
    copy = [json.loads(json.dumps(line)) for line in lines]
    change(copy)
    return copy


def of_lock(lines, lock):
    return [x for x in lines if x.get("lock_id") == lock.lock_id]


def never_ends(lock):
    def change(lines):
        for line in of_lock(lines, lock):
            if line.get("believed"):
                line["valid_ms"] = 1e9
            elif (line["op"] in ("forget", "release", "transfer", "close", "downgrade")
                  or line["result"] in ("lost", "not_found")):
                lines.remove(line)
        lines[:] = [x for x in lines if x["op"] != "close"]
    return change


def same_tokens(lock, token):
    def change(lines):
        for line in of_lock(lines, lock):
            if "token" in line:
                line["token"] = token
    return change


def alone(lock):
    def change(lines):
        for line in of_lock(lines, lock):
            line["mode"] = "exclusive"
    return change


def same_permits(lock, numbers):
    def change(lines):
        for line in of_lock(lines, lock):
            if "permits" in line:
                line["permits"] = sorted(numbers)
    return change


def tampered(runs):
    """Returns for each way of tampering how often it was tried, and how often it was found."""
    tried = {}
    for first, lines in runs:
        ways = {}
        for (one, of), (other, lock) in neighbours(
                lines, lambda a, b: a[2][0] == b[2][0] == "exclusive"):
            ways.setdefault("a lock that never ends", never_ends(of))
            ways.setdefault("a token that was there before", same_tokens(lock, one[3]))
        for (one, of), (other, lock) in neighbours(
                lines, lambda a, b: a[2][0] == b[2][0] == "shared" and a[1] > b[0]):
            ways.setdefault("a shared lock that is said to be exclusive", alone(lock))
        for (one, of), (other, lock) in neighbours(
                lines, lambda a, b: a[2][0] == b[2][0] == "permits" and a[1] > b[0]):
            ways.setdefault("permits that another has", same_permits(lock, one[2][2]))
        for name, change in ways.items():
            count = tried.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += bool(found(first, changed(lines, change)))
    return tried


def says_how_it_is_used(program):
    for option in ("--help", "-h"):
        run = subprocess.run([program, option], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        assert (run.returncode, run.stderr) == (0, ""), run
        assert run.stdout.startswith("usage: pawl-sim "), run
    run = subprocess.run([program, "--helpless"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    assert run.returncode == 2


def main():
    says_how_it_is_used(sys.argv[1])
    runs = []
    for arguments in (["--seeds", "14"], ["--seeds", "8", "--theme", "shared"],
                      ["--seeds", "8", "--theme", "permits"]):
        runs += written(sys.argv[1], "--start", "4100", *arguments)
    wrong = [(first["seed"], what) for first, lines in runs for what in found(first, lines)]
    assert len(runs) == 30 and not wrong, wrong[:5]
    tried = tampered(runs)
    print(tried)
    assert len(tried) == 4, tried
    assert all(all(count) and count[0] == count[1] for count in tried.values()), tried


if __name__ == "__main__":
    main()
