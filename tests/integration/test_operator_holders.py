"""test_operator_holders.py PAWLD PAWL HOLDER: what an operator does, against locks that clients of
every kind hold. For each command and each kind of client it is said, and tried, whether its locks
stay held, or whether it is told that it has lost them before anybody else can get them."""

import os
import sys
import time
import unittest

import dialectholders
import holdercluster
import pawltest
from pawltest import wait_until

PAWLD = PAWL = HOLDER = None
# So every crew has a lock of each mode that its kind of client knows.
LOCKS = 6
# Of max_lease; the leases of the holders are in between.
LONGER, SHORTER = 6, 2


class Contender:
    """Waits for keys, and notes when it is granted each."""

    def __init__(self, case, node, keys):
        self.client = case.cluster.native(node)
        self.asked = {self.client.send("acquire", key=key, lease_ms=1000, wait_ms=30000): key
                      for key in keys}

    def granted(self):
        """Returns when each key was granted. It releases them."""
        when = {}
        while len(when) < len(self.asked):
            kind, number, error, result = self.client.read()
            assert kind == 1 and error is None, (self.asked.get(number), error)
            if number in self.asked:
                when[self.asked[number]] = time.monotonic()
                self.client.send("release", key=self.asked[number], lock_id=result["lock_id"])
        self.client.close()
        return when


def is_kept(crew):
    return isinstance(crew, dialectholders.Kept)


class OperatorCase(unittest.TestCase):
    def setUp(self):
        cluster = self.cluster = holdercluster.HolderCluster(PAWLD, PAWL, "4500ms")
        self.addCleanup(cluster.__exit__)
        cluster.start_with("d")
        self.crews = [*holdercluster.crews(cluster, HOLDER), *holdercluster.kept(cluster)]
        for crew in self.crews:
            self.addCleanup(crew.end)
            crew.take(LOCKS)

    def does(self, *words, at="a"):
        run = self.cluster.command(*words, at=at)
        self.assertEqual(run.returncode, 0, (words, run.stdout, run.stderr))

    def check(self):
        for crew in self.crews:
            try:
                crew.check()
            except AssertionError as error:
                raise AssertionError(error, [line for node in self.cluster.nodes.values()
                                             for line in node.lines if line and "_lost" in line])

    def keys(self, number, kept=True):
        """Of each crew the key with this number."""
        return {key: token for crew in self.crews for key, token in crew.tokens.items()
                if key.endswith("/%d" % number) and (kept or not is_kept(crew))}

    def told(self, contender, late=()):
        """Each holder of the keys that the contender wants is told that it has lost them, before
        the contender is granted them; except for those in `late`, who are told afterwards."""
        granted, told = contender.granted(), {}

        def all_told():
            for crew in self.crews:
                told.update(crew.told())
            return set(granted) <= set(told)
        wait_until(self, all_told)
        for key, when in granted.items():
            if key not in late:
                self.assertLessEqual(told[key][0], when, (key, told[key]))
        for crew in self.crews:
            for key in granted:
                crew.forget(key)

    def stay(self, seconds):
        """Looks for so long whether all stay held."""
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            self.check()
            time.sleep(0.2)


class StayHeld(OperatorCase):
    """All locks stay held, whatever the operator does of this."""

    def set_timing(self, max_lease):
        self.does("cluster", "set-timing", "--max-lease", "%ds" % max_lease)

    def restart(self, name):
        """A drain cannot be taken back but by a restart."""
        self.does("drain", name, at=name)
        self.check()
        self.assertEqual(self.cluster.nodes[name].terminate(), 0)
        self.cluster.start(name).wait_log(" voting ", "by=drain")

    def limit(self, text):
        """Limits below what is used, with a reload: they count for what comes."""
        for name in self.cluster.clients:
            self.cluster.write(name + ".conf", self.configurations[name] + text)
        self.cluster.reload()

    def kick_all(self):
        for name in "abc":
            with self.cluster.native(name) as ops:
                for client in ops.call("clients", limit=1000)["clients"]:
                    if client["identity"] == b"holder" and not self.keeps(client):
                        try:
                            ops.call("kick", client=client["client"])
                        except pawltest.Refused as refused:  # It may have ended by itself.
                            self.assertEqual(refused.code, "not_found")

    def keeps(self, client):
        """Whether it is the connection of a lock without an end, of which its client takes the end
        for a loss, as it should."""
        return any(client["address"] == "%s:%d" % crew.socket(each).getsockname()
                   for crew in self.crews if is_kept(crew)
                   for each in crew.clients.values())

    def renew_certificates(self):
        self.cluster.certificates("first")
        self.cluster.reload()

    def commands(self):
        d = self.cluster.peers["d"]
        yield "add-replica", lambda: self.does("cluster", "add-replica", "d", d)
        yield "promote", lambda: self.does("cluster", "promote", "d")
        yield "demote", lambda: self.does("cluster", "demote", "b", "--yes")
        yield "set-nodes", lambda: self.does("cluster", "set-nodes", "--masters", "a,b,c",
                                             "--replicas", "d", "--yes")
        yield "replace", lambda: self.does("cluster", "replace", "c", "d")
        yield "add-replica again", lambda: self.does("cluster", "add-replica", "c",
                                                     self.cluster.peers["c"])
        yield "promote again", lambda: self.does("cluster", "promote", "c")
        yield "remove", lambda: self.does("cluster", "remove", "d", "--yes")
        yield "drain and start", lambda: self.restart("c")
        yield "set-timing of requests", lambda: self.does(
            "cluster", "set-timing", "--request-timeout", "1500ms", "--promise-timeout", "3s",
            "--clock-drift", "0.9%")
        yield "set-timing up", lambda: self.set_timing(LONGER)
        yield "lower limits", lambda: self.limit("[limits]\nlocks_per_identity = 1\n"
                                                 "clients_per_identity = 1\nkept_locks = 1\n")
        yield "limits as before", lambda: self.limit("")
        yield "renewed certificates", self.renew_certificates
        yield "kick", self.kick_all

    def test_locks_stay_held(self):
        self.configurations = {}
        for name in self.cluster.clients:
            with open(self.cluster.config(name), encoding="ascii") as file:
                self.configurations[name] = file.read()
        for what, act in self.commands():
            with self.subTest(what):
                act()
                self.check()
        self.stay(LONGER)
        for crew in self.crews:
            crew.release()


class AreTold(OperatorCase):
    """What ends locks: each holder knows it before anybody else has the key."""

    def test_broken_or_no_longer_allowed_or_revoked(self):
        broken, at_once, denied = (self.keys(number) for number in range(3))
        contender = Contender(self, "b", [*broken, *at_once, *denied])
        with self.cluster.native("c") as ops:
            for keys, now in ((broken, False), (at_once, True)):
                for key, token in keys.items():
                    ops.call("break", key=key, token=token, now=now)
        self.cluster.allow(pawltest.KEYS + "".join("deny = acquire on %s\n" % key
                                                   for key in denied))
        self.cluster.reload()
        # A lock that is broken at once is free at once: its holder hears of it when it extends it.
        self.told(contender, late=at_once)
        self.check()
        revoked = {key for number in range(3, LOCKS) for key in self.keys(number, kept=False)}
        contender = Contender(self, "a", revoked)
        self.cluster.write("revoked", "client:holder\n")
        self.cluster.reload()
        self.told(contender)
        with self.cluster.native("b") as ops:
            for key, token in self.keys(LOCKS - 1).items():  # Those without an end go on.
                self.assertEqual(ops.call("get", key=key, consistency="quorum")["token"], token)

    def test_leases_that_are_longer_than_the_cluster_allows_now(self):
        """The libraries renew their locks for less; a client of Redis or memcached asks for a time
        that nobody shortens for it."""
        asked = [key for crew in self.crews for key in crew.tokens
                 if isinstance(crew, dialectholders.Dialect) and not is_kept(crew)]
        self.does("cluster", "set-timing", "--max-lease", "%ds" % SHORTER)
        self.told(Contender(self, "b", asked))
        self.stay(SHORTER)

    def test_locks_without_an_end_whose_node_has_left_or_is_drained(self):
        kept = [key for crew in self.crews for key in crew.tokens if is_kept(crew)]
        self.does("cluster", "add-replica", "d", self.cluster.peers["d"])
        self.does("cluster", "replace", "a", "d", at="c")
        self.does("drain", "b", at="b")
        self.told(Contender(self, "c", kept))
        self.check()

    def test_a_minority_starts_over(self):
        for name in "bc":
            self.cluster.nodes[name].kill()
        lines = len(self.cluster.nodes["a"].lines)
        self.does("cluster", "force", "--yes")
        self.cluster.nodes["a"].wait_log(" voting ", start=lines)
        self.told(Contender(self, "a", [key for crew in self.crews for key in crew.tokens]))


if __name__ == "__main__":
    PAWL, HOLDER = (os.path.abspath(sys.argv.pop(2)) for _ in range(2))
    pawltest.main(globals())
