"""The judge of holders that lock with redis-py; see scripts/judge-redis."""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import cluster as clusters
import faults
import history
import netns
import rpc

HERE = os.path.dirname(os.path.abspath(__file__))
HOLDERS, KEYS, PORT = 50, 20, 6379
# From one fault to the next, in seconds. With shorter ones there is hardly ever a quorum of three.
PAUSES = (0.3, 4.0)
# How long the holders wait for an answer, which is also what a node adds to each lease ([redis]
# slack). So a belief that begins with a late answer ends before the lease does (docs/redis.md).
SLACK_MS = 1000
# By how much beliefs may overlap: a holder's thread may run only some time after the answer came.
LATE_NS = 100 * 1000 * 1000
END_S, BIRTH_S = 60, 30
# A holder that does not run when its answer comes takes the time for later than it was. So holders
# go before other work on the machine.
AT_ONCE = ["nice", "-n", "-15"]
# How often the server of Redis is killed, when the judge is proven.
PROOF_S, PROOF_KILLS = 12, 8


def overlaps(beliefs, allowed=LATE_NS):
    """Returns pairs of beliefs of the same key that overlap by more than is allowed, in ns."""
    found, last = [], {}
    for b in sorted(beliefs, key=lambda b: b["begin"]):
        before = last.get(b["key"])
        if before and min(before["end"], b["end"]) - b["begin"] > allowed:
            found.append((before, b))
        if not before or b["end"] > before["end"]:
            last[b["key"]] = b
    return found


def old_tokens(beliefs):
    """Returns pairs of beliefs of the same key whose tokens do not grow with the time."""
    found, last = [], {}
    for b in sorted((b for b in beliefs if "token" in b), key=lambda b: b["begin"]):
        before = last.get(b["key"])
        if before and b["token"] <= before["token"]:
            found.append((before, b))
        last[b["key"]] = b
    return found


class Holders:
    """The processes of the holders. Use it in a with statement."""

    def __init__(self, folder, addresses, seed, start, hosts):
        """`start` is called like subprocess.Popen, with the name of a host before it."""
        self.files, self.processes = [], []
        share = [HOLDERS // len(hosts) + (n < HOLDERS % len(hosts)) for n in range(len(hosts))]
        for n, host in enumerate(hosts):
            path = os.path.join(folder, "holders-%s" % host)
            self.files.append(path)
            with open(path, "w", encoding="utf-8") as out:
                self.processes.append(start(
                    host, ["setpriv", "--pdeathsig", "KILL", "--", *AT_ONCE, sys.executable,
                           os.path.join(HERE, "redis_holders.py"), str(seed * 10 + n),
                           str(share[n]), str(KEYS), str(SLACK_MS), *addresses],
                    stdin=subprocess.PIPE, stdout=out))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def told(self):
        """Returns (beliefs, counts), once the processes have ended."""
        beliefs, counts = [], collections.Counter()
        for path in self.files:
            with open(path, encoding="utf-8") as f:
                lines = [json.loads(line) for line in f]
            if not lines or "counts" not in lines[-1]:
                raise clusters.Broken("holders ended before they were told to: see " + path)
            beliefs += lines[:-1]
            counts.update(lines[-1]["counts"])
        return beliefs, counts


# ---- Pawl ----

async def strike(options, cluster, log, folder):
    """Starts the cluster, and lets the holders work while faults strike. Returns (beliefs, counts
    of the holders, counts of the faults)."""
    fault = faults.Faults(cluster, log, options.seed, pauses=PAUSES)
    try:
        for node in cluster.nodes.values():
            await fault.do(node.start, fault.rate(node))
        await born(cluster)
        addresses = ["%s:%d" % (n.host, PORT) for n in cluster.nodes.values()]
        with Holders(folder, addresses, options.seed % 1000, cluster.net.popen,
                     clusters.CLIENT_HOSTS) as holders:
            await fault.run(options.seconds)
        for node in cluster.nodes.values():
            await fault.do(node.end)
        return (*holders.told(), fault.counts)
    finally:
        fault.close()


async def born(cluster):
    end = rpc.now() + BIRTH_S * 1e9
    for node in cluster.nodes.values():
        while True:
            connection = await rpc.connect_here(node.unix, node.name)
            answer = await connection.call("status", 3.0) if connection else None
            if connection:
                connection.close()
            if answer and answer.ok and answer.data["state"] == "voting":
                break
            if rpc.now() > end:
                raise clusters.Broken("%s does not vote within %d s" % (node.name, BIRTH_S))
            await asyncio.sleep(0.1)


def run_pawl(options, folder):
    log = history.History(os.path.join(folder, "faults.jsonl"), seed=options.seed)
    try:
        with clusters.Cluster(os.path.abspath(options.build), folder, 3, 0, options.pawld,
                              redis=(PORT, SLACK_MS)) as cluster:
            return asyncio.run(strike(options, cluster, log, folder))
    finally:
        log.close()


# ---- Redis ----

class Server:
    """A server of Redis on loopback without persistence: killed, it comes back empty."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", "redis-server", "--port", str(self.port),
             "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder],
            stdout=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


def run_redis(options, folder):
    with Server(folder) as server:
        with Holders(folder, ["127.0.0.1:%d" % server.port], options.seed % 1000,
                     lambda host, *words, **more: subprocess.Popen(*words, **more),
                     clusters.CLIENT_HOSTS) as holders:
            for _ in range(PROOF_KILLS):
                time.sleep(PROOF_S / PROOF_KILLS)  # The faults of this run come at fixed times.
                server.kill()
                server.start()
        return (*holders.told(), {"kill": PROOF_KILLS})


# ---- a run ----

def line_of(counts):
    return ", ".join("%s %d" % item for item in sorted(counts.items()))


def say(pairs, what):
    for one, other in pairs[:20]:
        print("%s: %s and %s, which begins %.1f ms before the end of the first"
              % (what, one, other, (one["end"] - other["begin"]) / 1e6), flush=True)


def judged(name, told, seconds):
    """Prints what came of a run. Returns its violations, and why it shows nothing, or None."""
    beliefs, counts, strikes = told
    found, old = overlaps(beliefs), old_tokens(beliefs)
    say(found, "OVERLAP")
    say(old, "TOKENS")
    worst = max([min(a["end"], b["end"]) - b["begin"] for a, b in overlaps(beliefs, 0)],
                default=0)
    print("%s: %d beliefs with %d tokens; %d overlaps of more than is allowed, the longest is "
          "%.1f ms; %s; faults: %s" % (
              name, len(beliefs), sum("token" in b for b in beliefs), len(found), worst / 1e6,
              line_of(counts), line_of(strikes)), flush=True)
    few = [what for what, least in (("acquired", 2.0), ("released", 0.5), ("extended", 0.2))
           if counts[what] < least * seconds]
    return len(found) + len(old), "too rarely: " + ", ".join(few) if few else None


@contextlib.contextmanager
def folder_of(keep):
    folder = tempfile.mkdtemp(prefix="pawl-judge-redis-")
    try:
        yield folder
    finally:
        if keep:
            print("what the holders believed, and the logs, are in " + folder, flush=True)
        else:
            shutil.rmtree(folder)


def prove(options):
    """Returns whether the judge finds overlaps at a server that forgets."""
    if not shutil.which("redis-server"):
        print("skipped: the judge is not proven: the program redis-server is missing")
        return None
    with folder_of(options.keep) as folder:
        violations, few = judged("a server of Redis that forgets", run_redis(options, folder),
                                 PROOF_S)
    if few or not violations:
        print("FAILED: the judge finds nothing: " + (few or "no overlap"), flush=True)
    return not few and violations > 0


def good_run(options):
    print("seed %d: %d holders of %d keys, %.0f s" % (options.seed, HOLDERS, KEYS,
                                                      options.seconds), flush=True)
    with folder_of(options.keep) as folder:
        try:
            violations, few = judged("Pawl", run_pawl(options, folder), options.seconds)
        except clusters.Broken as e:
            violations, few = 0, str(e)
    if violations or few:
        print("FAILED with seed %d: %s" % (options.seed, few or "%d violations" % violations),
              flush=True)
    return not violations and not few


def interrupted(*_):
    raise KeyboardInterrupt


def main(text):
    parser = argparse.ArgumentParser(prog="judge-redis", description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--pawld", help="use this pawld instead of the build's")
    parser.add_argument("--keep", action="store_true",
                        help="keep what the holders believed and the logs")
    options = parser.parse_args()
    unable = netns.why_not()
    if unable:
        print("skipped: judge-redis: " + unable)
        return 0
    pawld = options.pawld or os.path.join(options.build, "src", "node", "pawld")
    if not os.path.exists(pawld):
        parser.error("there is no " + pawld)
    signal.signal(signal.SIGTERM, interrupted)
    options.seed = random.randrange(1 << 31) if options.seed is None else options.seed
    results = [prove(options), good_run(options)]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return 1 if False in results else 0
