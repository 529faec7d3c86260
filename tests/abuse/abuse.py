#!/usr/bin/env python3
"""What others feel of a client that takes too much.

    tests/abuse/abuse.py PAWLD [--seconds S] [--windows N] [--only ATTACK,...] [--first]
        [--judge TIMES] [--json FILE]

Three masters on loopback. A victim acquires and releases a key of its own, one after the other,
through node a: first while nobody else does anything, then while one client attacks node a with all
that its rights allow. Prints a table in Markdown: the victim's p50 and p99 (each the median of N
windows of S seconds) and its longest wait, before and during, how much of the time node a was ready
to run and waited for a processor, and how many of the victim's requests were refused and links
between nodes broke. With --first the nodes and the victim come before all other programs of the
machine, as if the attacker had a machine of its own (as root, with kernel.sched_rt_runtime_us at
-1: otherwise the kernel stops a busy node for 50 ms a second).

With --judge it fails if p50 or p99 during the attack are more than TIMES those before (and more
than a floor), or a request was refused, or a link broke. The floors are high without --first: on a
machine that does other work besides, small times say more about that than about the node. With
both, where the machine does not permit --first it goes on without.
"""
import argparse
import json
import multiprocessing
import os
import select
import selectors
import socket
import ssl
import statistics
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402
import strangers_attack  # noqa: E402

FLOORS_MS = {"p50": 100.0, "p99": 300.0}
FLOORS_FIRST_MS = {"p50": 10.0, "p99": 40.0}
SETTLE_S = 1.0
WATCHERS = 2300
CROWD, CROWD_WATCHES = 500, 20
PAIRS = 64      # of acquire and release, in one piece that is sent again and again
LOCKS = 4096    # in one `extend`
KEYS = 50000
KEYS_LARGE = 16 # with values of 60,000 bytes
WAITING = 40000
WAVE, WAVE_KEYS, WAVE_CONNECTIONS = 64000, 16, 16
HELLOS = 1300   # a second


def request(method, **params):
    return pawltest.pack([0, 1, method, [params]])


def id_of(number):
    return number.to_bytes(16, "big")


# ---- the attacks: each makes connections, and says what each of them sends for ever; or yields,
# each time that it has begun again ----.


def connect(address, count, source=None):
    made = []
    for _ in range(count):
        s = socket.create_connection(pawltest.split(address),
                                     source_address=(source, 0) if source else None)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.append(s)
    return made


def pairs(number):
    key, lock = "abuse/%d" % number, id_of(number + 1)
    pair = request("acquire", key=key, lock_id=lock,
                   lease_ms=10000) + request("release", key=key, lock_id=lock)
    return pair * PAIRS


def attack_pipeline(address):
    """16 connections that pipeline acquire and release"""
    return {s: pairs(i) for i, s in enumerate(connect(address, 16))}


def attack_explain(address):
    """4 connections that pipeline explain"""
    return {s: request("explain", key="abuse/%d" % i) * PAIRS
            for i, s in enumerate(connect(address, 4))}


def attack_list(address):
    """4 connections that pipeline lists of 1,000 keys"""
    with pawltest.Client(address) as c:
        for at in range(0, 2000, 100):
            sent = [c.send("acquire", key="abuse/%d" % i, lock_id=id_of(i + 1), lease_ms=60000)
                    for i in range(at, at + 100)]
            for msgid in sent:
                c.answer(msgid)
    return {s: request("list", prefix="abuse/", limit=1000) * PAIRS for s in connect(address, 4)}


def hold(address, count):
    """A connection that has acquired so many keys."""
    client = pawltest.Client(address, timeout=60)
    for at in range(0, count, 500):
        sent = [client.send("acquire", key="abuse/%d" % i, lock_id=id_of(i + 1), lease_ms=60000)
                for i in range(at, min(at + 500, count))]
        for msgid in sent:
            client.answer(msgid)
    kept.append(client)
    return client


def attack_keys(address):
    """4 connections that pipeline lists of what is not there, among 50,000 keys"""
    hold(address, KEYS)
    return {s: request("list", prefix="absent/", limit=1000) * PAIRS for s in connect(address, 4)}


def waits(address, connections, count, keys):
    """So many requests that wait for keys that are held, on so many connections; all have been
    handed over."""
    made = connect(address, connections)
    for number, s in enumerate(made):
        share = range(number, count, connections)
        s.sendall(b"".join(request("acquire", key="abuse/%d" % (i % keys),
                                   lock_id=id_of((1 << 32) + i), lease_ms=1000, wait_ms=60000)
                           for i in share) + request("ping"))
    for s in made:
        s.recv(1 << 20)
    return made


def attack_waiters(address):
    """4 connections that pipeline `waiters` of all keys, while 40,000 wait"""
    hold(address, 400)
    kept.extend(waits(address, 16, WAITING, 400))
    return {s: request("waiters", prefix="") * PAIRS for s in connect(address, 4)}


def attack_waves(address):
    """64,000 that wait for 16 keys, all leave at once, and come again"""
    hold(address, WAVE_KEYS)
    yield
    while True:
        for s in waits(address, WAVE_CONNECTIONS, WAVE, WAVE_KEYS):
            s.close()
        yield


def attack_hellos(address):
    """1,300 replayed ClientHellos a second (over TLS)"""
    hello, made = strangers_attack.client_hello(), []
    begun, sent = time.monotonic(), 0
    while True:
        # What could not be sent in time is not made up for.
        sent = max(sent, int((time.monotonic() - begun - 1) * HELLOS))
        while sent < (time.monotonic() - begun) * HELLOS:
            made += strangers_attack.open_sockets(address, 1, hello)
            sent += 1
            if len(made) > 400:
                made.pop(0).close()
        yield
        time.sleep(0.001)


def attack_extend(address):
    """4 connections that extend 4,096 locks at once, again and again"""
    with pawltest.Client(address) as c:
        for i in range(64):
            c.call("acquire", key="abuse/%d" % i, lock_id=id_of(i + 1), lease_ms=60000)
    locks = [{"key": "abuse/%d" % (i % 64), "lock_id": id_of(i % 64 + 1), "lease_ms": 60000}
             for i in range(LOCKS)]
    return {s: request("extend", locks=locks) for s in connect(address, 4)}


def updates(address):
    """A connection that updates the value of a key that it holds, for ever."""
    s = connect(address, 1)[0]
    with pawltest.Client(address) as c:
        c.call("acquire", key="abuse/0", lock_id=id_of(1), lease_ms=60000, value=b"x")
    return {s: request("update", key="abuse/0", lock_id=id_of(1), value=b"x" * 100) * PAIRS}


def attack_deaf(address):
    """2,300 watchers that do not read, and a connection that updates what they watch"""
    for s in connect(address, WATCHERS):
        s.sendall(request("watch", prefix="abuse/"))
        kept.append(s)
    return updates(address)


def attack_crowd(address):
    """500 connections with 20 watches each, and one that updates what they watch"""
    made = connect(address, CROWD)
    for s in made:
        s.sendall(request("watch", key="abuse/0") * CROWD_WATCHES)
    load = {s: b"" for s in made}
    load.update(updates(address))
    return load


def answers(address, number):
    """Asks for 2,000 large answers, and reads none of them."""
    s = connect(address, 1, "127.0.0.2")[0]
    s.setblocking(False)
    kept.append(s)
    try:
        s.send(request("get", key="abuse/%d" % (number % KEYS_LARGE)) * 2000)
    except BlockingIOError:
        pass
    return s


def attack_memory(address):
    """64 connections from another address that ask for 2,000 large answers each, read none, and
    come again when they are closed"""
    with pawltest.Client(address, source="127.0.0.2") as c:
        for i in range(KEYS_LARGE):
            c.call("acquire", key="abuse/%d" % i, lock_id=id_of(i + 1), lease_ms=60000,
                   value=b"x" * 60000)
    made = [answers(address, i) for i in range(64)]
    yield
    while True:
        for i, s in enumerate(made):
            closed = select.poll()
            closed.register(s, select.POLLRDHUP)
            if closed.poll(0):
                kept.remove(s)
                s.close()
                made[i] = answers(address, i)
        yield
        time.sleep(0.001)


def attack_halves(address):
    """60 connections that send 4 MiB of a request each, leave before its end, and come again"""
    size = 4 << 20
    body = (b"\x94\x00\x01\xa6update\x91\x81\xa5value\xc6" + struct.pack(">I", size - 200)
            + b"x" * (size - 300))
    made = {}
    yield
    while True:
        while len(made) < 60:
            s = connect(address, 1)[0]
            s.sendall(request("ping"))
            s.setblocking(False)
            made[s] = 0
        for s, at in list(made.items()):
            try:
                made[s] = at + s.send(memoryview(body)[at:at + (1 << 18)])
            except BlockingIOError:
                pass
            except OSError:
                made[s] = len(body)
            if made[s] >= len(body):
                del made[s]
                s.close()
        yield


def in_small_records(address, authority, data, times):
    """A connection over TLS, and what it is to send: each byte in a record of its own."""
    s = socket.create_connection(pawltest.split(address))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = authority.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            s.sendall(outgoing.read())
            incoming.write(s.recv(1 << 16))
    s.sendall(outgoing.read())
    for _ in range(times):
        for at in range(len(data)):
            tls.write(data[at:at + 1])
    return s, outgoing.read()


def attack_records(address, authority):
    """16 connections whose TLS records have one byte each (over TLS)"""
    pings = request("ping") * 300
    made = dict(in_small_records(address, authority, pings, 8) for _ in range(16))
    places = dict.fromkeys(made, 0)
    for s in made:
        s.setblocking(False)
    yield
    while True:
        for s, data in made.items():
            try:
                if places[s] < len(data):
                    places[s] += s.send(memoryview(data)[places[s]:places[s] + (1 << 20)])
                s.recv(1 << 20)
            except BlockingIOError:
                pass
        yield
        time.sleep(0.001)


def attack_groups(address):
    """1,000 requests for two locks wait, 50,000 locks that end with the connection follow"""
    hold(address, 16)
    yield
    while True:
        c = pawltest.Client(address, timeout=60)
        for i in range(1000):
            locks = [{"key": "abuse/%d" % (i % 16), "lock_id": id_of((2 << 32) + 2 * i)},
                     {"key": "group/%d" % i, "lock_id": id_of((2 << 32) + 2 * i + 1)}]
            c.send("acquire", locks=locks, lease_ms=5000, wait_ms=4000, release_on_disconnect=True)
        for at in range(0, 50000, 500):
            sent = [c.send("acquire", key="single/%d" % i, lock_id=id_of((3 << 32) + i),
                           lease_ms=20000, release_on_disconnect=True)
                    for i in range(at, at + 500)]
            for msgid in sent:
                try:
                    c.answer(msgid)
                except pawltest.Refused:
                    pass
            yield
        c.close()


kept = []  # open, never read
OVER_TLS = {"hellos", "records"}
WITH_CERTIFICATE = {"records"}
ATTACKS = {name[7:]: function for name, function in list(globals().items())
           if name.startswith("attack_")}


def write(s, load, at):
    """Sends what the socket takes of what is sent again and again; how far it came."""
    try:
        return (at + s.send(memoryview(load)[at:])) % len(load)
    except BlockingIOError:
        return at


def attack(name, address, ready, authority):
    """Sends as much as the node takes, and reads all that it answers, until it is killed."""
    loads = ATTACKS[name](address, *([authority] if name in WITH_CERTIFICATE else []))
    if not isinstance(loads, dict):
        for _ in loads:
            ready.set()
    selector, places = selectors.DefaultSelector(), dict.fromkeys(loads, 0)
    for s, load in loads.items():
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ | (selectors.EVENT_WRITE if load else 0))
    ready.set()
    while selector.get_map():
        for key, what in selector.select():
            s = key.fileobj
            try:
                if what & selectors.EVENT_READ and not s.recv(1 << 20):
                    raise ConnectionResetError
                if what & selectors.EVENT_WRITE:
                    places[s] = write(s, loads[s], places[s])
            except BlockingIOError:
                pass
            except ConnectionError:
                selector.unregister(s)


# ---- the victim ----

def measure(client, seconds):
    """How long each pair of acquire and release took, in ms, and how many the node refused."""
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
    """For how long the node was ready to run and had no processor, since it began."""
    with open("/proc/%d/schedstat" % node.process.pid) as f:
        return int(f.read().split()[1]) / 1e9


def measure_windows(client, node, args):
    begun, waited = time.monotonic(), waited_s(node)
    seen = [measure(client, args.seconds) for _ in range(args.windows)]
    result = {what: statistics.median(w[what] for w in seen) for what in ("p50", "p99")}
    result.update(longest=max(w["longest"] for w in seen), refused=sum(w["refused"] for w in seen))
    result["waited"] = 100 * (waited_s(node) - waited) / (time.monotonic() - begun)
    return result


def put_first(cluster):
    """The nodes and the victim get a processor as soon as they are ready to run, as if the attacker
    had a machine of its own. The
    node that is attacked comes last of them: it may take all the time that there is."""
    for name, node in cluster.nodes.items():
        os.sched_setscheduler(node.process.pid, os.SCHED_FIFO,
                              os.sched_param(1 if name == "a" else 2))
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(3))


def may_be_first():
    try:
        with open("/proc/sys/kernel/sched_rt_runtime_us") as f:
            unbounded = int(f.read()) < 0
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return unbounded
    except OSError:
        return False


def broken_links(cluster):
    return sum(line is not None and " peer_down" in line for node in cluster.nodes.values()
               for line in node.lines)


# What turns do where shares stop nobody: 64,000 waits are more than one identity may have.
LIMITS = ("[limits]\nwaits_per_identity = 0\nwaits_per_address = 0\nrequests_per_identity = 0\n"
          "requests_per_address = 0\n")


def try_attack(name, args, authority):
    context = multiprocessing.get_context("spawn")
    tls = (authority.section, authority.context()) if name in OVER_TLS else (None, None)
    with pawltest.Cluster(os.path.abspath(args.pawld), node=LIMITS,
                          tls=tls[0]) as cluster, cluster.client("a", timeout=60,
                                                                 tls=tls[1]) as victim:
        ready, node = context.Event(), cluster.nodes["a"]
        if args.first:
            put_first(cluster)
        measure(victim, SETTLE_S)
        result = {"before": measure_windows(victim, node, args)}
        links = broken_links(cluster)
        attacker = context.Process(target=attack, args=(name, cluster.clients["a"], ready,
                                                        authority), daemon=True)
        attacker.start()
        try:
            assert ready.wait(60), "the attack has not begun"
            measure(victim, SETTLE_S)
            result["during"] = measure_windows(victim, node, args)
            assert attacker.is_alive(), "the attack has ended"
        finally:
            attacker.kill()
            attacker.join()
        result["broken_links"] = broken_links(cluster) - links
        return result


def problem(name, result, times, floors):
    if result["broken_links"]:
        return "%s: %d links between nodes broke" % (name, result["broken_links"])
    if result["during"]["refused"]:
        return "%s: %d requests were refused" % (name, result["during"]["refused"])
    for what, floor in floors.items():
        before, during = result["before"][what], result["during"][what]
        if during > max(times * before, floor):
            return "%s: %s %.1f ms, more than %g times the %.1f ms before" % (
                name, what, during, times, before)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pawld")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--only", default=",".join(ATTACKS))
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
          "during | no processor | refused | broken links |")
    print("| :-- |" + " --: |" * 10)
    try:
        for name in args.only.split(","):
            r = results[name] = try_attack(name, args, authority)
            numbers = [form % r[when][what] for when in ("before", "during")
                       for what, form in (("p50", "%.1f ms"), ("p99", "%.1f ms"),
                                          ("longest", "%.0f ms"), ("waited", "%.0f %%"))]
            print("| %s | %s | %d | %d |" % (ATTACKS[name].__doc__, " | ".join(numbers),
                                             r["during"]["refused"], r["broken_links"]), flush=True)
            problems.append(args.judge and problem(name, r, args.judge,
                                                   FLOORS_FIRST_MS if args.first else FLOORS_MS))
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
