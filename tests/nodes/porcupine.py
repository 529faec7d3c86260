"""Lets Porcupine, a checker of linearizability that others have written, judge histories as well
(tests/judge/porcupine). It needs Go, and its module has to be here or to be had."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from lacks_go import lacks_go  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "judge", "porcupine")
PROGRAM = os.path.join(ROOT, "build", "porcupine", "porcupine")


class Missing(Exception):
    """Why it cannot be built."""


def build():
    """Builds the program, and returns its path."""
    why = lacks_go(FOLDER)
    if why:
        raise Missing(why)
    built = subprocess.run(["go", "build", "-o", PROGRAM, "."], cwd=FOLDER, text=True,
                           env={**os.environ, "GOTOOLCHAIN": "local"}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        raise Missing("go build: " + (built.stdout.strip().splitlines() or ["failed"])[-1])
    return PROGRAM


def judge(files):
    """Judges the files of one run. Returns (whether nothing is wrong, what it says); the former is
    None if it cannot be built."""
    try:
        program = build()
    except Missing as missing:
        return None, "it does not judge: %s" % missing
    run = subprocess.run([program, "-together", *files], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, check=False)
    return run.returncode == 0, run.stdout
