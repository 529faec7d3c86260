"""test_compare.py PAWLD: commands of two clients that compare and act on one key at the same time,
through two nodes. Every ordered pair is raced, and the outcome judged by what the two were told."""

import itertools
import re
import socket
import unittest

import pawltest
from pawltest import PATIENCE
from rediscluster import RedisCluster

LENGTH = 20_000
ROUNDS = 8
# The script of redis-py that releases, and the one that renews.
RELEASE = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
           "else return 0 end")
RENEW = ("if redis.call('get', KEYS[1]) == ARGV[1] then "
         "return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end")
# Not known; and "busy", which a client of Pawl may ask again.
UNKNOWN = re.compile(rb"-TRYAGAIN |SERVER_ERROR (unsure|lost|mismatch)|unsure|busy")


class Cluster(RedisCluster):
    """Nodes that listen for clients of Redis and of memcached, with the same settings for both."""

    def __init__(self, pawld, settings="", **options):
        super().__init__(pawld, settings + "\n[memcached]\n" + settings, **options)
        self.memcached_ports = {}

    def listens(self, name):
        self.memcached_ports[name] = pawltest.free_port()
        return super().listens(name) + ("listen_memcached = 127.0.0.1:%d\n"
                                        % self.memcached_ports[name])


class Text:
    """A client of Redis or memcached that sends before it reads."""

    def __init__(self, port, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        return self.file.readline().rstrip(b"\r\n")

    def close(self):
        self.file.close()
        self.socket.close()


class Native:
    """A client of Pawl that sends before it reads."""

    def __init__(self, client):
        self.client, self.sent = client, None

    def send(self, request):
        method, params = request
        self.sent = method, self.client.send(method, **params)

    def line(self):
        """Returns the code of an error, or the method with what it did."""
        method, number = self.sent
        try:
            answer = self.client.answer(number)
        except pawltest.Refused as e:
            return e.code.encode()
        return b"none" if answer.get("released") is False else method.encode()

    def close(self):
        self.client.close()


def resp(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


# Each command: what it does to a key with the value "old" ("sets" its own value, "ends" the lock,
# "keeps" it), whether it compares, which client sends it, and what it is told when it has acted.
# Its words follow from the key, its own value, and of the lock its unique, its name, and the
# value_seq.
COMMANDS = {
    "SET XX": ("sets", False, "redis", b"+OK",
               lambda k, v, u, l, s: resp("SET", k, v, "XX", "PX", LENGTH)),
    "SET IFEQ": ("sets", True, "redis", b"+OK",
                 lambda k, v, u, l, s: resp("SET", k, v, "IFEQ", "old", "PX", LENGTH)),
    "DELIFEQ": ("ends", True, "redis", b":1", lambda k, v, u, l, s: resp("DELIFEQ", k, "old")),
    "DELEX": ("ends", True, "redis", b":1", lambda k, v, u, l, s: resp("DELEX", k, "IFEQ", "old")),
    "release script": ("ends", True, "redis", b":1",
                       lambda k, v, u, l, s: resp("EVAL", RELEASE, 1, k, "old")),
    "renew script": ("keeps", True, "redis", b":1",
                     lambda k, v, u, l, s: resp("EVAL", RENEW, 1, k, "old", LENGTH)),
    "PEXPIRE": ("keeps", False, "redis", b":1", lambda k, v, u, l, s: resp("PEXPIRE", k, LENGTH)),
    "DEL": ("ends", False, "redis", b":1", lambda k, v, u, l, s: resp("DEL", k)),
    "md C": ("ends", True, "memcached", b"HD", lambda k, v, u, l, s: b"md %s C%d\r\n" % (k, u)),
    "cas": ("sets", True, "memcached", b"STORED",
            lambda k, v, u, l, s: b"cas %s 0 20 1 %d\r\n%s\r\n" % (k, u, v)),
    "ms C": ("sets", True, "memcached", b"HD",
             lambda k, v, u, l, s: b"ms %s 1 T20 C%d\r\n%s\r\n" % (k, u, v)),
    "replace": ("sets", False, "memcached", b"STORED",
                lambda k, v, u, l, s: b"replace %s 0 20 1\r\n%s\r\n" % (k, v)),
    "touch": ("keeps", False, "memcached", b"TOUCHED",
              lambda k, v, u, l, s: b"touch %s 20\r\n" % k),
    "delete": ("ends", False, "memcached", b"DELETED",
               lambda k, v, u, l, s: b"delete %s\r\n" % k),
    "update": ("sets", False, "native", b"update",
               lambda k, v, u, l, s: ("update", {**l, "value": v})),
    "update expect": ("sets", True, "native", b"update",
                      lambda k, v, u, l, s: ("update", {**l, "value": v, "expect": b"old"})),
    "update value_seq": ("sets", True, "native", b"update",
                         lambda k, v, u, l, s: ("update", {**l, "value": v, "value_seq": s})),
    "release": ("ends", False, "native", b"release", lambda k, v, u, l, s: ("release", l)),
    "release expect": ("ends", True, "native", b"release",
                       lambda k, v, u, l, s: ("release", {**l, "expect": b"old"})),
    "release value_seq": ("ends", True, "native", b"release",
                          lambda k, v, u, l, s: ("release", {**l, "value_seq": s})),
    "extend": ("keeps", False, "native", b"extend",
               lambda k, v, u, l, s: ("extend", {**l, "lease_ms": LENGTH})),
}


def orders(first, second, told):
    """The outcomes of doing the two one after the other: what the value is in the end. Only orders
    count in which each is told what it was told."""
    for order in ((0, 1), (1, 0)):
        value, fits = b"old", True
        for i in order:
            does, compares, *_ = (first, second)[i]
            acts = value is not None and (not compares or value == b"old")
            # Of several that end one lock without a comparison, each may be told that it did.
            ended = does == "ends" and not compares and value is None
            fits = fits and (ended or told[i] in (None, acts))
            if acts and does != "keeps":
                value = b"AB"[i:i + 1] if does == "sets" else None
        if fits:
            yield value


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(PAWLD, settings="overwrite = break\nslack = 5s\n")
        cls.cluster.start_all()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end_all()

    def clients(self, node):
        made = {"redis": Text(self.cluster.redis_ports[node]),
                "memcached": Text(self.cluster.memcached_ports[node]),
                "native": Native(self.cluster.client(node))}
        for c in made.values():
            self.addCleanup(c.close)
        return made

    def test_pairs_of_commands_act_one_after_the_other(self):
        c = self.cluster
        a, b, third = self.clients(c.names[0]), self.clients(c.names[1]), c.redis(c.names[2])
        both = 0
        for number, (one, other) in enumerate(itertools.product(COMMANDS, COMMANDS)):
            for i in range(ROUNDS):
                k = b"pair-%d-%d" % (number, i)
                a["memcached"].send(b"add %s 0 20 3\r\nold\r\n" % k)
                self.assertEqual(a["memcached"].line(), b"STORED")
                a["memcached"].send(b"gets %s\r\n" % k)
                unique = int(a["memcached"].line().split()[4])
                self.assertEqual([a["memcached"].line() for _ in range(2)], [b"old", b"END"])
                held = a["native"].client.call("get", key=k, consistency="quorum")
                lock = {"key": k, "lock_id": held["lock_id"]}
                sides = [(a, COMMANDS[one], b"A"), (b, COMMANDS[other], b"B")]
                for clients, command, value in sides:
                    clients[command[2]].send(command[4](k, value, unique, lock,
                                                        held["value_seq"]))
                said = [clients[command[2]].line() for clients, command, _ in sides]
                # A client that is told that the outcome is not known is told nothing.
                told = [None if UNKNOWN.match(s) else s == command[3]
                        for s, (_, command, _) in zip(said, sides)]
                value = third.get(k)
                self.assertIn(value, list(orders(COMMANDS[one], COMMANDS[other], told)),
                              (one, other, said))
                both += told == [True, True]
                third.delete(k)
        self.assertGreater(both, 0)

    def test_the_empty_value_of_a_native_lock_is_no_value(self):
        c = self.cluster
        r, m = self.clients(c.names[0])["redis"], self.clients(c.names[1])["memcached"]
        with c.client(c.names[2]) as native:
            native.call("acquire", key=b"native", lease_ms=LENGTH)
            for command in (resp("DELIFEQ", "native", ""),
                            resp("DELEX", "native", "IFEQ", ""),
                            resp("EVAL", RELEASE, 1, "native", ""),
                            resp("EVAL", RENEW, 1, "native", "", LENGTH)):
                r.send(command)
                self.assertEqual(r.line(), b":0", command)
            r.send(resp("SET", "native", "x", "IFEQ", "", "PX", LENGTH))
            self.assertIn(r.line(), (b"$-1", b"_"))
            m.send(b"add native 0 20 0\r\n\r\n")
            self.assertEqual(m.line(), b"NOT_STORED")
            self.assertTrue(native.call("get", key=b"native", consistency="quorum")["held"])


if __name__ == "__main__":
    pawltest.main(globals())
