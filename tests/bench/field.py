"""Candidates of one election, for the measurements."""
import json
import os
import sys

import benchmark as bench

sys.path.insert(0, os.path.join(bench.ROOT, "tests", "elections"))

import candidates  # noqa: E402  (its folder was put on the path above)

LEASE_MS = 2000


class Field:
    """A context with three candidates, each at the machine of another node, which is its first
    endpoint. The first one leads."""

    def __init__(self, cluster, **settings):
        self.cluster, self.settings, self.all = cluster, settings, []

    def __enter__(self):
        names = self.cluster.names
        for i, name in enumerate(names):
            one = candidates.Candidate(self.cluster.command(name, [self.cluster.candidate]),
                self.cluster.endpoints(names[i:] + names[:i]), f"c{i}", elections="chair",
                lease=LEASE_MS, **self.settings)
            self.all.append(one)
            one.say("campaign")
            if i == 0:
                one.await_line("L")
        bench.await_that("the others wait", 10, lambda: self.waiting() == len(names) - 1)
        return self

    def waiting(self):
        said = json.loads(
            self.cluster.run_pawl("waiters", "chair", "--json", *self.cluster.options()))
        return len(said["waiters"])

    def __exit__(self, *_):
        for one in self.all:
            one.kill()

    def followed(self, strike):
        """Returns the milliseconds from the strike until another candidate leads."""
        began = candidates.boottime()
        strike()
        return (min(candidates.first(self.all[1:], "L").values()) - began) / 1e6

    def renewed(self, strike):
        """Returns the milliseconds from the strike until the leader was renewed."""
        began = candidates.boottime()
        strike()
        return (self.all[0].await_renewal(began) - began) / 1e6
