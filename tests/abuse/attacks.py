"""The attacks of abuse.py. Each is a function that makes connections. It either returns what each
of them sends for ever, or it is a generator that yields each time that it has begun again."""

import os
import select
import selectors
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import member_attack  # noqa: E402, F401
import pawltest  # noqa: E402
import strangers_attack  # noqa: E402
from member_attack import attack_member  # noqa: E402, F401
from redis_attacks import attack_mget, attack_mget_unread  # noqa: E402, F401
from tls_attacks import attack_key_updates, attack_records  # noqa: E402, F401
from sending import acquire_all, acquire_pieces, clients, connect, id_of, request  # noqa: E402
from waits_attack import attack_closing, attack_shown  # noqa: E402,F401

WATCHERS = 2300
CROWD, CROWD_WATCHES = 500, 20
# Nearly as many watches as one identity may have, of one key and of all prefixes of a key.
SAME, SAME_WATCHES = 198, 1000
PREFIXED, PREFIXES = 4900, 40
# The number of pairs of an acquire and a release in a piece that is sent again and again.
PAIRS = 64
# The number of locks in one `extend`.
LOCKS = 4096
KEYS = 50000
# The number of keys with values of 60,000 bytes.
KEYS_LARGE = 16
# The greatest size of a value.
LARGE = 65536
WAITING = 40000
WAVE, WAVE_KEYS, WAVE_CONNECTIONS = 64000, 16, 16
# The number of holders of one key; fewer than 1,000 are allowed (holders_per_key).
HOLDERS = 950
# In a second.
HELLOS = 1300


def pairs(number):
    key, lock = "abuse/%d" % number, id_of(number + 1)
    pair = request("acquire", key=key, lock_id=lock,
                   lease_ms=10000) + request("release", key=key, lock_id=lock)
    return pair * PAIRS


def exclusive(count, **more):
    """Yields `count` locks, each on a key of its own."""
    return (dict(key="abuse/%d" % i, lock_id=id_of(i + 1), lease_ms=60000, **more)
            for i in range(count))


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
        acquire_all(c, exclusive(2000), 100)
    return {s: request("list", prefix="abuse/", limit=1000) * PAIRS for s in connect(address, 4)}


def hold(address, locks, piece=500):
    """Makes a connection that has acquired these locks and stays open."""
    client = pawltest.Client(address, timeout=60)
    acquire_all(client, locks, piece)
    open_connections.append(client)


def attack_keys(address):
    """4 connections that pipeline lists of what is not there, among 50,000 keys"""
    hold(address, exclusive(KEYS))
    return {s: request("list", prefix="absent/", limit=1000) * PAIRS for s in connect(address, 4)}


def waits(address, connections, count, keys, **more):
    """Makes `count` requests that wait for keys that are held, over `connections` connections, and
    returns when all have been handed over."""
    made = connect(address, connections)
    for number, s in enumerate(made):
        share = range(number, count, connections)
        s.sendall(b"".join(request("acquire", key="abuse/%d" % (i % keys),
                                   lock_id=id_of((1 << 32) + i), lease_ms=1000, wait_ms=60000,
                                   **more)
                           for i in share) + request("ping"))
    for s in made:
        s.recv(1 << 20)
    return made


def attack_waiters(address):
    """4 connections that pipeline `waiters` of all keys, while 40,000 wait"""
    hold(address, exclusive(400))
    open_connections.extend(waits(address, 16, WAITING, 400))
    return {s: request("waiters", prefix="") * PAIRS for s in connect(address, 4)}


def attack_transfers(address):
    """4 connections that pipeline `transfer` to nobody, of a key for which 9,900 wait"""
    hold(address, exclusive(1))
    open_connections.extend(waits(address, 4, 9900, 1, owner="o" * 255))
    return {s: request("transfer", key="abuse/0", lock_id=id_of(1), to="o" * 254 + "x") * PAIRS
            for s in connect(address, 4)}


def attack_waves(address):
    """64,000 that wait for 16 keys, all leave at once, and come again"""
    hold(address, exclusive(WAVE_KEYS))
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
        # ClientHellos that could not be sent in time are not sent later.
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
        acquire_all(c, exclusive(64))
    locks = [{"key": "abuse/%d" % (i % 64), "lock_id": id_of(i % 64 + 1), "lease_ms": 60000}
             for i in range(LOCKS)]
    return {s: request("extend", locks=locks) for s in connect(address, 4)}


def updates(address, key="abuse/0"):
    """Makes a connection that updates the value of a key that it holds, for ever."""
    s = connect(address, 1)[0]
    with pawltest.Client(address) as c:
        c.call("acquire", key=key, lock_id=id_of(1), lease_ms=60000, value=b"x")
    return {s: request("update", key=key, lock_id=id_of(1), value=b"x" * 100) * PAIRS}


def attack_deaf(address):
    """2,300 watchers that do not read, and a connection that updates what they watch"""
    for s in clients(address, WATCHERS):
        s.sendall(request("watch", prefix="abuse/"))
        open_connections.append(s)
    return updates(address)


def attack_crowd(address):
    """500 connections with 20 watches each, and one that updates what they watch"""
    made = clients(address, CROWD)
    for s in made:
        s.sendall(request("watch", key="abuse/0") * CROWD_WATCHES)
    load = {s: b"" for s in made}
    load.update(updates(address))
    return load


def attack_same(address):
    """198 connections with 1,000 watches of one key each, and one that updates it"""
    made = clients(address, SAME)
    for s in made:
        s.sendall(request("watch", key="abuse/0") * SAME_WATCHES)
    load = {s: b"" for s in made}
    load.update(updates(address))
    return load


def attack_leaves(address):
    """198 connections with 1,000 different watches each leave at once, and come again"""
    # The last request has another number, and is answered last.
    ping, answer = pawltest.pack([0, 2, "ping", [{}]]), b"\x94\x01\x02\xc0"
    loads = [b"".join(request("watch", prefix="abuse/%d/%d" % (i, j)) for j in range(SAME_WATCHES))
             + ping for i in range(SAME)]
    while True:
        made = clients(address, SAME)
        for s, load in zip(made, loads):
            s.sendall(load)
        for s in made:
            data = b""
            while answer not in data:
                data = data[-8:] + s.recv(1 << 16)
        yield
        for s in made:
            s.close()


def attack_prefixes(address):
    """4,900 connections that watch 40 prefixes of one key each, and one that updates it"""
    key = "abuse/" + "p" * PREFIXES
    made = clients(address, PREFIXED)
    for s in made:
        s.sendall(b"".join(request("watch", prefix=key[:size]) for size in range(PREFIXES)))
    load = {s: b"" for s in made}
    load.update(updates(address, key))
    return load


def attack_long(address):
    """A connection that watches all 512 prefixes of a key, and one that updates it"""
    key = "p" * 512
    made = connect(address, 1)[0]
    made.sendall(b"".join(request("watch", prefix=key[:size]) for size in range(512)))
    load = {made: b""}
    load.update(updates(address, key))
    return load


def answers(address, number, count=2000):
    """Asks for `count` answers, and reads none of them."""
    s = connect(address, 1, "127.0.0.2")[0]
    s.setblocking(False)
    open_connections.append(s)
    try:
        s.send(request("get", key="abuse/%d" % (number % KEYS_LARGE)) * count)
    except BlockingIOError:
        pass
    return s


def hold_values(address, size):
    with pawltest.Client(address, source="127.0.0.2") as c:
        acquire_all(c, exclusive(KEYS_LARGE, value=b"x" * size), 1)


def attack_unread(address):
    """1,500 connections from another address that ask for 1,000 answers of 3 KB, and read none"""
    hold_values(address, 3000)
    for i in range(1500):
        answers(address, i, 1000)
    return {}


def attack_memory(address):
    """64 connections from another address that ask for 2,000 large answers each and read none"""
    hold_values(address, 60000)
    made = [answers(address, i) for i in range(64)]
    yield
    while True:
        for i, s in enumerate(made):
            closed = select.poll()
            closed.register(s, select.POLLRDHUP)
            if closed.poll(0):
                open_connections.remove(s)
                s.close()
                made[i] = answers(address, i)
        yield
        time.sleep(0.001)


def attack_halves(address):
    """48 connections that send 4 MiB of a request each, leave before its end, and come again"""
    size = 4 << 20
    body = (b"\x94\x00\x01\xa6update\x91\x81\xa5value\xc6" + struct.pack(">I", size - 200)
            + b"x" * (size - 300))
    made = {}
    yield
    while True:
        while len(made) < 48:
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


def attack_groups(address):
    """1,000 requests for two locks wait, 50,000 locks that end with the connection follow"""
    hold(address, exclusive(16))
    yield
    while True:
        c = pawltest.Client(address, timeout=60)
        for i in range(1000):
            locks = [{"key": "abuse/%d" % (i % 16), "lock_id": id_of((2 << 32) + 2 * i)},
                     {"key": "group/%d" % i, "lock_id": id_of((2 << 32) + 2 * i + 1)}]
            c.send("acquire", locks=locks, lease_ms=5000, wait_ms=4000, release_on_disconnect=True)
        yield from acquire_pieces(
            c, (dict(key="single/%d" % i, lock_id=id_of((3 << 32) + i), lease_ms=20000,
                     release_on_disconnect=True) for i in range(50000)), may_refuse=True)
        c.close()


def attack_reads(address):
    """8 connections that pipeline quorum reads of values of 64 KiB"""
    with pawltest.Client(address) as c:
        acquire_all(c, exclusive(8, value=b"x" * LARGE), 1)
    return {s: request("get", key="abuse/%d" % i, consistency="quorum") * PAIRS
            for i, s in enumerate(connect(address, 8))}


def attack_values(address):
    """8 connections that pipeline updates of 64 keys each with values of 64 KiB"""
    hold(address, exclusive(8 * PAIRS))
    return {s: b"".join(request("update", key="abuse/%d" % j, lock_id=id_of(j + 1),
                                value=b"y" * LARGE) for j in range(PAIRS * i, PAIRS * (i + 1)))
            for i, s in enumerate(connect(address, 8))}


def greeted(address, name):
    """Returns a link of a node that is not a member (any more), and a frame that it may send: the
    one with which it was greeted."""
    s = connect(address, 1)[0]
    hello = pawltest.pack({"pawl": [1, 1], "features": 0, "cluster": "test", "node": name,
                           "id": name.encode().ljust(16), "boot": 1})
    s.sendall(struct.pack(">I", len(hello)) + hello)
    data = b""
    while data.count(b"127.0.0.1") == 0:
        more = s.recv(1 << 16)
        if not more:
            raise ConnectionResetError
        data += more
    size = 4 + struct.unpack(">I", data[:4])[0]
    return s, data[size:size + 4 + struct.unpack(">I", data[size:size + 4])[0]]


def attack_removed(address):
    """20 nodes that were removed say hello and then send one frame after the other"""
    made = {}
    while True:
        for number in set(range(20)) - {number for number, *_ in made.values()}:
            s, frame = greeted(address, "removed%d" % number)
            s.setblocking(False)
            made[s] = (number, frame * 1000, 0)
        for s, (number, load, at) in list(made.items()):
            try:
                made[s] = (number, load, write(s, load, at))
                while not s.recv(1 << 16):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except ConnectionError:
                del made[s]
                s.close()
        yield


def hold_shared(address):
    """A connection that has acquired one key as a shared lock HOLDERS times."""
    hold(address, (dict(key="abuse/0", mode="shared", lock_id=id_of((4 << 32) + i),
                        lease_ms=60000, wait_ms=10000) for i in range(HOLDERS)), 50)


def attack_holders_read(address):
    """8 connections that pipeline quorum `get`s of a key that 950 share"""
    hold_shared(address)
    return {s: request("get", key="abuse/0", consistency="quorum") * PAIRS
            for s in connect(address, 8)}


def attack_holders_explain(address):
    """4 connections that pipeline `explain` of a key that 950 share"""
    hold_shared(address)
    return {s: request("explain", key="abuse/0") * PAIRS for s in connect(address, 4)}


def attack_holders_join(address):
    """64 connections that acquire and release a further place on a key that 950 share"""
    hold_shared(address)
    load = {}
    for number, s in enumerate(connect(address, 64)):
        locks = [id_of((5 << 32) + (number << 16) + i) for i in range(PAIRS)]
        load[s] = b"".join(
            request("acquire", key="abuse/0", mode="shared", lock_id=lock, lease_ms=10000,
                    wait_ms=5000)
            + request("release", key="abuse/0", lock_id=lock) for lock in locks)
    return load


# In these attacks connections stay open and are never read.
open_connections = []
OVER_TLS = {"hellos", "records", "key_updates"}
WITH_CERTIFICATE = {"records", "key_updates"}
AT_REDIS_PORT = {"mget", "mget_unread"}
AT_PEER_PORT = {"removed", "member"}
# In these attacks node c does not run, and the attacker speaks in its place.
AS_MEMBER = {"member"}
# These attacks take the memory of connections, which the system must get back afterwards.
OF_CONNECTIONS = {"halves", "memory", "mget_unread", "unread"}
ATTACKS = {name[7:]: function for name, function in list(globals().items())
           if name.startswith("attack_")}


def write(s, load, at):
    """Sends as much of the repeated piece as the socket takes. Returns how far it came."""
    try:
        return (at + s.send(memoryview(load)[at:])) % len(load)
    except BlockingIOError:
        return at


def attack(name, address, ready, *more):
    """Sends as much as the node takes, and reads all that it answers, until it is killed. `more`
    is the authority for those WITH_CERTIFICATE, and the identity of c for those AS_MEMBER."""
    loads = ATTACKS[name](address, *more)
    if not isinstance(loads, dict):
        for _ in loads:
            ready.set()
    selector, places = selectors.DefaultSelector(), dict.fromkeys(loads, 0)
    for s, load in loads.items():
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ | (selectors.EVENT_WRITE if load else 0))
    ready.set()
    while selector.get_map() or open_connections:
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
