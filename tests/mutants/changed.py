"""Which rows a change may have made wrong: those whose edited function (table, struct, macro),
whose named test, or whose own text is not what it was at a commit. White space and comments of the
code do not count, nor that it has moved."""
import glob
import io
import json
import os
import re
import subprocess
import tarfile
import tomllib
import zlib

from anchors import TOKEN, definitions, pattern_of

# What is compared by default is the state before so many commits of the branch.
COMMITS = 50
SHARE = 10


def tokens(text):
    return tuple(match["token"] for match in TOKEN.finditer(text) if match["token"])


def scenarios(text):
    """Returns what a file of tests does, without what it includes and how it is started."""
    return ({(name, tokens(text[begin:end])) for name, begin, end in definitions(text)
             if name not in ("main", "UNIT")}
            | {tokens(names) for names in re.findall(r"tests\[\] = \{.*?\};", text, re.S)})


def named(row):
    return json.dumps(row, sort_keys=True)


class Before:
    """The sources, tests and rows at a commit. Raises CalledProcessError if git has no such."""

    def __init__(self, root, commit):
        self.root = root
        self.definitions, self.tests, self.rows = set(), {}, set()
        archive = subprocess.run(["git", "archive", commit, "cluster", "src", "tests/unit",
                                  "tests/mutants"], cwd=root, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            for member in files:
                if member.name.endswith((".c", ".h", ".toml")):
                    self.add(member.name, files.extractfile(member).read().decode())

    def add(self, path, text):
        if path.endswith(".toml"):
            self.rows |= {named(row) for row in tomllib.loads(text)["mutant"]}
        elif path.startswith("tests/unit/"):
            self.tests[os.path.basename(path)] = scenarios(text)
        else:
            self.definitions |= {(name, tokens(text[begin:end]))
                                 for name, begin, end in definitions(text)}

    def same_code(self, edit, anchors):
        pattern = pattern_of(edit["old"])
        return any((edit["in"], tokens(text)) in self.definitions
                   for _, text in anchors.places.get(edit["in"], []) if pattern.search(text))

    def same_test(self, name):
        paths = glob.glob(os.path.join(self.root, "tests", "unit", "*", name + ".c"))
        texts = [open(path, encoding="utf-8").read() for path in paths]
        return [scenarios(text) for text in texts] == [self.tests.get(name + ".c")]

    def has(self, row, anchors):
        """Whether nothing has changed that the row names."""
        return (named(row) in self.rows and ("test" not in row or self.same_test(row["test"]))
                and all(self.same_code(edit, anchors) for edit in row["edit"]))


def in_turn(row, root):
    """Whether the row belongs to the part of all rows that the commit draws: of ten commits, each
    row belongs to about one."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True,
                          text=True).stdout
    return zlib.crc32((row["name"] + head).encode()) % SHARE == 0
