"""Tests the recipes of docs/guide in Go. Without a Go compiler, or with one that is too old, they
are skipped."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import guide
from guide import EXAMPLES, Recipe

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))

from lacks_go import lacks_go  # noqa: E402

SOURCE = os.path.join(EXAMPLES, "go")
# Nothing is downloaded: neither another compiler nor a package.
ENVIRONMENT = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false",
               "GOPROXY": "off"}


class Programs:
    """Where the programs are, once setUpModule has built them."""
    folder = None


LACKS = lacks_go(SOURCE)


def setUpModule():
    if LACKS:
        return
    Programs.folder = tempfile.mkdtemp(prefix="pawl-guide-go-")
    unittest.addModuleCleanup(shutil.rmtree, Programs.folder)
    subprocess.run(["go", "build", "-o", Programs.folder + "/", "./..."], cwd=SOURCE,
                   env=ENVIRONMENT, check=True)


@unittest.skipIf(LACKS, LACKS)
class GoRecipe(Recipe):
    def start_go(self, name, *arguments):
        return self.start(os.path.join(Programs.folder, os.path.dirname(name)), *arguments)

    def finish_go(self, name, *arguments, status=0):
        return self.finish(os.path.join(Programs.folder, os.path.dirname(name)), *arguments,
                           status=status)

    def end_all(self, programs):
        self.assertEqual([program.end() for program in programs], [0] * len(programs),
                         [program.lines for program in programs])


class Clock(guide.Clock, GoRecipe):
    """singleton-service.md"""

    ASKED = "^stepped down: .*two"

    def candidate(self, name):
        return self.start_go("clock/main.go", name)


class Shards(GoRecipe):
    """leader-with-workers.md"""

    def test_the_leader_divides_the_work_among_those_who_are_there(self):
        workers = []
        for name in ("w1", "w2", "w3"):
            workers.append(self.start_go("shards/main.go", "crawler", name))
            for worker in workers:
                worker.await_line(r"^shards:( \d+){%d}$" % (12 // len(workers)))
        last = [[line for line in w.lines if line.startswith("shards:")][-1] for w in workers]
        self.assertEqual(sorted(int(s) for line in last for s in line.split()[1:]),
                         list(range(12)), last)
        leaders = [w for w in workers if any(line.startswith("leading") for line in w.lines)]
        self.assertEqual(leaders, workers[:1])
        workers[2].kill()
        for worker in workers[:2]:
            worker.await_line(r"^shards:( \d+){6}$", 2)
        workers[0].kill()  # The leader dies: another one takes over, and finds one worker.
        workers[1].await_line("^leading with token")
        workers[1].await_line(r"^shards:( \d+){12}$")


class Cron(GoRecipe):
    """cron-job.md"""

    def test_one_of_all_hosts_makes_the_report(self):
        hosts = [self.start_go("nightly/main.go", "report") for _ in range(4)]
        self.end_all(hosts)
        self.assertEqual(sorted(host.lines[0].split(" with")[0] for host in hosts),
                         ["made"] + ["made already"] * 3)
        self.assertEqual(self.read("report"), "".join("section %d\n" % n for n in range(1, 6)))
        self.assertEqual(os.listdir(self.dir), ["report"])

    def test_when_the_first_host_dies_the_next_one_makes_it(self):
        first = self.start_go("nightly/main.go", "report")
        self.await_held("nightly-report")
        second = self.start_go("nightly/main.go", "report")
        self.await_waiters("nightly-report", 1)
        first.kill()
        self.assertEqual(second.end(), 0)
        self.assertIn("made with token", second.lines[0])

    def await_held(self, key):
        with self.cluster.client("a") as client:
            client.call("wait", key=key, **{"for": "held"})


class Queue(GoRecipe):
    """job-queue.md"""

    def test_each_job_is_done_by_one_worker(self):
        for k in range(6):
            self.write("%d.job" % k, "%d\n" % k)
        workers = [self.start_go("worker/main.go", ".") for _ in range(3)]
        self.end_all(workers)
        lines = [line for worker in workers for line in worker.lines if " with token " in line]
        self.assertEqual(sorted(line.split(".")[0] for line in lines), [str(k) for k in range(6)])
        self.assertEqual(sorted(os.listdir(self.dir)), ["%d.result" % k for k in range(6)])


class Limit(GoRecipe):
    """rate-limit.md"""

    def test_two_hosts_together_begin_three_calls_in_a_second(self):
        hosts = [self.start_go("limit/main.go", "go-api", "3", "3") for _ in range(2)]
        self.end_all(hosts)
        begun = sorted(int(line.split()[0]) for host in hosts for line in host.lines)
        self.assertEqual(len(begun), 6)
        for earlier, later in zip(begun, begun[3:]):
            self.assertGreaterEqual(later - earlier, 1000, begun)


class Catalogue(GoRecipe):
    """readers-and-writers.md"""

    def test_no_reader_sees_half_of_what_was_written(self):
        self.write("file", "first\n" * 5)
        programs = []
        for k in range(4):
            programs.append(self.start_go("catalogue/main.go", "file", "write", "text %d" % k))
            programs += [self.start_go("catalogue/main.go", "file", "read") for _ in range(2)]
        self.end_all(programs)
        for program in programs:
            text = [line for line in program.lines if not line.startswith("written with token")]
            self.assertEqual((len(text), len(set(text))), (5, 1), text)


class Move(GoRecipe):
    """several-keys.md"""

    def test_moves_neither_lose_money_nor_block_each_other(self):
        names = ["anna", "ben", "carla"]
        for name in names:
            self.write(name, "100\n")
        self.end_all([self.start_go("move/main.go", ".", a, b, "5")
                      for a in names for b in names if a != b] * 2)
        self.assertEqual([self.read(name) for name in names], ["100\n"] * 3)


class File(GoRecipe):
    """fencing.md"""

    def test_an_older_token_writes_nothing(self):
        for token, line, status in (("5", "five", 0), ("5", "five again", 0), ("7", "seven", 0),
                                    ("6", "stale", 1), ("7", "seven again", 0)):
            self.finish_go("append/main.go", "journal", "ledger", token, line, status=status)
        self.assertEqual(self.read("journal"), "five\nfive again\nseven\nseven again\n")

    def test_shell_and_go_share_one_store(self):
        self.finish_go("append/main.go", "journal", "ledger", "9", "nine")
        self.finish("append.sh", "journal", "ledger", "8", "stale", status=1)
        self.assertEqual(self.finish("pawl", "fence", "show", "journal.fence", "ledger"), ["9"])


if __name__ == "__main__":
    guide.main("__main__", counts=True)
