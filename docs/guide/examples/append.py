#!/usr/bin/env python3
"""append.py FILE NAME TOKEN LINE: guards a plain file. It appends LINE to FILE, unless somebody
with a higher token of the lock NAME was here before. Every writer has to use this program (or
append.sh, or append.c), on the one machine that has the file."""

import fcntl
import sys

import pawl


def main(path, name, token, line):
    with open(path + ".lock", "a", encoding="utf-8") as lock, \
            pawl.FenceStore(path + ".fence") as fence:
        fcntl.flock(lock, fcntl.LOCK_EX)  # check and write are one step for all others
        if not fence.check(name, int(token)):
            sys.exit("refused: token %d has been seen" % fence.highest(name))
        with open(path, "a", encoding="utf-8") as out:
            print(line, file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
