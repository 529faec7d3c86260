"""Single candidates (candidate.c), which do what the tests tell them, and the lines that they
write."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import pawltest  # noqa: E402
from pawltest import PATIENCE  # noqa: E402


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Candidate(pawltest.Program):
    """One candidate process, which is started by this command. Its settings are those of
    candidate.c. Its lines are lists of words."""

    def __init__(self, command, endpoints, name, **settings):
        self.name = name
        super().__init__([*command, endpoints, name, "-",
                          *("%s=%s" % item for item in settings.items())], subprocess.PIPE)

    def kept(self, line):
        return line.split()

    def find(self, letter, start=0, holds=lambda words: True):
        return next((w for w in self.lines[start:] if w[0] == letter and holds(w)), None)

    def await_line(self, letter, start=0, holds=lambda words: True, patience=PATIENCE):
        """Waits for the first such line from number `start` on, and returns its words."""
        with self.seen:
            if not self.seen.wait_for(lambda: self.find(letter, start, holds), patience):
                raise AssertionError("%s has not written %s: %s"
                                     % (self.name, letter, self.lines[-5:]))
            return self.find(letter, start, holds)

    def await_renewal(self, after):
        """Returns when the candidate first wrote, after that time, that its deadline is later than
        before."""
        with self.seen:
            until = max(int(w[5]) for w in self.lines if w[0] in "LA" and int(w[1]) <= after)
        return int(self.await_line("A", 0, lambda w: int(w[5]) > until + 50000000)[1])

    def has(self, letter):
        with self.seen:
            return self.find(letter) is not None

    def count(self):
        with self.seen:
            return len(self.lines)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """Kills the process, and returns the time just before that."""
        at = boottime()
        super().kill()
        return at

    def end(self, number=None):
        if self.process.poll() is None:
            self.process.stdin.close()
        return super().end(number)


def first(some, letter, patience=PATIENCE):
    """Waits until one of them writes such a line. Returns the time of the line for each that has
    written it, by name."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = {c.name: int(c.find(letter)[1]) for c in some if c.has(letter)}
        if found:
            return found
        with some[0].seen:
            some[0].seen.wait(0.01)
    raise AssertionError("no candidate has written %s" % letter)
