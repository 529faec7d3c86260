#!/usr/bin/env python3
"""append.py FILE NAME TOKEN LINE: the guard of a plain file: appends LINE to FILE, unless somebody with a higher token of the lock NAME
was here before. Everybody writes through this (or append.sh, or append.c), on the one machine that has the file."""

import fcntl
import sys

import pawl


def main(path, name, token, line):
    with open(path + ".lock", "a", encoding="utf-8") as lock, pawl.FenceStore(path + ".fence") as fence:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the check and the write, as one step for everybody else
        if not fence.check(name, int(token)):
            sys.exit("refused: token %d has been seen" % fence.highest(name))
        with open(path, "a", encoding="utf-8") as out:
            print(line, file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
