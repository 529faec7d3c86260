"""Strangers attack the ports of a node with silent sockets, half-open TLS connections and replayed
ClientHellos. This measures what others notice of them.

    strangers_attack.py PAWLD       prints the figures of docs/security.md, section Strangers
"""

import asyncio
import multiprocessing
import os
import random
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import pawltest  # noqa: E402
from pawltest import Cluster  # noqa: E402


class Authority:
    """The certificates of an authority, in a directory of its own. The openssl program makes
    them."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-strangers-")
        self.run("req", "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt",
                 "-days", "2")
        for name, uri in (("a", "node:a"), ("b", "node:b"), ("c", "node:c"), ("ops", "client:ops")):
            self.make(name, "pawl:" + uri)

    def run(self, *arguments):
        new_key = (("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
                   if arguments[0] == "req" else ())
        subprocess.run(("openssl",) + arguments + new_key, cwd=self.dir, check=True,
                       stderr=subprocess.DEVNULL)

    def make(self, name, uri):
        self.run("req", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(self.path(name + ".ext"), "w") as f:
            f.write("subjectAltName = URI:%s, IP:127.0.0.1\n" % uri)
        self.run("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                 "-CAcreateserial", "-days", "2",
                 "-extfile", name + ".ext", "-out", name + ".crt")

    def path(self, name):
        return os.path.join(self.dir, name)

    def section(self, _, name):
        return "ca = %s\ncert = %s\nkey = %s\n%s" % (self.path("ca.crt"), self.path(name + ".crt"),
                                                     self.path(name + ".key"),
                                                    pawltest.rights(self.dir,
                                                                    ("ops", pawltest.ALL)))

    def context(self):
        return pawltest.tls_context(self.path("ca.crt"), self.path("ops.crt"), self.path("ops.key"))

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def allow_files():
    """Allows as many open files as possible, for this process and for the nodes that it starts."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def resident_kilobytes(node):
    with open("/proc/%d/status" % node.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def client_hello():
    """Returns the first bytes that a client of TLS 1.3 sends. They can be sent again and again."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def open_sockets(address, count, first_bytes=b"", from_host=""):
    """Makes connections that send `first_bytes` and then nothing. Connections that the node closes
    stay in the list."""
    sockets = []
    for _ in range(count):
        s = socket.create_connection(pawltest.split(address), pawltest.PATIENCE,
                                     (from_host, 0) if from_host else None)
        if first_bytes:
            s.sendall(first_bytes)
        sockets.append(s)
    return sockets


def close_all(sockets):
    for s in sockets:
        s.close()


def _flood(address, rate, seconds, hello, sent):
    connections = []
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < seconds:
        if sent.value > at * rate:
            time.sleep(0.001)
            continue
        try:
            connections += open_sockets(address, 1, hello)
        except OSError:
            pass
        sent.value += 1
        if len(connections) > 400:
            connections.pop(0).close()
    close_all(connections)


class Flood:
    """Makes `rate` connections a second, from a process of its own, for so many seconds at most.
    Each says the bytes: a ClientHello unless told otherwise. The latest 400 stay open. Use in a
    with statement."""

    def __init__(self, address, rate, seconds, hello=None):
        hello = client_hello() if hello is None else hello
        self.sent = multiprocessing.Value("L", 0, lock=False)
        self.process = multiprocessing.Process(target=_flood,
                                               args=(address, rate, seconds, hello, self.sent),
                                               daemon=True)

    def __enter__(self):
        self.process.start()
        while self.sent.value < 50:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def latencies(client, seconds):
    """Returns how long acquires and releases take, in seconds, sorted. For a refused request this
    is the time until the refusal."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times += _acquire_and_release(client)
    return sorted(times)


def _acquire_and_release(client):
    begin = time.monotonic()
    try:
        key = "measured-%d" % client.last
        got = client.call("acquire", key=key, lease_ms=5000)
        middle = time.monotonic()
        client.call("release", key=key, lock_id=got["lock_id"])
        return [middle - begin, time.monotonic() - middle]
    except pawltest.Refused:
        return [time.monotonic() - begin]


def quantile(times, q):
    return times[min(len(times) - 1, int(len(times) * q))]


class Silent:
    """Holds `count` silent sockets open on each of the addresses, from threads. A socket that is
    closed is replaced at once. Use it in a with statement."""

    def __init__(self, addresses, count):
        self.addresses, self.count, self.over = [pawltest.split(a) for a in addresses], count, False
        self.held = {a: [] for a in self.addresses}
        self.threads = ([threading.Thread(target=self._hold, args=(a,), daemon=True)
                         for a in self.addresses] if count else [])

    def _hold(self, address):
        held = self.held[address]
        while not self.over:
            while len(held) < self.count and not self.over:
                try:
                    held.append(socket.create_connection(address, 0.5))
                except OSError:
                    break  # Nobody listens there now.
            held[:] = [s for s in held if is_open(s)]
            time.sleep(0.01)
        close_all(held)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        end = time.monotonic() + 2
        while (self.threads and time.monotonic() < end
               and any(len(h) < self.count * 0.7 for h in self.held.values())):
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()


def is_open(s):
    """Reads what has arrived, and returns whether the other end has left the socket open. Closes
    the socket if it has not."""
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    s.close()
    return False


# A whole request (docs/client-protocol.md).
PING = b"\x94\x00\x01\xa4ping\x80"


async def _enter(host, port, context, distance):
    """Connects and makes a handshake, as a client whose answers take `distance` seconds. Returns
    whether the node has let it in, and the writer of its connection."""
    reader, writer = await asyncio.open_connection(host, port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            got = await reader.read(65536)
            if not got:
                return False, writer
            incoming.write(got)
        await asyncio.sleep(distance)
    client.write(PING)
    writer.write(outgoing.read())
    return bool(await reader.read(1)), writer


async def _crowd(host, port, context, count, distance, seconds):
    begin, took, stays = time.monotonic(), [], []

    async def come():
        while True:
            try:
                entered, writer = await _enter(host, port, context, distance)
                if entered:
                    took.append(time.monotonic() - begin)
                    stays.append(writer)
                    return
                writer.close()
            except OSError:
                pass
            await asyncio.sleep(random.uniform(0.25, 0.75))

    _, waiting = await asyncio.wait([asyncio.create_task(come()) for _ in range(count)],
                                    timeout=seconds)
    for task in waiting:
        task.cancel()
    for writer in stays:
        writer.close()
    return took


def crowd(address, context, count, distance, seconds):
    """Has `count` clients come from one address at once; their answers take `distance` seconds, and
    those that are closed come again after 250 to 750 ms. Returns after how many seconds each has
    been let in, without those that have not within `seconds`."""
    context.check_hostname = False
    return asyncio.run(_crowd(*pawltest.split(address), context, count, distance, seconds))


def restart(cluster, name, strangers):
    """Returns how many seconds a master takes from its start after a crash until it votes, while
    others keep `strangers` silent sockets on the peer port of every node. None: it does not vote
    within pawltest.PATIENCE."""
    cluster.nodes[name].kill()
    with Silent(cluster.peers.values(), strangers):
        begin = time.monotonic()
        node = cluster.start(name)
        try:
            node.wait_log(" voting ")
        except AssertionError:
            return None
        return time.monotonic() - begin


def _print_restarts(pawld, authority):
    with Cluster(pawld, tls=authority.section) as cluster:
        for strangers in (0, 64, 200):
            took = restart(cluster, "c", strangers)
            print("%4d silent sockets on each peer port while a master starts: it votes after %s"
                  % (
                strangers, "%.2f s" % took if took else "never (%d s)" % pawltest.PATIENCE),
                  flush=True)
            if not took:
                cluster.nodes["c"].wait_log(" voting ")


def _print_half_open(pawld, authority, count):
    with Cluster(pawld, tls=authority.section) as cluster:
        node = cluster.nodes["a"]
        before = resident_kilobytes(node)
        held = open_sockets(cluster.clients["a"], count, client_hello()[:200])
        time.sleep(1)
        begin = time.monotonic()
        try:
            with cluster.client("a", tls=authority.context()) as client:
                client.call("ping")
            entered = "a client gets in after %.0f ms" % ((time.monotonic() - begin) * 1000)
        except OSError as e:
            entered = "a client does not get in: %s" % type(e).__name__
        print("%d half-open TLS connections: %d stay open, %.0f MB more, %s" % (
            count, sum(map(is_open, held)), (resident_kilobytes(node) - before) / 1024, entered),
              flush=True)
        close_all(held)


def _print_flood(pawld, authority):
    with Cluster(pawld, tls=authority.section) as cluster, \
            cluster.client("a", tls=authority.context()) as client:
        latencies(client, 0.5)
        for rate in (0, 300, 1300):
            if rate == 0:
                times = latencies(client, 3)
                sent = 0
            else:
                with Flood(cluster.clients["a"], rate, 4) as flood:
                    times = latencies(client, 3)
                sent = flood.sent.value / 4
            print("%4.0f ClientHellos a second: others' p50 %.2f ms, p99 %.2f ms, %d requests" % (
                sent, quantile(times, 0.5) * 1000, quantile(times, 0.99) * 1000, len(times)),
                  flush=True)


def _print_crowd(pawld, authority, count, distance):
    with Cluster(pawld, tls=authority.section) as cluster:
        took = crowd(cluster.clients["a"], authority.context(), count, distance, 20)
        with cluster.client("a", tls=authority.context()) as client:
            evicted = client.call("status")["handshakes_evicted"]
    print("%d clients of one address whose answers take %.0f ms: %d get in, half of these after "
          "%.1f s, the last after %.1f s; %d handshakes were closed" % (
              count, distance * 1000, len(took), quantile(took, 0.5) if took else 0,
              max(took, default=0), evicted), flush=True)


def main():
    allow_files()
    authority = Authority()
    try:
        pawld = os.path.abspath(sys.argv[1])
        _print_restarts(pawld, authority)
        for count in (2000, 10000):
            _print_half_open(pawld, authority, count)
        _print_flood(pawld, authority)
        for distance in (0, 0.05, 0.2, 0.4):
            _print_crowd(pawld, authority, 1000, distance)
    finally:
        authority.remove()


if __name__ == "__main__":
    main()
