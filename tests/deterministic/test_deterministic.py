#!/usr/bin/env python3
"""test_deterministic.py PRELOAD PAWLD: tests that a seed makes the same run of three nodes again,
call by call; that nothing is wrong with a few seeds and crash points; and that what is broken on
purpose is found."""

import os
import random
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, *(os.path.join(HERE, "..", name) for name in ("nodes", "integration"))):
    sys.path.insert(0, folder)

import checker  # noqa: E402
import world  # noqa: E402
from disk import Disk  # noqa: E402
from network import END, MS, Network, Stream  # noqa: E402

# How many crashes of all machines are tried until a disk that lies is found.
LYING_TRIES = 40


def run(plan, lying_disk=False):
    options = types.SimpleNamespace(preload=PRELOAD, pawld=PAWLD, lying_disk=lying_disk)
    return world.World(options, plan).run()


def crashes(seed, kinds, points, count):
    """Yields plans of the short run, each with a crash at a point that is drawn."""
    drawn = random.Random("test %d" % seed)
    for _ in range(count):
        node = drawn.choice(world.NAMES)
        point = drawn.randrange(1, points[node] + 1)
        yield world.plain(seed, [world.Crash(node, point, drawn.choice(kinds))])


class Runs(unittest.TestCase):
    def assert_good(self, outcome):
        for violation in outcome.violations:
            checker.say([violation])
        self.assertEqual([v[:2] for v in outcome.violations], [])
        self.assertGreater(outcome.counts.get("acquire_ok", 0), 0)

    def test_a_seed_makes_the_same_run_again(self):
        crash = world.Crash("b", 300, world.MACHINE)
        for plan in (world.plain(1, [crash]), world.stormy(3)):
            one, again = run(plan), run(plan)
            self.assert_good(one)
            self.assertGreater(one.calls, 1000)
            self.assertEqual(one.log.splitlines(), again.log.splitlines())

    def test_another_seed_makes_another_run(self):
        self.assertNotEqual(run(world.plain(1)).log, run(world.plain(2)).log)

    def test_nothing_is_wrong_with_some_seeds(self):
        for seed in range(10, 14):
            self.assert_good(run(world.stormy(seed)))

    def test_nothing_is_wrong_with_a_crash_at_some_points(self):
        points = run(world.plain(4)).points
        for plan in crashes(4, (world.PROCESS, world.MACHINE, world.ALL), points, 8):
            outcome = run(plan)
            self.assert_good(outcome)
            self.assertIn("%s is killed at its point %d" % plan.crashes[0][:2], outcome.log)

    def test_a_kill_while_the_state_file_is_made_loses_no_node_in_a_later_power_cut(self):
        """The next start finds the file, which may be in the memory of the kernel only, and so may
        its name."""
        for point in range(6, 12):  # From the first sync to the first one after the directory's.
            outcome = run(world.plain(1, [world.Crash("b", point, world.PROCESS)]))
            self.assertIn("b is killed at its point %d; lost: nothing" % point, outcome.log)
            self.assert_good(outcome)

    def test_a_disk_that_lies_is_found(self):
        """Without syncs, machines that lose their power forget the clock that they had reserved,
        and tokens go backwards."""
        points = run(world.plain(1)).points
        for plan in crashes(1, (world.ALL,), points, LYING_TRIES):
            if any(kind == "tokens" for kind, *_ in run(plan, lying_disk=True).violations):
                self.assert_good(run(plan))
                return
        self.fail("not found with %d crashes" % LYING_TRIES)


class Disks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def disk(self, seed=0):
        return Disk(os.path.join(self.folder.name, "disk %d" % seed), random.Random(seed))

    @staticmethod
    def write(disk, name, data):
        disk.create(name)
        with open(disk.path(name), "wb") as file:
            file.write(data)

    def test_what_was_synced_survives(self):
        disk = self.disk()
        self.write(disk, "new", b"1" * 2000)
        disk.sync_file("new")
        disk.rename("new", "state")
        disk.sync_directory()
        for worst in (False, True):
            disk.crash(worst)
            self.assertEqual(os.listdir(disk.directory), ["state"])
            self.assertEqual(disk.read("state"), b"1" * 2000)

    def test_nothing_else_survives_the_worst(self):
        disk = self.disk()
        self.write(disk, "state", b"1" * 2000)
        disk.sync_file("state")
        disk.sync_directory()
        self.write(disk, "state", b"2" * 2000)
        self.write(disk, "other", b"3")
        self.assertEqual(disk.crash(True), "create other, writes to state")
        self.assertEqual(os.listdir(disk.directory), ["state"])
        self.assertEqual(disk.read("state"), b"1" * 2000)

    def test_a_name_without_a_sync_of_the_directory_may_be_lost(self):
        left = set()
        for seed in range(30):
            disk = self.disk(seed)
            self.write(disk, "new", b"1")
            disk.sync_file("new")
            disk.rename("new", "state")
            disk.crash(False)
            left.add(tuple(os.listdir(disk.directory)))
        self.assertEqual(left, {(), ("new",), ("state",)})

    def test_a_write_may_be_torn(self):
        left = set()
        for seed in range(60):
            disk = self.disk(seed)
            self.write(disk, "state", b"1" * 2048)
            disk.sync_file("state")
            disk.sync_directory()
            self.write(disk, "state", b"2" * 2048)
            disk.crash(False)
            left.add(disk.read("state"))
        self.assertTrue({b"1" * 2048, b"2" * 2048} < left)
        self.assertTrue(all(len(data) == 2048 for data in left))


    def test_what_a_failed_sync_left_is_not_synced_later_unless_it_is_written_again(self):
        for again in (False, True):
            disk = self.disk(again)
            self.write(disk, "state", b"1" * 2048)
            disk.sync_file("state")
            disk.sync_directory()
            self.write(disk, "state", b"1" * 512 + b"2" * 512 + b"1" * 1024)
            disk.fail_to_sync("state")
            if again:
                disk.write("state", 512, 512)
            disk.sync_file("state")
            disk.crash(True)
            self.assertEqual(b"2" in disk.read("state"), again)


class Links(unittest.TestCase):
    def setUp(self):
        self.time, self.events = 0, []
        self.network = Network(lambda: self.time,
                               lambda when, what: self.events.append((when, what)),
                               random.Random(1))
        self.one, self.other = Stream(self.network, "a"), Stream(self.network, "b")
        for stream, peer in ((self.one, self.other), (self.other, self.one)):
            stream.state, stream.peer = "open", peer

    def go_on(self):
        while self.events:
            self.events.sort(key=lambda event: event[0])
            when, what = self.events.pop(0)
            self.time = max(self.time, when)
            what()

    def test_bytes_arrive_late_and_in_order(self):
        for i in range(200):
            self.one.write(bytes([i]))
        self.one.shutdown()
        self.assertEqual(self.other.input, b"")
        self.go_on()
        self.assertEqual(self.other.input, bytes(range(200)))
        self.assertTrue(self.other.ended)
        self.assertGreater(self.time, 0)

    def test_nothing_passes_a_cut_link_before_it_is_whole(self):
        self.network.cut(("a", "b"), 5000 * MS)
        self.one.write(b"late")
        self.other.write(b"late, too")
        self.go_on()
        self.assertEqual((self.other.input, self.one.input), (b"late", b"late, too"))
        self.assertGreaterEqual(self.time, 5000 * MS)

    def test_of_a_dead_host_a_first_part_arrives_and_then_a_reset(self):
        sent = bytes(range(50))
        for i in sent:
            self.one.write(bytes([i]))
        self.network.streams = [self.one, self.other]
        self.network.host_died("a")
        self.go_on()
        self.assertTrue(sent.startswith(self.other.input))
        self.assertEqual(self.other.state, "broken")
        self.assertNotIn(END, [item for _, item in self.one.under_way])


if __name__ == "__main__":
    PRELOAD, PAWLD = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
