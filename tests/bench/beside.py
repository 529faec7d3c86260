"""Cycles of acquire and release, beside Redis on the same processors in the same minute."""
import contextlib

from benchmark import Program, Redis, duration, median, median_ratio

ROUNDS = 3


def each(results, key):
    return [r[key] for r in results]


def measure_cycles(cluster, redis, report, label, seconds):
    """Where a figure is compared with Redis's SET the two take turns, and the medians count."""
    for outstanding, clients in ((1, 1), (64, None), (256, 64)):
        references, results = [], []
        for _ in range(ROUNDS):
            if redis and clients:
                references.append(redis.set(clients, 20000 if clients == 1 else 200000))
            results.append(cluster.cycles(seconds, outstanding))
        rates, p50s = each(results, "per_second"), [r["cycle_us"]["p50"] / 1000 for r in results]
        target = ""
        if references and clients == 64:
            theirs = each(references, "rps")
            target = (f"above Redis's {median(theirs):.0f} SET/s with 64 clients; it is "
                      f"{median_ratio(rates, theirs)} times")
        report.add(f"{label}cycles_{outstanding}", f"{label}cycles/s, {outstanding} outstanding",
                   f"{median(rates):.0f}", target)
        target = ""
        if references and clients == 1:
            theirs = each(references, "p50_ms")
            target = (f"Redis's SET: {median(theirs):.3f} ms; it is {median_ratio(p50s, theirs)} "
                      "times")
        report.add(f"{label}cycle_p50_{outstanding}",
                   f"{label}one cycle, p50, {outstanding} outstanding", f"{median(p50s):.3f} ms",
                   target)
        report.add(f"{label}cpu_{outstanding}",
                   f"{label}CPU of the three nodes, 1,000 cycles, {outstanding} outstanding",
                   f"{median(each(results, 'cpu_us')):.1f} ms")


def measure_redlock(cluster, report, seconds):
    """Measures one cycle alone, beside Redlock over three servers."""
    program = Program(cluster.build)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Redis()) for _ in cluster.names]
        ports = ",".join(str(s.port) for s in servers)
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(program.run("redis-cycle", ports, 1, seconds)["p50_ms"])
            ours.append(cluster.cycles(seconds, 1)["cycle_us"]["p50"] / 1000)
    report.add("redlock", "one cycle alone, p50, beside one of Redlock over three servers",
               f"{median(ours):.3f} ms", f"at most 1.8 times Redlock's {median(theirs):.3f} ms; "
               f"it is {median_ratio(ours, theirs)} times")


def measure_own(cluster, redis, report, seconds):
    """Measures clients that have a connection each, with one cycle under way on it: all at one
    node, and spread over all of them."""
    program = Program(cluster.build)
    for count in (64, 256):
        for unix, socket in ((False, "TCP"), (True, "Unix sockets")):
            theirs, ours = [], {"one": [], "all": []}
            for _ in range(ROUNDS):
                theirs.append(redis.cycles(program, seconds, count, unix))
                for where, nodes in (("one", ["a"]), ("all", None)):
                    ours[where].append(cluster.cycles(seconds, count, count, nodes, unix))
            for where, what in (("one", "all at one node"), ("all", "spread over the nodes")):
                add_own(report, f"own_{count}_{'unix' if unix else 'tcp'}_{where}",
                        f"{count} connections of their own, {socket}, {what}", ours[where], theirs,
                        "at least 0.9 of " if count == 64 else "")


def measure_dialect(cluster, redis, report, seconds):
    """Measures locks by the commands of Redis: at a node, and at a server of Redis; and native ones
    at the node, all by 64 connections with one cycle under way on each."""
    program, count = Program(cluster.build), 64
    theirs, native, ours = [], [], []
    for _ in range(ROUNDS):
        theirs.append(redis.cycles(program, seconds, count))
        ours.append(cluster.redis_cycles(program, seconds, count, "a"))
        native.append(cluster.cycles(seconds, count, count, ["a"]))
    rates, others, goals = each(ours, "per_second"), [], []
    for goal, who, results in ((0.7, "native clients", native), (0.5, "Redis's server", theirs)):
        other = each(results, "per_second")
        goals.append(f"at least {goal} of the {median(other):.0f} of {who}; it is "
                     f"{median_ratio(rates, other)} times")
        others.append(f"{who}: {median(each(results, 'cpu_us')):.1f} us")
    report.add("dialect", f"cycles/s by SET and EVALSHA, {count} connections of their own, all at "
               "one node", f"{median(rates):.0f}", "; ".join(goals))
    report.add("dialect_cpu", "... CPU of the three nodes, one cycle",
               f"{median(each(ours, 'cpu_us')):.1f} us", "; ".join(others))


def add_own(report, key, what, ours, theirs, goal):
    rates, other = each(ours, "per_second"), each(theirs, "per_second")
    report.add(key, f"cycles/s, {what}", f"{median(rates):.0f}",
               f"{goal}Redis's {median(other):.0f} with as many; it is "
               f"{median_ratio(rates, other)} times")
    report.add(f"{key}_cpu", "... CPU of the three nodes, one cycle",
               f"{median(each(ours, 'cpu_us')):.1f} us",
               f"Redis's server: {median(each(theirs, 'cpu_us')):.1f} us")


def measure_extends(cluster, report, label, seconds):
    result = cluster.bench("extend", "--batch", "1000", "--duration", duration(seconds))
    report.add(f"{label}extends", f"{label}extends/s, batches of 1,000",
               f"{result['per_second']:.0f}")


def measure_handoff(cluster, report, label, seconds):
    result = cluster.bench("handoff", "--outstanding", "32", "--duration", duration(seconds))
    report.add(f"{label}handoff_p50", f"{label}hand-off, 32 waiters, p50",
               f"{result['latency_us']['p50'] / 1000:.3f} ms")
    report.add(f"{label}handoff_p99", f"{label}hand-off, 32 waiters, p99",
               f"{result['latency_us']['p99'] / 1000:.3f} ms", "under 1 ms")
