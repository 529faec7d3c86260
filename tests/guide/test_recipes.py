"""Tests the recipes of docs/guide, in shell and in C. Each is started as its page says."""

import os
import re
import signal
import unittest

import guide
from guide import Recipe


class Cron(Recipe):
    """cron-job.md"""

    def report(self):
        return [name for name in os.listdir(self.dir)
                if re.fullmatch(r"report-\d{4}-\d\d-\d\d\.txt", name)]

    def test_one_of_all_hosts_makes_the_report(self):
        hosts = [self.start("nightly.sh", ".", "sh", "-c", "echo made >>calls; echo the report")
                 for _ in range(4)]
        self.assertEqual([host.end() for host in hosts], [0] * 4)
        self.assertEqual(sorted(host.lines[0].split(" with")[0] for host in hosts),
                         ["made"] + ["made already"] * 3)
        self.assertEqual(self.read("calls"), "made\n")
        self.assertEqual([self.read(name) for name in self.report()], ["the report\n"])

    def test_when_the_first_host_dies_the_next_one_makes_it(self):
        first = self.start("nightly.sh", ".", "sh", "-c",
                           "echo half; echo begun >begun; exec sleep 100")
        self.await_file("begun", "begun")
        second = self.start("nightly.sh", ".", "echo", "the report")
        self.await_waiters("nightly-report", 1)
        first.kill()
        self.assertEqual(second.end(), 0)
        self.assertEqual([self.read(name) for name in self.report()], ["the report\n"])

    def test_a_command_that_fails_leaves_no_report_and_its_status(self):
        self.finish("nightly.sh", ".", "sh", "-c", "echo half; exit 7", status=7)
        self.assertEqual(self.report(), [])

    def test_in_c_one_of_all_hosts_makes_the_report_and_another_one_if_that_dies(self):
        first = self.start_c("nightly", "report")
        self.await_waiters("nightly-report", 0)
        others = [self.start_c("nightly", "report") for _ in range(3)]
        for program in others:
            self.assertEqual(program.end(), 0)
        self.assertEqual(first.end(), 0)
        self.assertEqual(len([p for p in others + [first]
                              if p.lines[0].startswith("made with token")]), 1)
        self.assertEqual(self.read("report"), "".join("section %d\n" % n for n in range(1, 6)))
        self.assertEqual(os.listdir(self.dir), ["report"])


class Queue(Recipe):
    """job-queue.md"""

    def add_jobs(self, count):
        for k in range(count):
            self.write("%d.job" % k, "%d\n" % k)

    def done_by(self, workers, count):
        lines = [line for worker in workers for line in worker.lines if " with token " in line]
        self.assertEqual(sorted(line.split("/")[-1].split(".")[0] for line in lines),
                         [str(k) for k in range(count)])

    def test_each_job_is_done_by_one_worker(self):
        self.add_jobs(6)
        command = ["worker.sh", ".", "sh", "-c", 'echo begun >>"$0.begun"; cat "$0"']
        workers = [self.start(*command) for _ in range(3)]
        self.assertEqual([worker.end() for worker in workers], [0] * 3,
                         [worker.lines for worker in workers])
        self.done_by(workers, 6)
        self.assertEqual([self.read("%d.result" % k) for k in range(6)],
                         ["%d\n" % k for k in range(6)])
        self.assertEqual([self.read("%d.job.begun" % k) for k in range(6)], ["begun\n"] * 6)

    def test_the_next_worker_takes_the_job_of_one_that_died(self):
        self.add_jobs(1)
        first = self.start("worker.sh", ".", "sh", "-c",
                           "echo half; echo begun >begun; exec sleep 100")
        self.await_file("begun", "begun")
        holder = self.call("get", key="queue/0.job", consistency="quorum")
        os.kill(holder["pid"], signal.SIGKILL)  # This is the pawl run of the first worker.
        with self.cluster.client("a") as client:
            client.call("wait", key="queue/0.job", **{"for": "free"})
        self.finish("worker.sh", ".", "cat")
        self.assertEqual(self.read("0.result"), "0\n")
        first.end()

    def test_a_job_that_fails_stays(self):
        self.add_jobs(2)
        lines = self.finish("worker.sh", ".", "grep", "1")
        self.assertIn("./0.job: not done", lines)
        self.assertTrue(os.path.exists(self.path("0.job")))
        self.assertEqual(self.read("1.result"), "1\n")

    def test_in_c_each_job_is_done_by_one_worker(self):
        self.add_jobs(6)
        workers = [self.start_c("worker", ".") for _ in range(3)]
        self.assertEqual([worker.end() for worker in workers], [0] * 3,
                         [worker.lines for worker in workers])
        self.done_by(workers, 6)
        self.assertEqual(sorted(os.listdir(self.dir)), ["%d.result" % k for k in range(6)])


class Limit(Recipe):
    """rate-limit.md"""

    def assert_limited(self, begun, permits):
        begun.sort()
        for earlier, later in zip(begun, begun[permits:]):
            self.assertGreaterEqual(later - earlier, 1000, begun)

    def test_all_hosts_together_begin_two_calls_in_a_second(self):
        hosts = [self.start("limit.sh", "api", "2", "sh", "-c",
                            'echo "at $(($(date +%s%N) / 1000000)) with $PAWL_SLOTS"')
                 for _ in range(5)]
        self.assertEqual([host.end() for host in hosts], [0] * 5)
        said = [host.await_line(r"at (\d+) with (\d)") for host in hosts]
        self.assertEqual({match[2] for match in said}, {"0", "1"})
        self.assert_limited([int(match[1]) for match in said], 2)

    def test_the_status_is_that_of_the_command(self):
        self.finish("limit.sh", "status", "2", "sh", "-c", "exit 7", status=7)

    def test_a_permit_of_a_host_that_died_is_free_after_a_second(self):
        host = self.start("limit.sh", "mortal", "1", "sh", "-c", "echo begun; exec sleep 100")
        host.await_line("begun")
        host.kill()
        with self.cluster.client("a") as client:
            waited = client.call("acquire", key="mortal", lease_ms=5000, wait_ms=20000)["waited_ms"]
        self.assertGreater(waited, 500)
        self.assertLess(waited, 4000)

    def test_in_c_two_hosts_together_begin_three_calls_in_a_second(self):
        hosts = [self.start_c("limit", "c-api", "3", "3") for _ in range(2)]
        self.assertEqual([host.end() for host in hosts], [0] * 2)
        begun = [int(line.split()[0]) for host in hosts for line in host.lines]
        self.assertEqual(len(begun), 6)
        self.assert_limited(begun, 3)


class Catalogue(Recipe):
    """readers-and-writers.md"""

    def hold_shared(self):
        lock = self.call("acquire", key="catalogue", lease_ms=5000, mode="shared")
        return lambda: self.call("release", key="catalogue", lock_id=lock["lock_id"])

    def test_readers_read_together_and_writers_wait_for_them(self):
        self.write("file", "old\n")
        release = self.hold_shared()
        self.assertEqual(self.finish("catalogue.sh", "file", "read"), ["old"])
        writer = self.start("catalogue.sh", "file", "write", "echo", "new")
        self.await_waiters("catalogue", 1)
        # This reader comes after the writer, and waits behind it.
        reader = self.start("catalogue.sh", "file", "read")
        self.await_waiters("catalogue", 2)
        self.assertEqual(self.read("file"), "old\n")
        release()
        self.assertEqual((writer.end(), reader.end()), (0, 0))
        self.assertEqual(reader.lines, ["new"])

    def test_a_downgraded_lock_is_shared_with_readers(self):
        script = ('echo new >file; pawl downgrade "$PAWL_KEY" "$PAWL_LOCK_ID"; '
                  'echo mine still; exec sleep 100')
        writer = self.start("pawl", "run", "catalogue", "--lease", "5s", "--wait", "1m", "--",
                            "sh", "-c", script)
        writer.await_line("mine still")
        self.assertEqual(self.finish("catalogue.sh", "file", "read"), ["new"])
        self.finish("pawl", "acquire", "catalogue", "--lease", "5s", status=1)
        writer.end(signal.SIGTERM)

    def test_in_c_no_reader_sees_half_of_what_was_written(self):
        self.write("file", "first\n" * 5)
        programs = []
        for k in range(4):
            programs.append(self.start_c("catalogue", "file", "write", "text %d" % k))
            programs += [self.start_c("catalogue", "file", "read") for _ in range(2)]
        self.assertEqual([program.end() for program in programs], [0] * 12,
                         [program.lines for program in programs])
        for program in programs:
            text = [line for line in program.lines if not line.startswith("written with token")]
            self.assertEqual((len(text), len(set(text))), (5, 1), text)


class Move(Recipe):
    """several-keys.md"""

    def move_all_ways(self, start):
        names = ["anna", "ben", "carla"]
        for name in names:
            self.write(name, "100\n")
        pairs = [(a, b) for a in names for b in names if a != b] * 2
        programs = [start(a, b) for a, b in pairs]
        self.assertEqual([program.end() for program in programs], [0] * len(pairs),
                         [program.lines for program in programs])
        self.assertEqual([self.read(name) for name in names], ["100\n"] * 3)

    def test_moves_in_all_directions_at_once_neither_lose_money_nor_block_each_other(self):
        self.move_all_ways(lambda a, b: self.start("move.sh", ".", a, b, "5"))

    def test_in_c_moves_neither_lose_money_nor_block_each_other(self):
        self.move_all_ways(lambda a, b: self.start_c("move", ".", a, b, "5"))

    def test_all_or_none(self):
        lock = self.call("acquire", key="account/ben", lease_ms=5000, owner="other")
        lines = self.finish("pawl", "run", "account/anna", "account/ben", "--lease", "5s", "--",
                            "true", status=115)
        self.assertTrue(any("account/ben" in line for line in lines), lines)
        self.assertFalse(self.call("get", key="account/anna", consistency="quorum")["held"])
        self.call("release", key="account/ben", lock_id=lock["lock_id"])


class Shards(Recipe):
    """leader-with-workers.md"""

    def assert_shards(self, workers):
        """Checks that each of the twelve parts belongs to exactly one worker."""
        last = [[line for line in w.lines if line.startswith("shards:")][-1] for w in workers]
        shards = [int(s) for line in last for s in line.split()[1:]]
        self.assertEqual(sorted(shards), list(range(12)), last)

    def await_shards(self, workers, each):
        for worker in workers:
            worker.await_line(r"^shards:( \d+){%d}$" % each)

    def test_the_leader_divides_the_work_among_those_who_are_there(self):
        workers = []
        for name in ("w1", "w2", "w3"):
            workers.append(self.start_c("shards", "crawler", name))
            self.await_shards(workers, 12 // len(workers))
        self.assert_shards(workers)
        leaders = [w for w in workers if any(line.startswith("leading") for line in w.lines)]
        self.assertEqual(leaders, workers[:1])
        workers[2].kill()
        for worker in workers[:2]:
            worker.await_line(r"^shards:( \d+){6}$", 2)
        workers[0].kill()  # The leader dies: another one takes over, and finds one worker.
        workers[1].await_line("^leading with token")
        workers[1].await_line(r"^shards:( \d+){12}$")

    def worker(self, name):
        return self.start("pawl", "run", "crawl/workers/" + name, "--lease", "5s",
                          "--release-on-disconnect", "--",
                          "shards-worker.sh", "crawl", name)

    def test_in_shell_the_leader_divides_the_work(self):
        leader = self.start("pawl", "elect", "crawl", "--lease", "5s", "--release-on-disconnect",
                            "--", "shards-leader.sh")
        one = self.worker("w1")
        one.await_line(r"^shards:( \d+){12}$")
        two = self.worker("w2")
        self.await_shards([one, two], 6)
        self.assert_shards([one, two])
        two.end(signal.SIGTERM)
        one.await_line(r"^shards:( \d+){12}$", 2)
        one.end(signal.SIGTERM)
        leader.end(signal.SIGTERM)


if __name__ == "__main__":
    guide.main("__main__")
