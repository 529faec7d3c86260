#!/usr/bin/env python3
"""test_delay.py DELAY: tests the program that puts a distance between the sites of
tests/bench/run."""
import contextlib
import json
import signal
import socket
import struct
import sys
import time
import unittest

sys.dont_write_bytecode = True

import sites

PORT = 7118
# One way, in ms. The tests run on busy machines, where a packet may come later.
DELAYS = {("a", "b"): 20, ("b", "a"): 40, ("a", "c"): 60}
PATIENCE_MS = 200
DATAGRAM = 1400


def now():
    return time.monotonic_ns()


class Delays(unittest.TestCase):
    def open(self, delays, *hosts):
        """Returns the network, and a UDP socket for each host."""
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        wan = stack.enter_context(sites.Wan(sys.argv[1], "abc", delays))
        sockets = []
        for host in hosts:
            with wan.net.inside(host):
                one = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            one.bind((wan.address(host), PORT))
            one.settimeout(5)
            sockets.append(one)
        return wan, sockets

    def test_each_direction_has_its_own_delay(self):
        wan, sockets = self.open(DELAYS, "a", "b", "c")
        of = dict(zip("abc", sockets))
        for one in "abc":
            for other in "abc":
                took = []
                for _ in range(10 if one != other else 0):
                    of[one].sendto(struct.pack("q", now()), (wan.address(other), PORT))
                    sent = struct.unpack("q", of[other].recv(64))[0]
                    took.append((now() - sent) / 1e6)
                if took:
                    wanted = DELAYS.get((one, other), 0)
                    self.assertGreaterEqual(min(took), wanted, (one, other))
                    self.assertLess(min(took), wanted + 10, (one, other))

    def test_many_are_under_way_at_once_and_stay_in_order(self):
        wan, (a, b) = self.open(DELAYS, "a", "b")
        b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        began = now()
        for i in range(200):
            a.sendto(struct.pack("q", i), (wan.address("b"), PORT))
        self.assertEqual([struct.unpack("q", b.recv(64))[0] for _ in range(200)],
                         list(range(200)))
        # One after the other would take 4 s.
        self.assertLess((now() - began) / 1e6, DELAYS["a", "b"] + PATIENCE_MS)

    def test_a_connection_is_made_after_a_round_trip(self):
        wan, _ = self.open(DELAYS)
        with wan.net.inside("b"):
            listener = socket.create_server((wan.address("b"), PORT))
        self.addCleanup(listener.close)
        with wan.net.inside("a"):
            one = socket.socket()
        self.addCleanup(one.close)
        began = now()
        one.connect((wan.address("b"), PORT))
        took = (now() - began) / 1e6
        self.assertGreaterEqual(took, DELAYS["a", "b"] + DELAYS["b", "a"])
        self.assertLess(took, DELAYS["a", "b"] + DELAYS["b", "a"] + PATIENCE_MS)

    def test_what_it_keeps_is_bounded_and_what_it_drops_is_counted(self):
        wan, (a, _) = self.open({("a", "b"): 60000}, "a", "b")
        for i in range(70000):
            a.sendto(bytes(DATAGRAM), (wan.address("b"), PORT))
            if i % 500 == 0:
                time.sleep(0.002)
        wan.__exit__()
        said = json.loads(wan.said)
        self.assertEqual(said["delivered"], 0)
        self.assertGreater(said["dropped"], 1000)


if __name__ == "__main__":
    if sites.why_not():
        print("skipped: %s" % sites.why_not())
        sys.exit(77)  # For meson this is a skipped test.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Nothing must be left behind.
    unittest.main(argv=sys.argv[:1], verbosity=2)
