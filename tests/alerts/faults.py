"""A real Prometheus scrapes a real cluster, and each alert fires in its fault and ends after it.
See scripts/test-alerts."""

import os
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from pawltest import ALL, Closed, Refused, lock_id, rights  # noqa: E402
from test_tls import Certificates  # noqa: E402
from test_rules import rules  # noqa: E402
from world import World  # noqa: E402


def try_to_acquire(client):
    try:
        got = client.call("acquire", key="tried", lease_ms=2000)
        client.call("release", key="tried", lock_id=got["lock_id"])
    except Refused:
        pass


# ---- the faults ----

def quiet(pawld):
    """Nothing fires while all is well. Candidates of an election may wait for long."""
    with World(pawld, replica=True) as (cluster, prometheus), cluster.client("a") as client:
        client.call("acquire", key="leader", lease_ms=10000, release_on_disconnect=True)
        client.send("acquire", key="leader", lease_ms=10000, wait_ms=2**32 - 1)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try_to_acquire(client)
            assert not prometheus.firing(), prometheus.firing()


def node_is_down(pawld):
    with World(pawld) as (cluster, prometheus):
        cluster.nodes["c"].kill()
        prometheus.wait_fires("NodeDown", "OneFailureFromNoQuorum")
        cluster.start("c")
        prometheus.wait_ends()


def no_quorum(pawld):
    """Two of three masters are killed. When one of them is back, it waits before it votes."""
    with World(pawld, replica=True) as (cluster, prometheus), cluster.client("a") as client:
        for name in "bc":
            cluster.nodes[name].kill()
        prometheus.wait_fires("NoQuorum", "NoQuorumAnswers", "ReplicaBehind",
                              meanwhile=lambda: try_to_acquire(client))
        cluster.start("b")
        prometheus.wait_fires("MasterNotVoting")
        cluster.start("c")
        prometheus.wait_ends()


def all_are_down(pawld):
    with World(pawld) as (cluster, prometheus):
        for name in "abc":
            cluster.nodes[name].signal(signal.SIGSTOP)
        prometheus.wait_fires("NoQuorum", "NodeDown")
        for name in "abc":
            cluster.nodes[name].signal(signal.SIGCONT)
        prometheus.wait_ends()


def epoch_is_incomplete(pawld):
    """A change comes into force while a master is down."""
    with World(pawld) as (cluster, prometheus), cluster.client("a") as client:
        cluster.nodes["c"].kill()
        asked = client.send("cluster_set_timing", max_lease_ms=9000)
        prometheus.wait_fires("EpochIncomplete")
        cluster.start("c")
        client.answer(asked)
        prometheus.wait_ends()


def leases_expire(pawld):
    with World(pawld) as (cluster, prometheus), cluster.client("a") as client:
        for i in range(50):
            client.call("acquire", key="x%d" % i, lease_ms=500)
        prometheus.wait_fires("LeasesExpire")
        prometheus.wait_ends()


def waiters(pawld):
    """More and more requests wait for a key whose holder keeps it."""
    with World(pawld) as (cluster, prometheus), cluster.client("a") as client:
        mine = lock_id()
        waiting = {}

        def more():
            client.call("acquire", key="k", lease_ms=9000, lock_id=mine)
            for _ in range(2):
                other = lock_id()
                waiting[client.send("acquire", key="k", lease_ms=9000, wait_ms=120000,
                                    lock_id=other)] = other

        more()
        prometheus.wait_fires("WaitersGrow", "WaiterStuck", meanwhile=more)
        client.call("release", key="k", lock_id=mine)
        for asked, other in waiting.items():
            client.answer(asked)
            client.call("release", key="k", lock_id=other)
        prometheus.wait_fires("AcquireSlow")
        prometheus.wait_ends()


def clients_deadlock(pawld):
    """Two clients each hold what the other one waits for, until one gives up."""
    with World(pawld) as (cluster, prometheus):
        clients = [cluster.client(name) for name in "ab"]
        for i, client in enumerate(clients):
            client.call("acquire", key="k%d" % i, lease_ms=10000)
        for i, client in enumerate(clients):
            client.send("acquire", key="k%d" % (1 - i), lease_ms=10000, wait_ms=60000)
        prometheus.wait_fires("Deadlock")
        for client in clients:
            client.close()
        prometheus.wait_ends()


def node_pauses(pawld):
    with World(pawld) as (cluster, prometheus):
        cluster.nodes["a"].signal(signal.SIGSTOP)
        time.sleep(1)  # A pause is time.
        cluster.nodes["a"].signal(signal.SIGCONT)
        prometheus.wait_fires("NodePaused")
        prometheus.wait_ends()


def siphash(k0, k1, data):
    """SipHash-2-4, with which a state file is checked (src/base/siphash.h)."""
    mask = 2**64 - 1
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
         k1 ^ 0x7465646279746573]

    def turn(x, bits):
        return (x << bits | x >> 64 - bits) & mask

    def rounds(count):
        for _ in range(count):
            v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    size = len(data)
    data += b"\0" * (7 - size % 8) + bytes([size & 255])
    for (m,) in struct.iter_unpack("<Q", data):
        v[3] ^= m
        rounds(2)
        v[0] ^= m
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def far_ahead(path):
    """Writes a clock into a state file that is far ahead of all others."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    magic = b"PAWLSTA2"
    at = data.find(magic)
    assert at >= 0
    while at >= 0:
        sequence, size, checksum = struct.unpack_from("<QIQ", data, at + 8)
        payload = data[at + 28:at + 28 + size]
        key = (0x7061776c73746174, sequence)
        assert siphash(*key, bytes(payload)) == checksum
        # The clock stands behind the names of the cluster and the node, the identity, and `boot`.
        clock = 1 + payload[0]
        clock += 1 + payload[clock] + 16 + 8
        struct.pack_into("<Q", payload, clock, 1 << 50)
        data[at + 28:at + 28 + size] = payload
        struct.pack_into("<Q", data, at + 20, siphash(*key, bytes(payload)))
        at = data.find(magic, at + 28 + size)
    with open(path, "wb") as f:
        f.write(data)


def clock_is_refused(pawld):
    """A master comes back with a clock in its state file that is far ahead."""
    with World(pawld) as (cluster, prometheus):
        path = os.path.join(cluster.dir, "state-c", "state")
        cluster.nodes["c"].kill()
        with open(path, "rb") as f:
            before = f.read()
        far_ahead(path)
        cluster.start("c")
        prometheus.wait_fires("ClockRefused")
        cluster.nodes["c"].kill()
        with open(path, "wb") as f:
            f.write(before)
        cluster.start("c")
        prometheus.wait_ends()


def restart_with_clock(pawld, cluster, name, rate):
    """Starts the node again; its clocks go this many times as fast as they should."""
    library = os.path.abspath(os.path.join(pawld, "../../../tests/rates/librate.so"))
    cluster.nodes[name].terminate()
    with unittest.mock.patch.dict(os.environ, LD_PRELOAD=library, PAWL_TEST_RATE=rate):
        cluster.start(name).wait_log(" voting ")


def key_is_contested(pawld):
    """The clock of a master is much too slow, so it keeps a lease that the others have let end and
    granted again. A master that restarts learns of both holders."""
    with World(pawld) as (cluster, prometheus):
        restart_with_clock(pawld, cluster, "b", "0.1")
        with cluster.client("c") as client:
            client.call("acquire", key="k", lease_ms=9000)
            client.call("acquire", key="k", lease_ms=10000, wait_ms=20000)
        cluster.nodes["a"].kill()
        cluster.start("a")
        prometheus.wait_fires("ContestedKey")
        prometheus.wait_ends()


def key_is_granted_twice(pawld):
    """The clocks of two masters run three times too fast, so they let a lease end while its holder
    counts on it. The replica may not hear both of them again when the first key is granted."""
    with World(pawld, replica=True, node="[audit]\ncheck = yes\n") as (cluster, prometheus):
        for name in "bc":
            restart_with_clock(pawld, cluster, name, "3")
        with cluster.client("a") as first, cluster.client("c") as then:
            while first.call("status")["voting"] < 3:
                pass
            for key in ("k1", "k2"):
                first.call("acquire", key=key, lease_ms=9000, owner="first")
                then.call("acquire", key=key, lease_ms=9000, wait_ms=20000, owner="then")
            prometheus.wait_fires("DoubleGrant")
        said = cluster.nodes["r"].wait_log(" double_grant ")
        for word in ("key=k", "owner=first", "then_owner=then"):
            assert word in said, said
        prometheus.wait_ends()


def state_file_fails(pawld):
    """A master may not write to files any more, while a change wants to be written."""
    with tempfile.TemporaryDirectory() as folder:
        wrapped = os.path.join(folder, "pawld")
        with open(wrapped, "w") as f:
            f.write("#!/bin/sh\ntrap '' XFSZ\nexec %s \"$@\"\n" % pawld)
        os.chmod(wrapped, 0o755)
        with World(wrapped) as (cluster, prometheus), cluster.client("a") as client:
            process = cluster.nodes["c"].process.pid
            before = resource.prlimit(process, resource.RLIMIT_FSIZE)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (0, before[1]))
            asked = client.send("cluster_set_timing", max_lease_ms=9000)
            prometheus.wait_fires("StateFileFails")
            resource.prlimit(process, resource.RLIMIT_FSIZE, before)
            client.answer(asked)
            prometheus.wait_ends()


def state_is_lost(pawld):
    """A master comes back without its state directory."""
    with World(pawld) as (cluster, prometheus), cluster.client("a") as client:
        cluster.nodes["c"].kill()
        shutil.rmtree(os.path.join(cluster.dir, "state-c"))
        cluster.start("c")
        prometheus.wait_fires("NodeOutside", "OneFailureFromNoQuorum")
        client.call("cluster_replace", old="c", new="c")
        prometheus.wait_ends()


def audit_fails(pawld):
    """The disk of the audit file is full."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "audit.log")
        os.symlink("/dev/full", path)
        with World(pawld, node="[audit]\nfile = %s\n" % path) as (cluster, prometheus), \
                cluster.client("a") as client:
            # The file must tell of it, although there is no such client.
            prometheus.wait_fires("AuditFails", meanwhile=lambda: client.send("kick", client=1000))
            prometheus.wait_ends()


def connect(cluster, count):
    """Makes connections that are clients, as far as the node lets them."""
    made = []
    for _ in range(count):
        try:
            made.append(cluster.client("a"))
            made[-1].call("ping")
        except (Refused, Closed, OSError):
            pass
    return made


def limits(pawld):
    with World(pawld, node="[limits]\nclients = 50\nadmin_clients = 0\n") as (cluster, prometheus):
        made = connect(cluster, 100)
        prometheus.wait_fires("LimitNear", "ClientsRefused")
        for client in made:
            client.close()
        prometheus.wait_ends()


def files(pawld):
    with World(pawld) as (cluster, prometheus):
        made = connect(cluster, 50)
        process = cluster.nodes["a"].process.pid
        before = resource.prlimit(process, resource.RLIMIT_NOFILE)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (80, before[1]))
        prometheus.wait_fires("FilesNear")
        resource.prlimit(process, resource.RLIMIT_NOFILE, before)
        prometheus.wait_ends()
        for client in made:
            client.close()


def link_is_down(pawld):
    """b refuses the certificate of a, and c has links with both."""
    with tempfile.TemporaryDirectory() as folder:
        c = Certificates(folder, days=90)
        for name in "abc":
            c.make(name, "pawl:node:" + name, serial=ord(name))

        def revoke(*names):
            with open(c.path("revoked"), "w") as f:
                f.writelines("node:%s\n" % name for name in names)

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s" % (
                c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
                ("revoked = %s\n" % c.path("revoked") if name == "b" else "")
                + rights(c.dir, ("alice", ALL)))

        revoke()
        with World(pawld, tls=section) as (cluster, prometheus):
            revoke("a")
            cluster.nodes["b"].signal(signal.SIGHUP)
            prometheus.wait_fires("LinkDown")
            assert "NodeDown" not in prometheus.firing(), prometheus.firing()
            revoke()
            cluster.nodes["b"].signal(signal.SIGHUP)
            prometheus.wait_ends()


def certificate_ends(pawld):
    with tempfile.TemporaryDirectory() as folder:
        c = Certificates(folder, days=90, nodes="a")

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s" % (
                c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
                rights(c.dir, ("alice", ALL)))

        with World(pawld, masters=1, tls=section) as (cluster, prometheus):
            for days in (10, 60):
                c.make("a", "pawl:node:a", days=days)
                cluster.nodes["a"].signal(signal.SIGHUP)
                if days == 10:
                    prometheus.wait_fires("CertificateEnds")
            prometheus.wait_ends()


FAULTS = [quiet, node_is_down, no_quorum, all_are_down, epoch_is_incomplete, leases_expire, waiters,
          clients_deadlock, node_pauses, clock_is_refused, key_is_contested,
          key_is_granted_twice, state_file_fails, state_is_lost, audit_fails,
          limits, files, link_is_down, certificate_ends]


def untested():
    """The alerts that no fault waits for."""
    with open(os.path.abspath(__file__)) as f:
        awaited = " ".join(re.findall(r"wait_fires\((.*?)[)=]", f.read(), re.S))
    return [name for name in rules() if '"%s"' % name not in awaited]


def main(pawld, words):
    pawld = os.path.abspath(pawld)
    chosen = [f for f in FAULTS if not words or any(w in f.__name__ for w in words)]
    passed = failed = 0
    for fault in chosen:
        begun = time.monotonic()
        print("%s" % fault.__name__, flush=True)
        try:
            fault(pawld)
            passed += 1
            print("  ok, %.0f s" % (time.monotonic() - begun), flush=True)
        except (AssertionError, Closed, Refused, OSError) as problem:
            failed += 1
            print("  FAILED: %r" % problem, flush=True)
    if untested():
        failed += 1
        print("no fault lets these fire: %s" % ", ".join(untested()))
    print("passed=%d failed=%d skipped=0" % (passed, failed))
    return failed == 0 and passed > 0
