#!/usr/bin/env python3
"""Measures what others feel of a client that takes too much.

    tests/abuse/abuse.py PAWLD [--seconds S] [--windows N] [--only ATTACK,...] [--first]
        [--judge TIMES] [--json FILE]

The nodes are three masters on loopback. A victim acquires and releases a key of its own through
node a, again and again: first while nobody else does anything, and then while one client attacks
node a with all that its rights allow. This prints a table in Markdown: the victim's p50 and p99
(each the median of N windows of S seconds) and its longest wait, before and during the attack; how
much of the time node a was ready to run and waited for a processor; and how many of the victim's
requests were refused and how many links between nodes broke. Then comes the resident memory of node
a: before the attack, at most during it, and two seconds after it. With --first the nodes and the
victim come before all other programs of the machine, as if the attacker had a machine of its own.
That needs root, and kernel.sched_rt_runtime_us at -1; otherwise the kernel stops a busy node for 50
ms in each second.

With --judge this fails if p50 or p99 during the attack is more than TIMES that before (and more
than a floor), if a request was refused or a link broke, if node a took more memory than its limits
and MARGIN_MB allow, or if two seconds after the attack it still had much of the memory of the
connections. Times during the attack count without the share for which node a waited for a
processor. Without --first the floors are high, because on a machine that also does other work small
times say more about that work than about the node. An attack that fails is tried once more, and
counts only if it fails again: what a node does wrong it does both times. With --judge and --first,
on a machine that does not permit --first, it goes on without --first. Only where the memory
afterwards is judged does this wait for the two seconds.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import attacks  # noqa: E402
import pawltest  # noqa: E402
import rediscluster  # noqa: E402
import strangers_attack  # noqa: E402

FLOORS_MS = {"p50": 100.0, "p99": 300.0}
FLOORS_FIRST_MS = {"p50": 10.0, "p99": 40.0}
SETTLE_S = 1.0
# The node's limit for the memory of the connections of one identity is 256 MiB, and a sixteenth
# part is its reserve.
LIMIT_MB = (256 << 20) * 17 / 16 / 1e6
# The memory of the core for the attacker's requests and locks is not a part of that limit.
MARGIN_MB = 128
AFTER_S = 2.0
# How much of the memory of connections may be left.
LEFT_MB = 32


def measure(client, seconds):
    """Measures how long pairs of acquire and release take, in ms, and how many the node refuses."""
    taken, refused, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun, lock = time.monotonic(), pawltest.lock_id()
        try:
            client.call("acquire", key="victim", lease_ms=10000, lock_id=lock)
            client.call("release", key="victim", lock_id=lock)
        except pawltest.Refused:
            refused += 1
        taken.append(1000 * (time.monotonic() - begun))
    ms = sorted(taken)
    return {"p50": ms[len(ms) // 2], "p99": ms[len(ms) * 99 // 100], "longest": ms[-1],
            "refused": refused}


def waited_s(node):
    """Returns for how long the node was ready to run and had no processor, since it began."""
    with open("/proc/%d/schedstat" % node.process.pid) as f:
        return int(f.read().split()[1]) / 1e9


def resident_mb(node, field):
    """Returns a field: VmRSS is the memory that is resident now, VmHWM the most since
    forget_peak."""
    with open("/proc/%d/status" % node.process.pid) as f:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in f if line.startswith(field))


def forget_peak(node):
    with open("/proc/%d/clear_refs" % node.process.pid, "w") as f:
        f.write("5")


def measure_windows(client, node, args):
    begun, waited = time.monotonic(), waited_s(node)
    seen = [measure(client, args.seconds) for _ in range(args.windows)]
    result = {what: statistics.median(w[what] for w in seen) for what in ("p50", "p99")}
    result.update(longest=max(w["longest"] for w in seen), refused=sum(w["refused"] for w in seen))
    result["waited"] = 100 * (waited_s(node) - waited) / (time.monotonic() - begun)
    return result


def put_first(cluster):
    """Gives the nodes and the victim a processor as soon as they are ready to run, as if the
    attacker had a machine of its own. The node that is attacked comes last of them, because it may
    take all the time that there is."""
    for name, node in running(cluster).items():
        os.sched_setscheduler(node.process.pid, os.SCHED_FIFO,
                              os.sched_param(1 if name == "a" else 2))
    # All threads of the victim: one that reads a log may hold the interpreter's lock.
    for thread in os.listdir("/proc/self/task"):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                              os.sched_param(3))


def may_be_first():
    try:
        with open("/proc/sys/kernel/sched_rt_runtime_us") as f:
            unbounded = int(f.read()) < 0
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return unbounded
    except OSError:
        return False


def running(cluster):
    return {name: node for name, node in cluster.nodes.items() if node.process.poll() is None}


def broken_links(cluster):
    """Counts the broken links between members, without those of other nodes that say hello."""
    nodes = running(cluster)
    return sum(line is not None and " peer_down peer=%s " % name in line
               for node in nodes.values() for line in node.lines for name in nodes)


def what_it_needs(name, cluster, authority):
    """Returns what the attack needs besides the address. Node c ends if the attacker speaks in its
    place."""
    if name in attacks.AS_MEMBER:
        identity = attacks.member_attack.identity_of(cluster.peers["c"])
        cluster.nodes["c"].kill()
        return (identity,)
    return (authority,) if name in attacks.WITH_CERTIFICATE else ()


# With these settings shares stop nobody, so only the turns protect others: 64,000 waits are more
# than one identity may have.
LIMITS = ("[limits]\nwaits_per_identity = 0\nwaits_per_address = 0\nrequests_per_identity = 0\n"
          "requests_per_address = 0\n")


def where(name, cluster):
    """Returns the address that is attacked."""
    if name in attacks.AT_REDIS_PORT:
        return "127.0.0.1:%d" % cluster.redis_ports["a"]
    return (cluster.peers if name in attacks.AT_PEER_PORT else cluster.clients)["a"]


def try_attack(name, args, authority):
    context = multiprocessing.get_context("spawn")
    tls = (authority.section, authority.context()) if name in attacks.OVER_TLS else (None, None)
    with rediscluster.RedisCluster(os.path.abspath(args.pawld), node=LIMITS,
                                   tls=tls[0]) as cluster, cluster.client(
                                       "a", timeout=60, tls=tls[1]) as victim:
        ready, node = context.Event(), cluster.nodes["a"]
        more = what_it_needs(name, cluster, authority)
        if args.first:
            put_first(cluster)
        measure(victim, SETTLE_S)
        result = {"before": measure_windows(victim, node, args)}
        links = broken_links(cluster)
        result["memory"] = {"before": resident_mb(node, "VmRSS:")}
        forget_peak(node)
        attacker = context.Process(target=attacks.attack, daemon=True,
                                   args=(name, where(name, cluster), ready, *more))
        attacker.start()
        try:
            assert ready.wait(60), "the attack has not begun"
            measure(victim, SETTLE_S)
            result["during"] = measure_windows(victim, node, args)
            assert attacker.is_alive(), "the attack has ended"
        finally:
            attacker.kill()
            attacker.join()
        result["memory"]["most"] = resident_mb(node, "VmHWM:")
        if not args.judge or name in attacks.OF_CONNECTIONS:
            measure(victim, AFTER_S)
        result["memory"]["after"] = resident_mb(node, "VmRSS:")
        result["broken_links"] = broken_links(cluster) - links
        return result


def problem(name, result, times, floors):
    if result["broken_links"]:
        return "%s: %d links between nodes broke" % (name, result["broken_links"])
    if result["during"]["refused"]:
        return "%s: %d requests were refused" % (name, result["during"]["refused"])
    memory = result["memory"]
    if memory["most"] - memory["before"] > LIMIT_MB + MARGIN_MB:
        return "%s: %.0f MB of memory more than before" % (name, memory["most"] - memory["before"])
    if name in attacks.OF_CONNECTIONS and memory["after"] - memory["before"] > LEFT_MB:
        return "%s: %.0f MB of memory were not freed" % (
            name, memory["after"] - memory["before"])
    # What the node waited for a processor is the machine's fault.
    ran = max(1 - result["during"]["waited"] / 100, 0.1)
    for what, floor in floors.items():
        before, during = result["before"][what], result["during"][what] * ran
        if during > max(times * before, floor):
            return "%s: %s %.1f ms besides waiting for a processor, more than %g times the %.1f " \
                "ms before" % (name, what, during, times, before)
    return None


def report(name, r):
    numbers = [form % r[when][what] for when in ("before", "during")
               for what, form in (("p50", "%.1f ms"), ("p99", "%.1f ms"),
                                  ("longest", "%.0f ms"), ("waited", "%.0f %%"))]
    numbers += ["%d" % r["during"]["refused"], "%d" % r["broken_links"]]
    numbers += ["%.0f MB" % r["memory"][when] for when in ("before", "most", "after")]
    print("| %s | %s |" % (attacks.ATTACKS[name].__doc__, " | ".join(numbers)), flush=True)


def try_and_judge(name, args, authority):
    """Returns what was measured, and what is wrong with it."""
    result = try_attack(name, args, authority)
    report(name, result)
    return result, args.judge and problem(name, result, args.judge,
                                          FLOORS_FIRST_MS if args.first else FLOORS_MS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pawld")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--only", default=",".join(attacks.ATTACKS))
    parser.add_argument("--judge", type=float, metavar="TIMES")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.first and args.judge and not may_be_first():
        print("the nodes cannot come first here: only long stops are noticed")
        args.first = False
    strangers_attack.allow_files()
    results, problems, authority = {}, [], strangers_attack.Authority()
    print("| Attack | p50 | p99 | longest | no processor | p50 during | p99 during | longest "
          "during | no processor | refused | broken links | memory | at most | after |")
    print("| :-- |" + " --: |" * 13)
    try:
        for name in args.only.split(","):
            results[name], wrong = try_and_judge(name, args, authority)
            if wrong:
                print("tried once more, because of %s" % wrong, flush=True)
                results[name], wrong = try_and_judge(name, args, authority)
            problems.append(wrong)
    finally:
        authority.remove()
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)
    problems = [p for p in problems if p]
    print("".join(p + "\n" for p in problems), end="", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
