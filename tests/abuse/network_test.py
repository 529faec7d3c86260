"""Tests that all addresses of an IPv6 network of 64 bits count as one address: whoever has one of
them has all of them.

    network_test.py PAWLD [unittest options]

The tests run in a network namespace of their own, where all addresses of two networks are local;
without root they are skipped.
"""

import os
import socket
import subprocess
import sys
import unittest

import strangers_attack as attack  # This comes first, because it knows where pawltest is.
import pawltest

PAWLD = None
HERE, THERE = "fd00:0:0:1::%x", "fd00:0:0:2::%x"
LIMIT = 150
IPV6_FREEBIND = 78


class Nodes(pawltest.Cluster):
    """Nodes that also listen at an address of IPv6."""

    def unix(self, name):
        self.wide = ("::1", pawltest.free_port())
        return super().unix(name) + ", [::1]:%d" % self.wide[1]


class Network(unittest.TestCase):
    def setUp(self):
        attack.allow_files()
        limits = "[limits]\nclients_per_identity = %d\n" % LIMIT
        self.cluster = Nodes(PAWLD, masters=1, node=limits).__enter__()
        self.addCleanup(self.cluster.__exit__)

    def connect(self, source):
        s = socket.socket(socket.AF_INET6)
        self.addCleanup(s.close)
        s.settimeout(pawltest.PATIENCE)
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        s.bind((source, 0))
        s.connect(self.cluster.wide)
        return s

    @staticmethod
    def answers(s):
        """Returns whether the node answers a ping, and neither returns an error nor closes the
        connection."""
        s.sendall(pawltest.pack([0, 7, "ping", [{}]]))
        try:
            return s.recv(1 << 16)[:4] == b"\x94\x01\x07\xc0"
        except ConnectionResetError:
            return False

    def test_silent_connections_from_all_addresses_of_a_network_count_as_those_of_one_address(self):
        silent = [self.connect(HERE % (i + 1)) for i in range(600)]
        elsewhere = [self.connect(THERE % (i + 1)) for i in range(100)]
        self.assertTrue(self.answers(self.connect("::1")))
        self.assertLessEqual(sum(map(attack.is_open, silent)), 128)
        self.assertEqual(sum(map(attack.is_open, elsewhere)), 100)

    def test_clients_from_all_addresses_of_a_network_have_the_share_of_one_identity(self):
        inside = [self.answers(self.connect(HERE % (i + 1))) for i in range(2 * LIMIT)]
        self.assertEqual(inside, [True] * LIMIT + [False] * LIMIT)
        self.assertTrue(self.answers(self.connect(THERE % 1)))


def main():
    if os.geteuid() != 0:
        print("OK (skipped=1): needs root")
        return
    if os.environ.get("PAWL_NETWORK_TEST") != "inside":
        os.environ["PAWL_NETWORK_TEST"] = "inside"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for network in (HERE, THERE):
        subprocess.run(["ip", "-6", "route", "add", "local", network % 0 + "/64", "dev", "lo"],
                       check=True)
    pawltest.main(globals())


if __name__ == "__main__":
    main()
