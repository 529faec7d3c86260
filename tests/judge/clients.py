"""Clients that acquire keys, use them, release them, die, and come back with what they remember.
Each stands for a process of its own. What they do is drawn from the seed."""

import asyncio
import random

import locks
import rpc
import shapes

HOSTS = ["k1", "k2", "k3"]
KEYS = {"exclusive": ["x1", "x2", "x3", "x4"], "shared": ["r1", "r2"], "permits": ["s1", "s2"]}
PERMITS_OF = {"s1": 3, "s2": 5}
EVERY_KEY = [k for keys in KEYS.values() for k in keys]
MAX_LEASE_MS, LATE_MS = 5000, 10000


class Client:
    """A process with connections of its own, numbered from 1."""

    def __init__(self, cluster, history, number, seed, rate=1.0):
        self.cluster, self.history, self.number, self.rate = cluster, history, number, rate
        self.random = random.Random("client %d %d" % (number, seed))
        self.host, self.owner = HOSTS[number % len(HOSTS)], "client%d" % number
        self.values = self.connected = 0
        # The connection in use, and the other ones that are still open.
        self.current, self.others = None, []
        # For each key: until when a record of a lock that was not released may be left.
        self.rests = {}

    # ---- the history ----

    def another_value(self):
        self.values += 1
        return "v%d.%d" % (self.number, self.values)

    def write(self, op, answer, **fields):
        self.history.op(self.number, op, answer, rate=None if self.rate == 1.0 else self.rate,
                        **fields)

    def examine(self, answer, method, lock=None, lease_ms=None):
        complaint = shapes.fault(answer, method, lock, lease_ms or (lock.lease_ms if lock else 0))
        if complaint:
            self.complain(complaint)

    def complain(self, complaint):
        self.history.moment("complaint", rpc.now(), process=self.number, text=complaint)

    def forget(self, lock):
        """From now on this process does not count on the lock any more."""
        if not lock.over:
            self.history.moment("forget", rpc.now(), process=self.number, **lock.told())
        lock.until = 0

    # ---- connections ----

    async def connect(self, node=None):
        """Makes another connection, which is the current one from now on. Returns it, or None if
        that node does not answer."""
        name = node or self.random.choice(sorted(self.cluster.nodes))
        connection = await rpc.connect(self.cluster.net, self.host, name)
        if connection:
            self.connected += 1
            connection.number = self.connected
            if self.current:
                self.others.append(self.current)
            self.current = connection
        return connection

    async def connection(self):
        """Returns the current connection. If it is broken, this connects to one node after another
        until one answers."""
        while self.current is None or self.current.closed():
            if await self.connect() is None:
                await asyncio.sleep(0.05)
        return self.current

    async def elsewhere(self):
        """Returns a connection to another node than the current one, if one answers."""
        others = [n for n in sorted(self.cluster.nodes) if self.current is None
                  or n != self.current.node]
        for name in self.random.sample(others, len(others)):
            connection = await self.connect(name)
            if connection:
                return connection
        return await self.connection()

    def close(self, connection):
        """Closes the connection from this side. The history notes it unless the connection was
        broken before."""
        for complaint in connection.complaints:
            self.complain(complaint)
        if not connection.closed():
            self.history.moment("close", rpc.now(), process=self.number,
                                connection=connection.number)
        connection.close()

    def close_all(self):
        for connection in [*self.others, *([self.current] if self.current else [])]:
            self.close(connection)
        self.current, self.others = None, []

    # ---- reads ----

    async def get(self, key):
        connection = await self.connection()
        answer = await connection.call("get", locks.PATIENCE_S, key=key, consistency="quorum")
        self.examine(answer, "get")
        holder = (answer.data.get("holders", [answer.data]) if answer.ok and answer.data.get("held")
                  else [])
        shown = holder[0] if len(holder) == 1 else {}
        self.write("get", answer, key=key, consistency="quorum",
                   held=answer.data.get("held") if answer.ok else None, node=connection.node,
                   shown=shown.get("value"), lock_id=shown.get("lock_id"),
                   holder_token=shown.get("token"),
                   holders=[h.get("lock_id") for h in holder] or None)
        return answer

    async def load(self):
        """Sends a request that the node must survive; its answer matters less."""
        connection = await self.connection()
        asked = self.random.choice([("explain", {"key": self.random.choice(EVERY_KEY)}),
                                    ("list", {}), ("status", {}), ("waiters", {"prefix": ""})])
        answer = await connection.call(asked[0], locks.PATIENCE_S, **asked[1])
        self.examine(answer, asked[0])
        self.write(asked[0], answer, node=connection.node, key=asked[1].get("key"))


class Worker(Client):
    """A client that acquires one lock after the other, does a few things with it, and ends it."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        # Each row has a weight, and what to do with a lock that is held.
        self.steps = [
            (10, self.renew), (8, self.write_value), (3, self.write_at_once), (10, self.read),
            (2, self.load_with), (6, self.ask_again),
            (6, self.die_and_come_back), (4, self.outlive), (5, self.make_shared), (4, self.move),
            (6, self.pause), (4, self.work)]
        self.ends = [(10, self.let_go), (4, self.vanish), (3, self.hand_over), (4, self.hang_up),
                     (3, self.expire)]

    def draw(self, table):
        return self.random.choices([what for _, what in table], [weight for weight, _ in table])[0]

    def kind(self, key):
        dice = self.random.random()
        if key in KEYS["shared"]:
            return locks.Kind("shared" if dice < 0.65 else "exclusive")
        if key in KEYS["permits"] and dice < 0.92:
            return locks.Kind("permits", PERMITS_OF[key], self.random.choice([1, 1, 2]))
        return locks.Kind("exclusive" if dice < 0.96 or key in KEYS["exclusive"] else "shared")

    def another_lock(self, key):
        dice, options = self.random.random(), {}
        lease_ms = self.random.choice([300, 600, 1000, 2000, 3000, MAX_LEASE_MS - 1000])
        if dice < 0.25:
            options["release_on_disconnect"] = True
        elif dice < 0.35:
            options["lock_delay_ms"] = self.random.choice([200, 1000])
        if self.random.random() < 0.15:
            options["priority"] = self.random.choice([-1, 1, 5])
        return locks.Lock(self, key, self.kind(key), lease_ms, **options)

    # ---- one turn ----

    def leave(self, lock):
        """Notes that perhaps nobody has released the lock, so its record may last for the longest
        lease. A request that was not answered may still be under way, and arrive when a fault is
        over."""
        late = LATE_MS if lock.unanswered else 0
        self.rests[lock.key] = max(self.rests.get(lock.key, 0),
                                   rpc.now() + (MAX_LEASE_MS + late) * 1000000)

    async def turn(self):
        if self.random.random() < 0.1:
            await self.elsewhere()
        if self.random.random() < 0.12:
            return await self.several()
        lock = self.another_lock(self.random.choice(EVERY_KEY))
        connection = await self.connection()
        answer = await lock.acquire(connection, self.random.choice([0, 0, 300, 1000, 3000]))
        if answer.result in ("unknown", "unsure") and self.random.random() < 0.6:
            answer = await lock.acquire(await self.elsewhere(), self.random.choice([0, 1000]))
        elif answer.result in ("recovering", "no_quorum"):
            await asyncio.sleep(self.random.uniform(0.05, 0.3))
            await self.elsewhere()
        for _ in range(self.random.randint(0, 5)):
            if lock.believed():
                await self.draw(self.steps)(lock)
        await self.end(lock, answer)

    async def end(self, lock, answer):
        if lock.believed():
            await self.draw(self.ends)(lock)
        else:
            await self.give_up(lock, answer)
        if not lock.released or lock.unanswered:
            self.leave(lock)

    async def give_up(self, lock, answer):
        if lock.over or answer.result == "mismatch":
            return
        # A failed acquire may have left something, which is released as the guide says.
        if self.random.random() < 0.8:
            await self.let_go(lock)
        else:
            self.forget(lock)

    async def several(self):
        """Acquires two to four keys in one request, all or none."""
        keys = self.random.sample(EVERY_KEY, self.random.randint(2, 4))
        group = [locks.Lock(self, key, self.kind(key), 2000) for key in keys]
        answer = await locks.acquire_all(await self.connection(), group,
                                         self.random.choice([0, 500, 2000]))
        if answer.result == "unknown" and self.random.random() < 0.7:
            answer = await locks.acquire_all(await self.elsewhere(), group, 1000)
        if answer.result == "unknown":
            for lock in group:
                await lock.release(await self.connection())
                self.leave(lock)
            return
        if not answer.ok:
            return  # An error means that nothing is held.
        for _ in range(self.random.randint(0, 3)):
            if all(lock.believed() for lock in group):
                await asyncio.sleep(self.random.uniform(0, 0.4))
                await locks.extend_all(await self.connection(), group)
        for lock in group:
            await self.end(lock, answer)

    # ---- with a lock ----

    async def renew(self, lock):
        await lock.extend(await self.connection(), name_token=self.random.random() < 0.7,
                          lease_ms=self.random.choice([None, None, 300, MAX_LEASE_MS - 1500]))

    async def write_value(self, lock):
        await lock.update(await self.connection(),
                          self.random.choice([None, "value", "value", "value_seq"]))

    async def write_at_once(self, lock):
        """Makes two updates under one lock_id at the same time, at two nodes."""
        one, other = await self.connection(), await self.elsewhere()
        await asyncio.gather(lock.update(one, self.random.choice([None, "value"])),
                             lock.update(other, "value"))

    async def read(self, lock):
        await self.get(lock.key)

    async def load_with(self, _lock):
        await self.load()

    async def ask_again(self, lock):
        """Repeats an acquire that was answered, at this node or another one."""
        await lock.acquire(await (self.elsewhere() if self.random.random() < 0.7
                                  else self.connection()))

    async def die_and_come_back(self, lock):
        """A process is started again and has the lock_id on its disk. It does not know for how long
        it may count on the lock."""
        self.forget(lock)
        if self.random.random() < 0.5:
            self.close_all()
        await asyncio.sleep(self.random.choice([0, 0.1, 0.5, lock.lease_ms / 1000]))
        await self.resume(lock)

    async def resume(self, lock):
        connection = await (self.elsewhere() if self.random.random() < 0.5 else self.connection())
        if self.random.random() < 0.6:
            await lock.extend(connection, deadline_kept=False,
                              name_token=self.random.random() < 0.7)
        else:
            await lock.acquire(connection, self.random.choice([0, 500]))

    async def outlive(self, lock):
        """The process sleeps beyond its lease, and asks too late."""
        await asyncio.sleep(max(0.0, lock.left_ms() / 1000) + self.random.choice([0.0, 0.05, 0.5]))
        await self.resume(lock)

    async def make_shared(self, lock):
        if lock.kind.mode == "exclusive" and lock.key in KEYS["shared"]:
            await lock.downgrade(await self.connection())

    async def move(self, lock):
        """Moves to another node. A lock with a session binding is first bound to the new
        connection; then the old one is closed, or stays open."""
        old = self.current
        await lock.extend(await self.elsewhere())
        if old and old in self.others and self.random.random() < 0.7:
            if lock.bound == old.number and not lock.over:
                self.forget(lock)  # The lock could not be bound to the new connection.
            self.others.remove(old)
            self.close(old)

    async def pause(self, _lock):
        await asyncio.sleep(self.random.uniform(0, 0.3))

    async def work(self, lock):
        """Works for most of the lease without renewing it."""
        await asyncio.sleep(lock.left_ms() / 1000 * self.random.uniform(0.3, 0.95))

    # ---- the end of a lock ----

    async def let_go(self, lock):
        answer = await lock.release(await self.connection())
        if answer.result == "unknown" and self.random.random() < 0.7:
            await lock.release(await self.elsewhere())

    async def vanish(self, lock):
        self.forget(lock)

    async def hand_over(self, lock):
        answer = await lock.transfer(await self.connection(),
                                     "client%d" % self.random.randint(1, 8))
        if answer.result == "not_found":
            await self.let_go(lock)

    async def hang_up(self, lock):
        """The process dies, which closes its connections."""
        self.forget(lock)
        self.close_all()

    async def expire(self, lock):
        await asyncio.sleep(max(0.0, lock.left_ms() / 1000))

    # ---- the run ----

    async def run(self, stop):
        """Takes turn after turn until the event is set. When this returns, nothing is under way any
        more."""
        while not stop.is_set():
            await self.turn()
            if self.random.random() < 0.05:
                self.close_all()
            await asyncio.sleep(self.random.uniform(0, 0.1))
