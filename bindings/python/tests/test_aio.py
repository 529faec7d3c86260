"""Tests the client for asyncio against three real nodes."""

import asyncio
import unittest

import pawl
import pawl.aio
from nodes import AsyncCase


class AioCase(AsyncCase):
    async def asyncSetUp(self):
        self.client = self.connect()

    def connect(self, **options):
        client = pawl.aio.connect(self.endpoints, **options)
        self.addAsyncCleanup(client.close)
        return client

    async def taken_away(self, lock):
        """An administrator takes the lock away, and its holder notices."""
        await self.connect().break_lock(lock.key, lock.token, now=True)


class Locks(AioCase):
    async def test_a_lock_is_held_in_the_block_and_free_after_it(self):
        async with self.client.lock(self.key) as lock:
            self.assertTrue(lock.held)
            self.assertEqual((await self.client.get(self.key)).token, lock.token)
        self.assertFalse((await self.client.get(self.key, quorum=True)).held)

    async def test_a_lock_can_be_awaited(self):
        lock = await self.client.lock(self.key)
        self.assertTrue(lock.held)
        self.assertTrue(await lock.release())

    async def test_the_block_is_canceled_when_the_lock_is_lost(self):
        with self.assertRaises(pawl.LostError):
            async with self.client.lock(self.key, lease=1) as lock:
                await self.taken_away(lock)
                await asyncio.sleep(20)
        self.assertEqual(asyncio.current_task().cancelling()
                         if hasattr(asyncio.Task, "cancelling") else 0, 0)
        await asyncio.sleep(0)  # No cancellation of this test is left over.

    async def test_a_block_that_ignores_its_cancellation_raises_the_cause_at_its_end(self):
        with self.assertRaises(pawl.LostError):
            async with self.client.lock(self.key, lease=1) as lock:
                await self.taken_away(lock)
                try:
                    await lock.wait_lost()
                except asyncio.CancelledError:
                    pass  # The block does not stop.
        await asyncio.sleep(0)

    async def test_an_error_of_the_block_comes_through(self):
        with self.assertRaises(KeyError):
            async with self.client.lock(self.key):
                raise KeyError
        self.assertFalse((await self.client.get(self.key, quorum=True)).held)

    async def test_a_task_that_is_canceled_from_outside_is_canceled_and_leaves_nothing_held(self):
        inside = asyncio.Event()

        async def work():
            async with self.client.lock(self.key):
                inside.set()
                await asyncio.sleep(20)

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertFalse((await self.client.get(self.key, quorum=True)).held)

    async def test_a_wait_that_is_canceled_leaves_the_queue(self):
        async with self.connect().lock(self.key):
            task = asyncio.create_task(self.client.lock(self.key, wait=None).acquire())
            await self.until_so(lambda: self.client.waiters(self.key))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

            async def nobody():
                return not await self.client.waiters(self.key)

            await self.until_so(nobody)

    async def test_an_acquire_that_is_canceled_just_when_it_succeeds_leaves_nothing_held(self):
        for turns in range(12):
            task = asyncio.create_task(self.client.lock(self.key, wait=5).acquire())
            for _ in range(turns):
                await asyncio.sleep(0.0002)
            task.cancel()
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            if not isinstance(outcome, asyncio.CancelledError):
                await outcome.release()
            async with self.client.lock(self.key, wait=5):  # The key is free before the lease ends.
                pass

    async def test_hundreds_of_locks_are_renewed_together(self):
        locks = await asyncio.gather(*[self.client.lock("%s/%d" % (self.key, i), lease=1.2,
                                                        wait=10).acquire() for i in range(300)])
        await asyncio.sleep(1.6)
        self.assertEqual([lock.key for lock in locks if not lock.held], [])
        await asyncio.gather(*[lock.release() for lock in locks])

    async def test_a_set_of_locks_ends_its_block_when_one_is_lost(self):
        keys = [self.key + end for end in "ab"]
        with self.assertRaises(pawl.LostError):
            async with self.client.locks(keys, lease=1) as locks:
                await self.taken_away(locks[keys[1]])
                await asyncio.sleep(20)
        self.assertFalse((await self.client.get(keys[0], quorum=True)).held)

    async def test_a_wait_without_end_goes_on_beyond_many_leases_and_keeps_its_place(self):
        other = await self.connect().lock(self.key)
        task = asyncio.create_task(self.client.lock(self.key, lease=0.1, wait=None).acquire())
        await self.until_so(self.first_waits)
        later = asyncio.create_task(self.connect(owner="later").lock(self.key, wait=20).acquire())
        await asyncio.sleep(2.2)  # This is more than twenty leases.
        waiters = await self.client.waiters(self.key)
        self.assertEqual([w.owner == b"later" for w in waiters], [False, True])
        await other.release()
        lock = await asyncio.wait_for(task, 10)
        self.assertTrue(lock.held)
        await lock.release()
        await (await asyncio.wait_for(later, 10)).release()

    async def first_waits(self):
        return len(await self.client.waiters(self.key)) == 1

    async def test_what_a_callback_raises_disturbs_nothing(self):
        reported = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.append(context["exception"]))

        def lost(lock, error):
            raise ZeroDivisionError

        lock = await self.client.lock(self.key, lease=0.3, renew=False, on_lost=lost)
        await lock.wait_lost()
        await asyncio.sleep(0)
        self.assertEqual([type(error) for error in reported], [ZeroDivisionError])
        await self.client.ping()

    async def test_closing_a_client_ends_its_waiters_before_it_releases_its_locks(self):
        other = self.connect()
        held = await self.client.lock(self.key)
        waiting = asyncio.ensure_future(self.client.lock(self.key, wait=60).acquire())
        while not await other.waiters(self.key):
            pass
        await self.client.close()
        self.assertFalse(held.held)
        with self.assertRaises(pawl.ClosedError):
            await waiting
        async with other.lock(self.key, wait=2):  # A lease of the waiter would end much later.
            pass

    async def test_requests_of_a_closed_client_are_refused(self):
        await self.client.close()
        with self.assertRaises(pawl.ClosedError):
            await self.client.ping()

    async def test_closing_ends_what_is_under_way(self):
        task = asyncio.create_task(self.client.wait(self.key, "held"))
        await asyncio.sleep(0.01)
        await self.client.close()
        with self.assertRaises(pawl.ClosedError):
            await task

    async def test_the_holder_is_asked_to_let_go(self):
        asked = asyncio.get_running_loop().create_future()
        lock = await self.client.lock(self.key, on_asked=lambda lock,
                                      what: asked.done() or asked.set_result(what))
        other = self.connect(owner="other")

        async def reached():
            return await other.ask_release(self.key, to="me", priority=3)

        await self.until_so(reached)
        self.assertEqual(await asyncio.wait_for(asked, 10), pawl.Asked(b"other", b"me", 3))
        self.assertTrue(lock.held)
        await lock.release()


if __name__ == "__main__":
    unittest.main()
