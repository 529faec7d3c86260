"""Tests which tokens the fencing store refuses, and what a crash leaves in its file."""

import multiprocessing
import os
import stat
import tempfile
import unittest
from unittest import mock

from pawl import FenceError, FenceStore, fence_check
from pawl._fence import fence_file, fence_store, siphash


def race(path, own, out):
    with FenceStore(path) as store:
        out.put([token for token in range(own, 400, 2) if store.check("k", token)])


class Checksum(unittest.TestCase):
    def test_the_hash_is_siphash(self):
        """The vectors are those of the authors of SipHash: key 00 to 0f, bytes 00, 01, ..."""
        key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
        for size, wanted in ((0, 0x726FDB47DD0E0E31), (7, 0xAB0200F58B01D137),
                             (8, 0x93F5F5799A932462), (15, 0xA129CA6149BE45E5)):
            self.assertEqual(siphash.siphash(key, bytes(range(size))), wanted)


class Rule(unittest.TestCase):
    def test_the_newest_one_passes_and_older_ones_do_not(self):
        self.assertTrue(fence_check(0, 1) and fence_check(5, 5) and fence_check(5, 6))
        self.assertFalse(fence_check(5, 4) or fence_check(0, 0))


class Stores(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "fence")

    def test_tokens_only_grow_for_each_name(self):
        for path in (None, self.path):
            with FenceStore(path) as store:
                self.assertTrue(store.check("a", 5))
                self.assertTrue(store.check("a", 5))
                self.assertFalse(store.check("a", 4))
                self.assertTrue(store.check("b", 1))
                self.assertEqual((store.highest("a"), store.highest("b"), store.highest("c")),
                                 (5, 1, 0))

    def test_readers_do_not_disturb_each_other_but_stop_older_writers(self):
        with FenceStore(self.path) as store:
            self.assertTrue(store.check("a", 5))
            self.assertTrue(store.check("a", 9, "shared"))
            self.assertTrue(store.check("a", 7, "shared"))
            self.assertFalse(store.check("a", 4, "shared"))
            self.assertFalse(store.check("a", 8))
            self.assertTrue(store.check("a", 10))
            self.assertFalse(store.check("a", 9, "shared"))

    def test_what_was_allowed_is_known_after_a_restart(self):
        with FenceStore(self.path) as store:
            store.check(b"\x00 \n\xff", 7)
        with FenceStore(self.path) as store:
            self.assertFalse(store.check(b"\x00 \n\xff", 6))

    def test_two_stores_of_one_file_see_each_other(self):
        with FenceStore(self.path) as one, FenceStore(self.path) as two:
            self.assertTrue(one.check("a", 5))
            self.assertFalse(two.check("a", 4))
            self.assertTrue(two.check("a", 6))
            self.assertFalse(one.check("a", 5))

    def test_two_processes_never_both_pass_out_of_order(self):
        context = multiprocessing.get_context("fork")
        out = context.Queue()
        others = [context.Process(target=race, args=(self.path, own, out)) for own in (1, 2)]
        for other in others:
            other.start()
        passed = sorted(token for _ in others for token in out.get(timeout=20))
        for other in others:
            other.join()
        self.assertEqual(passed[-1], 399)
        with FenceStore(self.path) as store:
            self.assertEqual(store.highest("k"), 399)

    def test_a_half_written_end_is_dropped(self):
        with FenceStore(self.path) as store:
            store.check("a", 5)
            store.check("a", 6)
        whole = open(self.path, "rb").read()
        for cut in range(1, len(whole) - len(fence_file.HEADER) - 29):
            with open(self.path, "wb") as f:
                f.write(whole[:-cut])
            with FenceStore(self.path) as store:
                self.assertEqual(store.highest("a"), 5, cut)
                self.assertTrue(store.check("a", 7))

    def test_a_half_written_beginning_is_an_empty_store(self):
        for size in range(len(fence_file.HEADER)):
            with open(self.path, "wb") as f:
                f.write(fence_file.HEADER[:size])
            with FenceStore(self.path) as store:
                self.assertTrue(store.check("a", 1))

    def test_damage_is_refused_and_never_repaired(self):
        with FenceStore(self.path) as store:
            for token in (5, 6, 7):
                store.check("a", token)
        whole = bytearray(open(self.path, "rb").read())
        # Damage in the last record may be a half-written end, so it is not tested here.
        for at in range(len(fence_file.HEADER) + 2 * 29):
            whole[at] ^= 1
            with open(self.path, "wb") as f:
                f.write(whole)
            with self.assertRaises(FenceError, msg=at):
                FenceStore(self.path)
            whole[at] ^= 1
        with open(self.path, "w") as f:
            f.write("something else\n")
        with self.assertRaises(FenceError):
            FenceStore(self.path)

    def test_a_file_that_grows_is_written_anew_and_knows_the_same(self):
        with mock.patch.object(fence_store, "REWRITE_RECORDS_LEAST",
                               20), FenceStore(self.path) as one, FenceStore(self.path) as two:
            for token in range(1, 101):
                self.assertTrue((one if token % 3 else two).check("a", token))
                self.assertFalse((two if token % 3 else one).check("a", token - 1)
                                 if token > 1 else False)
            one.check("b", 3, "shared")
        self.assertLess(os.path.getsize(self.path), 1000)
        with FenceStore(self.path) as store:
            self.assertEqual((store.highest("a"), store.highest("b")), (100, 3))

    def test_a_store_whose_file_was_removed_goes_on_to_know_what_it_knew(self):
        with FenceStore(self.path) as store:
            store.check("a", 5)
            os.remove(self.path)
            self.assertFalse(store.check("a", 4))
            self.assertTrue(store.check("a", 6))
        with FenceStore(self.path) as store:
            self.assertEqual(store.highest("a"), 6)

    def test_a_path_that_is_not_a_regular_file_is_refused(self):
        os.mkfifo(self.path)
        for path in (self.path, os.path.dirname(self.path), self.path + "/x",
                     self.path + ".missing/x"):
            with self.assertRaises(FenceError, msg=path):
                FenceStore(path)

    def test_a_disk_that_did_not_confirm_a_token_is_not_believed_any_more(self):
        with FenceStore(self.path) as store:
            store.check("a", 5)
            failure = OSError(5, "Input/output error")
            with mock.patch("os.fdatasync", side_effect=failure), self.assertRaises(FenceError):
                store.check("a", 6)
            for token in (5, 7):
                with self.assertRaises(FenceError):
                    store.check("a", token)
        with FenceStore(self.path) as store:
            self.assertTrue(store.check("a", 5))

    def test_a_directory_that_cannot_be_synced_is_an_error(self):
        real = os.fsync

        def fsync(file):
            if stat.S_ISDIR(os.fstat(file).st_mode):
                raise OSError(28, "No space left on device")
            real(file)

        with FenceStore(self.path) as store,\
                mock.patch.object(fence_store, "REWRITE_RECORDS_LEAST", 3):
            self.assertTrue(store.check("k", 1))
            self.assertTrue(store.check("k", 2))
            with mock.patch("os.fsync", fsync), self.assertRaises(FenceError):
                store.check("k", 3)  # This writes the file anew.
            with self.assertRaises(FenceError):
                store.check("k", 4)
        with FenceStore(self.path) as store:
            with mock.patch("os.fsync", fsync), self.assertRaises(FenceError):
                store.check("k", 4)
        with FenceStore(self.path) as store:
            self.assertTrue(store.check("k", 4))

    def test_a_write_that_failed_leaves_the_store_as_it_was(self):
        with FenceStore(self.path) as store:
            store.check("a", 5)
            failure = OSError(28, "No space left on device")
            with mock.patch("os.pwrite", side_effect=failure), self.assertRaises(FenceError):
                store.check("a", 6)
            self.assertEqual(store.highest("a"), 5)
            self.assertTrue(store.check("a", 5) and store.check("a", 6))

    def test_a_forked_child_waits_for_its_parent(self):
        with FenceStore(self.path) as store:
            with store._file.locked():
                child = os.fork()
                if child == 0:
                    os._exit(0 if store.check("a", 5) else 1)
                self.assertEqual(os.waitpid(child, os.WNOHANG), (0, 0))
                self.assertEqual(open(self.path, "rb").read(), fence_file.HEADER)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(store.highest("a"), 5)

    def test_a_store_that_is_closed_allows_nothing(self):
        for path in (None, self.path):
            store = FenceStore(path)
            store.close()
            with self.assertRaises(FenceError):
                store.check("a", 1)


if __name__ == "__main__":
    unittest.main()
