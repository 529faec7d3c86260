"""Tests that the examples of README.md do what they say."""

import contextlib
import dataclasses
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import pawl
from nodes import Case

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEBIAN = "/usr/bin/python3"
README = os.path.join(PACKAGE, "README.md")


def examples():
    with open(README, encoding="utf-8") as f:
        return re.findall(r"```python\n(.*?)```", f.read(), re.S)


async def write_all(token):
    assert token > 0


def debian_can_build():
    return (shutil.which(DEBIAN)
            and subprocess.run([DEBIAN, "-c", "import ensurepip, setuptools, wheel"],
                               capture_output=True).returncode == 0)


class Installing(unittest.TestCase):
    @unittest.skipUnless(debian_can_build(), "python3-venv, python3-setuptools or python3-wheel is "
                                             "not installed")
    def test_the_commands_of_the_readme_install_the_package_without_downloading_anything(self):
        with open(README, encoding="utf-8") as f:
            commands = re.search(r"```sh\n(.*?)```", f.read(), re.S).group(1)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(PACKAGE, os.path.join(folder, "bindings", "python"),
                            ignore=shutil.ignore_patterns("__pycache__", "build"))
            alone = {"PATH": "/usr/bin:/bin", "HOME": folder, "PIP_NO_INDEX": "1",
                     "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            run = subprocess.run(["sh", "-ec", commands], cwd=folder, env=alone,
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            where = subprocess.run([os.path.join(folder, "venv", "bin", "python"), "-c",
                                    "import pawl.aio; print(pawl.__file__)"], cwd="/",
                                   env=alone, capture_output=True, text=True, check=True).stdout
            self.assertTrue(where.startswith(os.path.join(folder, "venv")), where)
            self.assertTrue(os.path.exists(os.path.join(os.path.dirname(where.strip()),
                                                        "py.typed")))
            told = subprocess.run([os.path.join(folder, "venv", "bin", "python"), "-c",
                                   "import importlib.metadata as m; print(*(e.value for e in "
                                   "m.distribution('pawl').entry_points if e.group == "
                                   "'pytest11'))"], cwd="/", env=alone, capture_output=True,
                                  text=True, check=True).stdout
            self.assertEqual(told.strip(), "pawl.pytest_plugin")


class Readme(Case):
    def test_it_names_every_field_of_a_leader(self):
        with open(README, encoding="utf-8") as f:
            (said,) = re.findall(r"^A leader has (.*?)\.$", f.read(), re.S | re.M)
        self.assertEqual(re.findall(r"`(\w+)`", said),
                         [field.name for field in dataclasses.fields(pawl.Leader)])

    def test_every_example_runs(self):
        found = examples()
        self.assertGreaterEqual(len(found), 7)
        work = iter([True, True, False])
        server = {"PAWL_TEST_PAWLD": os.environ["PAWLD"]}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, server):
            for number, text in enumerate(found):
                names = dict(
                    NODES=self.endpoints,
                    STATE_DIR=folder,
                    token=7,
                    write_part=lambda part, token: None,
                    write_all=write_all,
                    work_to_do=lambda: next(work),
                    do_some_work=lambda token: None,
                    call=lambda value: None,
                    write_the_report=lambda: None,
                    refuse=self.fail,
                )
                with self.subTest(example=number), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, "%s, example %d" % (README, number), "exec"), names)
        self.assertEqual(next(work, "over"), "over")


if __name__ == "__main__":
    unittest.main()
