#!/usr/bin/env python3
"""test_history.py PAWL-SIM: tests that the histories of pawl-sim are enough for
scripts/history-check to judge exclusion and tokens, and that it finds changes in them."""

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
ENDS = ("forget", "release", "transfer", "close", "downgrade")


def written(program, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history.jsonl")
        subprocess.run([program, "--history", path, *arguments], check=True,
                       stdout=subprocess.DEVNULL)
        return CHECK.load(path)


def found(first, lines):
    return [what for what, _ in CHECK.judge(first, lines)]


def neighbours(keys, wanted):
    """Yields pairs of locks of a key, of which the belief in the second begins after that in the
    first."""
    for locks in keys.values():
        every = sorted(((p, x) for x in locks for p in x.beliefs), key=lambda e: e[0][0])
        for (one, of), (other, lock) in zip(every, every[1:]):
            if of is not lock and wanted(one, other):
                yield (one, of), (other, lock)


def changed(lines, key, change):
    """Returns a changed copy of the lines about the key. Keys are judged apart from each other."""
    copy = [json.loads(json.dumps(line)) for line in lines
            if line["op"] == "close" or line.get("key") == key]
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
        # Like the check itself: clocks drift, so less counts than clients believe.
        keys, ways = CHECK.locks_by_key(lines, first.get("client_drift_ppm", 0) / 1e6), {}

        def try_once(name, lock, change):
            ways.setdefault(name, (lock.key, change))

        def both(mode):
            return lambda one, other: one[2][0] == other[2][0] == mode

        def overlap(mode):
            return lambda one, other: both(mode)(one, other) and one[1] > other[0]

        for (one, of), (_, lock) in neighbours(keys, both("exclusive")):
            try_once("a lock that never ends", of, never_ends(of))
            try_once("a token that was there before", lock, same_tokens(lock, one[3]))
        for _, (_, lock) in neighbours(keys, overlap("shared")):
            try_once("a shared lock that is said to be exclusive", lock, alone(lock))
        for (one, _), (_, lock) in neighbours(keys, overlap("permits")):
            try_once("permits that another has", lock, same_permits(lock, one[2][2]))
        for name, (key, change) in ways.items():
            count = tried.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += bool(found(first, changed(lines, key, change)))
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
