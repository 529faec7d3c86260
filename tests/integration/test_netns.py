"""Tests the network that other tests use: what it cuts is cut, what it heals is whole, and nothing
of it is left behind."""

import os
import signal
import socket
import subprocess
import sys
import unittest

import netns


class Pair:
    """Sends datagrams between two hosts, in both directions, to see what the network lets
    through."""

    def __init__(self, net, one, other):
        self.net, self.sockets = net, {}
        for host in (one, other, netns.HUB):
            with net.inside(host):
                self.sockets[host] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sockets[host].bind((net.address(host), 7))
            self.sockets[host].settimeout(5)
        # The first datagrams wait until the addresses are resolved.
        for sender, receiver in ((one, other), (other, one), (netns.HUB, one), (netns.HUB, other)):
            self.send(sender, receiver, b"first")
            assert self.sockets[receiver].recv(16) == b"first"

    def send(self, sender, receiver, data):
        self.sockets[sender].sendto(data, (self.net.address(receiver), 7))

    def arrives(self, sender, receiver, of=1):
        """Sends datagrams, and returns how many arrive. A last one from the hub, which is never cut
        off, goes the same way after them and ends the count."""
        for _ in range(of):
            self.send(sender, receiver, b"over")
        self.send(netns.HUB, receiver, b"end")
        count = 0
        while self.sockets[receiver].recv(16) == b"over":
            count += 1
        return count

    def close(self):
        for one in self.sockets.values():
            one.close()


class TestNet(unittest.TestCase):
    def setUp(self):
        self.net = netns.Net()
        self.addCleanup(self.net.close)
        for host in "abc":
            self.net.add(host)

    def pair(self, one, other):
        pair = Pair(self.net, one, other)
        self.addCleanup(pair.close)
        return pair

    def test_a_command_runs_in_its_namespace_under_its_own_pid(self):
        process = self.net.popen("a", ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.read(1)
        self.assertEqual(self.net.pids("a"), [process.pid])
        process.communicate()

    def test_a_cut_and_its_mending(self):
        pair = self.pair("a", "b")
        self.net.cut("a", "b")
        self.assertFalse(pair.arrives("a", "b", 5) or pair.arrives("b", "a", 5))
        self.net.mend("a", "b")
        self.assertTrue(pair.arrives("a", "b", 5) and pair.arrives("b", "a", 5))

    def test_a_cut_in_one_direction(self):
        pair = self.pair("a", "b")
        self.net.cut("a", "b", both=False)
        self.assertFalse(pair.arrives("a", "b", 5))
        self.assertTrue(pair.arrives("b", "a", 5))

    def test_a_partition_leaves_its_groups_whole(self):
        across = self.pair("b", "c")
        self.net.partition(["a", "b"], ["c"])
        self.assertFalse(across.arrives("b", "c", 5) or across.arrives("c", "b", 5))
        across.close()
        within = self.pair("a", "b")
        self.assertTrue(within.arrives("a", "b", 5) and within.arrives("b", "a", 5))
        self.net.heal()
        within.close()
        self.pair("b", "c")

    def test_loss_is_random_and_ends(self):
        pair = self.pair("a", "b")
        self.net.lose("a", 50)
        arrived = pair.arrives("a", "b", 200)
        self.assertTrue(40 < arrived < 160, arrived)
        self.net.lose("a", 0)
        self.assertGreater(pair.arrives("a", "b", 200), 160)

    def test_another_process_finds_the_hosts_by_the_prefix(self):
        self.net.remove("b")
        again = netns.Net(self.net.prefix)
        self.assertEqual(again.hosts, {"a": 1, "c": 3})
        self.assertEqual(again.add("d"), "10.117.0.2")
        self.net.hosts = again.hosts

    def test_what_a_killed_process_left_is_swept(self):
        code = ("import netns, os; net = netns.Net(subnet='10.118.0'); net.add('a'); "
                "print(net.prefix, flush=True); os._exit(1)")
        left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()
        self.assertTrue(os.path.exists(os.path.join(netns.PLACE, left + "-a")))
        netns.sweep()
        self.assertFalse([n for n in os.listdir(netns.PLACE) if n.startswith(left + "-")])
        self.assertTrue(self.net.exists("a"))

    def test_nothing_stays(self):
        self.net.close()
        left = [n for n in os.listdir(netns.PLACE) if n.startswith(self.net.prefix + "-")]
        self.assertEqual(left, [])


if __name__ == "__main__":
    reason = netns.why_not()
    if reason:
        print("skipped: %s" % reason)
        sys.exit(77)  # For meson this is a skipped test.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Nothing must be left behind.
    netns.sweep()
    unittest.main(verbosity=2)
