"""Tests that whatever interrupts a program leaves no lock behind: after a cancellation at any await
or Ctrl-C at any bytecode of taking, holding or releasing, the key is free and nobody renews it.
`run --rounds N test_interrupts` also does N random ones of each kind."""

import asyncio
import contextlib
import gc
import os
import random
import time
import unittest
from unittest import mock

import pawl
import pawl.aio
from interrupts import Canceled, Shooter, Traced
from nodes import PATIENCE, AsyncCase, Case
from pawl._blocking import runner
from pawl._env import clock
from pawl._lock import renew
from pawl._request.call import Answer
from scripted import GRANT, Refuse, Script, ScriptedCase

ROUNDS = int(os.environ.get("PAWL_ROUNDS", "0"))
# Long enough that no lock runs out by itself while a test waits.
LEASE = 50
# How long a key may stay held after an interrupt, in seconds.
BOUND = 3.0


# ---- asyncio ----

async def take_and_release(client, key):
    lock = client.lock(key, lease=LEASE)
    await lock.acquire()
    await lock.release()


async def block(client, key):
    async with client.lock(key, lease=LEASE):
        await asyncio.sleep(0)


async def block_of_several(client, key):
    async with client.locks([key, key + "/2", key + "/3"], lease=LEASE):
        await asyncio.sleep(0)


async def several(client, key):
    locks = await client.locks([key, key + "/2", key + "/3"], lease=LEASE)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    await locks.release()


async def bound(client, key):
    async with client.lock(key, lease=LEASE, release_on_disconnect=True):
        await client.ping()


async def lead(client, key):
    async with client.election(key, lease=LEASE, takeover=True, priority=1).campaign() as leads:
        await leads.proclaim("here")


async def lead_and_resign(client, key):
    leadership = await client.election(key, lease=LEASE).campaign(wait=5)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    await leadership.resign()


async def hand_over(client, key):
    """A leader yields to a candidate, which wins or goes away."""
    election = client.election(key, lease=LEASE, candidate="first")
    other = client.election(key, lease=LEASE, candidate="second").campaign(wait=5)
    leadership = await election.campaign()
    candidate = asyncio.ensure_future(other.acquire())
    try:
        while not await client.waiters(key):
            pass
        leadership._successor = b"second"
        await leadership.resign()
        await candidate
    finally:
        candidate.cancel()
        leadership._begin_part()
        other._begin_part()


async def close(client, key):
    async with pawl.aio.connect(client.endpoint) as own:
        await own.lock(key, lease=LEASE)
        await own.locks([key + "/2", key + "/3"], lease=LEASE)


def keys_of(key, scene):
    """Returns the keys that the scene may take."""
    with_more = (block_of_several, several, close, with_locks)
    return [key, key + "/2", key + "/3"] if scene in with_more else [key]


SCENES = (take_and_release, block, block_of_several, several, bound, lead, lead_and_resign,
          hand_over, close)


class Cancellations(AsyncCase):
    async def asyncSetUp(self):
        self.client = pawl.aio.connect(self.endpoints, timeout=10)
        self.other = pawl.aio.connect(self.endpoints, timeout=10)
        for client in (self.client, self.other):
            self.addAsyncCleanup(client.close)
            await client.ping()
        self.count = 0

    async def free(self, keys, what):
        end = time.monotonic() + BOUND
        for one in keys:
            while (await self.other.get(one, quorum=True)).held:
                self.assertLess(time.monotonic(), end, "%s is held after %s" % (one, what))
                await asyncio.sleep(0.002)
        self.assertEqual(self.client._keeper.locks(), [], what)

    async def one(self, scene, at, turns, again):
        """Returns whether the work has waited often enough to be canceled."""
        self.count += 1
        key = "%s/%d" % (self.key, self.count)
        canceled = Canceled(scene(self.client, key), at, turns, again)

        async def work():
            await canceled

        task = asyncio.ensure_future(work())
        (error,) = await asyncio.gather(task, return_exceptions=True)
        what = "%s, canceled %d turns after wait %d%s" % (scene.__name__, turns, at,
                                                          ", and in each turn" * again)
        self.assertTrue(error is None or isinstance(error, (asyncio.CancelledError,
                                                            pawl.ClosedError)),
                        "%s: %r" % (what, error))
        await self.free(keys_of(key, scene), what)
        return canceled.canceled

    async def test_a_cancellation_at_any_await_leaves_no_lock_behind(self):
        for scene in SCENES:
            for turns in (0, 1, 2):
                at = 1
                while await self.one(scene, at, turns, False):
                    at += 1

    async def test_a_cancellation_in_each_turn_leaves_no_lock_behind(self):
        for scene in SCENES:
            at = 1
            while await self.one(scene, at, 0, True):
                at += 1

    @unittest.skipUnless(ROUNDS, "run --rounds N")
    async def test_random_cancellations(self):
        for again in (False, True):
            hits = runs = 0
            while hits < ROUNDS:
                hits += await self.one(random.choice(SCENES), random.randrange(1, 7),
                                       random.randrange(0, 8), again)
                runs += 1
            print("asyncio%s: %d runs, %d canceled" % (", in each turn" * again, runs, hits))

    async def test_an_acquire_that_waits_and_is_canceled_takes_nothing(self):
        for turns in range(6):
            key = "%s/w%d" % (self.key, turns)
            held = await self.other.lock(key)
            waiting = asyncio.ensure_future(self.client.lock(key, lease=LEASE, wait=20).acquire())
            await self.until_so(lambda: self.other.waiters(key))
            release = asyncio.ensure_future(held.release())
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            got, _ = await asyncio.gather(waiting, release, return_exceptions=True)
            if not isinstance(got, BaseException):  # The cancellation came too late.
                await got.release()
            await self.free([key], "the cancellation of a wait")


class Scripted(ScriptedCase):
    async def test_a_release_that_is_canceled_while_its_node_dies_goes_on_at_the_next_one(self):
        def release(params):
            task.cancel()
            return Script.HANG_UP

        one, two = Script(acquire=lambda p: GRANT, release=release), Script()
        client = await self.client(one, two)
        lock = await client.lock("k")
        task = asyncio.ensure_future(lock.release())
        await self.until(lambda: two.of("release"))
        self.assertEqual(two.of("release")[0]["lock_id"], one.of("acquire")[0]["lock_id"])
        self.assertTrue(task.cancelled())

    async def test_a_close_that_is_canceled_lets_go_all_the_same(self):
        one = Script(acquire=lambda p: GRANT, release=lambda p: Script.SILENT)
        client = await self.client(one)
        lock = await client.lock("k")
        task = asyncio.ensure_future(client.close())
        await self.until(lambda: one.of("release"))
        task.cancel()
        await self.until(lambda: one.ended)
        self.assertEqual((lock.held, client._keeper.locks()), (False, []))

    async def test_what_a_very_long_wait_has_taken_is_released_if_its_second_request_is_canceled(
            self):
        def acquire(params):
            client._failover.link.writable = False  # The second request stays in the queue.
            return dict(GRANT, valid_ms=0, waited_ms=10**6)

        one = Script(acquire=acquire)
        client = await self.client(one)
        task = asyncio.ensure_future(client.lock("k", wait=60).acquire())
        await self.until(lambda: one.of("acquire") and client._calls._queue)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        client._failover.link.resume_writing()
        await self.until(lambda: one.of("release"))
        self.assertEqual(len(one.of("acquire")), 1)

    async def test_a_hand_over_that_is_late_does_not_touch_what_was_acquired_since(self):
        one = Script(acquire=lambda p: GRANT, transfer=lambda p: Script.SILENT,
                     watch=lambda p: {"watch": 1}, get=lambda p: {"held": False})
        client = await self.client(one)
        for error in (pawl.UnsureError(), pawl.NotFoundError(), None):
            leadership = await client.election("k").campaign()
            leadership._successor = b"next"
            (handing,) = leadership._begin_release()
            await leadership.resign()  # Somebody is in a hurry.
            await leadership.acquire()
            (call,) = [call for call in client._calls._under_way(client._failover.link)
                       if call.method == "transfer"]
            client._calls._end(call, None if error else Answer({}, clock.now()), error)
            await asyncio.wait([handing])
            self.assertTrue(leadership.held)
            await leadership.resign()

    async def test_a_leader_that_is_to_yield_may_release_instead(self):
        one = Script(acquire=lambda p: GRANT, watch=lambda p: {"watch": 1},
                     get=lambda p: {"held": False})
        client = await self.client(one)
        leadership = await client.election("k").campaign()
        leadership._successor = b"next"
        self.assertTrue(await leadership.release())
        self.assertFalse(leadership.held or await leadership.release())

    async def test_resigning_releases_even_if_a_transfer_is_refused(self):
        one = Script(acquire=lambda p: GRANT, transfer=lambda p: Refuse("denied"),
                     watch=lambda p: {"watch": 1}, get=lambda p: {"held": False})
        client = await self.client(one)
        leadership = await client.election("k").campaign()
        leadership._successor = b"next"
        await leadership.resign()
        self.assertEqual((leadership.held, len(one.of("release"))), (False, 1))


# ---- blocking ----

def with_lock(client, key):
    with client.lock(key, lease=LEASE):
        pass


def with_locks(client, key):
    with client.locks([key, key + "/2", key + "/3"], lease=LEASE):
        pass


def with_held(client, key):
    """A block with a lock that was acquired before it."""
    lock = client.lock(key, lease=LEASE)
    try:
        lock.acquire()
        with lock:
            pass
    finally:
        lock._leave()


def with_stack(client, key):
    lock = client.lock(key, lease=LEASE)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock)
    finally:
        lock._leave()


class Blocking(Case):
    def setUp(self):
        super().setUp()
        self.client = pawl.connect(self.endpoints, timeout=10)
        self.other = pawl.connect(self.endpoints, timeout=10)
        for client in (self.client, self.other):
            self.addCleanup(client.close)
            client.ping()
        self.count = 0
        # What only the absence of a block tells is noticed with the next look at all locks.
        patch = mock.patch.object(renew, "NAP_LONGEST", 0.02)
        patch.start()
        self.addCleanup(patch.stop)

    def new_key(self):
        self.count += 1
        return "%s/%d" % (self.key, self.count)

    def free(self, keys, what):
        end = time.monotonic() + BOUND
        for one in keys:
            while self.other.get(one, quorum=True).held:
                self.assertLess(time.monotonic(), end, "%s is held after %s" % (one, what))
                time.sleep(0.002)
        self.until(lambda: not self.client._client._keeper.locks(), what)

    def at_each_bytecode(self, step):
        """step(traced): interrupts once, and checks what is left of it."""
        at, raised = 0, True
        while raised:
            at += 1
            traced = Traced(at)
            step(traced)
            raised = traced.raised
        self.assertGreater(at, 50)

    def interrupt(self, traced, function, *arguments):
        """Runs the function; an interrupt comes out of it as such."""
        try:
            with traced:
                function(*arguments)
        except KeyboardInterrupt:
            self.assertTrue(traced.raised)
        else:
            self.assertFalse(traced.raised, traced.where)

    def test_an_interrupt_at_any_bytecode_of_a_block_with_several_locks(self):
        def step(traced):
            key = self.new_key()
            self.interrupt(traced, with_locks, self.client, key)
            self.free(keys_of(key, with_locks), "Ctrl-C at " + traced.where)

        self.at_each_bytecode(step)

    def test_an_interrupt_at_any_bytecode_of_a_block_leaves_no_lock_behind(self):
        def step(traced):
            lock = self.client.lock(self.new_key(), lease=LEASE, wait=5)

            def scene():
                with lock:
                    pass

            self.interrupt(traced, scene)
            self.free([lock.key], "Ctrl-C at " + traced.where)
            with lock:  # It may be used again.
                self.assertTrue(lock.held)

        self.at_each_bytecode(step)

    def test_an_interrupt_at_any_bytecode_of_an_acquire_takes_nothing(self):
        def step(traced):
            lock = self.client.lock(self.new_key(), lease=LEASE)
            self.interrupt(traced, lock.acquire)
            self.assertEqual(lock.held, not traced.raised)
            lock.release()
            self.free([lock.key], "Ctrl-C at " + traced.where)

        self.at_each_bytecode(step)

    def test_an_interrupt_at_any_bytecode_of_a_campaign_takes_nothing(self):
        def step(traced):
            key = self.new_key()
            election = self.client.election(key, lease=LEASE)
            won = []
            self.interrupt(traced, lambda: won.append(election.campaign()))
            for leadership in won:
                leadership.resign()
            self.free([key], "Ctrl-C at " + traced.where)

        self.at_each_bytecode(step)

    def let_go(self, acquire, let_go):
        """After an interrupt the lock is let go, or it says that it is held as before."""
        def step(traced):
            lock = acquire(self.new_key())
            self.interrupt(traced, let_go, lock)
            if lock.held:
                self.assertTrue(traced.raised)
                let_go(lock)
            self.free([lock.key], "Ctrl-C at " + traced.where)

        self.at_each_bytecode(step)

    def test_an_interrupt_at_any_bytecode_of_a_release_leaves_no_doubt(self):
        self.let_go(lambda key: self.client.lock(key, lease=LEASE).acquire(),
                    lambda lock: lock.release())

    def test_an_interrupt_at_any_bytecode_of_resigning_leaves_no_doubt(self):
        self.let_go(lambda key: self.client.election(key, lease=LEASE).campaign(),
                    lambda leadership: leadership.resign())

    def test_an_interrupt_at_any_bytecode_of_the_block_of_a_client_leaves_no_doubt(self):
        def step(traced):
            client = pawl.connect(self.endpoints[0])
            lock = client.lock(self.new_key(), lease=LEASE).acquire()
            inside = []

            def block():
                with client:
                    inside.append(True)

            self.interrupt(traced, block)
            if not inside:
                lock.release()  # The client is open as before.
            self.until(lambda: not client._client._keeper.locks(), traced.where)
            self.free([lock.key], "Ctrl-C at " + traced.where)
            client.close()
            self.assertFalse(client._runner._thread.is_alive())

        self.at_each_bytecode(step)

    def test_blocks_of_all_kinds_end_as_usual(self):
        for scene in (with_lock, with_locks, with_held, with_stack):
            key = self.new_key()
            scene(self.client, key)
            self.free(keys_of(key, scene), scene.__name__)

    def test_a_block_is_kept_for_as_long_as_it_lasts(self):
        lock = self.client.lock(self.key, lease=LEASE)
        with lock:
            gc.collect()
            time.sleep(0.2)  # Ten looks at all locks.
            self.assertTrue(lock.held)
        lock.__enter__()
        self.addCleanup(lock.__exit__, None, None, None)
        time.sleep(0.2)
        self.assertTrue(lock.held)

    def test_a_release_that_was_handed_over_goes_on_after_an_interrupt(self):
        lock = self.client.lock(self.key, lease=LEASE).acquire()
        with mock.patch.object(runner._Job, "wait", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                lock.release()
        self.free([self.key], "Ctrl-C")
        self.assertFalse(lock.held)

    def test_a_lock_that_was_acquired_and_not_taken_over_is_released(self):
        self.client.lock(self.key, lease=LEASE).acquire()
        gc.collect()
        self.free([self.key], "an interrupt before the lock was stored")

    def test_ctrl_c_at_random_moments_leaves_no_lock_behind(self):
        shooter = Shooter()
        self.addCleanup(shooter.close)
        scenes = (with_lock, with_locks, with_held, with_stack)
        runs = interrupted = 0
        span = 0.005
        while interrupted < (ROUNDS or 100):
            key, scene = self.new_key(), random.choice(scenes)
            raised = shooter.run(lambda: scene(self.client, key), span)
            self.assertIn(raised, ([], ["KeyboardInterrupt: "]), scene.__name__)
            runs, interrupted = runs + 1, interrupted + bool(raised)
            span *= 1.02 if raised else 0.98  # so that about half of them are interrupted
            self.free(keys_of(key, scene), "Ctrl-C in " + scene.__name__)
        if ROUNDS:
            print("blocking: %d blocks, %d signals, %d interrupted" % (runs, shooter.shots,
                                                                       interrupted))


class Callbacks(Case):
    def test_sys_exit_in_a_callback_is_reported_and_ends_nothing(self):
        client, other = pawl.connect(self.endpoints), pawl.connect(self.endpoints)
        self.addCleanup(client.close)
        self.addCleanup(other.close)

        def leave(lock, said):
            raise SystemExit("bye")

        kept = client.lock(self.key + "/kept", lease=LEASE).acquire()
        reported = []
        client._runner.do(lambda: asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.append(str(context["exception"]))))
        lost = client.lock(self.key + "/lost", lease=1.5, on_lost=leave).acquire()
        other.break_lock(lost.key, lost.token, now=True)
        asked = client.lock(self.key + "/asked", lease=LEASE, on_asked=leave).acquire()
        leads = client.election(self.key + "/leads", lease=LEASE, on_asked=leave).campaign()
        for held in (asked, leads):
            self.until(lambda: other.ask_release(held.key), "a watcher")
        self.until(lambda: len(reported) >= 3, "reports")
        for what in ("on_lost", "on_asked"):
            self.assertIn(what + ": SystemExit in a callback does not end the program",
                          " ".join(reported))
        self.assertTrue(kept.held and client.ping())


if __name__ == "__main__":
    unittest.main()
