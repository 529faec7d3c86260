"""test_upgrade_holders.py PAWLD NEXT PAWL HOLDER: an upgrade by docs/operations/upgrade.md, from
PAWLD to NEXT, node after node, while the authority of all certificates is changed as
docs/operations/configure.md says. 200 locks are held by clients of every kind, and clients of every
kind wait: nobody loses a lock, nobody is thrown out. scripts/test-upgrade runs this with the nodes
of an earlier version."""

import os
import ssl
import sys
import time
import unittest

import holdercluster
import holders
import pawltest
from pawltest import Refused, wait_until

PAWLD = NEXT = PAWL = HOLDER = None
# Of the crews in holdercluster.crews, in their order.
COUNTS = (30, 35, 20, 20, 2, 30, 35, 20, 10)
MAX_LEASE = 10


class Upgrade(unittest.TestCase):
    def setUp(self):
        cluster = self.cluster = holdercluster.HolderCluster(PAWLD, PAWL, "%ds" % MAX_LEASE)
        self.addCleanup(cluster.__exit__)
        cluster.start_with("r")
        added = cluster.command("cluster", "add-replica", "r", cluster.peers["r"], at="a")
        self.assertEqual(added.returncode, 0, added.stderr)
        cluster.nodes["r"].wait_log(" following ")

    def crew(self, crew, count):
        self.addCleanup(crew.end)
        crew.take(count)
        return crew

    def probe(self, name):
        """Nobody is granted any of the keys, whichever node is asked."""
        with self.cluster.native(name, "holder") as client:
            keys = [key for crew in self.crews for key in crew.tokens]
            asked = {client.send("acquire", key=key, lease_ms=1000): key for key in keys}
            for number, key in asked.items():
                with self.assertRaises(Refused, msg=key) as refused:
                    client.answer(number)
                self.assertEqual(refused.exception.code, "held", key)

    def check(self):
        for crew in self.crews:
            crew.check()

    def upgrade(self, name, state):
        """As the documents say: stops the node, starts the new one, and waits for its state. Then
        it looks until every lease from before has been renewed or is over."""
        over = time.monotonic() + holders.LEASE
        self.assertEqual(self.cluster.nodes[name].terminate(), 0)
        self.cluster.start(name, NEXT)

        def status():
            run = self.cluster.command("status", "--json", at=name)
            return run.returncode == 0 and '"state":"%s"' % state in run.stdout.replace(" ", "")
        wait_until(self, status)
        while time.monotonic() < over:
            self.check()
            for each in self.cluster.clients:
                self.probe(each)
            time.sleep(0.2)

    def begin_to_wait(self):
        """Each kind of client waits for a key of another kind."""
        self.waiters = [crew for crew in self.crews if hasattr(crew, "wait")]
        for crew, other in zip(self.waiters, self.crews[2:] + self.crews[:2]):
            crew.wait(list(other.tokens)[0])
        with self.cluster.native("a") as client:
            wait_until(self, lambda: len(client.call("waiters", prefix="", limit=100)["waiters"])
                       == len(self.waiters))

    def renew_authority(self):
        """The last two steps of the change of the authority; certificates of the first one are
        refused then."""
        cluster = self.cluster
        old = pawltest.tls_context(*(cluster.file(each) for each in
                                     ("second/ca.crt", "first/holder.crt", "first/holder.key")))
        cluster.certificates("second")
        cluster.reload()
        self.check()
        cluster.put("ca.crt", cluster.file("second", "ca.crt"))
        cluster.reload()
        for name in [*cluster.names, "r"]:
            with self.assertRaises((ssl.SSLError, pawltest.Closed, ConnectionError)):
                with cluster.client(name, tls=old) as client:
                    client.call("ping")

    def ended(self, crew):
        """A lock without an end ends with its node, within the longest lease."""
        for key in crew.tokens:
            with self.cluster.native("a") as client:
                client.call("wait", key=key, timeout_ms=MAX_LEASE * 1100, **{"for": "free"})

    def test_it_ends_with_nobody_lost_and_nobody_thrown_out(self):
        cluster = self.cluster
        self.crews = [self.crew(crew, count) for crew, count in
                      zip(holdercluster.crews(cluster, HOLDER), COUNTS)]
        kept = [self.crew(crew, 2) for crew in holdercluster.kept(cluster)]
        self.assertGreaterEqual(sum(len(crew.tokens) for crew in self.crews), 200)
        self.begin_to_wait()
        cluster.put("ca.crt", cluster.authority("second"), cluster.file("first", "ca.crt"))
        cluster.reload()
        self.upgrade("r", "following")
        self.upgrade("a", "voting")
        self.renew_authority()
        drained = cluster.command("drain", "b", at="b")
        self.assertEqual(drained.returncode, 0, drained.stderr)
        self.check()
        self.upgrade("b", "voting")
        self.upgrade("c", "voting")
        for crew in self.crews:
            crew.release()
        for crew in self.waiters:
            crew.granted()
        for crew in kept:
            self.ended(crew)


if __name__ == "__main__":
    NEXT, PAWL, HOLDER = (os.path.abspath(sys.argv.pop(2)) for _ in range(3))
    pawltest.main(globals())
