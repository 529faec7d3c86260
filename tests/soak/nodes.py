"""Nodes of one cluster, each in a network namespace, with a clock, a small disk and a bad
network of its own."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import netnode  # noqa: E402
import netns  # noqa: E402
import pawltest  # noqa: E402

CLIENT_PORT, PEER_PORT, REAL_PEER_PORT = 7117, 7118, 7119
DISK_BYTES = 256 * 1024
DRIFT_PPM = 20000
PR_SET_PDEATHSIG = 1

TIMING = """max_lease = 3s
request_timeout = 500ms
promise_timeout = 1s
clock_drift = 2 %
"""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(net, host, arguments, **options):
    """Starts a process in the host's namespace; it is gone at the latest when this process is."""
    return net.popen(host, arguments, preexec_fn=die_with_parent, **options)


def mounted(path):
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == path for line in mounts)


class Node(netnode.NetNode):
    """One pawld, its proxy and its disk."""

    CLOCK = time.CLOCK_BOOTTIME

    def __init__(self, cluster, name):
        super().__init__(cluster.net, name, cluster.dir, cluster.pawld, cluster.rates)
        self.cluster, self.full_at = cluster, -1e9
        self.address = "%s:%d" % (cluster.net.add(name), PEER_PORT)
        self.endpoint = "%s:%d" % (cluster.net.address(name), CLIENT_PORT)
        os.mkdir(self.state, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700,size=%d" % DISK_BYTES, "pawl-soak",
                        self.state], check=True)
        self.proxy = spawn(cluster.net, name, [sys.executable, os.path.join(HERE, "proxy.py"),
            str(PEER_PORT), str(REAL_PEER_PORT), str(cluster.seed)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        assert self.proxy.stdout.readline() == b"ready\n"

    def write_config(self, masters):
        with open(self.config, "w") as f:
            f.write("[node]\nname = %s\nstate_dir = %s\ninsecure = yes\n" % (self.name, self.state))
            f.write("listen_peer = 127.0.0.1:%d\nadvertise = %s\n" % (REAL_PEER_PORT, self.address))
            f.write("listen_client = %s, unix:%s\n" % (self.endpoint, self.unix))
            f.write("[cluster]\nname = soak\n%sauto_replace = %s\n[cluster.masters]\n" % (
                TIMING, "yes" if self.cluster.seed % 2 else "no"))
            f.write("".join("%s = %s\n" % (m.name, m.address) for m in masters))

    def start(self, rate=1.0):
        super().start(rate)
        self.told_to_end = False

    def ended(self):
        """Returns the exit status, once there is one."""
        status = self.process.wait(pawltest.PATIENCE)
        self.process, self.stopped = None, False
        return status

    def kill(self):
        if self.process:
            # The process was told to end before it had installed its handler.
            early = self.told_to_end and self.process.poll() == -signal.SIGTERM
            if (self.process.poll() or 0) < 0 and not early:
                self.cluster.crashes.append("%s ended by itself with status %d"
                                            % (self.name, self.process.poll()))
            self.process.kill()
            self.ended()

    def crashed(self):
        """Returns the status of a process that has ended by itself; None if it runs."""
        return self.process.poll() if self.process else None

    def terminate(self):
        self.told_to_end = True
        self.process.terminate()

    def end(self):
        """Stops the node as its operator would. Returns its status."""
        self.go_on()
        self.terminate()
        return self.ended()

    def client(self, timeout=2.0):
        return pawltest.Client("unix:" + self.unix, timeout=timeout)

    def ask(self, method, timeout=2.0, **params):
        """Returns the result, or None when nobody answered. A refusal is raised."""
        try:
            with self.client(timeout) as client:
                return client.call(method, **params)
        except (OSError, pawltest.Closed):
            return None

    def trouble(self, **asked):
        self.proxy.stdin.write(json.dumps(asked).encode() + b"\n")
        self.proxy.stdin.flush()

    def fill_disk(self):
        try:
            with open(os.path.join(self.state, "filling"), "wb", buffering=0) as f:
                while f.write(b"x" * 4096):
                    pass
        except OSError:
            pass

    def disk_was_full(self):
        """Returns whether the disk is full now, or was when this process was started."""
        return time.monotonic() - self.full_at < 10 or os.path.exists(
            os.path.join(self.state, "filling"))

    def empty_disk(self):
        self.full_at = time.monotonic()
        if os.path.exists(os.path.join(self.state, "filling")):
            os.unlink(os.path.join(self.state, "filling"))

    def lose_disk(self):
        for name in os.listdir(self.state):
            path = os.path.join(self.state, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def close(self):
        self.kill()
        self.proxy.stdin.close()
        self.proxy.kill()
        self.proxy.wait()
        self.proxy.stdout.close()
        if mounted(self.state):
            subprocess.run(["umount", self.state], check=True)


class Cluster:
    """The network, the nodes, and a host for the clients. Use it in a with statement: nothing is
    left behind."""

    def __init__(self, build, folder, seed):
        self.pawld, self.rates = os.path.join(build, "src", "node", "pawld"), os.path.join(build,
            "tests", "rates", "librate.so")
        self.dir, self.seed, self.nodes = folder, seed, {}
        # Why nodes have died that nobody killed.
        self.crashes = []
        self.net = None

    def __enter__(self):
        self.net = netns.Net()
        try:
            self.net.add("clients")
        except BaseException:
            self.__exit__()
            raise
        return self

    def add(self, *names):
        for name in names:
            self.nodes[name] = Node(self, name)

    def write_configs(self, masters):
        for node in self.nodes.values():
            node.write_config([self.nodes[m] for m in masters])

    def heal(self):
        self.net.heal()
        for node in self.nodes.values():
            node.trouble()
            node.empty_disk()
            node.go_on()

    def __exit__(self, *_):
        for number in (signal.SIGINT, signal.SIGTERM):
            # A second signal has to wait until nothing is left behind.
            signal.signal(number, signal.SIG_IGN)
        problems = []
        for node in self.nodes.values():
            try:
                node.close()
            # The others must be closed all the same.
            except Exception as e:
                problems.append("%s: %s" % (node.name, e))
        self.net.close()
        assert not problems, problems
