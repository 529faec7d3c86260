"""Calls the Python API at random, with every option, from several tasks that share clients, with
cancellations in between. Errors have to be those of the package. Nobody may believe in a lock that
excludes another one which is believed in, and in the end nothing is held or renewed.
`run --rounds N test_random_calls` makes N steps; PAWL_SEED repeats the choices of a run."""

import asyncio
import contextlib
import os
import random
import time

import pawl
import pawl.aio
from nodes import AsyncCase

ROUNDS = int(os.environ.get("PAWL_ROUNDS", "0"))
TASKS, KEYS, OF = 8, 4, 5


class Choices(random.Random):
    def some(self, **options):
        """Returns some of the options, each with one of its values."""
        return {name: self.choice(values) for name, values in options.items()
                if self.random() < 0.3}


class RandomCalls(AsyncCase):
    async def asyncSetUp(self):
        seed = int(os.environ.get("PAWL_SEED", "0")) or random.randrange(1 << 30)
        self.choices = Choices(seed)
        print("PAWL_SEED=%d" % seed)
        self.clients = [self.connect("c%d" % i) for i in range(3)]
        self.keys = ["%s/%d" % (self.key, i) for i in range(KEYS)]
        # The locks that some task believes in, and those that were acquired without a block.
        self.believed, self.blockless = [], []
        self.steps, self.done = 0, {}

    def connect(self, owner):
        client = pawl.aio.connect(self.endpoints, owner=owner, timeout=8)
        self.addAsyncCleanup(client.close)
        return client

    # ---- what there is to call ----

    def options(self):
        some = self.choices.some
        return dict({"lease": 5}, **some(
            lease=(0.5, 1, 3, 20), value=("", "v", b"\0" * 1000), owner=("somebody", b"\xff"),
            priority=(-5, 0, 7), lock_delay=(0.0, 0.05), release_on_disconnect=(True, False),
            label=("", "a label"), warn=(0.0, 0.1), wait=(0.0, 0.01, 0.2, 1),
            on_lost=(None, lambda lock, error: None)))

    def mode(self):
        kind = self.choices.randrange(3)
        return ({}, {"mode": "shared"},
                {"permits": self.choices.randint(1, OF), "of": OF})[kind]

    def lock(self, client):
        more = self.choices.some(renew=(True, False),
                                 on_asked=(None, lambda lock, asked: None))
        # Keys of semaphores are used as such only: a key has one capacity.
        mode = self.mode()
        key = self.choices.choice(self.keys) + ("/permits" if "permits" in mode else "")
        return client.lock(key, **self.options(), **mode, **more)

    def locks(self, client):
        options = self.options()
        keys = self.choices.sample(self.keys, self.choices.randint(1, KEYS))
        wants = [self.choices.choice((key, pawl.Want(key, mode="shared"))) for key in keys]
        return client.locks(wants, **options)

    async def hold(self, holding):
        """Does something with what is held, in a block or not."""
        in_block = self.choices.random() < 0.5
        if in_block:
            async with holding:
                await self.use(holding)
        else:
            await holding.acquire()
            self.blockless.append(holding)
            await self.use(holding)
            await self.end(holding)

    async def use(self, holding):
        for lock in self.parts(holding):
            self.judge(lock)
            self.believed.append(lock)
        for lock in self.parts(holding):
            await self.choices.choice((self.rest, self.update, self.downgrade, self.transfer,
                                       self.by_lock_id, self.break_it, self.rest))(lock)

    @staticmethod
    def parts(holding):
        return list(holding) if isinstance(holding, pawl.aio.LockSet) else [holding]

    async def end(self, holding):
        if isinstance(holding, pawl.aio.Leadership):
            await holding.resign()
        else:
            await holding.release()

    async def rest(self, lock):
        await asyncio.sleep(self.choices.choice((0, 0, 0.002, 0.02)))

    async def update(self, lock):
        await lock.update("new", **self.choices.some(expect=("old", "v", b"")))

    async def downgrade(self, lock):
        if lock.mode == "exclusive" and not isinstance(lock, pawl.aio.Leadership):
            await lock.downgrade()

    async def transfer(self, lock):
        await lock.transfer(self.choices.choice(("c0", "c1", "c2", "nobody")))

    async def by_lock_id(self, lock):
        client = lock._client
        await client.call("release", key=lock.key, lock_id=lock.lock_id)
        assert not lock.held

    async def break_it(self, lock):
        await lock._client.break_lock(lock.key, lock.token)  # not `now`: that ends a true belief

    async def read(self, client):
        key = self.choices.choice(self.keys)
        await self.choices.choice((
            lambda: client.get(key, **self.choices.some(quorum=(True, False))),
            lambda: client.list(self.key, **self.choices.some(limit=(1, 100), after=(key,))),
            lambda: client.waiters(key), lambda: client.waiters(prefix=self.key, limit=3),
            lambda: client.explain(key), client.status, client.ping,
            lambda: client.wait(key, self.choices.choice(("free", "held")), timeout=0.05),
            lambda: client.ask_release(key, **self.choices.some(to=("c1",), priority=(3,))),
            lambda: client.election(key).leader()))()

    async def watch(self, client):
        which = self.choices.choice(({"key": self.choices.choice(self.keys)},
                                     {"prefix": self.key}))
        async with client.watch(**which) as watch:
            for _ in range(self.choices.randrange(4)):
                await watch.get(0.1)

    async def lead(self, client):
        election = client.election(self.choices.choice(self.keys), lease=3, **self.choices.some(
            candidate=("c0", "c1", "c2"), takeover=(True, False), priority=(0, 5), warn=(0.1,),
            release_on_disconnect=(True, False), value=("here",),
            on_asked=(None, lambda leads, asked: True, lambda leads, asked: False)))
        await self.hold(election.campaign(wait=self.choices.choice((0.05, 1))))

    # ---- the run ----

    def judge(self, new):
        """Nobody believes in a lock that excludes the new one."""
        self.believed = [lock for lock in self.believed if lock.held]
        others = [lock for lock in self.believed if lock.key == new.key and lock is not new]
        if not new.held:
            return
        if new.mode == "permits":
            used = [slot for lock in [*others, new] for slot in lock.slots]
            self.assertEqual(len(used), len(set(used)), new.key)
        else:
            excluded = [lock for lock in others if "exclusive" in (lock.mode, new.mode)]
            self.assertEqual(excluded, [], new.key)

    async def step(self):
        client = self.choices.choice(self.clients)
        act = self.choices.choice((
            lambda: self.hold(self.lock(client)), lambda: self.hold(self.lock(client)),
            lambda: self.hold(self.locks(client)), lambda: self.lead(client),
            lambda: self.read(client), lambda: self.watch(client)))
        task = asyncio.ensure_future(act())
        if self.choices.random() < 0.3:
            await asyncio.sleep(self.choices.choice((0, 0, 0.001, 0.005, 0.03)))
            while not task.done():  # as anyio does it, or once
                task.cancel()
                await asyncio.sleep(0)
                if self.choices.random() < 0.5:
                    break
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, pawl.PawlError):
            raise error
        what = "canceled" if task.cancelled() else type(error).__name__
        self.done[what] = self.done.get(what, 0) + 1

    async def work(self, rounds, end):
        while self.steps < rounds and time.monotonic() < end:
            self.steps += 1
            await self.step()

    async def test_calls_at_random_break_no_promise_and_leave_nothing_behind(self):
        rounds = ROUNDS or 600
        end = time.monotonic() + (1e9 if ROUNDS else 5)
        await asyncio.gather(*(self.work(rounds, end) for _ in range(TASKS)))
        print("%d steps: %s" % (self.steps, dict(sorted(self.done.items()))))
        # Without a block an error leaves it to the program to let go.
        for holding in self.blockless:
            with contextlib.suppress(pawl.PawlError):
                await self.end(holding)
        reader = self.connect("reader")
        await self.until_so(lambda: self.nothing_is_held(reader))
        for client in self.clients:
            self.assertEqual(client._keeper.locks(), [])
            await client.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            self.assertFalse(client._calls._releases or client._calls._flight, tasks)

    async def nothing_is_held(self, reader):
        return all([not (await reader.get(key + more, quorum=True)).held
                    for key in self.keys for more in ("", "/permits")])
