"""The outside judge of real nodes; see scripts/judge."""

import asyncio
import concurrent.futures
import copy
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "nodes"))

import cluster as clusters  # noqa: E402
import calm  # noqa: E402
import changing  # noqa: E402
import clients  # noqa: E402
import command  # noqa: E402
import history  # noqa: E402
import nemesis  # noqa: E402
import operators  # noqa: E402
import rpc  # noqa: E402
import watchers  # noqa: E402

WORKERS = 14
REQUEST_TIMEOUT_MS = 800
# The plan of a round: how long its faults last, and how many episodes the calm time after them has.
PLAN = {"faults_s": 12.0, "episodes": 3}
CALM_BEFORE_S = 0.5
BIRTH_S = 20
RECOVERY_S = (clients.MAX_LEASE_MS / 1000 * (1 + 2 * clusters.DRIFT_PPM / 1e6)
              + REQUEST_TIMEOUT_MS / 1000 + 4.0)
BEAT_S, STALL_S = 0.05, 0.1
PIECE_S = 300.0
# What has to happen in a minute, or the run shows nothing.
LEAST = {"beliefs": 100, "acquire_ok": 100, "extend_ok": 40, "update_ok": 20, "release_ok": 60,
         "get_ok": 8, "event": 500, "kill": 3, "stop": 1, "start": 3}


class Judge:
    """Runs rounds of faults and calm until the time is over. Work that blocks (processes, packet
    filters) runs in a thread of its own, which lives as long as this object."""

    def __init__(self, options, cluster, log):
        self.options, self.cluster, self.history, seed = options, cluster, log, options.seed
        self.hands, self.random = (concurrent.futures.ThreadPoolExecutor(1),
                                   random.Random("judge %d" % seed))
        self.operators = operators.Operators(cluster, log)
        weights = dict(nemesis.FAULTS)
        if not options.no_changes:
            weights[self.operators.operate] = 20
        self.nemesis = self.operators.nemesis = nemesis.Nemesis(
            cluster, log, options, weights, wrong=options.node_rates)
        self.workers = [clients.Worker(cluster, log, n, seed, options.client_rates.get(n, 1.0))
                        for n in range(1, WORKERS + 1)]
        self.calm = calm.Calm(cluster, log, 60, seed)
        self.watchers = [watchers.Watcher(cluster, log, 70 + i, seed, n)
                         for i, n in enumerate(cluster.nodes)]

    async def do(self, function, *arguments):
        return await asyncio.get_running_loop().run_in_executor(self.hands, function, *arguments)

    async def well(self, when):
        await self.do(clusters.wait_until, self.cluster.well, "the cluster is well " + when,
                      RECOVERY_S)

    async def attack(self, seconds):
        """Strikes while all clients are at work. When this returns, no client works and all faults
        are healed."""
        stop = asyncio.Event()
        tasks = [asyncio.ensure_future(w.run(stop)) for w in self.workers]
        await self.do(self.nemesis.strike, seconds)
        await asyncio.sleep(CALM_BEFORE_S)
        stop.set()
        done, late = await asyncio.wait(tasks, timeout=60)
        if late:
            raise clusters.Failed("%d clients are not done after a minute: %s"
                                  % (len(late), [str(t) for t in late]))
        for task in done:
            task.result()

    async def restored(self):
        refused = await self.do(self.operators.restore)
        if refused:
            raise clusters.Failed("the set of nodes cannot be restored: %s" % refused)

    async def be_calm(self):
        await self.restored()
        await self.well("after the healing")
        await asyncio.sleep(CALM_BEFORE_S)
        self.history.moment("phase", rpc.now(), what="calm")
        await self.probe()
        await self.calm.some(PLAN["episodes"])
        dice = self.random.random()
        stopped = await self.calm.planned(self.do, self.nemesis) if dice < 0.4 else None
        self.history.moment("phase", rpc.now(), what="end of calm")
        if stopped:
            await self.well("after a planned stop")
            self.history.moment("phase", rpc.now(), what="calm")
            await self.calm.after_planned(*stopped)
            self.history.moment("phase", rpc.now(), what="end of calm")
        elif dice < 0.65:
            await self.lose_one()
        else:
            await changing.change(self.calm, self.do, self.operators)
            await self.well("after a change")
            await self.restored()

    async def lose_one(self):
        """Lets a master hang, or kills it, while all other nodes are well."""
        victim = self.cluster.nodes[self.random.choice(self.cluster.masters)]
        killed = self.random.random() < 0.5
        self.nemesis.tell("kill" if killed else "stop", node=victim.name)
        await self.do(victim.kill if killed else victim.stop)
        await self.calm.without(victim.name)
        await self.do(self.nemesis.start if killed else self.nemesis.go_on, victim)
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
        """Returns the counts of the faults."""
        beating = asyncio.ensure_future(self.heartbeat())
        try:
            await self.rounds()
        finally:
            beating.cancel()
            self.nemesis.over = True
        return self.nemesis.counts

    async def rounds(self):
        await self.do(self.nemesis.start_all)
        await self.do(clusters.wait_until, self.cluster.well, "the cluster's birth", BIRTH_S)
        stop = asyncio.Event()
        watched = [asyncio.ensure_future(w.run(stop)) for w in self.watchers]
        end = rpc.now() + self.options.seconds * 1e9
        while rpc.now() < end or not self.nemesis.counts["rounds"]:
            self.nemesis.counts["rounds"] += 1
            await self.attack(PLAN["faults_s"])
            await self.be_calm()
        await asyncio.sleep(1.0)  # The last events are still under way.
        stop.set()
        await asyncio.gather(*watched)
        for client in [*self.workers, self.calm]:
            client.close_all()
        for node in self.cluster.nodes.values():
            await self.do(node.end)


def attack(options, folder):
    log = history.History(os.path.join(folder, "history.jsonl"), seed=options.seed,
                          masters=options.masters, client_drift_ppm=0,
                          drift_ppm=clusters.DRIFT_PPM, max_lease_ms=clients.MAX_LEASE_MS)
    try:
        with clusters.Cluster(options, folder, options.masters, 2, hosts=clients.HOSTS,
                              settings=clusters.timing(clients.MAX_LEASE_MS,
                                                       REQUEST_TIMEOUT_MS)) as cluster:
            judge = Judge(options, cluster, log)
            with judge.hands:
                return asyncio.run(judge.run())
    finally:
        log.close()


def pieces(options):
    """Cuts a long run into several, each with a cluster and a history of its own, because the time
    for judging grows with the square of a history's length."""
    count = math.ceil(options.seconds / PIECE_S)
    for at in range(count):
        one = copy.copy(options)
        one.seed, one.seconds = options.seed + at, options.seconds / count
        yield one


def run(options):
    options.masters = (options.masters
                       or random.Random("masters %d" % options.seed).choice([3, 3, 5]))
    if options.prove:
        import prove  # prove imports this module.
        return prove.everything(options)
    verdicts, least = [], {**LEAST, **({} if options.no_changes else {"change_ok": 2})}
    for one in pieces(options):
        verdicts.append(command.one_run(one, "%d masters and 2 more nodes" % one.masters, attack,
                                        least))
        if not verdicts[-1]:
            break
    return verdicts


def main(text):
    parser = command.options("judge", text)
    parser.add_argument("--masters", type=int, choices=[3, 5], default=None,
                        help="how many masters (default: drawn from the seed)")
    parser.add_argument("--no-changes", action="store_true", help="do not change the set of nodes")
    command.add_true_clocks(parser)
    command.add_proofs(parser)
    parser.set_defaults(node_rates={}, client_rates={})
    return command.main(parser, run)
