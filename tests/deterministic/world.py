"""One run: three nodes, their clients, and the faults of a plan; and what was wrong with it."""

import collections
import os
import random
import shutil
import tempfile

import callers
import checker
import history
from conductor import HERE, Conductor
from network import MS

NAMES = "abc"
PEER_PORT, CLIENT_PORT = 7001, 7101
MAX_LEASE_MS = 1000
CLIENTS = 4
RESTART_MS = 500
# After the last fault a key is free to acquire within this time: a node starts again, waits for
# max_lease, and a lease ends; clients try other nodes meanwhile.
PROGRESS_MS = 6000
# The bound of the drift is 1 %.
PPM_MAX = 9500
SECOND = 10**9

# A crash at a point of a node: of its process, of its machine, or of all machines.
PROCESS, MACHINE, ALL = "process", "machine", "all"
Crash = collections.namedtuple("Crash", "node point kind")


class Plan:
    """What happens in a run. `faults` are (ms, name of a method of World, arguments). `changes` has
    for each operator when it changes the timing, in ms. `plain`: it is the short run."""

    def __init__(self, seed, run_ms, crashes, faults, changes, plain=False):
        self.seed, self.run_ms, self.crashes, self.faults = seed, run_ms, crashes, faults
        self.changes, self.plain = changes, plain


def plain(seed, crashes=()):
    """A short run: all machines lose their power once, two operators change the timing at once, and
    a node is stopped as planned. The crashes come on top of that."""
    drawn = random.Random("plain %s" % seed)
    change = drawn.randrange(2300, 2700)
    faults = [(drawn.randrange(700, 1000), "blackout", ()),
              (drawn.randrange(2900, 3200), "stop", (drawn.choice(NAMES),))]
    return Plan(seed, 4000, crashes, faults, [[change], [change]], plain=True)


def stormy(seed):
    """A run with crashes, cuts, pauses, disks that fail, and planned stops, as the seed says."""
    drawn = random.Random("plan %s" % seed)
    run_ms = 6000
    crashes = [Crash(drawn.choice(NAMES), drawn.randrange(1, 400),
                     drawn.choice((PROCESS, MACHINE, MACHINE, ALL)))
               for _ in range(drawn.randrange(4))]
    faults = []
    for _ in range(drawn.randrange(6)):
        at, node = drawn.randrange(run_ms), drawn.choice(NAMES)
        faults.append((at, *drawn.choice((
            ("cut", ((node, drawn.choice(NAMES)), drawn.randrange(100, 1500))),
            ("cut", ((node,), drawn.randrange(100, 1500))),
            ("cut", (("clients", node), drawn.randrange(100, 1500))),
            ("pause", (node, drawn.randrange(50, 1500))),
            ("fail", (node, drawn.randrange(100, 1500))),
            ("stop", (node,))))))
    changes = [sorted(drawn.sample(range(run_ms), 2)) for _ in range(drawn.randrange(3))]
    return Plan(seed, run_ms, crashes, faults, changes)


class World:
    def __init__(self, options, plan):
        self.options, self.plan = options, plan
        parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="pawl-run-", dir=parent)
        self.random = random.Random("world %s" % plan.seed)
        self.conductor = Conductor(self.folder, options.preload, plan.seed, self.ended)
        self.history = history.History(os.path.join(self.folder, "history.jsonl"), seed=plan.seed,
                                       client_drift_ppm=0)
        self.ports = {n: CLIENT_PORT + i for i, n in enumerate(NAMES)}
        self.clients, self.violations = [], []
        # The configuration of each epoch, as nodes have told it; how many changes were answered.
        self.epochs, self.changed = {}, 0

    # ---- nodes ----

    def write_config(self, name):
        number = NAMES.index(name)
        masters = "".join("%s = 127.0.0.1:%d\n" % (n, PEER_PORT + i) for i, n in enumerate(NAMES))
        with open(os.path.join(self.folder, name + ".conf"), "w") as file:
            file.write("[node]\nname = %s\nstate_dir = %s/state-%s\nlisten_peer = 127.0.0.1:%d\n"
                       "listen_client = 127.0.0.1:%d\n[cluster]\nname = test\nmax_lease = %dms\n"
                       "request_timeout = 200ms\npromise_timeout = 400ms\n[cluster.masters]\n%s"
                       "[limits]\nclients = 100\nhandshakes = 50\n"
                       % (name, HERE, name, PEER_PORT + number, self.ports[name], MAX_LEASE_MS,
                          masters))

    def start(self, name, reboot=True):
        node = self.conductor.nodes[name]
        if not node.alive():
            base = node.random.randrange(1, 1000) * SECOND if reboot else node.clock()
            node.start_clock(base, node.random.randrange(PPM_MAX))
            self.conductor.start(name, [self.options.pawld, "--config", name + ".conf"])

    def crash(self, crash, worst=None):
        hit = NAMES if crash.kind == ALL else crash.node
        worst = self.random.random() < 0.5 if worst is None else worst
        for name in hit:
            if self.conductor.nodes[name].alive():
                power = crash.kind != PROCESS
                self.conductor.kill(name, power, worst)
                self.conductor.nodes[name].disk.lies = self.options.lying_disk
                self.conductor.later(self.random.randrange(20, RESTART_MS) * MS,
                                     lambda name=name: self.start(name, power))

    def ended(self, node, status):
        """A node may end by itself after a planned stop, and when it cannot write its state at its
        start."""
        if status != 0 and not (status == 1 and self.conductor.time < node.failing):
            self.wrong("life", "%s ended with status %d:\n%s" % (node.name, status, node.said()))
        elif status != 0:
            self.conductor.later(RESTART_MS * MS, lambda: self.start(node.name, reboot=False))

    # ---- faults ----

    def blackout(self):
        """All machines lose their power, and everything that was not synced."""
        self.crash(Crash("", 0, ALL), worst=True)

    def cut(self, hosts, ms):
        self.conductor.note("cut off: %s for %d ms" % (" and ".join(hosts), ms))
        self.conductor.network.cut(hosts, self.conductor.time + ms * MS)

    def pause(self, name, ms):
        self.conductor.note("%s is paused for %d ms" % (name, ms))
        self.conductor.nodes[name].stalled = self.conductor.time + ms * MS

    def fail(self, name, ms):
        self.conductor.note("the disk of %s fails for %d ms" % (name, ms))
        self.conductor.nodes[name].failing = self.conductor.time + ms * MS

    def stop(self, name):
        """A planned stop. The node starts again when it has ended."""
        node = self.conductor.nodes[name]
        if node.alive():
            self.conductor.note("%s is to stop" % name)
            node.signal = 15
            self.conductor.later(300 * MS, lambda: self.start_again(name))

    def start_again(self, name):
        if self.conductor.nodes[name].alive():
            self.conductor.later(100 * MS, lambda: self.start_again(name))
        else:
            self.start(name, reboot=False)

    # ---- the run ----

    def begin(self):
        for name in NAMES:
            self.conductor.add(name, self.plan.seed)
            self.write_config(name)
            self.start(name)
        for crash in self.plan.crashes:
            self.conductor.nodes[crash.node].at_point[crash.point] = (
                lambda crash=crash: self.crash(crash))
        for ms, name, arguments in self.plan.faults:
            self.conductor.at(ms * MS, lambda name=name, arguments=arguments:
                              getattr(self, name)(*arguments))
        end = self.plan.run_ms * MS
        for _ in range(CLIENTS):
            self.client("a client gets no answer", lambda c: c.live(end))
        for times in self.plan.changes:
            self.client("an operator gets no answer",
                        lambda c, at=times: c.operate(at, self.change_done))
        self.client("not all nodes vote and agree", lambda c: c.observe(end, self.status))

    def client(self, lasts, program):
        """Lets a client begin. If its program does not end, `lasts` says what is wrong."""
        client = callers.Client(self.conductor, self.history, self.ports, len(self.clients),
                                self.plan.seed)
        self.clients.append(client)
        client.lasts = lasts
        client.begin(program(client))

    def change_done(self):
        self.changed += 1

    def status(self, status):
        told = self.epochs.setdefault(status["epoch"], status["config_hash"])
        if status["epoch"] and told != status["config_hash"]:
            self.wrong("epochs", "epoch %d has two configurations" % status["epoch"])

    def heal(self):
        """From now on nothing happens any more."""
        self.points = {n: node.points for n, node in self.conductor.nodes.items()}
        self.conductor.network.cuts = {}
        for node in self.conductor.nodes.values():
            node.at_point, node.stalled, node.failing = {}, 0, 0

    def finish(self):
        """After the faults all that clients do must soon come to its end."""
        self.heal()
        self.client("a key cannot be acquired", lambda c: c.acquire_every_key())
        end = self.conductor.time + PROGRESS_MS * MS
        while not all(c.done for c in self.clients) and self.conductor.time < end:
            self.conductor.run(self.conductor.time + 50 * MS)
        for client in self.clients:
            if not client.done:
                self.wrong("progress", "%s for %d ms after the last fault"
                           % (client.lasts, PROGRESS_MS))

    def wrong(self, kind, what):
        self.violations.append((kind, what, []))

    def judge(self):
        for client in self.clients:
            client.write_rest()
        self.history.close()
        for first, lines in history.load(os.path.join(self.folder, "history.jsonl")):
            found, self.counts = checker.judge(first, lines)
            self.violations += found
        self.counts["change_ok"] = self.changed

    def run(self):
        """Returns the outcome."""
        try:
            self.begin()
            self.conductor.run(self.plan.run_ms * MS)
            self.finish()
            self.conductor.end()
            self.judge()
            return Outcome(self)
        finally:
            self.conductor.end()
            shutil.rmtree(self.folder, ignore_errors=True)


class Outcome:
    """What a run has left; it can be sent from one process to another."""

    def __init__(self, world):
        self.plan, self.violations, self.counts = world.plan, world.violations, world.counts
        self.log = "\n".join(world.conductor.log) + "\n"
        # How many points each node has passed until all faults were over.
        self.points = world.points
        self.calls = world.conductor.calls
