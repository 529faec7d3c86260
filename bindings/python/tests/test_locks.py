"""Tests locks of the blocking client against three real nodes."""

import os
import threading
import time
import unittest

import pawl
import pawltest
from nodes import Case, InBackground, endpoints


class BlockingCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.connect()

    def connect(self, **options):
        client = pawl.connect(self.endpoints, **options)
        self.addCleanup(client.close)
        return client


class Locks(BlockingCase):
    def test_a_lock_is_held_in_the_block_and_free_after_it(self):
        with self.client.lock(self.key, lease=10, value="v") as lock:
            self.assertTrue(lock.held and 9 < lock.valid < 10)
            self.assertEqual((lock.key, len(lock.lock_id), lock.mode),
                             (self.key.encode(), 32, "exclusive"))
            entry = self.client.get(self.key)
            self.assertEqual((entry.held, entry.value, entry.token, entry.lock_id),
                             (True, b"v", lock.token, lock.lock_id))
            self.assertEqual((entry.pid, entry.owner), (os.getpid(), self.client.owner))
        self.assertEqual((lock.valid, lock.held), (0.0, False))
        self.assertFalse(self.client.get(self.key, quorum=True).held)

    def test_tokens_grow(self):
        tokens = []
        for _ in range(3):
            with self.client.lock(self.key) as lock:
                tokens.append(lock.token)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_a_try_tells_who_holds_the_lock(self):
        other = self.connect(owner="somebody")
        with other.lock(self.key) as lock:
            with self.assertRaises(pawl.HeldError) as caught:
                self.client.lock(self.key, wait=0).acquire()
            self.assertEqual((caught.exception.holder["owner"], caught.exception.holder["token"]),
                             (b"somebody", lock.token))

    def test_a_lock_tries_once_unless_it_is_told_to_wait(self):
        with self.connect().lock(self.key, lease=2) as held:
            began = time.monotonic()
            for lock in (self.client.lock(self.key), self.client.locks([self.key])):
                with self.assertRaises(pawl.HeldError):
                    lock.acquire()
            self.assertLess(time.monotonic() - began, 1)
            # None waits without an end.
            waiting = InBackground(self.client.lock(self.key, wait=None).acquire)
            self.until_waiting(self.client, self.key)
            held.release()
            self.assertTrue(waiting.result().held)

    def test_errors_have_what_they_are_about(self):
        with self.assertRaises(pawl.TooLongError) as caught:
            self.client.lock(self.key, lease=3600).acquire()
        self.assertEqual((caught.exception.limit, caught.exception.holder, caught.exception.file),
                         (60.0, None, ""))
        with self.assertRaises(pawl.BadRequestError) as short:
            self.client.lock(self.key, lease=0.001).acquire()
        self.assertEqual(short.exception.limit, 0.1)

    def test_a_wait_ends_in_time(self):
        with self.connect().lock(self.key):
            began = time.monotonic()
            with self.assertRaises(pawl.WaitTimeoutError):
                self.client.lock(self.key, wait=0.2).acquire()
            self.assertGreaterEqual(time.monotonic() - began, 0.19)

    def test_waiters_get_the_lock_in_order(self):
        order, first = [], self.client.lock(self.key).acquire()
        clients = [self.connect(owner="w%d" % i) for i in range(3)]

        def take(i):
            with clients[i].lock(self.key, wait=20):
                order.append(i)

        waiting = []
        for i in range(3):
            waiting.append(InBackground(take, i))
            self.until_waiting(self.client, self.key, i + 1)
        self.assertEqual([w.owner for w in self.client.waiters(self.key)], [b"w0", b"w1", b"w2"])
        first.release()
        for one in waiting:
            one.result()
        self.assertEqual(order, [0, 1, 2])

    def test_one_client_serves_many_threads(self):
        counter = []

        def count():
            for _ in range(5):
                with self.client.lock(self.key, wait=20):
                    counter.append(len(counter))

        for one in [InBackground(count) for _ in range(4)]:
            one.result()
        self.assertEqual(counter, list(range(20)))

    def test_a_lock_is_renewed_while_the_program_does_something_else(self):
        with self.client.lock(self.key, lease=1) as lock:
            time.sleep(1.5)  # the program's own work
            lock.check()
            self.assertGreater(lock.valid, 0.1)

    def test_without_renewal_a_lock_runs_out_and_says_so_before(self):
        lost = threading.Event()
        lock = self.client.lock(self.key, lease=0.6, renew=False, on_lost=lambda lock,
                                error: lost.set()).acquire()
        self.assertTrue(lost.wait(5))
        self.assertGreater(lock.valid, 0.0)
        self.assertIsInstance(lock.error, pawl.WaitTimeoutError)
        self.until(lambda: not lock.held)
        self.client.wait(self.key, timeout=5)

    def test_a_lock_that_was_broken_is_lost_and_its_block_raises_that(self):
        seen = []
        with self.assertRaises(pawl.LostError):
            with self.client.lock(self.key, lease=1, on_lost=lambda lock,
                                  error: seen.append((lock, error))) as lock:
                self.assertTrue(self.connect().break_lock(self.key, lock.token, now=True))
                self.assertIsInstance(lock.wait_lost(10), pawl.LostError)
                self.assertEqual(lock.valid, 0.0)
                with self.assertRaises(pawl.LostError):
                    lock.check()
        self.assertEqual([(one, type(error)) for one, error in seen], [(lock, pawl.LostError)])

    def test_an_error_of_the_block_comes_through_and_the_lock_is_released(self):
        with self.assertRaises(KeyError):
            with self.client.lock(self.key):
                raise KeyError
        self.assertFalse(self.client.get(self.key, quorum=True).held)

    def test_releasing_twice_is_the_same_as_once(self):
        lock = self.client.lock(self.key).acquire()
        self.assertTrue(lock.release())
        self.assertFalse(lock.release())
        with lock.acquire():  # This is a new acquisition.
            self.assertTrue(lock.held)

    def test_two_threads_that_share_one_object_are_not_both_let_in(self):
        lock = self.client.lock(self.key)
        with lock:
            for again in (lock.acquire, lock.__enter__):
                with self.assertRaises(RuntimeError):
                    InBackground(again).result()
            self.assertTrue(lock.held)
            self.assertTrue(self.client.get(self.key, quorum=True).held)
        locks = self.client.locks([self.key])
        with locks:
            with self.assertRaises(RuntimeError):
                InBackground(locks.__enter__).result()
            self.assertTrue(locks.held)

    def test_calls_that_wait_end_when_the_client_is_closed(self):
        with self.connect().lock(self.key):
            other = self.connect()
            waiting = [InBackground(other.lock(self.key, wait=None).acquire),
                       InBackground(lambda: [other.ping() for _ in range(10**6)])]
            self.until_waiting(self.client, self.key)
            other.close()
            for one in waiting:
                with self.assertRaises(pawl.ClosedError):
                    one.result()

    def test_a_block_may_release_for_itself(self):
        with self.client.lock(self.key) as lock:
            lock.release()

    def test_values_change_by_compare_and_set(self):
        with self.client.lock(self.key, value="1") as lock:
            seq = lock.update("2", expect="1")
            lock.update("3", expect=seq)
            with self.assertRaises(pawl.MismatchError) as caught:
                lock.update("4", expect="2")
            self.assertEqual(caught.exception.value, b"3")
            self.assertEqual(self.client.get(self.key, quorum=True).value, b"3")

    def test_closing_a_client_releases_what_it_holds(self):
        other = self.connect()
        lock = other.lock(self.key).acquire()
        other.close()
        self.assertEqual(lock.valid, 0.0)
        self.assertFalse(self.client.get(self.key, quorum=True).held)
        with self.assertRaises(pawl.ClosedError):
            other.ping()
        other.close()

    def test_a_child_process_trusts_nothing(self):
        with self.client.lock(self.key) as lock:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    self.client.ping()
                except pawl.ClosedError:
                    status = 0 if lock.valid == 0.0 else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(lock.held)

    def test_a_callback_that_would_wait_for_itself_gets_an_error(self):
        outcome = []

        def lost(lock, error):
            try:
                lock.release()
            except RuntimeError as problem:
                outcome.append(problem)

        lock = self.client.lock(self.key, lease=0.3, renew=False, on_lost=lost).acquire()
        self.until(lambda: outcome)
        lock.release()

    def test_a_lease_above_the_limit_of_the_cluster_is_refused(self):
        with self.assertRaises(pawl.TooLongError) as caught:
            self.client.lock(self.key, lease=3600).acquire()
        self.assertEqual(caught.exception.details["limit_ms"], 60000)


    def test_a_wait_that_ends_names_the_holder(self):
        with self.connect(owner="anna").lock(self.key) as lock:
            with self.assertRaises(pawl.WaitTimeoutError) as caught:
                self.client.lock(self.key, wait=0.1).acquire()
        self.assertEqual((caught.exception.holder["owner"], caught.exception.holder["token"]),
                         (b"anna", lock.token))


class ShortLeases(Case):
    def setUp(self):
        super().setUp()
        cluster = pawltest.Cluster(os.environ["PAWLD"], masters=1, cluster="max_lease = 3s\n")
        cluster.__enter__()
        self.addCleanup(cluster.__exit__)
        self.client = pawl.connect(endpoints(cluster))
        self.addCleanup(self.client.close)

    def test_a_lease_that_is_not_given_is_what_the_cluster_allows(self):
        with self.client.lock("k") as lock:
            self.assertLessEqual(lock.valid, 3)
            self.until(lambda: lock.valid < 2.2)
            self.until(lambda: lock.valid > 2.5, "an extension")
        with self.client.lock("d", lock_delay=1) as lock:
            self.assertLessEqual(lock.valid, 2)
        with self.client.locks(["x", "y"]) as locks:
            self.assertLessEqual(max(lock.valid for lock in locks), 3)

    def test_a_lease_that_is_given_is_not_shortened(self):
        with self.assertRaises(pawl.TooLongError):
            self.client.lock("k", lease=30).acquire()


class Terms(BlockingCase):
    def test_readers_share_and_a_writer_waits_for_all_of_them(self):
        with self.client.lock(self.key, mode="shared") as one, \
                self.connect().lock(self.key, mode="shared") as two:
            self.assertEqual((one.mode, two.mode), ("shared", "shared"))
            self.assertEqual(len(self.client.get(self.key, quorum=True).holders), 2)
            with self.assertRaises(pawl.HeldError):
                self.connect().lock(self.key, wait=0).acquire()
            writer = InBackground(lambda: self.connect().lock(self.key, wait=20).acquire().token)
            self.until_waiting(self.client, self.key)
            # A reader that comes after the writer waits behind it.
            with self.assertRaises(pawl.HeldError):
                self.client.lock(self.key, mode="shared", wait=0).acquire()
        self.assertGreater(writer.result(), max(one.token, two.token))

    def test_permits_are_numbered_and_not_given_twice(self):
        with self.client.lock(self.key, permits=2, of=3) as two:
            self.assertEqual((two.mode, len(two.slots)), ("permits", 2))
            with self.connect().lock(self.key, permits=1, of=3) as one:
                self.assertEqual(sorted(two.slots + one.slots), [0, 1, 2])
                with self.assertRaises(pawl.HeldError):
                    self.client.lock(self.key, permits=1, of=3, wait=0).acquire()
            with self.connect().lock(self.key, permits=1, of=3, wait=5) as again:
                self.assertTrue(again.held)

    def test_several_keys_are_acquired_together_or_not_at_all(self):
        a, b, c = (self.key + end for end in "abc")
        with self.client.locks([c, a, pawl.Want(b, mode="shared")], lease=10) as locks:
            self.assertEqual([lock.key.decode() for lock in locks], [c, a, b])
            self.assertEqual(([lock.mode for lock in locks], len(locks)),
                             (["exclusive", "exclusive", "shared"], 3))
            self.assertTrue(locks.held and locks[a].held)
            with self.assertRaises(pawl.HeldError) as caught:
                self.client.locks([self.key + "d", a], wait=0).acquire()
            self.assertEqual(bytes(caught.exception.details["key"]), a.encode())
            self.assertFalse(self.client.get(self.key + "d", quorum=True).held)
        self.assertFalse(any(self.client.get(key, quorum=True).held for key in (a, b, c)))

    def test_two_clients_that_want_the_same_keys_in_another_order_do_not_deadlock(self):
        a, b = self.key + "a", self.key + "b"
        counter = []

        def count(keys):
            client = self.connect()
            for _ in range(5):
                with client.locks(keys, wait=20):
                    counter.append(len(counter))

        for one in [InBackground(count, [a, b]), InBackground(count, [b, a])]:
            one.result()
        self.assertEqual(counter, list(range(10)))

    def test_keys_of_a_set_are_renewed_and_lost_together(self):
        keys, lost = [self.key + end for end in "ab"], []
        with self.assertRaises(pawl.LostError):
            with self.client.locks(keys, lease=1, on_lost=lambda lock,
                                   error: lost.append(lock.key)) as locks:
                time.sleep(1.5)  # This is longer than the lease.
                locks.check()
                self.client.break_lock(keys[0], locks[keys[0]].token, now=True)
                self.until(lambda: not locks.held)
        self.assertEqual(lost, [keys[0].encode()])

    def test_a_lock_becomes_a_shared_one_without_letting_go(self):
        with self.client.lock(self.key) as lock:
            lock.downgrade()
            self.assertEqual((lock.mode, lock.held), ("shared", True))
            with self.connect().lock(self.key, mode="shared", wait=5) as other:
                self.assertTrue(other.held and lock.held)

    def test_a_lock_is_handed_to_the_waiter_that_is_named(self):
        lock = self.client.lock(self.key).acquire()
        got = []

        def take(owner):
            with self.connect(owner=owner).lock(self.key, wait=20):
                got.append(owner)

        waiting = []
        for i, owner in enumerate(("first", "second")):
            waiting.append(InBackground(take, owner))
            self.until_waiting(self.client, self.key, i + 1)
        with self.assertRaises(pawl.NotFoundError):
            lock.transfer("nobody")
        self.assertTrue(lock.held)
        lock.transfer("second")
        self.assertFalse(lock.held)
        for one in waiting:
            one.result()
        self.assertEqual(got, ["second", "first"])

    def test_the_waiter_with_the_highest_priority_is_next(self):
        got, lock = [], self.client.lock(self.key).acquire()

        def take(priority):
            with self.connect().lock(self.key, wait=20, priority=priority):
                got.append(priority)

        waiting = []
        for i, priority in enumerate((0, -5, 7)):
            waiting.append(InBackground(take, priority))
            self.until_waiting(self.client, self.key, i + 1)
        self.assertEqual([w.priority for w in self.client.waiters(self.key)], [7, 0, -5])
        lock.release()
        for one in waiting:
            one.result()
        self.assertEqual(got, [7, 0, -5])

    def test_a_lock_delay_keeps_the_key_closed_after_a_loss_but_not_after_a_release(self):
        lock = self.client.lock(self.key, lease=0.4, lock_delay=20, renew=False).acquire()
        self.until(lambda: self.client.get(self.key).closing is not None)
        with self.assertRaises(pawl.HeldError):
            self.connect().lock(self.key, wait=0).acquire()
        lock.release()
        with self.connect().lock(self.key, wait=5):
            pass

    def test_a_lock_that_ends_with_the_connection_is_free_when_the_client_is_gone(self):
        holder = self.connect()
        lock = holder.lock(self.key, lease=60, release_on_disconnect=True).acquire()
        began = time.monotonic()
        holder.close(release=False)
        self.assertEqual(lock.valid, 0.0)
        with self.client.lock(self.key, wait=20):
            self.assertLess(time.monotonic() - began, 5)


class Reading(BlockingCase):
    def test_keys_are_listed_in_order_and_in_pages(self):
        keys = [self.key + "/%02d" % i for i in range(7)]
        with self.client.locks(keys):
            self.until(lambda: len(self.client.list(self.key).entries) == 7)
            page = self.client.list(self.key, limit=3)
            self.assertEqual(([e.key.decode() for e in page.entries], page.more), (keys[:3], True))
            self.assertEqual([e.key.decode()
                              for e in self.client.list(self.key, after=keys[4]).entries], keys[5:])
            self.assertEqual([e.key.decode() for e in self.client.keys(self.key)], keys)

    def test_waits_end_when_the_key_is_taken_and_when_it_is_free(self):
        held = InBackground(lambda: self.connect().wait(self.key, "held", timeout=20))
        with self.client.lock(self.key) as lock:
            self.assertEqual(held.result().token, lock.token)
            with self.assertRaises(pawl.WaitTimeoutError):
                self.client.wait(self.key, timeout=0.05)
            free = InBackground(lambda: self.connect().wait(self.key, timeout=20))
        self.assertFalse(free.result().held)

    def test_waiters_of_a_prefix_are_listed_with_their_keys(self):
        keys = [self.key + "/a", self.key + "/b"]
        with self.client.locks(keys):
            def acquire(key):
                self.connect(label="l").lock(key, wait=20).acquire().release()

            waiting = [InBackground(acquire, key) for key in keys]
            self.until(lambda: len(self.client.waiters(prefix=self.key)) == 2)
            self.assertEqual([(w.key.decode(), w.label)
                              for w in self.client.waiters(prefix=self.key)],
                             [(key, "l") for key in keys])
        for one in waiting:
            one.result()

    def test_every_master_reports_what_it_knows_of_a_key(self):
        with self.client.lock(self.key, label="nightly") as lock:
            said = self.client.explain(self.key)
            self.assertEqual((said.entry.held, said.entry.token, said.entry.label),
                             (True, lock.token, "nightly"))
            self.assertEqual(sorted(m.node for m in said.masters), ["a", "b", "c"])
            self.assertEqual([sum(m.home for m in said.masters), {m.state for m in said.masters}],
                             [1, {"voting"}])
            self.assertGreaterEqual(sum(r.token == lock.token for m in said.masters
                                        for r in m.records), 2)
            self.assertEqual({type(m) for m in said.masters}, {pawl.Report})
            self.assertEqual([(m.parked, m.kept) for m in said.masters], [(0, 0)] * 3)

    def test_status_and_any_other_method_can_be_called(self):
        self.assertEqual(sorted(self.client.status()["masters"]), ["a", "b", "c"])
        self.assertIn(self.client.ping()["node"], "abc")
        self.assertFalse(self.client.call("get", key=self.key)["held"])
        with self.assertRaises(pawl.BadRequestError) as caught:
            self.client.call("get", key=self.key, nonsense=1)
        self.assertEqual(caught.exception.field, "nonsense")


if __name__ == "__main__":
    unittest.main()
