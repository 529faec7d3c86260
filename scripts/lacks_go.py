#!/usr/bin/env python3
"""lacks_go.py FOLDER: prints why the module of Go in that folder cannot be built here, and ends
with the status 1: there is no Go, or one that is older than go.mod wants. No other one is
downloaded."""

import os
import re
import shutil
import subprocess
import sys


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def lacks_go(folder):
    """Returns why the module cannot be built, or an empty string."""
    if not shutil.which("go"):
        return "go is not installed"
    with open(os.path.join(folder, "go.mod"), encoding="utf-8") as f:
        wanted = re.search(r"^go (\S+)$", f.read(), re.M).group(1)
    there = subprocess.run(("go", "env", "GOVERSION"), cwd="/", text=True, check=False,
                           env={**os.environ, "GOTOOLCHAIN": "local"},
                           stdout=subprocess.PIPE).stdout.strip()
    if numbers(there) < numbers(wanted):
        return "%s is older than go %s, which go.mod wants" % (there or "this go", wanted)
    return ""


if __name__ == "__main__":
    said = lacks_go(sys.argv[1])
    sys.exit(said or 0)
