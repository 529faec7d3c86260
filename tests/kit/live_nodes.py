"""Three nodes with TLS for the live steps: on loopback, or each in a network namespace, where they
can be cut off from each other and from the runner."""

import contextlib
import os
import shutil
import signal
import tempfile
import time

import netns
import pawltest
from driven import Runner, boot_us
from test_tls import Certificates

NAMES = "abc"
TIMING = "max_lease = 4s\nrequest_timeout = 500ms\npromise_timeout = 1s\n"
NODE = "deadlock = refuse\ndeadlock_after = 200ms"
SECRET = "secret/"
RUNNER_RULES = pawltest.KEYS + "deny = read, acquire, wait, watch on %s\n" % SECRET
CLIENT_PORT, PEER_PORT = 7117, 7118
# The host of the runner, in the network of namespaces, where its times are judged: it goes before
# other work on the machine.
HOST = "runner"
AT_ONCE = ["nice", "-n", "-15"]


class NetCluster(pawltest.Cluster):
    """Each node is a host of a network of its own. The hub reaches all of them at any time."""

    def __init__(self, net, *arguments, **options):
        super().__init__(*arguments, **options)
        self.net = net

    def write_configs(self):
        for name in self.names:
            self.net.add(name)
        self.peers = {n: "%s:%d" % (self.net.address(n), PEER_PORT) for n in self.names}
        self.clients = {n: "%s:%d" % (self.net.address(n), CLIENT_PORT) for n in self.names}
        self.write_files()

    def start(self, name, pawld=None):
        self.nodes[name] = pawltest.Node(self.net.command(
            name, [pawld or self.pawld, "--config", self.config(name)]), name)
        return self.nodes[name]


class Rival:
    """A client that shares no code with any runner, on a connection of its own."""

    def __init__(self, client):
        self.client = client

    def acquire(self, key, lease_ms=4000, **more):
        return self.client.call("acquire", key=key, lease_ms=lease_ms, **more)

    def begin(self, key, wait_ms, lease_ms=4000, **more):
        """Begins to wait for the key; `granted` waits for the end."""
        return self.client.send("acquire", key=key, lease_ms=lease_ms, wait_ms=wait_ms, **more)

    def granted(self, number):
        """Returns the grant, with the true time at which it came."""
        return {**self.client.answer(number), "at": boot_us()}

    def release(self, key, grant):
        return self.client.call("release", key=key, lock_id=grant["lock_id"])

    def free(self, key):
        return not self.client.call("get", key=key, consistency="quorum")["held"]

    def held_by_another(self, key):
        """Tries to take the key, which somebody must hold."""
        try:
            self.release(key, self.acquire(key))
            return False
        except pawltest.Refused as e:
            if e.code != "held":
                raise
            return True

    def waiters(self, key):
        return self.client.call("waiters", key=key)["waiters"]


class Nodes:
    """The cluster, and what its steps do with it. Use it in a with statement."""

    def __init__(self, pawld, command, trace, net=None):
        self.command, self.trace, self.net = command, trace, net
        self.folder = tempfile.mkdtemp(prefix="pawl-live-")
        self.hosts = [net.add(name) for name in NAMES] if net else []
        if net:
            net.add(HOST)
        os.mkdir(os.path.join(self.folder, "other"))
        self.certificates = Certificates(self.folder, nodes=NAMES, clients=("runner", "rival"),
                                         hosts=["127.0.0.1", *self.hosts])
        self.others = Certificates(os.path.join(self.folder, "other"), clients=("runner",))
        rules = pawltest.rights(self.folder, ("runner", RUNNER_RULES), ("rival", pawltest.ALL))
        path = self.certificates.path
        options = {"cluster": TIMING, "node": NODE, "tls": lambda _, name: (
            "ca = %s\ncert = %s\nkey = %s\nclient_auth = required\n%s" % (
                path("ca.crt"), path(name + ".crt"), path(name + ".key"), rules))}
        self.cluster = (NetCluster(net, pawld, **options) if net
                        else pawltest.Cluster(pawld, **options))
        self.runners, self.rivals = [], []

    def __enter__(self):
        try:
            self.cluster.__enter__()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, kind, *rest):
        try:
            self.end_clients()
            self.cluster.__exit__(kind, *rest)
        finally:
            shutil.rmtree(self.folder)

    # ---- clients ----

    def environment(self, authority=None, name="runner"):
        own = self.certificates
        return {"PAWL_ENDPOINTS": ",".join(self.endpoints(NAMES)),
                "PAWL_CACERT": (authority or own).path("ca.crt"),
                "PAWL_CERT": own.path(name + ".crt"), "PAWL_CERT_KEY": own.path(name + ".key")}

    def runner(self, **environment):
        """Starts a runner, which ends at the latest with the step."""
        prefix = self.net.command(HOST, AT_ONCE) if self.net else []
        one = Runner(self.command, {**self.environment(), **environment}, prefix, self.trace)
        self.runners.append(one)
        return one

    def rival(self, name="c"):
        """Connects a client of another kind to that node."""
        context = self.certificates.context("rival")
        with self.net.inside(netns.HUB) if self.net else contextlib.nullcontext():
            one = Rival(pawltest.Client(self.cluster.clients[name], tls=context))
        self.rivals.append(one)
        return one

    def endpoints(self, names):
        return ["tls://" + self.cluster.clients[name] for name in names]

    def end_clients(self):
        for runner in self.runners:
            runner.kill()
        for rival in self.rivals:
            rival.client.close()
        self.runners, self.rivals = [], []

    # ---- nodes ----

    def ask(self, name, method, **parameters):
        with pawltest.Client(self.cluster.unix(name)) as client:
            return client.call(method, **parameters)

    def kill(self, name):
        self.cluster.nodes[name].kill()

    def hang(self, name):
        self.cluster.nodes[name].signal(signal.SIGSTOP)

    def drain(self, name):
        """Stops the node as an operator does."""
        self.ask(name, "drain")
        self.cluster.nodes[name].terminate()

    def well(self):
        """Waits until each node votes and is linked with the others. Nodes that are dead are
        started, those that hang go on, and cuts heal."""
        if self.net:
            self.net.heal()
        for name, node in self.cluster.nodes.items():
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
            else:
                self.cluster.start(name)
        await_true(lambda: all(self.votes(name) for name in NAMES), "that all nodes vote")

    def votes(self, name):
        try:
            status = self.ask(name, "status")
        except (OSError, pawltest.Closed):
            return False
        return status["state"] == "voting" and status["voting"] == len(NAMES)


def await_true(condition, what, patience=pawltest.PATIENCE):
    """Waits until the condition holds, by asking it again and again."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("%s: not within %g s" % (what, patience))
        time.sleep(0.01)
