#!/usr/bin/env python3
"""test_leadership.py PAWLD PAWL: tests that a leadership leaves nothing to the next one of the same
candidate."""

import os
import signal

import cli_fixture
from test_elect import ElectCase

SIGNALS = ("exec 9>$0; trap '' TERM; grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\n' >&9; "
           "echo >&9; "
           "while :; do sleep 0.01; done")


class Leadership(ElectCase):
    def signals(self, *options):
        """Starts a candidate that prints its signal settings whenever it leads. Its pipe does not
        end between two leaderships."""
        process, alive = self.candidate("a", *options, script=SIGNALS)
        self.addCleanup(os.close, os.open(alive.path, os.O_WRONLY))
        return process, alive

    def test_the_command_of_a_later_leadership_finds_signals_as_the_first_one_did(self):
        _, alive = self.signals("--lease", "3s")
        first = alive.line()
        self.succeeds(self.pawl("break", "e", "--now"))
        self.assertEqual(alive.line(), first)

    def test_the_command_of_a_guardian_that_was_replaced_finds_signals_as_the_first_did(self):
        process, alive = self.signals("--lease", "12s", "--grace", "3s")
        first = alive.line()
        self.succeeds(self.pawl("break", "e"))
        process.stderr.readline()  # The command must end, but does not.
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        self.assertEqual(alive.line(), first)


if __name__ == "__main__":
    cli_fixture.main()
