"""Nodes with an audit file, and what stands in it."""

import hashlib
import json
import os
import time

import cli_fixture
from cli_fixture import Case
from pawltest import PATIENCE, Client, Cluster, Refused

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def digest(lock_id):
    return hashlib.sha256(bytes.fromhex(lock_id)).hexdigest()[:32]


def text(lock_id):
    return lock_id if isinstance(lock_id, str) else lock_id.decode()


class Audit:
    """The audit file of a node, which a thread writes."""

    def __init__(self, path):
        self.path = path

    def lines(self, path=None):
        try:
            with open(path or self.path) as f:
                return [json.loads(line) for line in f.read().split("\n") if line]
        except FileNotFoundError:
            return []  # It was moved away, and the node has not opened a new one yet.

    def find(self, **wanted):
        return [line for line in self.lines()
                if all(line.get(name) == value for name, value in wanted.items())]

    def wait(self, count=1, **wanted):
        """Waits until as many lines have these fields, and returns them."""
        end = time.monotonic() + PATIENCE
        while len(self.find(**wanted)) < count:
            assert time.monotonic() < end, (wanted, self.lines())
            time.sleep(0.02)
        return self.find(**wanted)


class AuditCase(Case):
    what = "all"
    more = ""
    masters = 1

    def setUp(self):
        super().setUp()
        self.cluster = self.make()
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.audit = Audit(self.path("a"))
        self.client = self.connect()

    def path(self, name):
        return os.path.join(self.folder, "audit-%s.log" % name)

    def make(self):
        case = self

        class Audited(Cluster):
            def write_configs(self):
                super().write_configs()
                for name in self.names:
                    with open(self.config(name), "a") as f:
                        f.write("[audit]\nfile = %s\nwhat = %s\n%s\n"
                                % (case.path(name), case.what, case.more))

        return Audited(cli_fixture.PAWLD, masters=self.masters, node=self.node(),
                       cluster=self.timing())

    def node(self):
        return ""

    def timing(self):
        return ""

    def connect(self, name="a"):
        client = Client(self.cluster.unix(name))
        self.addCleanup(client.close)
        return client

    def acquire(self, key, client=None, **more):
        got = (client or self.client).call("acquire", key=key, **{"lease_ms": 60000, **more})
        got["lock_id"] = text(got["lock_id"])
        return got

    def refused(self, code, method, **params):
        with self.assertRaises(Refused) as refused:
            self.client.call(method, **params)
        self.assertEqual(refused.exception.code, code)
        return refused.exception
