"""Tests that the types of the package are right, that its syntax is that of the oldest Python that
it supports, and that its two layers have the same methods."""

import ast
import glob
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Types(unittest.TestCase):
    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
    def test_mypy_finds_nothing(self):
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run(["mypy", "--strict", "--cache-dir", cache, "-p", "pawl"],
                                 cwd=PACKAGE, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_syntax_is_that_of_python_3_9(self):
        for path in glob.glob(os.path.join(PACKAGE, "pawl", "**", "*.py"), recursive=True):
            with open(path, encoding="utf-8") as f:
                ast.parse(f.read(), path, feature_version=(3, 9))

    def test_every_public_name_is_explained(self):
        import pawl
        import pawl.aio

        for module in (pawl, pawl.aio):
            for name in module.__all__:
                thing = getattr(module, name)
                if not isinstance(thing, type):
                    continue
                self.assertTrue(thing.__doc__, name)
                for part in dir(thing):
                    if callable(getattr(thing, part)) and not part.startswith("_"):
                        self.assertTrue(getattr(thing, part).__doc__, "%s.%s" % (name, part))

    def test_nothing_but_the_standard_library_is_imported(self):
        code = ("import sys; before = set(sys.modules); import pawl, pawl.aio; "
                "print(*{m.split('.')[0] for m in set(sys.modules) - before})")
        run = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, capture_output=True,
                             text=True, check=True)
        imported = run.stdout.split()
        known = {"pawl", *getattr(sys, "stdlib_module_names", imported)}
        self.assertEqual([m for m in imported if m not in known], [])


def parameters(method):
    return [(p.name, p.kind, p.default, p.annotation)
            for p in inspect.signature(method).parameters.values() if p.name != "self"]


class Layers(unittest.TestCase):
    """The signatures of the blocking layer are written out, so that editors, mypy and help() show
    them. These tests compare them with those of the asynchronous layer."""

    def pairs(self):
        import pawl
        import pawl.aio

        for name in pawl.aio.__all__:
            far, here = getattr(pawl.aio, name), getattr(pawl, name, None)
            if isinstance(far, type) and here not in (None, far):
                for part in sorted(set(dir(far)) & set(dir(here))):
                    if not part.startswith("_") and inspect.isfunction(getattr(far, part)):
                        yield name, part, getattr(far, part), getattr(here, part)

    def test_methods_of_both_layers_have_the_same_parameters(self):
        seen = set()
        for name, part, far, here in self.pairs():
            expected = parameters(far)
            # An await can get a timeout from outside; a blocking call cannot.
            if part == "wait_lost":
                expected.append(parameters(here)[-1])
            self.assertEqual(parameters(here), expected, "%s.%s" % (name, part))
            seen.add(name)
        self.assertLessEqual({"Client", "Lock", "LockSet", "Watch", "Election"}, seen)

    def test_requests_have_the_same_docstrings_in_both_layers(self):
        requests = [(part, far, here) for name, part, far, here in self.pairs()
                    if name == "Client" and inspect.iscoroutinefunction(far)]
        self.assertGreater(len(requests), 10)
        for part, far, here in requests:
            self.assertEqual(inspect.getdoc(here), inspect.getdoc(far), part)


if __name__ == "__main__":
    unittest.main()
