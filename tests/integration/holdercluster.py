"""Nodes with TLS that listen for clients of every kind, with certificates of `pawl cert`, and the
crews (holders.py, dialectholders.py) of all kinds of clients at them."""

import os
import shutil
import signal
import subprocess

import dialectholders
import holders
import pawltest
from pawltest import PATIENCE
from rediscluster import RedisCluster
from test_memcached import MemcachedCluster

TIMING = "max_lease = %s\nrequest_timeout = 1s\npromise_timeout = 2s\n"


class HolderCluster(RedisCluster, MemcachedCluster):
    """`pawl` is the command, which makes the certificates, and changes the cluster as ops."""

    def __init__(self, pawld, pawl, max_lease="10s"):
        dialect = "slack = %gs\nwithout_end = keep\n" % holders.SLACK
        super().__init__(pawld, dialect + "[memcached]\n" + dialect, tls=self.section,
                         cluster=TIMING % max_lease)
        self.pawl = pawl
        with open(self.file("revoked"), "w"):
            pass
        self.others = []  # the names of nodes that are no masters, or not yet

    def file(self, *names):
        return os.path.join(self.dir, *names)

    def section(self, _, name):
        return "ca = %s\ncert = %s\nkey = %s\nrevoked = %s\n" % tuple(
            self.file(each)
            for each in ("ca.crt", name + ".crt", name + ".key", "revoked")
        ) + self.allow(pawltest.KEYS)

    def allow(self, rules):
        """Writes what the holders may do; returns the section that names the file."""
        return pawltest.rights(self.dir, ("ops", pawltest.ALL), ("holder", rules))

    def authority(self, folder):
        """Makes an authority in a folder of its own."""
        self.certify(folder, "ca")
        return self.file(folder, "ca.crt")

    def certify(self, folder, *words):
        subprocess.run([self.pawl, "cert", *words, "--force", "--dir", self.file(folder)],
                       check=True, stdout=subprocess.DEVNULL)

    def start_with(self, newcomer):
        """Starts all nodes with certificates of a first authority, and a node that is not in the
        cluster yet."""
        self.others.append(newcomer)
        self.put("ca.crt", self.authority("first"))
        self.certificates("first")
        self.start_all()
        self.join(newcomer)

    def certificates(self, folder):
        """Makes certificates of the authority in that folder for all, and puts them in place."""
        for name in [*self.names, *self.others]:
            self.certify(folder, "node", name, "--host", "127.0.0.1")
        for name in ("ops", "holder"):
            self.certify(folder, "client", name)
        for name in [*self.names, *self.others, "ops", "holder"]:
            for end in (".key", ".crt"):
                self.put(name + end, self.file(folder, name + end))

    def put(self, name, *sources):
        """Puts a file in place in one step, made of all the sources."""
        new = self.file(name + ".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            for source in sources:
                with open(source) as part:
                    shutil.copyfileobj(part, file)
        os.rename(new, self.file(name))

    def write(self, name, text):
        with open(self.file(name), "w", encoding="ascii") as file:
            file.write(text)

    def reload(self):
        """Lets every node read its files again."""
        for node in self.nodes.values():
            lines = len(node.lines)
            node.signal(signal.SIGHUP)
            node.wait_log(" reloaded ", start=lines)

    def joining(self, name, text):
        """A node that joins has addresses of its own for clients of Redis and memcached, too."""
        first = self.names[0]
        for ports, path in ((self.redis_ports, self.redis_path),
                            (self.ports, self.path)):
            ports[name] = pawltest.free_port()
            text = text.replace(":%d" % ports[first], ":%d" % ports[name])
            text = text.replace(path(first), path(name))
        return text

    def known_to(self, name="holder"):
        """What a client needs to know, for holders.py."""
        nodes = list(self.clients)
        return holders.Tls(*(self.file(each) for each in ("ca.crt", name + ".crt", name + ".key")),
                           ["tls://" + self.clients[n] for n in nodes],
                           [(self.redis_ports[n], self.ports[n]) for n in nodes])

    def command(self, *words, at):
        """Runs pawl as ops at a node, and returns how it ended."""
        environment = dict(self.known_to("ops").environment(), PAWL_ENDPOINTS=",".join(
            "tls://" + self.clients[name] for name in at), PAWL_PREFER_FIRST="yes")
        return subprocess.run([self.pawl, *words], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def native(self, name, identity="ops"):
        """A client that shares no code with libpawl."""
        tls = self.known_to(identity)
        return self.client(name, tls=pawltest.tls_context(tls.ca, tls.cert, tls.key))


def crews(cluster, program):
    """A crew of each kind of client; `program` is that of holder.c. """
    tls = cluster.known_to()
    return [holders.Library("blocking", program, tls), holders.Library("evented", program, tls),
            holders.Command(["run"], cluster.pawl, tls),
            holders.Command(["lock"], cluster.pawl, tls),
            holders.Election(["elect", "--once"], cluster.pawl, tls),
            holders.Blocking(tls), holders.Asyncio(tls), dialectholders.Redis(tls, node=1),
            dialectholders.Memcache(tls, node=2)]


def kept(cluster):
    """The crews whose locks have no end, and are kept by the first and by the second node."""
    tls = cluster.known_to()
    return [dialectholders.RedisKept(tls), dialectholders.MemcacheKept(tls, node=1)]
