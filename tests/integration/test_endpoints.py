"""Tests, through the command and the Python package, that a name stands for all of its
addresses: clients find a node that serves them behind one name, SRV records or a file, whichever
node is dead, hung or drained."""

import concurrent.futures
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from unittest import mock

import nameserver
import pawltest
from test_tls import Certificates

PAWLD = PAWL = None
WHY_NOT = nameserver.why_not()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = """import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import pawl
options = dict(pawl.options_from_env(), endpoints=sys.argv[2], prefer_first=True)
with pawl.connect(**options) as client:
    with client.lock("p"):
        print(client.endpoint)
"""
# What a client may take when the first node is of no use, on a busy machine.
BOUND = 4


class SamePort(pawltest.Cluster):
    """The nodes have addresses of their own and the same port, as behind one name."""

    def write_configs(self):
        super().write_configs()
        self.port = pawltest.free_port()
        self.addresses = {n: "127.0.0.%d" % (i + 1) for i, n in enumerate(self.names)}
        for n in self.names:
            with open(self.config(n), encoding="ascii") as f:
                text = f.read()
            client = "%s:%d" % (self.addresses[n], self.port)
            with open(self.config(n), "w", encoding="ascii") as f:
                f.write(text.replace(self.clients[n], client))
            self.clients[n] = client


class Case(unittest.TestCase):
    tls = None

    def setUp(self):
        self.cluster = SamePort(PAWLD, tls=self.tls)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.folder = tempfile.mkdtemp(prefix="pawl-endpoints-")
        self.addCleanup(shutil.rmtree, self.folder)

    def pawl(self, endpoints, *words):
        return subprocess.run(self.command(PAWL, "--endpoints", endpoints, *words),
                              capture_output=True, text=True, timeout=60)

    def run_soon(self, *words):
        """Runs the program, which must succeed soon, and returns what it prints."""
        start = time.monotonic()
        result = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60)
        took = time.monotonic() - start
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(took, BOUND)
        return result.stdout

    def done(self, endpoints, *words):
        return self.run_soon(PAWL, "--endpoints", endpoints, *words)

    def python(self, endpoints):
        """Takes and releases a key by the Python package. Returns the endpoint that was used."""
        return self.run_soon(sys.executable, "-c", PYTHON,
                             os.path.join(ROOT, "bindings", "python"), endpoints).strip()

    def takes(self, endpoints):
        """Takes and releases a key, beginning with the first node."""
        if importlib.util.find_spec("dns") or "srv:" not in endpoints:
            self.python(endpoints)
        self.done(endpoints, "--prefer-first", "run", "k", "--", "true")
        self.done(endpoints, "--prefer-first", "elect", "e", "--", "true")

    def command(self, *words):
        return words

    def hold(self, endpoints):
        """Returns a process that holds a key."""
        words = self.command(PAWL, "--endpoints", endpoints, "run", "k", "--lease", "3s", "--",
                             "sleep", "1000")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        pawltest.wait_until(self, self.held)
        return process

    def goes_on(self, process):
        """Checks that the process holds the key for longer than its lease."""
        end = time.monotonic() + 4
        while time.monotonic() < end:
            self.assertIsNone(process.poll())
            time.sleep(0.1)
        self.assertTrue(self.held())

    def end(self, process):
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=30)

    def held(self):
        return self.pawl(self.cluster.clients["c"], "get", "k", "--quorum").returncode == 0


class Named(Case):
    def setUp(self):
        super().setUp()
        self.names = nameserver.NameServer()
        self.addCleanup(self.names.close)

    def command(self, *words):
        return self.names.command(*words)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class TestNames(Named):
    def setUp(self):
        super().setUp()
        self.names.hosts["pawl.test"] = list(self.cluster.addresses.values())
        self.name = "pawl.test:%d" % self.cluster.port

    def test_whichever_node_is_first_behind_a_name_the_others_are_found(self):
        a = self.cluster.nodes["a"]
        self.takes(self.name)
        self.done(self.cluster.clients["b"], "drain", "a",
                  "--endpoints", ",".join(self.cluster.clients.values()))
        self.takes(self.name)
        a.signal(signal.SIGSTOP)
        self.takes(self.name)
        a.kill()
        self.takes(self.name)

    def test_every_node_behind_a_name_is_shown(self):
        shown = self.done(self.name, "status", "--all", "--json")
        self.assertEqual({n["endpoint"]: n["node"] for n in json.loads(shown)["nodes"]},
                         {"%s@%s" % (self.name, address): node
                          for node, address in self.cluster.addresses.items()})

    def test_a_node_is_found_behind_a_name(self):
        self.assertIn("drained", self.done(self.name, "drain", "b"))
        shown = json.loads(self.done(self.name + "@127.0.0.2", "status", "--json"))
        self.assertEqual(shown["node"], "b")

    def test_a_holder_goes_on_when_all_addresses_of_its_name_are_others(self):
        self.names.hosts["pawl.test"] = [self.cluster.addresses["a"]]
        holder = self.hold(self.name)
        self.names.hosts["pawl.test"] = [self.cluster.addresses["b"]]
        self.cluster.nodes["a"].kill()
        self.goes_on(holder)

    def test_the_trouble_with_a_name_is_told(self):
        self.names.hosts["empty.test"] = []
        self.names.silent.update(("silent.test", "_silent._tcp.test"))
        self.names.services["_empty._tcp.test"] = []
        self.names.services["_none._tcp.test"] = [(0, 0, 1, ".")]
        self.names.services["_gone._tcp.test"] = [(0, 0, 1, "gone.test")]
        self.names.services["_odd._tcp.test"] = [(0, 0, 1, "a,b.test")]
        rows = (("gone.test:1", "the host name cannot be resolved (Name or service not known)"),
                ("empty.test:1", "the host name cannot be resolved (No address"),
                ("silent.test:1", "looking up the name took too long"),
                ("srv:_silent._tcp.test", "looking up the name took too long"),
                ("srv:_unknown._tcp.test", "the name has no SRV records (it does not exist)"),
                ("srv:_empty._tcp.test", "the name has no SRV records"),
                ("srv:_none._tcp.test", "the SRV records of the name offer no host"),
                ("srv:_odd._tcp.test", "the SRV records of the name offer no host"),
                ("srv:_gone._tcp.test", "gone.test: the host name cannot be resolved"))
        with concurrent.futures.ThreadPoolExecutor(len(rows)) as threads:
            results = list(threads.map(
                lambda row: self.pawl(row[0], "get", "k", "--timeout", "1500ms"), rows))
        for (endpoint, says), result in zip(rows, results):
            self.assertEqual(result.returncode, 3, endpoint)
            self.assertIn("%s: %s" % (endpoint, says), result.stderr)

    def test_a_name_server_that_does_not_answer_stops_no_other_endpoint(self):
        self.names.silent.add("silent.test")
        endpoints = "silent.test:1," + self.name
        self.done(endpoints, "--prefer-first", "run", "k", "--", "true")
        shown = json.loads(self.pawl(endpoints, "status", "--all", "--json").stdout)["nodes"]
        self.assertEqual([n["endpoint"] for n in shown if not n.get("node")], ["silent.test:1"])
        self.assertEqual(sorted(n["node"] for n in shown if n.get("node")), ["a", "b", "c"])


@unittest.skipIf(WHY_NOT, WHY_NOT)
class TestServices(Named):
    def setUp(self):
        super().setUp()
        for node, address in self.cluster.addresses.items():
            self.names.hosts["%s.test" % node] = [address]

    def offer(self, *nodes):
        self.names.services["_pawl._tcp.test"] = [
            (i, 1, self.cluster.port, "%s.test" % node) for i, node in enumerate(nodes)]

    def test_records_are_taken_by_priority_and_each_node_is_found(self):
        service = "srv:_pawl._tcp.test"
        for nodes in (("b", "a", "c"), ("c", "a", "b")):
            self.offer(*nodes)
            shown = json.loads(self.done(service, "--prefer-first", "status", "--json"))
            self.assertEqual(shown["node"], nodes[0])
            shown = json.loads(self.done(service, "status", "--all", "--json"))
            self.assertEqual(sorted((n["endpoint"], n["node"]) for n in shown["nodes"]),
                             [("%s.test:%d" % (n, self.cluster.port), n) for n in "abc"])
            if importlib.util.find_spec("dns"):  # dnspython
                self.assertEqual(self.python(service),
                                 "%s.test:%d" % (nodes[0], self.cluster.port))
        self.cluster.nodes["c"].signal(signal.SIGSTOP)
        self.takes(service)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class TestTls(Named):
    def tls(self, _, node):
        path = self.certificates.path
        return "ca = %s\ncert = %s\nkey = %s\nclient_auth = optional\n" % (
            path("ca.crt"), path(node + ".crt"), path(node + ".key"))

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="pawl-endpoints-tls-")
        self.addCleanup(shutil.rmtree, folder)
        self.certificates = Certificates(folder)
        for node in "abc":
            self.certificates.make(node, "pawl:node:%s, DNS:pawl.test" % node)
        super().setUp()
        patched = mock.patch.dict(os.environ, PAWL_CACERT=self.certificates.path("ca.crt"))
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_certificate_carries_the_name_whatever_the_address(self):
        name, port = "tls://pawl.test:%d" % self.cluster.port, self.cluster.port
        self.names.hosts["pawl.test"] = list(self.cluster.addresses.values())
        self.names.services["_pawl._tcp.test"] = [(0, 0, port, "pawl.test")]
        self.names.hosts["other.test"] = ["127.0.0.2"]
        for endpoint in (name + "@127.0.0.2", name + "@127.0.0.3"):
            self.takes(endpoint)
            self.assertEqual(self.python(endpoint), endpoint)
        self.takes("tls://srv:_pawl._tcp.test")
        self.cluster.nodes["a"].kill()
        self.takes(name)
        for endpoint in ("tls://127.0.0.2:%d" % port, "tls://other.test:%d" % port):
            result = self.pawl(endpoint, "get", "k")
            self.assertEqual(result.returncode, 3)
            self.assertIn("the certificate there is that of", result.stderr)


class TestFiles(Case):
    """These need no name server."""

    def write(self, text):
        """Puts a new file in the place of the old one. Returns the endpoint for it."""
        path = os.path.join(self.folder, "endpoints")
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return "file:" + path

    def test_whichever_node_is_first_in_a_file_the_others_are_found(self):
        file = self.write("# Our nodes\n%(a)s, %(b)s\n%(c)s\n" % self.cluster.clients)
        self.cluster.nodes["a"].signal(signal.SIGSTOP)
        self.takes(file)

    def test_a_holder_goes_on_when_all_endpoints_of_its_file_are_others(self):
        holder = self.hold(self.write(self.cluster.clients["a"]))
        self.write(self.cluster.clients["b"])
        self.cluster.nodes["a"].kill()
        self.goes_on(holder)

    def test_the_trouble_with_a_file_is_told(self):
        for text, says in ((None, "No such file or directory"), ("# none\n", "it has no endpoint"),
                           ("a:1\nb\n", "line 2: an endpoint lacks a port: write host:port")):
            file = self.write(text or "")
            if text is None:
                os.unlink(file[5:])
            result = self.pawl(file, "get", "k")
            self.assertEqual(result.returncode, 2)
            self.assertIn(file[5:], result.stderr)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
