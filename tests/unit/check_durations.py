"""Checks that every duration that leaves a node or the library has a direction, "at least" or "at
most": the fields of answers in docs/client-protocol.md, and the members and functions of the C
headers by their comments."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIRECTION = re.compile(r"at\s+(?:\*\s+)?(?:least|most)", re.I)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def fields():
    """The durations that answers and events have."""
    paths = glob.glob(os.path.join(ROOT, "src/wire/client/answer/*.c"))
    paths += [os.path.join(ROOT, "src/wire/client/client_field.c")]
    # Errors name the parameter lease_ms.
    return set(re.findall(r'"([a-z_]+_ms)"', "".join(map(read, paths)))) - {"lease_ms"}


def told():
    """The durations whose row says which direction they have."""
    rows = re.findall(r"^\| ([\w, ]+) \| at (?:least|most) \|",
                      read("docs/client-protocol.md"), re.M)
    return set(re.findall(r"\w+_ms", " ".join(rows)))


def undirected(path, declaration):
    """The declarations of this form whose comment lacks a direction."""
    text = read(path)
    found = []
    for match in re.finditer(declaration, text, re.M):
        before = text[:match.start()]
        comment = before[before.rfind("/*"):] if before.rstrip().endswith("*/") else ""
        if not DIRECTION.search(comment):
            found.append("%s: %s" % (path, match.group(1)))
    return found, len(re.findall(declaration, text, re.M))


def main():
    wrong = ["docs/client-protocol.md, Durations: %s has no direction" % name
             for name in sorted(fields() - told())]
    wrong += ["docs/client-protocol.md, Durations: no answer has %s" % name
              for name in sorted(told() - fields())]
    count = len(fields())
    places = [("include/pawl/result.h", r"^\tint64_t ([\w, ]*_ms);")]
    places += [(os.path.relpath(path, ROOT), r"^int64_t (pawl_\w+_ms)\(")
               for path in sorted(glob.glob(os.path.join(ROOT, "include/pawl/*.h")))]
    for path, declaration in places:
        found, more = undirected(path, declaration)
        wrong += ["%s: its comment has no direction" % name for name in found]
        count += more
    print("\n".join(wrong) if wrong else "%d durations have a direction" % count)
    return 1 if wrong or count < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
