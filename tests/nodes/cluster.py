"""Real nodes, each a pawld in a network namespace of its own, with clocks at a rate of its own, and
hosts for clients. Others decide what happens to them, and this module does it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import history  # noqa: E402
import netns  # noqa: E402
import pawltest  # noqa: E402

CLIENT_PORT, PEER_PORT, REAL_PEER_PORT = 7117, 7118, 7119
DISK_BYTES = 256 * 1024
DRIFT_PPM = 20000
# How old the view of a replica may be while all is well.
AGE_MAX_MS = 1000
END_S = 20


class Failed(Exception):
    """Something happened that must not, besides what the checker finds."""


def timing(max_lease_ms, request_timeout_ms):
    return ("max_lease = %dms\nrequest_timeout = %dms\npromise_timeout = %dms\n"
            "clock_drift = %d %%\n" % (max_lease_ms, request_timeout_ms, 2 * request_timeout_ms,
                                       DRIFT_PPM // 10000))


def wait_until(condition, what, limit):
    """Waits until the condition returns True. Any other value is the reason why not."""
    end = time.monotonic() + limit
    while True:
        state = condition()
        if state is True:
            return
        if time.monotonic() > end:
            raise Failed("%s: not within %.0f s (%s)" % (what, limit, state))
        time.sleep(0.1)


def mounted(path):
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == path for line in mounts)


class Node:
    """A node whose process may run or not, and may be stopped. Its process ends at the latest with
    the thread that started it."""

    def __init__(self, cluster, name):
        self.cluster, self.net, self.name = cluster, cluster.net, name
        self.process, self.stopped, self.rate = None, False, 1.0
        self.state = os.path.join(cluster.folder, "state-" + name)
        self.config, self.log, self.unix = (
            os.path.join(cluster.folder, name + end) for end in (".conf", ".log", ".sock"))
        self.host = self.net.add(name)
        self.address, self.endpoint = ("%s:%d" % (self.host, PEER_PORT),
                                       "%s:%d" % (self.host, CLIENT_PORT))
        self.full_at, self.proxy = -1e9, None
        if cluster.rough:
            self.be_rough()

    def be_rough(self):
        """Gives the node a small disk, and a proxy at its peer port."""
        os.mkdir(self.state, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700,size=%d" % DISK_BYTES, "pawl-soak",
                        self.state], check=True)
        self.proxy = self.cluster.spawn(
            self.name, [sys.executable, os.path.join(HERE, "proxy.py"), str(PEER_PORT),
                        str(REAL_PEER_PORT), str(self.cluster.seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.proxy.stdout.readline() == b"ready\n"

    def write_config(self, masters):
        peer = ("listen_peer = 127.0.0.1:%d\nadvertise = %s\n" % (REAL_PEER_PORT, self.address)
                if self.proxy else "listen_peer = %s\n" % self.address)
        with open(self.config, "w") as f:
            f.write("[node]\nname = %s\nstate_dir = %s\ninsecure = yes\n%s"
                    "listen_client = %s, unix:%s\n%s" % (
                        self.name, self.state, peer, self.endpoint, self.unix,
                        self.cluster.more.format(host=self.host)))
            f.write("[cluster]\nname = attacked\n%s[cluster.masters]\n" % self.cluster.settings)
            f.write("".join("%s = %s\n" % (m.name, m.address) for m in masters))

    # ---- the process ----

    def start(self, rate=1.0):
        """Starts the process. `rate` is the rate of its clocks compared with true time."""
        self.rate, self.stopped = rate, False
        clocks = ["env", "LD_PRELOAD=" + self.cluster.rates,
                  "PAWL_TEST_RATE=%.4f" % rate] if rate != 1.0 else []
        with open(self.log, "a") as log:
            log.write("---- started %.3f, clocks x%.4f\n" % (history.now() / 1e9, rate))
            log.flush()
            self.process = self.cluster.spawn(
                self.name, [*clocks, self.cluster.pawld, "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start_in_vain(self):
        """Starts the node while somebody else listens on its port, so that the start fails. Returns
        the status."""
        with self.net.inside(self.name):
            rival = socket.socket()
        with rival:
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            rival.bind((self.host, CLIENT_PORT))
            rival.listen()
            self.start()
            return self.ended()

    def running(self):
        return self.process is not None

    def look(self):
        """Checks that the process has not ended by itself. Returns False if it has, as it may while
        its disk is full."""
        status = self.process.poll() if self.process else None
        if status is None:
            return True
        if status < 0 or not self.disk_was_full():
            raise Failed("%s ended by itself with status %d: see %s"
                         % (self.name, status, self.log))
        self.ended()
        return False

    def ended(self):
        """Returns the exit status, once there is one."""
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired as e:
            raise Failed("%s does not end when it is asked to" % self.name) from e
        self.process, self.stopped = None, False
        return status

    def kill(self):
        if self.look() and self.process:
            self.process.kill()
            self.ended()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def go_on(self):
        if self.process and self.stopped:
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def end(self):
        """Makes a planned stop, as an operator would: the node writes what it knows."""
        self.go_on()
        if not self.look():
            return
        self.process.terminate()
        status = self.ended()
        if (status and not (status == -signal.SIGTERM and not self.has_begun())
            and (status < 0 or not self.disk_was_full())):
            raise Failed("%s ended with status %d when it was asked to stop: see %s"
                         % (self.name, status, self.log))

    def has_begun(self):
        """Returns whether the last start came so far that the node says so. Before that, a signal
        ends the process like any other program."""
        with open(self.log) as log:
            return " notice started " in log.read().rpartition("\n---- started ")[2]

    def ask(self, method, timeout=2.0, **params):
        """Asks on the node's own machine, where an operator has all rights. Returns the result, or
        None when nobody answered. A refusal is raised."""
        try:
            with pawltest.Client("unix:" + self.unix, timeout=timeout) as client:
                return client.call(method, **params)
        except (OSError, pawltest.Closed):
            return None

    # ---- its connections and its disk ----

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
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(END_S)
        if self.proxy:
            self.proxy.stdin.close()
            self.proxy.kill()
            self.proxy.wait()
            self.proxy.stdout.close()
        if mounted(self.state):
            subprocess.run(["umount", self.state], check=True)


class Cluster:
    """The network, its nodes, and hosts for clients. Use it in a with statement, so that nothing is
    left behind."""

    def __init__(self, options, folder, masters, spares=0, rough=False, hosts=("clients",),
                 settings=timing(3000, 500), more=""):
        """`masters` and `spares` say how many. Rough nodes have small disks, and connections that
        may be bad. `settings` stands in [cluster]; `more` comes after [node], with {host}."""
        self.pawld = getattr(options, "pawld", None) or os.path.join(options.build, "src", "node",
                                                                     "pawld")
        self.rates = os.path.join(options.build, "tests", "rates", "librate.so")
        self.seed, self.folder, self.rough, self.hosts = options.seed, folder, rough, hosts
        self.settings, self.more, self.nodes, self.net = settings, more, {}, None
        names = [chr(ord("a") + i) for i in range(masters + spares)]
        self.masters, self.spares = names[:masters], names[masters:]

    def __enter__(self):
        self.net = netns.Net()
        try:
            for host in self.hosts:
                self.net.add(host)
            for name in self.masters + self.spares:
                self.nodes[name] = Node(self, name)
            for node in self.nodes.values():
                node.write_config([self.nodes[m] for m in self.masters])
        except BaseException:
            self.__exit__()
            raise
        return self

    def spawn(self, host, arguments, **options):
        """Starts a process on this host; it is gone at the latest when the thread is that started
        it."""
        return self.net.popen(host, ["setpriv", "--pdeathsig", "KILL", "--", *arguments], **options)

    def running(self):
        """Returns the nodes whose process runs and is not stopped."""
        return [n for n in self.nodes.values() if n.running() and not n.stopped]

    def named(self, names):
        return ["%s=%s" % (name, self.nodes[name].address) for name in names]

    def well(self):
        """Returns True if all nodes vote or follow in one epoch, each linked with all masters: an
        extension reaches those that its coordinator is linked with. Otherwise the reason why not.
        Nodes that are in no cluster do not count."""
        epochs = {}
        for node in self.nodes.values():
            status = node.ask("status")
            if status is None:
                return "%s does not answer" % node.name
            if status["role"] == "outside":
                continue
            if status["state"] not in ("voting", "following"):
                return "%s is %s" % (node.name, status["state"])
            if not status["complete"]:
                return "%s misses %s" % (node.name, status["missing"])
            if status["voting"] < len(status["masters"]):
                return "%s is linked with %d masters that vote, of %d" % (
                    node.name, status["voting"], len(status["masters"]))
            age = status["following"]["age_ms"] if status["state"] == "following" else 0
            if age is None or age > AGE_MAX_MS:
                return "the view of %s is %s ms old" % (node.name, age)
            epochs[node.name] = status["epoch"]
        born = set(self.masters) <= set(epochs) or len(epochs) == len(self.nodes)
        return born and len(set(epochs.values())) == 1 or "epochs %s" % epochs

    def heal(self):
        self.net.heal()
        for node in self.nodes.values():
            if node.proxy:
                node.trouble()
                node.empty_disk()
            node.go_on()

    def __exit__(self, *_):
        before = {number: signal.signal(number, signal.SIG_IGN)
                  for number in (signal.SIGINT, signal.SIGTERM)}
        problems = []
        for node in self.nodes.values():  # A second signal waits until nothing is left behind.
            try:
                node.close()
            except Exception as e:  # The others must be closed nevertheless.
                problems.append("%s: %s" % (node.name, e))
        self.net.close()
        for number, handler in before.items():
            signal.signal(number, handler)
        assert not problems, problems
