"""The judge of holders that lock with redis-py; see scripts/judge-redis."""

import argparse
import collections
import json
import os
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "nodes"))

import cluster as clusters  # noqa: E402
import checker  # noqa: E402
import clients  # noqa: E402
import command  # noqa: E402
import history  # noqa: E402
import judge  # noqa: E402
import nemesis  # noqa: E402

HOLDERS, KEYS, PORT = 50, 20, 6379
# From one fault to the next, in seconds. With shorter ones there is hardly ever a quorum of three.
PAUSES = (0.3, 4.0)
# How long the holders wait for an answer, which is also what a node adds to each lease ([redis]
# slack). So a belief that begins with a late answer ends before the lease does (docs/redis.md).
SLACK_MS = 1000
REDIS = ("listen_redis = {host}:%d\n[redis]\nslack = %dms\nwithout_end = keep\n" % (PORT, SLACK_MS))
# Rows of tests/mutants. Without these rules, the judge must find what goes wrong within so many
# runs of so many seconds.
MUTANTS = ("a quorum read counts the latest end as certain",
           "cas writes over what was set after its read",
           "an update does not heed a last value",
           "leases of dialects do not cover the drift",
           "a late SET with XX overwrites the value of the next holder")
TRIES, TRY_S = 6, 60.0
END_S, BIRTH_S = 60, 30
# A holder that does not run when its answer comes takes the time for later than it was. So holders
# go before other work on the machine.
AT_ONCE = ["nice", "-n", "-15"]
# How often the server of Redis is killed, when the judge is proven.
PROOF_S, PROOF_KILLS = 12, 8
# What has to happen in a minute, or the run shows nothing.
LEAST = {"acquired": 120, "released": 30, "extended": 12}


class Holders:
    """The processes of the holders. Use it in a with statement."""

    def __init__(self, folder, whose, addresses, seed, start):
        """`whose` are the servers, `pawl` or `redis`. `start` is called like subprocess.Popen,
        with the name of a host before it."""
        self.files, self.processes = [], []
        for n, host in enumerate(clients.HOSTS):
            share = HOLDERS // len(clients.HOSTS) + (n < HOLDERS % len(clients.HOSTS))
            self.files.append(os.path.join(folder, "holders-%s.jsonl" % host))
            with open(self.files[-1], "w", encoding="utf-8") as out:
                self.processes.append(start(
                    host, ["setpriv", "--pdeathsig", "KILL", "--", *AT_ONCE, sys.executable,
                           os.path.join(HERE, "redis_holders.py"), str(seed * 10 + n), str(share),
                           str(KEYS), str(SLACK_MS), whose, *addresses],
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

    def counts(self):
        """Returns what the holders have counted, once the processes have ended."""
        counts = collections.Counter()
        for path in self.files:
            with open(path, encoding="utf-8") as f:
                last = (f.readlines() or ["{}"])[-1]
            if "counts" not in json.loads(last):
                raise clusters.Failed("holders ended before they were told to: see " + path)
            counts.update(json.loads(last)["counts"])
        return counts


# ---- Pawl ----

def attack_pawl(options, folder):
    log = history.History(os.path.join(folder, "faults.jsonl"), seed=options.seed)
    try:
        with clusters.Cluster(options, folder, 3, hosts=clients.HOSTS, more=REDIS,
                              settings=clusters.timing(clients.MAX_LEASE_MS,
                                                       judge.REQUEST_TIMEOUT_MS)) as cluster:
            attacker = nemesis.Nemesis(cluster, log, options, nemesis.FAULTS, pauses=PAUSES)
            attacker.start_all()
            clusters.wait_until(cluster.well, "the cluster's birth", BIRTH_S)
            addresses = ["%s:%d" % (n.host, PORT) for n in cluster.nodes.values()]
            with Holders(folder, "pawl", addresses, options.seed % 1000,
                         cluster.net.popen) as holders:
                attacker.strike(options.seconds)
            for node in cluster.nodes.values():
                node.end()
            return {**holders.counts(), **attacker.counts}
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


def attack_redis(options, folder):
    with Server(folder) as server:
        with Holders(folder, "redis", ["127.0.0.1:%d" % server.port], options.seed % 1000,
                     lambda host, *words, **more: subprocess.Popen(*words, **more)) as holders:
            for _ in range(PROOF_KILLS):
                time.sleep(PROOF_S / PROOF_KILLS)  # The faults of this run come at fixed times.
                server.kill()
                server.start()
        return {**holders.counts(), "kill": PROOF_KILLS}


# ---- proofs ----

def prove_by_redis(options):
    """Returns whether the judge finds overlaps at a server that forgets; None if there is none."""
    if not shutil.which("redis-server"):
        print("skipped: the judge is not proven: the program redis-server is missing")
        return None
    with command.folder_of(options) as (folder, good):
        violations, counts, failure = command.attempt(options, folder, attack_redis)
        good["is"] = True
    checker.say(violations, most=1)
    print("a server of Redis that forgets: %s" % nemesis.line_of(counts), flush=True)
    overlaps = [v for v in violations if v[0] == "exclusion"]
    failure = failure or (not overlaps and "no overlap") or command.too_little(
        argparse.Namespace(seconds=PROOF_S), counts, LEAST)
    if failure:
        print("FAILED: the judge finds nothing: %s" % failure, flush=True)
    return not failure


def prove_mutants(options):
    """Returns for each of the rules whether the judge notices nodes without it."""
    import prove  # This builds nodes, and needs what only some runs have.
    found = []
    for name in (name for name in MUTANTS if options.only in name):
        pawld = prove.broken_nodes(options.build, name)
        for attempt in range(TRIES):
            one = argparse.Namespace(**{**vars(options), "pawld": pawld, "seconds": TRY_S,
                                        "seed": options.seed + attempt})
            violations, failure, _ = command.quiet_run(one, attack_pawl)
            if violations:
                break
        found.append(bool(violations))
        checker.say(violations, most=1)
        print("%s: %s, run %d, seed %d%s" % ("found" if violations else "NOT FOUND", name,
                                             attempt + 1, one.seed,
                                             ", " + failure if failure else ""), flush=True)
    return found


def run(options):
    if options.prove:
        verdicts = prove_mutants(options)
    else:
        verdicts = [prove_by_redis(options),
                    command.one_run(options, "%d holders of %d keys" % (HOLDERS, KEYS),
                                    attack_pawl, LEAST)]
    print("%d passed, %d failed" % (verdicts.count(True), verdicts.count(False)))
    return verdicts


def main(text):
    parser = command.options("judge-redis", text)
    command.add_proofs(parser)
    return command.main(parser, run)
