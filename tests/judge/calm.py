"""The episodes of a calm time, on keys of their own: waiters are served in order, a waiter gets the
lock as soon as its holder lets go, and a planned stop forgets nothing. A line of the history says
what must be answered ("must", "within_ms"), and the checker judges that."""

import asyncio
import contextvars

import clients
import history
import locks
import rpc

SOON_MS = 2000
LONG_MS = clients.MAX_LEASE_MS - 200
QUICK_NS = 10 * 1000000
SETTLE_S, TURN_S = 0.02, 0.1
MUST = contextvars.ContextVar("must", default={})  # Each task has its own value.


class Calm(clients.Client):
    """Several processes in one: each waiter has a connection of its own."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.round = 0
        self.episodes = [self.in_order, self.in_order_at_once, self.highest_priority_first,
                         self.named_first, self.hang_up_frees, self.release_wakes,
                         self.updates_at_once, self.ask_again, self.permits_for_all,
                         self.both_orders]

    def write(self, op, answer, **fields):
        super().write(op, answer, **{**MUST.get(), **fields})

    def key(self, name):
        self.round += 1
        return "calm%d-%s" % (self.round, name)

    async def at(self, node=None):
        connection = await self.connect(node)
        while connection is None:
            connection = await self.connect()
        return connection

    async def must_be(self, coroutine, results=("ok",), within_ms=None):
        """Awaits the coroutine. The lines that it writes say what must be answered."""
        token = MUST.set({"must": list(results), **({"within_ms": within_ms} if within_ms else {})})
        try:
            return await coroutine
        finally:
            MUST.reset(token)

    def lock(self, key, kind=None, lease_ms=LONG_MS, **options):
        return locks.Lock(self, key, kind or locks.Kind("exclusive"), lease_ms, **options)

    async def held(self, key, **options):
        """Acquires a lock on a free key, and returns (lock, its connection)."""
        connection = await self.at()
        lock = self.lock(key, **options)
        await self.must_be(lock.acquire(connection), within_ms=SOON_MS)
        return lock, connection

    async def waiter(self, key, hold_s=0, **options):
        """Starts a waiter. Returns (lock, connection, a task that ends when the waiter has had the
        lock for hold_s seconds and has released it)."""
        connection = await self.at()
        lock = self.lock(key, **options)

        async def wait_and_release():
            answer = await lock.acquire(connection, 15000)
            if answer.ok:
                await asyncio.sleep(hold_s)
                await lock.release(connection)
            return answer
        return lock, connection, asyncio.ensure_future(wait_and_release())

    async def queue(self, key, *expected):
        """Asks for the queue until all of these are in it, and writes that answer to the
        history."""
        for _ in range(200):
            connection = await self.at()
            answer = await connection.call("waiters", locks.PATIENCE_S, key=key)
            queue = ([history.text(w.get("lock_id", "")) for w in answer.data.get("waiters", ())]
                     if answer.ok else [])
            if all(lock.lock_id in queue for lock in expected):
                super().write("waiters", answer, key=key, queue=queue, node=connection.node)
                return
            await asyncio.sleep(0.01)
        self.complain("a waiter for %s is not in the queue after %d tries" % (key, 200))

    # ---- the order of waiting ----

    async def in_order(self):
        """Each waiter asks when the one before it has been seen in the queue."""
        key = self.key("order")
        holder, connection = await self.held(key)
        waiters = []
        for _ in range(5):
            waiters.append(await self.waiter(key))
            await self.queue(key, waiters[-1][0])
        await holder.release(connection)
        await asyncio.gather(*[task for _, _, task in waiters])

    async def in_order_at_once(self):
        """Nobody asks for the queue, because that would make the nodes hear of each other. A
        request that was sent some time ago, while the nodes answered quickly, must be in it."""
        key = self.key("quickly")
        probes = {name: await self.at(name) for name in self.cluster.masters}
        holder, connection = await self.held(key)
        waiters = []
        for _ in range(8):
            lock, where, task = await self.waiter(key)
            waiters.append(task)
            await asyncio.sleep(0)
            slowest = 0
            for probe in [where, *probes.values()]:
                answer = await probe.call("ping", locks.PATIENCE_S)
                slowest = max(slowest, (answer.returned or 2**62) - answer.invoke)
            await asyncio.sleep(self.random.choice([SETTLE_S, 3 * SETTLE_S]))
            if slowest < QUICK_NS:
                self.history.moment("queued", rpc.now(), process=self.number, key=key,
                                    waiter=lock.lock_id)
        await holder.release(connection)
        await asyncio.gather(*waiters)

    async def highest_priority_first(self):
        """Each holds the lock for long enough that the next waiter hears of its turn: a waiter that
        has its turn already is served before one with a higher priority that has none yet."""
        key = self.key("priority")
        holder, connection = await self.held(key)
        first = [await self.waiter(key, TURN_S, priority=p)
                 for p in self.random.sample([5, 3, 1, -2], 4)]
        await self.queue(key, *[lock for lock, _, _ in first])
        ranked = sorted(first, key=lambda w: -w[0].options["priority"])
        await holder.release(connection)
        answers = await asyncio.gather(*[task for _, _, task in ranked])
        tokens = [a.data["token"] for a in answers if a.ok]
        if tokens != sorted(tokens):
            self.complain("the waiters for %s, by falling priority, are served with tokens %s"
                          % (key, tokens))

    async def named_first(self):
        """The holder names the waiter that asked last as its successor."""
        key = self.key("named")
        holder, connection = await self.held(key)
        waiters = [await self.waiter(key) for _ in range(2)]
        await self.queue(key, *[lock for lock, _, _ in waiters])
        successor = await self.waiter(key, owner="successor")
        await self.queue(key, successor[0])
        await self.must_be(holder.transfer(connection, "successor"))
        answers = await asyncio.gather(successor[2], *[task for _, _, task in waiters])
        tokens = [a.data["token"] for a in answers if a.ok]
        if len(tokens) == 3 and tokens[0] != min(tokens):
            self.complain("the named successor for %s is not served first: %s" % (key, tokens))

    # ---- letting go ----

    async def followed(self, key, end):
        """A waiter at another node must be served soon after the end of the holder's lock."""
        lock, connection, task = await self.waiter(key)
        await self.queue(key, lock)
        began = rpc.now()
        await end()
        answer = await task
        if not answer.ok or answer.returned - began > SOON_MS * 1000000:
            self.complain("a waiter for %s is answered %s %d ms after the holder has let go" % (
                key, answer.result, ((answer.returned or rpc.now()) - began) / 1000000))

    async def release_wakes(self):
        key = self.key("release")
        holder, connection = await self.held(key)
        await self.followed(key, lambda: self.must_be(holder.release(connection)))

    async def hang_up_frees(self):
        key = self.key("hangup")
        holder, connection = await self.held(key, release_on_disconnect=True)

        async def end():
            self.forget(holder)
            self.close(connection)
        await self.followed(key, end)

    async def both_orders(self):
        """Several clients ask for two keys at once, in either order; all must be served."""
        keys = [self.key("both"), self.key("both")]

        async def one(names):
            connection = await self.at()
            group = [self.lock(k, lease_ms=2000) for k in names]
            answer = await locks.acquire_all(connection, group, 15000)
            for lock in group if answer.ok else ():
                await lock.release(connection)
            return answer.result
        results = await asyncio.gather(*[one(keys if i % 2 else keys[::-1]) for i in range(4)])
        if set(results) != {"ok"}:
            self.complain("two keys that are asked for in either order are answered %s" % results)

    async def permits_for_all(self):
        """As many clients as there are permits must all have one at the same time."""
        key, of = self.key("permits"), self.random.choice([3, 10])
        everybody = [(self.lock(key, locks.Kind("permits", of, 1)), await self.at())
                     for _ in range(of)]
        answers = await asyncio.gather(*[lock.acquire(where, 5000) for lock, where in everybody])
        slots = [s for a in answers if a.ok for s in a.data["slots"]]
        if sorted(slots) != list(range(of)):
            self.complain("%d clients that ask for the %d permits of %s are answered %s"
                          % (of, of, key, [a.result for a in answers]))
        await asyncio.gather(*[lock.extend(where) for lock, where in everybody])
        await asyncio.gather(*[lock.release(where) for lock, where in everybody])

    async def updates_at_once(self):
        lock, connection = await self.held(self.key("updates"))
        others = [await self.at() for _ in range(2)]
        await self.must_be(asyncio.gather(*[lock.update(c) for c in (connection, *others)]),
                           ("ok", "mismatch"))
        await self.get(lock.key)
        await lock.release(connection)

    async def ask_again(self):
        """A repeat of the acquire at another node, right after a change of the value, must not
        change the value."""
        for _ in range(5):
            lock, connection = await self.held(self.key("again"))
            other = await self.at()
            for _ in range(3):
                await self.must_be(lock.update(connection, "value"))
                await self.must_be(lock.acquire(other))
            await self.get(lock.key)
            await lock.release(connection)

    # ---- a planned stop of everything ----

    async def planned(self, do, nemesis):
        """Stops all nodes while some locks are held and one was released, and starts them again;
        the first start of one node fails. Returns the arguments of after_planned."""
        held = [await self.held(self.key("held")) for _ in range(3)]
        gone, connection = await self.held(self.key("gone"))
        await gone.release(connection)
        for lock, connection in held:
            await lock.extend(connection)
        left_ms = [lock.left_ms() for lock, _ in held]
        began = rpc.now()
        nemesis.tell("planned_stop_of_all")
        for node in self.cluster.nodes.values():
            await do(node.end)
        left_ms = min(left_ms) - (rpc.now() - began) // 1000000
        unlucky = self.random.choice(sorted(self.cluster.nodes.values(), key=lambda n: n.name))
        if await do(unlucky.start_in_vain) == 0:
            self.complain("%s starts although its port is taken" % unlucky.name)
        until = rpc.now() + left_ms * 1000000  # The time of a lease goes on with the start.
        for node in self.cluster.nodes.values():
            await do(nemesis.start, node)
        return [lock for lock, _ in held], gone, until

    async def after_planned(self, held, gone, until):
        """Checks that the locks which were held are still held, and that the released one is
        free."""
        for lock in held:
            self.forget(lock)
            sure = rpc.now() + 500 * 1000000 < until
            await self.must_be(lock.extend(await self.at(), deadline_kept=False, name_token=False),
                               ("ok",) if sure else ("ok", "lost", "unsure"))
        for lock in held:
            await lock.release(await self.at())
        await self.must_be(self.lock(gone.key).acquire(await self.at()))
        self.close_all()

    # ---- one node is gone ----

    async def without(self, victim):
        """One node is dead or hangs. Clients of the other nodes must not notice it."""
        others = [name for name in self.cluster.nodes if name != victim]
        for _ in range(4):
            connection, lock = (await self.at(self.random.choice(others)),
                                self.lock(self.key("without")))
            await self.must_be(lock.acquire(connection), within_ms=SOON_MS)
            await self.must_be(lock.extend(connection), within_ms=SOON_MS)
            await self.must_be(lock.update(connection, "value"), within_ms=SOON_MS)
            await self.must_be(lock.release(connection), within_ms=SOON_MS)
        self.close_all()

    # ---- the run ----

    async def some(self, count):
        """Runs this many episodes, each with connections of its own."""
        for episode in self.random.sample(self.episodes, min(count, len(self.episodes))):
            await episode()
            self.close_all()
