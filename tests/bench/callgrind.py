"""Nodes under callgrind, and what it counts of them."""
import collections
import re
import subprocess

import benchmark as bench

# A node under callgrind is some fifty times slower.
patient = bench.await_that
bench.await_that = lambda what, seconds, condition: patient(what, 10 * seconds, condition)


class Cluster(bench.Cluster):
    """A context with masters, of which those that are counted run under callgrind."""

    def __init__(self, build, counted=tuple(bench.NODES), max_lease="600s"):
        super().__init__(build, False, max_lease=max_lease)
        self.counted, self.dumps = counted, 0

    def start(self, name):
        if name not in self.counted:
            super().start(name)
            return
        with open(self.path(name, "log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.path(name, 'out')}",
                 self.pawld, "--config", self.path(name, "conf")], stdout=log, stderr=log)

    def dump(self):
        """Returns by node the file that says what it has done since the last time."""
        self.dumps += 1
        for name in self.counted:
            subprocess.run(["callgrind_control", "--dump", str(self.processes[name].pid)],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {name: f"{self.path(name, 'out')}.{self.dumps}" for name in self.counted}


def total(path):
    """Returns how many instructions the file counts."""
    with open(path) as f:
        return int(re.search(r"^totals: (\d+)", f.read(), re.M)[1])


def calls(lines):
    """Returns how often each function was called, by its source file and its name. The lines are
    those of a file of callgrind, which gives each name a number where it stands first."""
    files, functions, home = {}, {}, {}
    count = collections.Counter()
    at = called = None
    for line in lines:
        key, found, rest = line.partition("=")
        if not found:
            continue
        if key in ("fl", "fi", "fe", "cfi", "cfl"):
            number = named(files, rest)
            at = at if key.startswith("c") else number
        elif key == "fn":
            # Two static functions of one name have numbers of their own.
            home[named(functions, rest)] = at
        elif key == "cfn":
            called = named(functions, rest)
        elif key == "calls":
            count[called] += int(rest.split()[0])
    whole = collections.Counter()
    for number, times in count.items():
        # A function that calls itself has a second name for that.
        whole[files.get(home.get(number), ""), functions[number].split("'")[0]] += times
    return whole


def named(names, text):
    """Reads "(number) name" or "(number)", keeps the name, and returns the number."""
    number, _, name = text.strip().partition(" ")
    if name:
        names[number] = name
    return number
