#!/usr/bin/env python3
"""test_rates.py LIBRATE PAWLD: tests that clocks with rates of their own are read at these rates,
and that waits last as these clocks say."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402

SYS_CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}.get(os.uname().machine)
BOOT, MONOTONIC, RAW, WALL = (time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW,
                              time.CLOCK_REALTIME)
WAIT_S = 0.05
ABSOLUTE = 1


class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


class Itimerspec(ctypes.Structure):
    _fields_ = [("interval", Timespec), ("value", Timespec)]


# ---- what runs under the library ----

def truth(clock):
    """Returns the time of the kernel. The library does not intercept a direct system call."""
    t = Timespec()
    assert ctypes.CDLL(None).syscall(SYS_CLOCK_GETTIME, clock, ctypes.byref(t)) == 0
    return t.s * 10**9 + t.ns


def read(clock):
    return time.clock_gettime_ns(clock)


def timer(clock, absolute):
    libc = ctypes.CDLL(None)
    fd = libc.timerfd_create(clock, 0)
    ns = int(WAIT_S * 1e9) + (read(clock) if absolute else 0)
    when = Itimerspec(Timespec(0, 0), Timespec(ns // 10**9, ns % 10**9))
    assert libc.timerfd_settime(fd, ABSOLUTE if absolute else 0, ctypes.byref(when), None) == 0
    os.read(fd, 8)
    os.close(fd)


def waits():
    import select
    poller = select.poll()
    return {"epoll": lambda: select.epoll().poll(WAIT_S),
            "poll": lambda: poller.poll(WAIT_S * 1000),
            "select": lambda: select.select([], [], [], WAIT_S),
            "sleep": lambda: time.sleep(WAIT_S),
            "timer absolute": lambda: timer(BOOT, True), "timer": lambda: timer(BOOT, False),
            "timer monotonic": lambda: timer(MONOTONIC, True)}


def child():
    """Prints readings of the clocks between two readings of the true time, at two moments, and how
    long each wait took in true time."""
    out = {"waits": {}, "clocks": {}}
    first = {c: (truth(c), read(c), truth(c)) for c in (BOOT, MONOTONIC, RAW, WALL)}
    for name, wait in waits().items():
        before = truth(BOOT)
        wait()
        out["waits"][name] = truth(BOOT) - before
    for c, one in first.items():
        out["clocks"][c] = one, (truth(c), read(c), truth(c))
    print(json.dumps(out))


# ---- the tests ----

def under(rate, *command, **options):
    return subprocess.run(["env", "LD_PRELOAD=" + LIBRATE, "PAWL_TEST_RATE=" + rate, *command],
                          **options)


@unittest.skipUnless(SYS_CLOCK_GETTIME, "the number of a system call is not known here")
class Rates(unittest.TestCase):
    def look(self, rate):
        done = under(rate, sys.executable, os.path.abspath(__file__), "--child",
                     capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_rate(self, pair, rate):
        (low, first, high), (low2, second, high2) = pair
        self.assertGreaterEqual(second - first, (low2 - high) * rate - 1000)
        self.assertLessEqual(second - first, (high2 - low) * rate + 1000)

    def test_clocks_are_read_at_their_rates(self):
        for rate, raw in ((2.0, 2.0), (0.5, 0.5), (1.02, 0.98)):
            clocks = self.look("%s %s" % (rate, raw) if raw != rate else str(rate))["clocks"]
            self.assert_rate(clocks[str(BOOT)], rate)
            self.assert_rate(clocks[str(MONOTONIC)], rate)
            self.assert_rate(clocks[str(RAW)], raw)
            self.assert_rate(clocks[str(WALL)], 1.0)

    def test_waits_last_as_the_clocks_say(self):
        """No wait may be too short. That none is too long shows when a fast clock makes a wait
        shorter than the time that was asked for."""
        for rate in (0.25, 4.0):
            shortest = {}
            for _ in range(20):
                for name, took in self.look(str(rate))["waits"].items():
                    self.assertGreaterEqual(took, (WAIT_S - 0.001) / rate * 1e9,
                                            "%s at %s" % (name, rate))
                    shortest[name] = min(took, shortest.get(name, took))
                if all(took < WAIT_S / rate * 2e9 for took in shortest.values()):
                    break
            self.assertTrue(all(took < WAIT_S / rate * 2e9 for took in shortest.values()),
                            "at %s: %s" % (rate, shortest))

    def test_a_value_that_is_not_a_rate_is_refused(self):
        self.assertLess(under("fast", "true", stderr=subprocess.DEVNULL).returncode % 256 - 256, 0)


class Node(unittest.TestCase):
    """A node under the library acts when it is time, although nothing arrives."""

    LEASE_MS = 1000

    def test_a_lease_ends_by_the_nodes_clock_while_nothing_arrives(self):
        for rate in (0.8, 1.0, 1.25):
            self.one_lease(rate)

    def one_lease(self, rate):
        with tempfile.TemporaryDirectory() as folder:
            unix, peer = ("unix:" + os.path.join(folder, "node.sock"),
                          "127.0.0.1:%d" % pawltest.free_port())
            config = os.path.join(folder, "conf")
            with open(config, "w") as f:
                f.write("[node]\nname = a\nstate_dir = %s\n" % os.path.join(folder, "state"))
                f.write("listen_peer = %s\nlisten_client = %s\n" % (peer, unix))
                f.write("[cluster]\nname = rates\n[cluster.masters]\na = %s\n" % peer)
            node = pawltest.Node(["env", "LD_PRELOAD=" + LIBRATE, "PAWL_TEST_RATE=%s" % rate, PAWLD,
                                  "--config", config], "a")
            try:
                node.wait_log(" voting ")
                with pawltest.Client(unix) as client:
                    began = time.monotonic()
                    client.call("acquire", key="k", lease_ms=self.LEASE_MS)
                    client.call("acquire", key="k", lease_ms=self.LEASE_MS, wait_ms=15000)
                    took = time.monotonic() - began
            finally:
                node.kill()
        self.assertGreaterEqual(took, self.LEASE_MS / 1000 / rate * 0.999)
        self.assertLess(took, self.LEASE_MS / 1000 / rate + 3, "at %s it woke late" % rate)


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        child()
    else:
        LIBRATE, PAWLD = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
        unittest.main(verbosity=2)
