"""Tests that Python and `pawl fence`, which uses the C library, can share one token file."""

import os
import random
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import pawl
from pawl import FenceError, FenceStore
from pawl._fence import fence_file, fence_store

# For each token that passes, this prints the token, and when its check began and ended.
SHELL = """
for token; do
	began=$EPOCHREALTIME
	"$PAWL" fence check "$FILE" k "$token" 2>/dev/null &&
		echo "$token $began $EPOCHREALTIME" || [ $? = 1 ] || exit 3
done
"""
PYTHON = """
import os, sys, time
from pawl import FenceStore
with FenceStore(os.environ["FILE"]) as store:
    for token in sys.argv[1:]:
        began = time.time()
        if store.check("k", int(token)):
            print(token, began, time.time(), flush=True)
"""


class Shared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "fence")

    def pawl(self, *words):
        run = subprocess.run([os.environ["PAWL"], "fence", *map(str, words)], capture_output=True,
                             text=True)
        return run.returncode, run.stdout.strip(), run.stderr

    def passes(self, name, token, *more):
        status = self.pawl("check", self.path, name, token, *more)[0]
        self.assertIn(status, (0, 1))
        return status == 0

    def highest(self, name):
        return int(self.pawl("show", self.path, name)[1])

    def test_either_reads_what_the_other_wrote(self):
        self.assertTrue(self.passes("a", 5))
        with FenceStore(self.path) as store:
            self.assertEqual((store.highest("a"), store.check("a", 4), store.check("a", 7)),
                             (5, False, True))
            self.assertFalse(self.passes("a", 6))
            self.assertTrue(self.passes("a", 2**63 - 1) and self.passes("é/ ü" * 100, 3))
            self.assertEqual((store.check("a", 8), store.highest("a"), store.highest("é/ ü" * 100)),
                             (False, 2**63 - 1, 3))
            self.assertTrue(store.check("b", 2) and store.check("n" * 1024, 9))
        self.assertEqual((self.highest("b"), self.highest("n" * 1024)), (2, 9))

    def test_readers_of_either_stop_older_writers_of_the_other(self):
        with FenceStore(self.path) as store:
            self.assertTrue(store.check("a", 5) and self.passes("a", 9, "--shared")
                            and store.check("a", 7, "shared"))
            self.assertFalse(store.check("a", 8) or store.check("a", 4, "shared")
                             or self.passes("a", 8))
            self.assertTrue(store.check("b", 9, "shared") and self.passes("b", 7, "--shared"))
            self.assertFalse(self.passes("b", 8))

    def test_a_half_written_end_is_dropped_by_either(self):
        with FenceStore(self.path) as store:
            store.check("a", 5)
            store.check("a", 6)
        whole = open(self.path, "rb").read()
        for cut in (1, 8, 9, 20, 28):
            for other in (FenceStore.highest, None):
                with open(self.path, "wb") as f:
                    f.write(whole[:-cut])
                if other is None:
                    self.assertEqual(self.highest("a"), 5)
                else:
                    with FenceStore(self.path) as store:
                        self.assertEqual(store.highest("a"), 5)
                self.assertEqual(os.path.getsize(self.path), len(whole) - 29)

    def test_what_one_refuses_the_other_refuses(self):
        with FenceStore(self.path) as store:
            for token in range(1, 40):
                store.check("a", token)
        whole = open(self.path, "rb").read()
        draw = random.Random(7)
        files = [b"something else\n", b"pawl-python-fence 1\n", b"pawl fence 2\n\0\0\0", bytes(17),
                 bytes(16), bytes(5), b"", whole + bytes(2000)]
        for _ in range(30):
            bad = bytearray(whole)
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
            files.append(bytes(bad[: draw.choice([len(bad), draw.randrange(len(bad))])]))
        for content in files:
            said = []
            for ask in (lambda: self.pawl("show", self.path, "a"), self.by_python):
                with open(self.path, "wb") as f:
                    f.write(content)
                status, text, _ = ask()
                said.append((status == 0, text, open(self.path, "rb").read()))
            self.assertEqual(said[0], said[1], content)

    def by_python(self):
        try:
            with FenceStore(self.path) as store:
                return 0, str(store.highest("a")), ""
        except FenceError as error:
            return 1, "", str(error)

    def test_a_file_that_either_wrote_anew_goes_on_for_the_other(self):
        with mock.patch.object(fence_store, "REWRITE_RECORDS_LEAST", 50),\
                FenceStore(self.path) as store:
            os.chmod(self.path, 0o640)
            for token in range(1, 60):
                store.check("a", token)
            self.assertLess(os.path.getsize(self.path), 20 * 29)
        self.assertEqual((self.highest("a"), os.stat(self.path).st_mode & 0o777), (59, 0o640))
        with mock.patch.object(fence_store, "REWRITE_RECORDS_LEAST", 10**9),\
                FenceStore(self.path) as store:
            for token in range(60, 1100):
                store.check("a", token)
            self.assertTrue(self.passes("a", 1100))
            # `pawl fence` has written the file anew.
            self.assertEqual(os.path.getsize(self.path), len(fence_file.HEADER) + 29)
            self.assertFalse(store.check("a", 1099))
            self.assertTrue(store.check("a", 1101))
        self.assertFalse(self.passes("a", 1100))

    def test_two_shells_and_two_programs_never_let_an_older_token_pass_after_a_newer_one(self):
        package = os.path.dirname(os.path.dirname(pawl.__file__))
        env = dict(os.environ, FILE=self.path, PYTHONPATH=package, LC_ALL="C")
        draw, running = random.Random(1), []
        for i in range(4):
            tokens = [str(min(t + draw.randrange(12), 300)) for t in range(1 + i, 301, 2)]
            command = ["bash", "-c", SHELL, "loop"] if i < 2 else [sys.executable, "-c", PYTHON]
            running.append(subprocess.Popen(command + tokens, stdout=subprocess.PIPE, text=True,
                                            env=env))
        passed = []
        for one in running:
            lines = one.communicate(timeout=60)[0].splitlines()
            self.assertEqual(one.returncode, 0)
            self.assertTrue(lines)
            passed += [(int(token), float(began), float(ended))
                       for token, began, ended in map(str.split, lines)]
        for token, began, _ in passed:
            before = [t for t, _, ended in passed if ended < began]
            self.assertLessEqual(max(before, default=0), token)
        self.assertEqual(self.highest("k"), max(token for token, _, _ in passed))


if __name__ == "__main__":
    unittest.main()
