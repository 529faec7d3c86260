"""Load at all nodes at once, hot keys by the place of their home, and five masters."""
import signal

from beside import ROUNDS, each
from benchmark import Cluster, Program, duration, median, median_ratio
from gaps import gap_while, several

HOT = (("shared", "shared", "at least 0.5"), ("1/64", "a permit each of 64", "at least 0.5"),
       ("1/16", "a permit each of 16: 48 wait", "at least 0.5"),
       ("exclusive", "exclusive: 63 wait", ""))


def compare(report, key, what, unit, one, other):
    """Adds a row of two figures that were measured in pairs."""
    report.add(key, what, f"{median(one):.0f} and {median(other):.0f}{unit}",
               f"{median_ratio(other, one)} times")


def measure_coordinators(cluster, report, seconds):
    """Compares three nodes that are asked at once with one that is asked for as much."""
    for outstanding in (192, 768):
        one, three = [], []
        for _ in range(ROUNDS):
            one.append(cluster.cycles(seconds, outstanding, 1, ["a"]))
            three.append(cluster.cycles(seconds, outstanding, 3))
        compare(report, f"coordinators_{outstanding}",
            f"cycles/s, {outstanding} outstanding, at one node and at all three", "",
            each(one, "per_second"), each(three, "per_second"))
        compare(report, f"coordinators_cpu_{outstanding}",
            "the same: CPU of the three nodes, one cycle", " us", each(one, "cpu_us"),
            each(three, "cpu_us"))


def measure_hot(cluster, report, seconds):
    """Measures 64 requests for one key, beside exclusive locks on keys of their own."""
    program = Program(cluster.build)
    keys = {name: cluster.keys_of(name) for name in ("a", "b")}
    for place, what, home, clients in (
        ("own", "asked at the key's home", "a", 1), ("other", "asked at another node", "b", 1),
        ("all", "asked at all nodes", "a", 3)):
        plain, rates = [], {terms: [] for terms, _, _ in HOT}
        for _ in range(ROUNDS):
            plain.append(cluster.cycles(seconds, 64, clients)["per_second"])
            for terms in rates:
                rates[terms].append(program.run("cycle", cluster.endpoints(), clients, terms,
                                                next(keys[home]), 64, seconds))
        report.add(f"hot_{place}",
                   f"cycles/s, 64 outstanding, {what}: exclusive, keys of their own",
                   f"{median(plain):.0f}")
        for terms, name, target in HOT:
            some = each(rates[terms], "per_second")
            report.add(f"hot_{place}_{terms}", f"... one key, {name}", f"{median(some):.0f}",
                       f"{target} of that; it is {median_ratio(some, plain)}" if target
                       else median_ratio(some, plain))


def measure_five_cycles(build, report, seconds):
    """Compares five masters with three. The two clusters take turns."""
    with Cluster(build, False) as three, Cluster(build, False, names="abcde") as five:
        for outstanding in (1, 64, 256):
            runs = [(three.cycles(seconds, outstanding), five.cycles(seconds, outstanding))
                    for _ in range(ROUNDS)]
            for key, what, unit, value in (
                ("rate", "cycles/s", "", lambda r: r["per_second"]),
                ("p50", "one cycle, p50", " us", lambda r: r["cycle_us"]["p50"]),
                ("cpu", "CPU of all nodes, one cycle", " us", lambda r: r["cpu_us"])):
                compare(report, f"five_{key}_{outstanding}",
                        f"{what}, {outstanding} outstanding, three masters and five", unit,
                        *([value(r[i]) for r in runs] for i in (0, 1)))
        latency = [c.bench("handoff", "--outstanding", "32", "--duration",
                           duration(seconds))["latency_us"] for c in (three, five)]
        for part in ("p50", "p99"):
            few, many = (one[part] / 1000 for one in latency)
            report.add(f"five_handoff_{part}", f"hand-off, 32 waiters, {part}, three and five",
                       f"{few:.3f} and {many:.3f} ms", f"{many / few:.2f} times")


def measure_five_gaps(build, report):
    with Cluster(build, False, names="abcde") as five:
        for how, sign in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            report.add(f"five_gap_{how}",
                f"five masters: longest gap in grants while two are {how}, the client's own one "
                "among them: median and longest of 3",
                several(lambda s=sign: gap_while(five, ["c", "a", "b"], s, ("c", "d"))),
                "under 30 ms")
