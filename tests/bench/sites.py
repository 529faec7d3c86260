"""Masters at different sites. Each is in a network namespace of its own, and delay.c carries the
packets between them."""
import json
import os
import signal
import subprocess
import sys

import benchmark as bench
import field
import gaps
from benchmark import ROOT, duration, median

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import netns  # noqa: E402  (its folder was put on the path above)

SUBNET = "10.118.0"
ROUNDS = 3
# For percentiles of what takes long. Each request is for a key of its own.
OUTSTANDING = 16

GETS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import pawl
with pawl.connect(sys.argv[2], prefer_first=True) as client:
    for quorum in (False, True):
        took = []
        for _ in range(9):
            began = time.monotonic()
            client.get("sites/nobody", quorum=quorum)
            took.append(time.monotonic() - began)
        print(sorted(took)[4] * 1000)
"""


def why_not():
    """Returns None if sites can be made here, or a sentence that says why not."""
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    return netns.why_not()


def apart(names, round_trips):
    """Returns {(one, other): ms} for both directions. `round_trips` is one number for all, or has
    a number for each pair, in the order ab, ac, bc."""
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1:]]
    if not isinstance(round_trips, tuple):
        round_trips = (round_trips,) * len(pairs)
    one_way = {pair: trip / 2 for pair, trip in zip(pairs, round_trips)}
    return one_way | {(other, one): took for (one, other), took in one_way.items()}


class Wan:
    """A context with a network namespace for each name, and the delays of the packets between
    them."""

    def __init__(self, delay, names, delays_ms):
        self.delay, self.names, self.delays = delay, list(names), delays_ms
        self.net, self.process, self.said = netns.Net(), None, None

    def __enter__(self):
        try:
            for name in self.names:
                self.net.add(name)
            self.process = subprocess.Popen(
                [self.delay, *(f"{self.net.path(n)}={self.address(n)}" for n in self.names),
                 ",".join(str(int(self.delays.get((one, other), 0) * 1000))
                          for one in self.names for other in self.names)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            if self.process.stdout.readline() != "ready\n":
                raise SystemExit("bench: the delays do not begin")
            for name in self.names:
                netns.run("ip", "-batch", "-", "-n", self.net.namespace(name), text="\n".join([
                    f"address add {self.address(name)}/24 dev wan",
                    "link set wan up txqueuelen 10000", ""]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.said, _ = self.process.communicate()
        self.net.close()

    def address(self, name):
        return f"{SUBNET}.{self.names.index(name) + 1}"


class SitesCluster(bench.Cluster):
    """A context with a master in each namespace."""

    def __init__(self, build, wan):
        super().__init__(build, False, names=wan.names)
        self.wan = wan
        self.address = {name: wan.address(name) for name in wan.names}

    def configuration(self, name):
        return super().configuration(name).replace("[node]", "[node]\ninsecure = yes")

    def command(self, name, arguments):
        return self.wan.net.command(name, arguments)

    def others(self, name):
        """Returns all names, beginning with this one; the others by their distance from it."""
        return sorted(self.names, key=lambda n: self.wan.delays.get((name, n), 0))


def ms(us):
    return f"{us / 1000:.1f} ms"


def cycles_at(cluster, name, seconds):
    """Returns {what: text} for a client at this site."""
    nodes = cluster.others(name)
    few = cluster.cycles(seconds, OUTSTANDING, nodes=nodes)
    extends = cluster.bench("extend", "--batch", 1, "--leases", OUTSTANDING, "--duration",
                            duration(seconds), nodes=nodes)["latency_us"]
    many = cluster.cycles(seconds, 256, nodes=nodes)
    handoff = cluster.bench("handoff", "--outstanding", 32, "--duration", duration(seconds),
                            nodes=nodes)["latency_us"]
    gets = subprocess.run(cluster.command(name, [sys.executable, "-c", GETS,
                          os.path.join(ROOT, "bindings/python"), cluster.endpoints(nodes)]),
                          stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return {
        "acquire, p50": ms(few["latency_us"]["p50"]),
        "acquire, p99": ms(few["latency_us"]["p99"]),
        "acquire and release, p50": ms(few["cycle_us"]["p50"]),
        "extend, p50": ms(extends["p50"]),
        "get, p50": f"{float(gets[0]):.1f} ms",
        "get from a quorum, p50": f"{float(gets[1]):.1f} ms",
        "cycles/s, 256 outstanding": f"{many['per_second']:.0f}",
        "hand-off, 32 waiters, p50": ms(handoff["p50"]),
        "hand-off, 32 waiters, p99": ms(handoff["p99"]),
    }


def gaps_at(cluster, name):
    """Returns the longest gaps in grants for a client at this site: {what: text}."""
    nodes = cluster.others(name)
    quiet = gaps.several(lambda: cluster.bench("gap", "--duration", "2s",
                                               nodes=nodes)["longest_gap_ms"])
    rows = {"longest gap in grants, nothing happens": quiet}
    for how, sign in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        for what, victim in (("another master", nodes[1]), ("the master of the site", name)):
            rows[f"... {what} is {how}"] = gaps.several(
                lambda s=sign, v=victim: gaps.gap_while(cluster, nodes, s, (v,)))
    return rows


def kill(cluster, name):
    cluster.processes[name].kill()
    cluster.processes[name].wait()


def elections_at(cluster):
    """Returns how long elections take whose leader is at the first site: {what: text}."""
    def strikes(strike, renewed=False):
        took = []
        for _ in range(ROUNDS):
            with field.Field(cluster, disconnect=1) as some:
                took.append((some.renewed if renewed else some.followed)(lambda f=some: strike(f)))
            for name in cluster.names:
                if cluster.processes[name].poll() is not None:
                    cluster.start(name)
                bench.await_that(f"{name} votes", 20, lambda n=name: cluster.votes(n))
        return f"{median(took):.0f} and {max(took):.0f} ms"
    first = cluster.names[0]
    return {
        "the leader resigns: the next one leads after": strikes(lambda f: f.all[0].say("resign")),
        "the leader's process is killed: the next one leads after":
            strikes(lambda f: f.all[0].kill()),
        "its node is killed: it is renewed after": strikes(lambda _: kill(cluster, first), True),
    }


def measure_between(build, seconds, trips):
    """Measures three masters with these round trips between them. Returns {title: {what: text}},
    with an entry for each place of the client, and how late the latest packet was, in ms."""
    equal, columns = not isinstance(trips, tuple), {}
    delay = os.path.join(build, "tests/bench/delay")
    with Wan(delay, "abc", apart("abc", trips)) as wan, SitesCluster(build, wan) as cluster:
        for name in "a" if equal else "abc":
            title = f"{trips} ms apart" if equal else f"at {name.upper()}"
            columns[title] = cycles_at(cluster, name, seconds) | gaps_at(cluster, name)
            if name == "a":
                columns[title] |= elections_at(cluster)
            print(f"  {title}: {columns[title]}", file=sys.stderr, flush=True)
        if not equal:
            kill(cluster, "b")
            for name in "ac":
                columns[f"at {name.upper()}, without B"] = cycles_at(cluster, name, seconds)
    said = json.loads(wan.said)
    if said["dropped"]:
        print(f"  sites: {said['dropped']} packets were dropped", file=sys.stderr)
    return columns, said["latest_ms"]


def measure_sites(build, report, seconds, all_trips=(10, 40, 100, (10, 100, 40))):
    """Measures masters that are 10, 40 and 100 ms apart, and three sites of which each is at
    another distance from the others."""
    if why_not():
        report.begin("Masters at different sites")
        report.add("sites", "not measured", why_not())
        return
    columns, latest = {}, 0
    for trips in all_trips:
        some, late = measure_between(build, seconds, trips)
        columns |= some
        latest = max(latest, late)
    whats = next(iter(columns.values()))
    print(f"  sites: the latest packet came {latest:.1f} ms after its time", file=sys.stderr)
    report.values["sites_latest_ms"] = latest
    report.add_table("sites", "Masters at different sites", list(columns),
                     [(what, *(column.get(what, "") for column in columns.values()))
                      for what in whats])
