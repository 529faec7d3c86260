"""What the measurements share: clusters of real nodes on loopback, Redis servers, the programs that
make the load, and the table of the results."""
import functools
import itertools
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODES = ["a", "b", "c"]
TICKS = os.sysconf("SC_CLK_TCK")
# For so long elect-bench works before it counts.
WARM_UP_S = 0.5

CONFIG = """[node]
name = {name}
state_dir = {dir}/{name}
listen_peer = {peer}
listen_client = {client}
log_level = warning
{more}
[cluster]
name = bench
max_lease = {max_lease}
promise_timeout = 2s
request_timeout = 1s

[limits]
keys = {keys}
locks_per_identity = {keys}
locks_per_address = {keys}
memory = {memory}
clients = 1000

[cluster.masters]
{masters}
"""


def free_ports(count):
    """Returns ports that nobody listens on now. The kernel does not hand them out again soon."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def await_that(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"bench: {what}: not within {seconds} s")
        time.sleep(0.02)


def processor_time(process):
    """Returns the seconds that the process has used, in user and kernel mode."""
    with open(f"/proc/{process.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@functools.cache
def warn_of_parts(build):
    """Says so if pawld is not linked as one program, as the packages have it."""
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
        if not next(option["value"] for option in json.load(f) if option["name"] == "whole"):
            print(f"note: {build} has whole=false: the pawld of the packages takes some 12 % fewer "
                  "instructions", file=sys.stderr)


class Cluster:
    """A context with masters on loopback. Their names are those of NODES, unless it is told
    others."""

    def __init__(self, build, tls, max_lease="60s", names=None, keys=4000000, memory="4g"):
        warn_of_parts(build)
        self.build = build
        self.pawl = os.path.join(build, "src/cli/pawl")
        self.pawld = os.path.join(build, "src/node/pawld")
        self.candidate = os.path.join(build, "tests/elections/candidate")
        self.tls = tls
        self.dir = tempfile.mkdtemp(prefix="pawl-bench-")
        self.max_lease = max_lease
        self.keys, self.memory = keys, memory
        self.processes = {}
        self.names = list(names or NODES)
        self.address = dict.fromkeys(self.names, "127.0.0.1")
        ports = iter(free_ports(3 * len(self.names)))
        self.client, self.peer, self.redis = (dict(zip(self.names, ports)) for _ in range(3))
        self.env = dict(os.environ)

    def configuration(self, name):
        """Returns the configuration of this node, without that of TLS."""
        listeners, more = f"{self.address[name]}:{self.client[name]}", ""
        if not self.tls:
            listeners += f", unix:{self.path(name, 'sock')}"
            more = f"listen_redis = {self.address[name]}:{self.redis[name]}\n"
        return CONFIG.format(name=name, dir=self.dir, peer=self.peer_address(name),
            client=listeners, more=more, max_lease=self.max_lease, keys=self.keys,
            memory=self.memory,
            masters="\n".join(f"{n} = {self.peer_address(n)}" for n in self.names))

    def peer_address(self, name):
        return f"{self.address[name]}:{self.peer[name]}"

    def command(self, _name, arguments):
        """Returns a command that runs the arguments at the machine of this node."""
        return arguments

    def __enter__(self):
        if self.tls:
            self.make_certificates()
            with open(f"{self.dir}/rights.conf", "w") as f:
                f.write("[bench]\nallow = all on *\n")
        for name in self.names:
            text = self.configuration(name)
            if self.tls:
                text += (f"\n[tls]\nca = {self.dir}/tls/ca.crt\ncert = {self.dir}/tls/{name}.crt\n"
                         f"key = {self.dir}/tls/{name}.key\n")
                text += f"client_auth = required\n\n[acl]\nfile = {self.dir}/rights.conf\n"
            with open(self.path(name, "conf"), "w") as f:
                f.write(text)
            self.start(name)
        try:
            for name in self.names:
                await_that(f"node {name} votes", 20, lambda n=name: self.votes(n))
        except SystemExit:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name, what):
        return os.path.join(self.dir, f"{name}.{what}")

    def make_certificates(self):
        tls = os.path.join(self.dir, "tls")
        self.run_pawl("cert", "ca", "--dir", tls)
        for name in self.names:
            self.run_pawl("cert", "node", name, "--dir", tls, "--host", "127.0.0.1")
        self.run_pawl("cert", "client", "bench", "--dir", tls)
        self.tls_options = ["--cacert", f"{tls}/ca.crt", "--cert", f"{tls}/bench.crt", "--key",
                            f"{tls}/bench.key"]

    def run_pawl(self, *args):
        done = subprocess.run(self.command(self.names[0], [self.pawl, *args]),
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"bench: pawl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def start(self, name):
        with open(self.path(name, "log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                self.command(name, [self.pawld, "--config", self.path(name, "conf")]),
                stdout=log, stderr=log)

    def endpoint(self, name, unix=False):
        if unix:
            return f"unix:{self.path(name, 'sock')}"
        return f"{'tls://' if self.tls else ''}{self.address[name]}:{self.client[name]}"

    def endpoints(self, nodes=None, unix=False):
        return ",".join(self.endpoint(n, unix) for n in nodes or self.names)

    def options(self, nodes=None, unix=False):
        """Returns options of the command that reach these nodes, the first one first."""
        return ["--prefer-first", "--endpoints", self.endpoints(nodes, unix),
                *(self.tls_options if self.tls else [])]

    def votes(self, name):
        if self.processes[name].poll() is not None:
            with open(self.path(name, "log")) as log:
                raise SystemExit(f"bench: node {name} ended: {log.read()[-2000:]}")
        done = subprocess.run(
            self.command(name, [self.pawl, "status", "--json", *self.options([name])]),
            capture_output=True, text=True)
        return done.returncode == 0 and json.loads(done.stdout).get("state") == "voting"

    def bench_start(self, mode, *args, nodes=None, unix=False):
        """Starts pawl bench at the machine of the first one of these nodes."""
        words = [self.pawl, "bench", mode, "--json", *self.options(nodes, unix), *map(str, args)]
        return subprocess.Popen(self.command((nodes or self.names)[0], words),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def bench(self, mode, *args, nodes=None, unix=False):
        return finish(self.bench_start(mode, *args, nodes=nodes, unix=unix))

    def cycles(self, seconds, outstanding, connections=1, nodes=None, unix=False):
        """Returns what pawl bench cycle says, and with "cpu_us" how much processor time the nodes
        took for a cycle."""
        before = self.cpu()
        result = self.bench("cycle", "--outstanding", outstanding, "--connections", connections,
                            "--duration", duration(seconds), nodes=nodes, unix=unix)
        result["cpu_us"] = (self.cpu() - before) / result["cycles"] * 1e6
        return result

    def redis_cycles(self, program, seconds, count, name):
        """Returns what elect-bench says of so many locks by the commands of Redis, each with a
        connection of its own to this node, and "cpu_us" as above."""
        before = self.cpu()
        result = program.run("redis-cycle", self.redis[name], count, seconds)
        result["cpu_us"] = per_cycle(self.cpu() - before, result, seconds)
        return result

    def keys_of(self, name):
        """Yields keys whose home is this node."""
        for i in itertools.count():
            said = json.loads(self.run_pawl("explain", f"home/{i}", "--json", *self.options()))
            if any(m["home"] and m["node"] == name for m in said["masters"]):
                yield f"home/{i}"

    def cpu(self):
        """Returns the seconds of processor time that the nodes have used which are running."""
        return sum(processor_time(process) for process in self.processes.values()
                   if process.poll() is None)

    def resident(self, name):
        """Returns how many bytes of memory the node has resident."""
        with open(f"/proc/{self.processes[name].pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def finish(process):
    out, err = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(process.args)}: "
                         f"status {process.returncode}: {err.strip()} {out.strip()}")
    result = json.loads(out.strip().splitlines()[-1])
    if result["errors"]:
        print(f"  {result['mode']}: {result['errors']} errors, the first: {result['first_error']}",
              file=sys.stderr)
    return result


def duration(seconds):
    """Returns a duration as pawl reads it."""
    return f"{int(seconds * 1000)}ms"


def per_cycle(used_s, result, seconds):
    """Returns how many microseconds of processor time a cycle of elect-bench took, of these
    seconds in all. A warm-up comes before, at about the same rate."""
    return used_s / (result["cycles"] * (1 + WARM_UP_S / seconds)) * 1e6


class Program:
    """Runs elect-bench, which makes load that pawl bench does not make."""

    def __init__(self, build):
        self.path = os.path.join(build, "tests/bench/elect-bench")

    def start(self, mode, *words):
        return subprocess.Popen([self.path, mode, *map(str, words)], stdout=subprocess.PIPE,
                                text=True)

    def run(self, mode, *words):
        return self.finish(self.start(mode, *words), mode)

    @staticmethod
    def finish(process, mode):
        out, _ = process.communicate(timeout=300)
        if process.returncode:
            raise SystemExit(f"bench: elect-bench {mode}: status {process.returncode}")
        result = json.loads(out.strip().splitlines()[-1])
        if result["errors"]:
            print(f"  {mode}: {result['errors']} errors", file=sys.stderr)
        return result


class Redis:
    """A context with Debian's redis-server, without persistence."""

    def __enter__(self):
        self.port = free_ports(1)[0]
        self.dir = tempfile.mkdtemp(prefix="pawl-bench-")
        self.socket = os.path.join(self.dir, "redis.sock")
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind",
            "127.0.0.1", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
            "--dir", self.dir], stdout=subprocess.DEVNULL)
        await_that("redis-server listens", 10, self.listens)
        return self

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def cycles(self, program, seconds, count, unix=False):
        """Returns what elect-bench says of so many locks, each with a connection of its own, and
        with "cpu_us" how much processor time the server took for a cycle."""
        before = processor_time(self.process)
        result = program.run("redis-cycle", self.socket if unix else self.port, count, seconds)
        result["cpu_us"] = per_cycle(processor_time(self.process) - before, result, seconds)
        return result

    def set(self, clients, requests):
        """Returns {rps, p50_ms} of redis-benchmark -t set."""
        done = subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.port),
            "-t", "set", "-c", str(clients), "-n", str(requests), "--csv"], capture_output=True,
            text=True, check=True)
        head, row = [[cell.strip('"') for cell in line.split(",")]
                     for line in done.stdout.strip().splitlines()[-2:]]
        values = dict(zip(head, row))
        return {"rps": float(values["rps"]), "p50_ms": float(values["p50_latency_ms"])}


def busy_seconds():
    """Returns how long all processors of this machine have been busy, and how long they were taken
    away from it."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, stolen = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq) / TICKS, stolen / TICKS


def own_seconds():
    """Returns the processor time of this process and of those that it has waited for."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage,
               (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Report:
    """Collects the rows of the tables, and how much other programs had of the machine meanwhile."""

    def __init__(self):
        # (title or None, the heads of the columns after the first, [rows])
        self.tables = []
        self.values = {}
        self.began = time.monotonic(), busy_seconds(), own_seconds()
        self.load = os.getloadavg()[0]

    def begin(self, title, last="to reach"):
        """The rows that are added from now on are a table with this title. `last` is the head of
        the last column."""
        self.tables.append((title, ("measured", last), []))

    def add(self, key, what, value, target=""):
        if not self.tables:
            self.begin(None)
        self.values[key] = value
        self.tables[-1][2].append((what, str(value), target))
        print(f"  {what}: {value} {('(' + target + ')') if target else ''}", file=sys.stderr,
              flush=True)

    def add_table(self, key, title, heads, rows):
        """Adds a table with columns of its own. `rows` are (what, a value for each column...)."""
        self.values[key] = {what: dict(zip(heads, values)) for what, *values in rows}
        self.tables.append((title, heads, rows))

    def others(self):
        """Returns a sentence about everybody else who used the machine."""
        began, (busy, stolen), own = self.began
        took = time.monotonic() - began
        busy_now, stolen_now = busy_seconds()
        self.values["others"] = max(0, busy_now - busy - own_seconds() + own) / took
        self.values["load_before"] = self.load
        return (f"The load before was {self.load:.1f}. In these {took:.0f} s other programs had "
                f"{self.values['others']:.2f} processors, and {(stolen_now - stolen) / took:.2f} "
                "were taken from this machine.")

    def print(self):
        for title, heads, rows in self.tables:
            if title:
                print(f"### {title}\n")
            print("| | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
            for row in rows:
                print("| " + " | ".join(row) + " |")
            print()
        print(self.others())

    def write(self, path):
        if path:
            with open(path, "w") as f:
                json.dump(self.values, f, indent=1)


def median_ratio(ours, theirs):
    """Returns the median of the ratios of figures that were measured in pairs, one right after the
    other, because other programs may disturb both alike. It is text."""
    return f"{median([one / other for one, other in zip(ours, theirs)]):.2f}"


def ms(value):
    return f"{value:.3f} ms" if value < 10 else f"{value:.1f} ms"


def median(values):
    return sorted(values)[len(values) // 2]
