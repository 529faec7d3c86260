"""Tests session bindings against scripted nodes: a lock ends with the death of its process and with
nothing else, so it must be bound to the right connection."""

import asyncio
import os
import socket
import unittest
from unittest import mock

import pawl
from pawl._env import clock
from pawl._lock import session_binding
from scripted import GRANT, Refuse, Script, ScriptedCase

EXTENDED = {"locks": [{"valid_ms": 9900, "token": 5}]}


class Bound(ScriptedCase):
    async def lock(self, *scripts, lease=10, **options):
        self.it = await self.client(*scripts, silence=0.2)
        return await self.it.lock("k", lease=lease, release_on_disconnect=True, **options)

    def cut(self, error=pawl.NoQuorumError()):
        """Makes the client give up its connection."""
        self.it._failover.link.fail(error)

    async def test_an_acquire_is_repeated_with_the_same_lock_id_and_a_greater_binding(self):
        bad, good = Script(acquire=lambda p: Script.HANG_UP), Script(acquire=lambda p: GRANT)
        lock = await self.lock(bad, good)
        asked = [(p["lock_id"], p["bond"]) for p in bad.of("acquire") + good.of("acquire")]
        self.assertEqual(asked, [(lock.lock_id, 1), (lock.lock_id, 2)])

    async def test_when_the_node_hangs_up_the_lock_is_bound_to_the_next_connection_at_once(self):
        one = Script(acquire=lambda p: GRANT)
        two = Script(extend=lambda p: EXTENDED)
        lock = await self.lock(one, two)
        one.writers[0].close()
        await self.until(lambda: two.of("extend"))
        said = two.of("extend")[0]
        self.assertEqual((said["locks"][0]["bond"], said["deadline_kept"]), (2, False))
        await self.until(lambda: lock._binding == 2)
        self.assertTrue(lock.held and lock.error is None)

    async def test_the_deadline_of_the_next_connection_counts_even_if_it_is_earlier(self):
        one = Script(acquire=lambda p: GRANT)
        two = Script(extend=lambda p: {"locks": [{"valid_ms": 3000, "token": 5}]})
        lock = await self.lock(one, two)
        one.writers[0].close()
        await self.until(lambda: lock._binding == 2)
        self.assertTrue(lock.held)
        self.assertLessEqual(lock.valid, 3.0)

    async def test_extensions_over_the_connection_of_the_lock_name_no_binding(self):
        one = Script(acquire=lambda p: dict(GRANT, valid_ms=500),
                     extend=lambda p: {"locks": [{"valid_ms": 500, "token": 5}]})
        lock = await self.lock(one, lease=0.5)
        await self.until(lambda: len(one.of("extend")) == 2)
        self.assertTrue(lock.held)
        self.assertEqual([("bond" in p["locks"][0], p["deadline_kept"]) for p in one.of("extend")],
                         [(False, True)] * 2)

    async def test_a_connection_that_is_given_up_stays_open_until_the_lock_is_bound_elsewhere(self):
        answer = []

        def extend(params):
            return answer[0] if answer else Refuse("no_quorum")

        one, two = Script(acquire=lambda p: GRANT, extend=extend), Script(extend=extend)
        lock = await self.lock(one, two)
        self.cut()
        await self.until(lambda: len(two.of("extend")) > 1)
        self.assertEqual((one.ended, lock.held), (0, True))
        answer.append(EXTENDED)
        await self.until(lambda: one.ended)
        self.assertEqual((lock._binding > 1, lock.held), (True, True))

    async def test_every_connection_that_may_end_the_lock_stays_open_until_the_binding_is_known(
            self):
        one, two = Script(acquire=lambda p: GRANT), Script(extend=lambda p: Script.SILENT)
        three = Script(extend=lambda p: Script.SILENT)
        lock = await self.lock(one, two, three)
        self.cut()
        await self.until(lambda: two.of("extend"))
        self.cut()
        await self.until(lambda: three.of("extend"))
        self.assertEqual((one.ended, two.ended, lock.held), (0, 0, True))
        # On a busy machine the client may have left the third one by itself already.
        for script in (one, two, three):
            script.answers["extend"] = lambda p: EXTENDED
        self.cut()
        await self.until(lambda: one.ended and two.ended and three.ended)
        self.assertTrue(lock._binding >= 4 and lock.held)

    async def test_a_lock_that_cannot_be_bound_again_is_given_up_before_its_connection_is_closed(
            self):
        one = Script(acquire=lambda p: dict(GRANT, valid_ms=600))
        lock = await self.lock(one, lease=0.6)
        one.answers["extend"] = lambda p: Script.SILENT
        self.cut()
        held = []
        while not one.ended:
            held.append(lock.held)
            await asyncio.sleep(0.002)
        self.assertFalse(lock.held)
        self.assertTrue(held[0])

    # The limit is low, so that the test reaches it before the lease is over.
    @mock.patch.object(session_binding, "RETAINED_MAX", 8)
    async def test_with_too_many_connections_locks_are_lost_before_one_is_closed(self):
        one, two = (Script(acquire=lambda p: GRANT, extend=lambda p: Script.SILENT),
                    Script(extend=lambda p: Script.SILENT))
        lock = await self.lock(one, two)
        believed = []
        one.at_end = two.at_end = lambda: believed.append(lock.held)
        while lock.held:
            number = self.it._failover.connection
            self.cut()
            await self.until(lambda: self.it._failover.connection > number or not lock.held)
        self.assertIsInstance(lock.error, pawl.LostError)
        await self.until(lambda: one.ended)
        # Each of these connections was one that the lock ends with, or might be.
        self.assertEqual(set(believed), {False})

    async def test_a_broken_connection_cannot_be_retained_and_its_lock_is_lost_at_once(self):
        lock = await self.lock(Script(acquire=lambda p: GRANT), Script())
        self.it._failover.link.connection_lost(OSError(110, "Connection timed out"))
        # The lock is lost without a turn of the loop.
        self.assertEqual((lock.valid, type(lock.error)), (0.0, pawl.LostError))

    async def test_a_reset_is_the_end_of_the_node_and_not_of_the_lock(self):
        one, two = Script(acquire=lambda p: GRANT), Script(extend=lambda p: EXTENDED)
        lock = await self.lock(one, two)
        sock = one.writers[0].get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        one.writers[0].transport.abort()
        await self.until(lambda: lock._binding == 2)
        self.assertTrue(lock.held)

    async def test_after_an_unsure_extension_the_lock_is_acquired_again_under_its_lock_id(self):
        unsure = {"locks": [{"error": {"code": "unsure"}}]}
        one = Script(acquire=lambda p: GRANT, update=lambda p: {}, downgrade=lambda p: {})
        two = Script(extend=lambda p: unsure, acquire=lambda p: dict(GRANT, token=9))
        lock = await self.lock(one, two, value="old", owner="me")
        await lock.update("new")
        await lock.downgrade()
        one.writers[0].close()
        await self.until(lambda: lock.token == 9)
        first, again = one.of("acquire")[0], two.of("acquire")[0]
        wanted = dict(first, value=b"new", mode="shared", bond=2, release_on_disconnect=True)
        wanted.pop("wait_ms")
        self.assertEqual((again, lock._binding, lock.held), (wanted, 2, True))
        self.assertEqual(two.of("release"), [])

    async def test_other_permit_numbers_are_trusted_only_until_their_own_deadline(self):
        unsure = {"locks": [{"error": {"code": "unsure"}}]}
        grant = dict(GRANT, mode="permits", permits=1, of=10)
        one = Script(acquire=lambda p: dict(grant, slots=[0]))
        two = Script(extend=lambda p: unsure,
                     acquire=lambda p: dict(grant, token=9, slots=[1], valid_ms=5000))
        lock = await self.lock(one, two, permits=1, of=10)
        one.writers[0].close()
        await self.until(lambda: lock.token == 9)
        self.assertEqual(lock.slots, (1,))
        self.assertTrue(0 < lock.valid <= 5)  # The ten seconds were granted for number 0.

    async def test_if_acquiring_again_fails_the_lock_stays_and_another_try_follows(self):
        unsure = {"locks": [{"error": {"code": "unsure"}}]}
        tries = iter([Refuse("held"), Refuse("unsure")])
        one = Script(acquire=lambda p: GRANT)
        two = Script(extend=lambda p: unsure, acquire=lambda p: next(tries, dict(GRANT, token=9)))
        lock = await self.lock(one, two)
        one.writers[0].close()
        await self.until(lambda: lock.token == 9)
        self.assertEqual((two.of("release"), len(two.of("acquire")), lock.held), ([], 3, True))

    async def test_after_a_transfer_that_loses_its_connection_the_lock_does_not_come_back(self):
        one = Script(acquire=lambda p: GRANT, transfer=lambda p: Script.SILENT)
        two = Script(extend=lambda p: EXTENDED)
        lock = await self.lock(one, two)
        handing = asyncio.ensure_future(lock.transfer("x"))
        await self.until(lambda: one.of("transfer"))
        one.writers[0].close()
        with self.assertRaises(pawl.UnsureError):
            await handing
        self.assertEqual((lock.valid, two.of("extend")), (0.0, []))

    async def test_the_connection_of_a_lock_that_was_given_up_stays_while_the_lock_is_trusted(self):
        one = Script(acquire=lambda p: dict(GRANT, valid_ms=800), extend=lambda p: Script.SILENT)
        lock = await self.lock(one, lease=0.8, warn=0.4)
        one.answers["ping"] = lambda p: Script.SILENT
        await asyncio.wait_for(lock.wait_lost(), 5)
        left = clock.left(lock._deadline, clock.now())
        self.assertGreater(left, 0)
        self.assertEqual(one.ended, 0)
        await self.until(lambda: one.ended)
        self.assertFalse(lock.held)

    async def test_a_forked_child_has_no_connections(self):
        one = Script(acquire=lambda p: GRANT)
        lock = await self.lock(one, Script(extend=lambda p: Script.SILENT))
        self.cut()
        await self.until(lambda: self.it._failover.connection == 2)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            names = [os.readlink("/proc/self/fd/%s" % n) for n in os.listdir("/proc/self/fd")
                     if os.path.exists("/proc/self/fd/%s" % n)]
            inherited = [n for n in names if n.startswith("socket:")]
            os.write(writer, str(len(inherited)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        in_child = int(os.read(reader, 100))
        here = len([1 for n in os.listdir("/proc/self/fd")
                    if os.path.realpath("/proc/self/fd/%s" % n).find("socket:") >= 0])
        self.assertEqual(here - in_child, 2)  # the present connection and the retained one
        self.assertTrue(lock.held)
        os.close(reader)
        os.close(writer)


if __name__ == "__main__":
    unittest.main()
