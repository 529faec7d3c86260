"""Tests leaders with a session binding: another leader follows at once when the process dies, and
none follows when only its node dies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import nodes
import pawl
import pawltest
from nodes import Case, InBackground
from test_tls import Certificates

HERE = os.path.dirname(os.path.abspath(__file__))
LEASE = 2
TRIES = 5
AT_ONCE_MS = 20


class Leader:
    def __init__(self, case, endpoints, election, form, files=()):
        path = os.pathsep.join([os.path.dirname(HERE), HERE])
        command = [sys.executable, os.path.join(HERE, "leader.py"), ",".join(endpoints), election,
                   str(LEASE), form, *files]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=dict(os.environ, PYTHONPATH=path))
        case.addCleanup(self.end)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(int(line))

    def kill(self):
        began = time.monotonic()
        self.process.kill()
        return began

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()  # This ends its children.
        self.reader.join()
        self.process.stdout.close()


class Dying(Case):
    """A leader that uses the nodes a, b and c in this order, and a rival that uses them in the
    opposite order."""

    prefix, files, names = "", {}, ()
    forms = ("blocking", "asyncio")

    @classmethod
    def setUpClass(cls):
        cls.cluster = nodes.start().__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        self.key = self.id()
        self.endpoints = [self.prefix + self.cluster.clients[name] for name in self.cluster.names]
        self.observer = pawl.connect(self.endpoints[::-1], **self.files)
        self.addCleanup(self.observer.close)
        self.rounds = 0

    def field(self, form):
        self.rounds += 1
        self.election = "%s/%d" % (self.key, self.rounds)
        leader = Leader(self, self.endpoints, self.election, form, self.names)
        self.until(lambda: leader.lines, "a leader")
        client = pawl.connect(self.endpoints[::-1], **self.files)
        self.addCleanup(client.close)
        rival = InBackground(lambda: (client.election(self.election,
                                                      candidate="rival").campaign(30),
                                      time.monotonic())[1])
        self.until_waiting(self.observer, self.election)
        return leader, rival

    def lasts(self):
        """Tells whether a quorum says that the lease lasts. A master that has just returned lacks
        the lock. If another one is late, the read is `indeterminate`."""
        try:
            return self.observer.get(self.election, quorum=True).remaining > LEASE / 2
        except pawl.IndeterminateError:
            return False

    def leads_on(self, leader, rival, node, harm, heal):
        """Harms the node of the leader and heals it again. All the time the leader leads, its token
        does not fall, and nobody else is elected."""
        before = self.observer.get(self.election, quorum=True)
        began = time.monotonic()
        harm(node)
        while time.monotonic() - began < 1.5 * LEASE:
            self.assertFalse(rival.over())
            self.assertEqual(list(leader.lines), sorted(set(leader.lines)))
            self.assertNotIn(0, leader.lines)
            time.sleep(0.01)
        heal(node)
        self.until(lambda: self.observer.status()["node"] and self.lasts())
        time.sleep(0.3)  # The node that is back could still do harm in this time.
        after = self.observer.get(self.election, quorum=True)
        self.assertEqual((after.lock_id, after.owner, after.token),
                         (before.lock_id, before.owner, leader.lines[-1]))
        self.assertFalse(rival.over() or 0 in leader.lines)

    def revive(self, node):
        self.cluster.start(node.name).wait_log(" voting ")

    def test_a_leader_whose_node_dies_leads_on(self):
        for form in self.forms:
            with self.subTest(form=form):
                leader, rival = self.field(form)
                self.leads_on(leader, rival, self.cluster.nodes["a"], lambda node: node.kill(),
                              self.revive)
                leader.kill()
                rival.result()

    def test_a_leader_whose_node_hangs_leads_on_also_when_the_node_wakes(self):
        leader, rival = self.field("blocking")
        hang, wake = ((lambda node: node.signal(signal.SIGSTOP)),
                      (lambda node: node.signal(signal.SIGCONT)))
        self.addCleanup(wake, self.cluster.nodes["a"])
        self.leads_on(leader, rival, self.cluster.nodes["a"], hang, wake)
        leader.kill()  # The lock is bound to the new connection, so the rival follows at once.
        rival.result()

    def test_when_the_process_of_a_leader_is_killed_the_next_one_leads_at_once(self):
        for form in ("forks", *self.forms):
            with self.subTest(form=form):
                took = []
                while len(took) < TRIES and (not took or min(took) > AT_ONCE_MS):
                    leader, rival = self.field(form)
                    killed = leader.kill()
                    took.append((rival.result() - killed) * 1000)
                self.assertLessEqual(min(took), AT_ONCE_MS, took)


class WithoutAMajority(Case):
    """While too few masters are left, nobody else can get the lock. So its holder trusts it until
    the lease ends."""

    def test_a_lock_outlives_a_majority_of_its_masters_until_its_lease_is_over(self):
        for victims in ("ab", "bc"):
            with self.subTest(victims=victims), nodes.start() as cluster, \
                    pawl.connect(nodes.endpoints(cluster)) as client:
                lock = client.lock(self.key, lease=LEASE, release_on_disconnect=True).acquire()
                killed = time.monotonic()
                for name in victims:
                    cluster.nodes[name].kill()
                self.until(lambda: not lock.held, "the end of the lease")
                # The last extension was at most a third of the lease before the kill.
                self.assertGreater(time.monotonic() - killed, LEASE / 2)


class DyingOverTls(Dying):
    prefix = "tls://"
    forms = ("asyncio",)

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-python-dying-")
        cls.addClassCleanup(shutil.rmtree, folder)
        made = Certificates(folder)
        for name in "abc":
            made.make(name, "pawl:node:" + name)
        made.make("alice", "pawl:client:alice")
        cls.names = [made.path(name) for name in ("ca.crt", "alice.crt", "alice.key")]
        cls.files = dict(zip(("ca_file", "cert_file", "key_file"), cls.names))
        settings = ("ca = {0}/ca.crt\ncert = {0}/{1}.crt\nkey = {0}/{1}.key\nclient_auth = "
                    "required\n")
        cls.cluster = pawltest.Cluster(os.environ["PAWLD"], tls=lambda _,
                                       name: settings.format(os.path.dirname(cls.names[0]), name))
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.start_all()


if __name__ == "__main__":
    unittest.main()
