"""The outside judge of real nodes; see scripts/judge."""

import argparse
import asyncio
import copy
import math
import os
import random
import shutil
import signal
import sys
import tempfile

import calm
import changing
import checker
import clients
import cluster as clusters
import faults
import history
import netns
import operators
import rpc
import watchers

WORKERS = 14
# The plan of a round: how long its faults last, and how many episodes the calm time after them has.
PLAN = {"faults_s": 12.0, "episodes": 3}
CALM_BEFORE_S = 0.5
TELL_S = 30.0
RESTORE_S = 30
BEAT_S, STALL_S = 0.05, 0.1
PIECE_S = 300.0


def arguments(text):
    parser = argparse.ArgumentParser(prog="judge", description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=None,
                        help="how many masters (default: drawn from the seed)")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--pawld", help="use this pawld instead of the build's")
    parser.add_argument("--true-clocks", action="store_true",
                        help="give no clock a rate of its own: for builds with a sanitizer")
    parser.add_argument("--no-changes", action="store_true", help="do not change the set of nodes")
    parser.add_argument("--keep", action="store_true",
                        help="keep the history and the logs even after a good run")
    parser.add_argument("--count", action="store_true",
                        help='end with the line "passed=N failed=M skipped=K"')
    parser.add_argument("--prove", action="store_true",
                        help="check that clusters which are broken on purpose are found")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="with --prove: only those whose names contain this")
    parser.set_defaults(node_rates={}, client_rates={})
    return parser.parse_args()


class Failed(Exception):
    """Something that must not happen, in addition to what the checker finds."""


class Judge:
    """Runs rounds of faults and calm until the time is over."""

    def __init__(self, options, cluster, log):
        self.options, self.cluster, self.history, seed = options, cluster, log, options.seed
        self.faults = faults.Faults(cluster, log, seed, not options.true_clocks, options.node_rates)
        self.random = random.Random("judge %d" % seed)
        self.workers = [clients.Worker(cluster, log, n, seed, options.client_rates.get(n, 1.0))
                        for n in range(1, WORKERS + 1)]
        self.operator, self.calm = (operators.Operator(cluster, log, 50, seed),
                                    calm.Calm(cluster, log, 60, seed))
        self.watchers = [watchers.Watcher(cluster, log, 70 + i, seed, n)
                         for i, n in enumerate(cluster.nodes)]
        self.rounds = 0

    async def birth(self):
        for node in self.cluster.nodes.values():
            await self.faults.do(node.start, self.faults.rate(node))
        end = rpc.now() + 20e9
        while not any([await self.votes(name) for name in self.cluster.masters]):
            if rpc.now() > end:
                raise Failed("the cluster is not born within 20 s")
            await asyncio.sleep(0.1)
        await self.well("after the birth")

    async def votes(self, name):
        answer = await self.operator.ask(name, "status")
        return answer.ok and answer.data["state"] == "voting"

    async def well(self, when):
        trouble = await self.operator.all_well(operators.RECOVERY_S)
        if trouble:
            raise Failed("%s, the cluster was not well within %.0f s: %s"
                         % (when, operators.RECOVERY_S, trouble))

    async def attack(self, seconds):
        """Strikes while all clients are at work. When this returns, no client works and all faults
        are healed."""
        stop = asyncio.Event()
        tasks = [asyncio.ensure_future(w.run(stop)) for w in self.workers]
        if not self.options.no_changes:
            pause = self.random.choice([0.5, 2.0, 6.0])
            tasks.append(asyncio.ensure_future(self.operator.run(stop, pause)))
        await self.faults.run(seconds)
        await asyncio.sleep(CALM_BEFORE_S)
        stop.set()
        done, late = await asyncio.wait(tasks, timeout=60)
        if late:
            raise Failed("%d clients are not done after a minute: %s"
                         % (len(late), [str(t) for t in late]))
        for task in done:
            task.result()

    async def restored(self):
        refused = await self.operator.restore(RESTORE_S)
        if refused:
            raise Failed("the set of nodes cannot be restored: %s" % refused)

    async def be_calm(self):
        await self.restored()
        await self.well("after the healing")
        await asyncio.sleep(CALM_BEFORE_S)
        self.history.moment("phase", rpc.now(), what="calm")
        await self.probe()
        await self.calm.some(PLAN["episodes"])
        dice = self.random.random()
        stopped = await self.calm.planned(self.faults) if dice < 0.4 else None
        self.history.moment("phase", rpc.now(), what="end of calm")
        if stopped:
            await self.well("after a planned stop")
            self.history.moment("phase", rpc.now(), what="calm")
            await self.calm.after_planned(*stopped)
            self.history.moment("phase", rpc.now(), what="end of calm")
        elif dice < 0.65:
            await self.lose_one()
        else:
            await changing.change(self.calm, self.operator)
            await self.well("after a change")
            await self.restored()

    async def lose_one(self):
        """Lets a master hang, or kills it, while all other nodes are well."""
        victim = self.cluster.nodes[self.random.choice(self.cluster.masters)]
        killed = self.random.random() < 0.5
        self.faults.tell("kill" if killed else "stop", node=victim.name)
        await self.faults.do(victim.kill if killed else victim.stop)
        await self.calm.without(victim.name)
        await self.faults.do(lambda: victim.start(self.faults.rate(victim))
                             if killed else victim.go_on())
        self.faults.tell("start" if killed else "go_on", node=victim.name)
        await self.well("after one was gone")

    async def probe(self):
        """Checks that every key can be acquired: at once if all its locks were released, and after
        the longest lease in any case."""
        for key in clients.EVERY_KEY:
            rest = max([w.rests.get(key, 0) for w in self.workers]) - rpc.now()
            wait_ms = calm.SOON_MS if rest < 0 else rest // 1000000 + calm.SOON_MS
            lock, connection = (self.calm.lock(key),
                                await self.calm.at(self.random.choice(sorted(self.cluster.nodes))))
            await self.calm.must_be(lock.acquire(connection, wait_ms))
            await lock.release(connection)
        self.calm.close_all()

    async def heartbeat(self):
        """Notes when this machine stood still, so that nobody is blamed for what took long then."""
        while True:
            before = rpc.now()
            await asyncio.sleep(BEAT_S)
            if rpc.now() - before > (BEAT_S + STALL_S) * 1e9:
                self.history.moment("stall", before, until=rpc.now())

    async def run(self):
        beating = asyncio.ensure_future(self.heartbeat())
        try:
            await self.rounds_until_the_end()
        finally:
            beating.cancel()

    async def rounds_until_the_end(self):
        await self.birth()
        watched, stop = [], asyncio.Event()
        watched = [asyncio.ensure_future(w.run(stop)) for w in self.watchers]
        end, told = rpc.now() + self.options.seconds * 1e9, rpc.now()
        while rpc.now() < end or not self.rounds:
            self.rounds += 1
            await self.attack(PLAN["faults_s"])
            await self.be_calm()
            if rpc.now() > told + TELL_S * 1e9:
                told = rpc.now()
                print("round %d: %s" % (self.rounds, line_of(self.faults.counts)), flush=True)
        await asyncio.sleep(1.0)  # The last events are still under way.
        stop.set()
        await asyncio.gather(*watched)
        for client in [*self.workers, self.calm]:
            client.close_all()
        for node in self.cluster.nodes.values():
            await self.faults.do(node.end)


def line_of(counts):
    return ", ".join("%s %d" % item for item in sorted(counts.items()))


def too_little(options, counts):
    """Names what has happened too rarely; such a run shows nothing."""
    minutes = options.seconds / 60
    least = {"beliefs": 100, "acquire_ok": 100, "extend_ok": 40, "update_ok": 20, "release_ok": 60,
             "get_ok": 8, "event": 500,
             "kill": 3, "stop": 1, "start": 3, **({} if options.no_changes else {"change_ok": 2})}
    return ["%s happened only %d times, not %d" % (name, counts.get(name, 0), number * minutes)
            for name, number in least.items()
            if counts.get(name, 0) < int(number * minutes)]


def attempt(options, folder):
    """Makes one run and judges it. Returns (violations, counts, another reason to fail or None)."""
    path, failure, strikes = os.path.join(folder, "history.jsonl"), None, {}
    log = history.History(path, seed=options.seed, masters=options.masters, client_drift_ppm=0,
                          drift_ppm=clusters.DRIFT_PPM,
                          max_lease_ms=clusters.MAX_LEASE_MS)
    judge = None
    try:
        with clusters.Cluster(os.path.abspath(options.build), folder, options.masters, 2,
                              options.pawld) as cluster:
            judge = Judge(options, cluster, log)
            asyncio.run(judge.run())
    except (Failed, clusters.Broken) as e:
        failure = str(e)
    finally:
        if judge:
            judge.faults.close()
            strikes = judge.faults.counts
        log.close()
    violations, counts = [], {}
    for first, lines in history.load(path):
        violations, counts = checker.judge(first, lines)
    return violations, {**counts, **strikes, "rounds": judge.rounds if judge else 0}, failure


def quiet_run(options):
    """Makes a run, and returns its violations and failure without printing them."""
    folder = tempfile.mkdtemp(prefix="pawl-judge-")
    try:
        violations, _, failure = attempt(options, folder)
    finally:
        if options.keep:
            print("the history and the logs are in " + folder, flush=True)
        else:
            shutil.rmtree(folder)
    return violations, failure


def interrupted(*_):
    raise KeyboardInterrupt


def one_run(options):
    """Makes a run and prints what came of it. Returns whether it was good."""
    folder = tempfile.mkdtemp(prefix="pawl-judge-")
    print("seed %d: %d masters and 2 more nodes, %.0f s. To repeat it: scripts/judge --seed %d "
          "--masters %d --seconds %.0f" % (
        options.seed, options.masters, options.seconds, options.seed, options.masters,
        options.seconds), flush=True)
    good = False
    try:
        violations, counts, failure = attempt(options, folder)
        checker.say(violations)
        print("happened: " + line_of(counts), flush=True)
        rare = too_little(options, counts)
        if rare and not failure:
            failure = "too little happened: " + ", ".join(rare)
        good = not violations and not failure
        if failure:
            print("FAILED with seed %d: %s" % (options.seed, failure), flush=True)
        elif violations:
            print("FAILED with seed %d: %d violations" % (options.seed, len(violations)),
                  flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        if good and not options.keep:
            shutil.rmtree(folder)
        else:
            print("the history and the logs are in " + folder, flush=True)
    return good


def pieces(options):
    """Cuts a long run into several, each with a cluster and a history of its own, because the time
    for judging grows with the square of a history's length."""
    count = math.ceil(options.seconds / PIECE_S)
    for at in range(count):
        one = copy.copy(options)
        one.seed, one.seconds = options.seed + at, options.seconds / count
        yield one


def main(text):
    options = arguments(text)
    unable = netns.why_not()
    if unable:
        print("skipped: judge: " + unable)
        print("passed=0 failed=0 skipped=1")
        return 0
    signal.signal(signal.SIGTERM, interrupted)
    options.seed = random.randrange(1 << 31) if options.seed is None else options.seed
    options.masters = (options.masters
                       or random.Random("masters %d" % options.seed).choice([3, 3, 5]))
    if options.prove:
        import prove  # prove imports this module.
        passed, failed = prove.everything(options)
    else:
        passed = failed = 0
        for one in pieces(options):
            good = one_run(one)
            passed, failed = passed + good, failed + (not good)
            if failed:
                break
    if options.count:
        print("passed=%d failed=%d skipped=0" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(__doc__))
