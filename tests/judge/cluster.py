"""Real nodes, each a pawld in a network namespace of its own, and hosts for clients. Others decide
what happens to them, and this module does it."""

import os
import shutil
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import netnode  # noqa: E402
import netns  # noqa: E402
import rpc  # noqa: E402

PEER_PORT = 7118
MAX_LEASE_MS, REQUEST_TIMEOUT_MS, DRIFT_PPM = 5000, 800, 20000
TIMING = """max_lease = %dms
request_timeout = %dms
promise_timeout = %dms
clock_drift = %d %%
""" % (MAX_LEASE_MS, REQUEST_TIMEOUT_MS, 2 * REQUEST_TIMEOUT_MS, DRIFT_PPM // 10000)
CLIENT_HOSTS = ["k1", "k2", "k3"]
END_S = 20


class Broken(Exception):
    """A node did what no node may do, such as ending by itself."""


class Node(netnode.NetNode):
    def __init__(self, cluster, name):
        super().__init__(cluster.net, name, cluster.folder, cluster.pawld, cluster.rates)
        self.host = cluster.net.add(name)
        self.address = "%s:%d" % (self.host, PEER_PORT)
        self.redis = "listen_redis = %s:%d\n[redis]\nslack = %dms\n" % (
            self.host, *cluster.redis) if cluster.redis else ""

    def write_config(self, masters):
        with open(self.config, "w") as f:
            f.write("[node]\nname = %s\nstate_dir = %s\ninsecure = yes\nlisten_peer = %s\n"
                    "listen_client = %s:%d, unix:%s\n%s" % (
                self.name, self.state, self.address, self.host, rpc.PORT, self.unix, self.redis))
            f.write("[cluster]\nname = judged\n%s[cluster.masters]\n" % TIMING)
            f.write("".join("%s = %s\n" % (m.name, m.address) for m in masters))

    def look(self):
        """Raises Broken if the process has ended although nobody ended it."""
        if self.process and self.process.poll() is not None:
            raise Broken("%s ended by itself with status %d: see %s"
                         % (self.name, self.process.returncode, self.log))

    def kill(self):
        self.look()
        if self.process:
            self.process.kill()
            self.process.wait(END_S)
        self.process, self.stopped = None, False

    def end(self):
        """Makes a planned stop, as an operator would: the node writes what it knows."""
        self.go_on()
        self.look()
        self.process.terminate()
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired as e:
            raise Broken("%s does not stop when it is asked to" % self.name) from e
        self.process = None
        if status and not (status == -signal.SIGTERM and not self.has_begun()):
            raise Broken("%s ended with status %d when it was asked to stop: see %s"
                         % (self.name, status, self.log))

    def has_begun(self):
        """Returns whether the last start came so far that the node says so. Before that, a signal
        ends the process like any other program."""
        with open(self.log) as log:
            return " notice started " in log.read().rpartition("\n---- started ")[2]

    def start_in_vain(self):
        """Starts the node while somebody else listens on its port, so that the start fails. Returns
        the status."""
        with self.net.inside(self.name):
            rival = socket.socket()
        with rival:
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            rival.bind((self.host, rpc.PORT))
            rival.listen()
            self.start()
            status = self.process.wait(END_S)
            self.process = None
            return status


class Cluster:
    """The network, its nodes and hosts. Use it in a with statement, so that nothing is left
    behind."""

    def __init__(self, build, folder, masters, spares, pawld=None, redis=None):
        """`redis` is the port at which the nodes listen for clients of Redis, and the slack of
        their leases in ms, or None."""
        self.redis = redis
        self.pawld = pawld or os.path.join(build, "src", "node", "pawld")
        self.rates = os.path.join(build, "tests", "rates", "librate.so")
        self.folder, self.nodes, self.net = folder, {}, None
        names = [chr(ord("a") + i) for i in range(masters + spares)]
        self.masters, self.spares = names[:masters], names[masters:]

    def __enter__(self):
        self.net = netns.Net()
        try:
            for host in CLIENT_HOSTS:
                self.net.add(host)
            for name in self.masters + self.spares:
                self.nodes[name] = Node(self, name)
            for node in self.nodes.values():
                node.write_config([self.nodes[m] for m in self.masters])
        except BaseException:
            self.__exit__()
            raise
        return self

    def running(self):
        """Returns the nodes whose process runs and is not stopped."""
        return [n for n in self.nodes.values() if n.running() and not n.stopped]

    def keep_logs(self, where):
        for node in self.nodes.values():
            if os.path.exists(node.log):
                shutil.copy(node.log, where)

    def __exit__(self, *_):
        before = {number: signal.signal(number, signal.SIG_IGN)
                  for number in (signal.SIGINT, signal.SIGTERM)}
        for node in self.nodes.values():  # A second signal waits until nothing is left behind.
            if node.process and node.process.poll() is None:
                node.process.kill()
                node.process.wait(END_S)
        self.net.close()
        for number, handler in before.items():
            signal.signal(number, handler)
