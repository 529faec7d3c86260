"""The package is typed as it says, as far as mypy is there; and it is written for the oldest Python that it names."""

import ast
import glob
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
            run = subprocess.run(["mypy", "--strict", "--cache-dir", cache, "-p", "pawl"], cwd=PACKAGE, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_syntax_is_that_of_python_3_9(self):
        for path in glob.glob(os.path.join(PACKAGE, "pawl", "*.py")):
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
                for part, member in vars(thing).items():
                    if callable(member) and not part.startswith("_"):
                        self.assertTrue(member.__doc__, "%s.%s" % (name, part))

    def test_nothing_but_the_standard_library_is_imported(self):
        code = "import sys; before = set(sys.modules); import pawl, pawl.aio; print(*{m.split('.')[0] for m in set(sys.modules) - before})"
        out = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual([m for m in out if m != "pawl" and m not in getattr(sys, "stdlib_module_names", out)], [])


if __name__ == "__main__":
    unittest.main()
