"""The longest time without a grant while nodes are killed or stopped."""
import os
import signal
import subprocess
import sys
import time

from benchmark import ROOT, await_that, finish, median

PYTHON_GAP = """
import sys, time
sys.path.insert(0, sys.argv[1])
import pawl
files = dict(zip(("ca_file", "cert_file", "key_file"), sys.argv[4::2]))
with pawl.connect(sys.argv[2], prefer_first=True, **files) as client:
    end = time.monotonic() + 4
    longest, last = 0.0, time.monotonic()
    while last < end:
        with client.lock("gap/python", lease=10, wait=0):
            now = time.monotonic()
            longest, last = max(longest, now - last), now
print(longest * 1000)
"""


def gap_while(cluster, nodes, sign, victims=("c",)):
    """Returns the longest gap in grants of a client that prefers these nodes in this order, while
    the victims get a signal; then mends them."""
    under_way = cluster.bench_start("gap", "--duration", "3s", nodes=nodes)
    time.sleep(1.5)
    return mend(cluster, sign, victims, lambda: finish(under_way)["longest_gap_ms"])


def mend(cluster, sign, victims, finished):
    """Sends the victims the signal, waits for what `finished` returns, and mends them."""
    for name in victims:
        cluster.processes[name].send_signal(sign)
    result = finished()
    for name in victims:
        if sign == signal.SIGKILL:
            cluster.processes[name].wait()
            cluster.start(name)
        else:
            cluster.processes[name].send_signal(signal.SIGCONT)
    for name in victims:
        await_that(f"node {name} votes again", 20, lambda n=name: cluster.votes(n))
    return result


def gap_of_python(cluster, nodes, sign):
    """The same for a Python program that acquires and releases one lock at a time."""
    under_way = subprocess.Popen(
        [sys.executable, "-c", PYTHON_GAP, os.path.join(ROOT, "bindings/python"),
         cluster.endpoints(nodes),
         *(cluster.tls_options if cluster.tls else [])],
        stdout=subprocess.PIPE, text=True)
    time.sleep(2.5)
    return mend(cluster, sign, ("c",), lambda: float(under_way.communicate()[0]))


HUNG_HOME = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import pawl
nodes, victim, contend, key = sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4], sys.argv[5]
files = dict(zip(("ca_file", "cert_file", "key_file"), sys.argv[7::2]))
clients = [pawl.connect(node, **files) for node in (*nodes, *nodes)]
locks = [client.lock(key, lease=30, wait=30) for client in clients]
granted = []
def wait(lock):
    lock.acquire()
    granted.append(time.monotonic())
    lock.release()
waiters = [threading.Thread(target=wait, args=(lock,)) for lock in locks[2:]]
if contend == "turn":
    # The first one holds the key, the next one has the turn, and then two wait.
    locks[0].acquire()
    ahead = threading.Thread(target=locks[1].acquire)
    for thread in (ahead, *waiters):
        thread.start()
        time.sleep(0.2)
    os.kill(victim, signal.SIGSTOP)
    locks[0].release()
    ahead.join()
    began = time.monotonic()
    locks[1].release()
else:
    for client in clients:
        client.status()
    os.kill(victim, signal.SIGSTOP)
    began = time.monotonic()
    for waiter in waiters:
        waiter.start()
for waiter in waiters:
    waiter.join()
print((max(granted) - began) * 1000)
"""


def hung_home(cluster, what, keys):
    """Returns how long two clients waited, in ms, until both of them had had a key whose home c was
    stopped: two that came to it at once, or the two that waited for the next turns."""
    done = subprocess.run(
        [sys.executable, "-c", HUNG_HOME, os.path.join(ROOT, "bindings/python"),
         cluster.endpoints(("a", "b")), str(cluster.processes["c"].pid), what,
         next(keys), *(cluster.tls_options if cluster.tls else [])],
        stdout=subprocess.PIPE, text=True, check=True)
    cluster.processes["c"].send_signal(signal.SIGCONT)
    await_that("node c votes again", 20, lambda: cluster.votes("c"))
    # A node that was suspected a moment ago may be silent for longer.
    time.sleep(3)
    return float(done.stdout)


def measure_hung_home(cluster, report, label, runs=9):
    keys = cluster.keys_of("c")
    for what, text in (("contend", "two come to a key whose home is stopped"),
                       ("turn", "two wait for the next turns of a home that is stopped")):
        took = sorted(hung_home(cluster, what, keys) for _ in range(runs))
        report.add(f"{label}home_{what}",
                   f"{label}{text}: until both have had it, median of {runs}",
                   f"{median(took):.1f} ms", "under 30 ms")
        report.add(f"{label}home_{what}_worst", f"{label}the same, the longest",
                   f"{took[-1]:.1f} ms")


def several(measure, runs=3):
    """Returns the median and the longest of several gaps, as text."""
    gaps = sorted(measure() for _ in range(runs))
    return f"{median(gaps):.1f} and {gaps[-1]:.1f} ms"


def measure_gap(cluster, report, label):
    """Measures the longest gap in grants when a master is killed or stopped, at another node and
    at that very node."""
    quiet = several(lambda: cluster.bench("gap", "--duration", "3s",
                                          nodes=["a"])["longest_gap_ms"])
    report.add(f"{label}gap_quiet",
               f"{label}longest gap in grants, nothing happens: median and longest of 3", quiet)
    for how, sign in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        for key, what, measure, nodes in (
            ("gap", f"another master is {how}", gap_while, ["a"]),
            ("gap_own", f"the master that the client is connected with is {how}", gap_while,
             ["c", "a", "b"]),
            ("gap_python", "the same in Python, one at a time", gap_of_python, ["c", "a", "b"])):
            report.add(f"{label}{key}_{how}", f"{label}{what}",
                       several(lambda m=measure, n=nodes, s=sign: m(cluster, n, s)), "under 30 ms")
    measure_hung_home(cluster, report, label)


def measure_overload(cluster, report, label):
    """Measures how often clients leave a node that is not gone, while both processors are full."""
    result = cluster.bench("cycle", "--connections", "64", "--outstanding", "64", "--duration",
                           "10s")
    report.add(f"{label}overload_moves", f"{label}moves to another node in 10 s, 64 connections",
               result["moves"], "at most 1")
    report.add(f"{label}overload_rate", f"{label}cycles/s meanwhile", round(result["per_second"]))
