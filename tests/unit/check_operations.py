"""Checks that docs/operations/reference.md explains every event that a node logs, and every
setting, and no others."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def main():
    sources = sorted(glob.glob(os.path.join(ROOT, "src", "node", "**", "*.c"), recursive=True))
    source = "".join(read(path) for path in sources)
    docs = read("docs", "operations", "reference.md")
    log = docs[docs.index("## The log"):docs.index("## Fields of")]
    logged = set(re.findall(r'log_(?:event|plain|to|plain_to|untrusted)'
                            r'\((?:[\w>.-]+, )?(?:LEVEL_\w+, )?"(\w+)"', source))
    logged |= set(re.findall(r'(?:log_own_line\(&t, LEVEL_\w+|review_withdraw\([^"]*), "(\w+)"',
                             source))
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", log, re.M)
    told = set(re.findall(r"\w+", " ".join(rows)))
    settings = re.findall(r'X\(\w+, "(\w+)", "(\w+)"',
                          read("src", "node", "config", "config_setting.h"))
    shipped = read("share", "pawld.conf")
    wrong = ["%s is logged and not explained" % e for e in sorted(logged - told)]
    wrong += ["%s is explained and never logged" % e for e in sorted(told - logged)]
    wrong += ["[%s] %s is not explained" % s for s in settings
              if "`%s`" % s[1] not in docs]
    rare = {"released", "rounds", "lingering"}
    wrong += ["[%s] %s is not in share/pawld.conf" % s for s in settings
              if s[1] not in rare and not re.search(r"^#?%s = " % s[1], shipped, re.M)]
    for line in wrong:
        print("docs/operations/reference.md:", line)
    return 1 if wrong or not logged else 0


sys.exit(main())
