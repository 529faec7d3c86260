"""Real nodes for tests. Each is a `pawld --dev` on free ports of loopback: it is ready in a few
milliseconds, keeps nothing, and ends with the test, also if that is killed.

    with pawl.testing.start() as server:
        with pawl.connect(server.endpoints) as client:
            ...

With pytest the fixture `pawl_server` is such a server, a new one for each test.

The program `pawld` is the one that the environment variable PAWL_TEST_PAWLD names, or the first one
in PATH.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import IO, Optional, Type

__all__ = ["Server", "start"]

VARIABLE = "PAWL_TEST_PAWLD"
STOP_SECONDS = 10.0


def _pawld() -> str:
    """Returns the path of the program."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or "pawld")
    if found is None and named:
        raise FileNotFoundError("%s names %s, which is no program that can be run"
                                % (VARIABLE, named))
    if found is None:
        raise FileNotFoundError(
            "there is no pawld: install it (the Debian package pawld) so that it is in PATH, or "
            "let the environment variable %s name the program" % VARIABLE)
    return found


class Server:
    """A node that `start` has started. `endpoints` is for `pawl.connect`; `redis`, `memcached` and
    `admin` (HTTP) are the addresses of its other listeners; `pid` is its process. It ends with the
    `with` block or with `stop`, and in any case with this process."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes], line: bytes) -> None:
        told = json.loads(line)
        self.endpoints: str = told["client"]
        self.redis: str = told["redis"]
        self.memcached: str = told["memcached"]
        self.admin: str = told["admin"]
        self.pid: int = told["pid"]
        self._process, self._log = process, log

    def stop(self) -> None:
        """Ends the node. A server that has ended may be stopped again."""
        _end(self._process, STOP_SECONDS)
        self._log.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """The node ends with its standard input. One that does not is killed."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _first_line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
    """Returns what the node says when it is ready; what has come of it when the time is over, or
    when it has ended."""
    assert process.stdout is not None
    end, line = time.monotonic() + timeout, b""
    while not line.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return line
        got = os.read(process.stdout.fileno(), 4096)
        if not got:
            return line
        line += got
    return line


def start(timeout: float = 10.0) -> Server:
    """Starts a node, and returns when it grants locks. FileNotFoundError: there is no `pawld`.
    RuntimeError: it is not ready after `timeout` seconds, or has ended; the error has its log."""
    command = [_pawld(), "--dev", "--print-endpoints"]
    log = tempfile.TemporaryFile()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=log)
    except BaseException:
        log.close()
        raise
    try:
        line = _first_line(process, timeout)
        if line.endswith(b"\n"):
            return Server(process, log, line)
        ended = process.poll() is not None or bool(select.select([process.stdout], [], [], 0)[0])
    except BaseException:
        _end(process, 0.0)
        log.close()
        raise
    _end(process, 1.0 if ended else 0.0)
    with log:
        log.seek(0)
        text = log.read().decode(errors="replace").strip()
    raise RuntimeError("%s %s: %s" % (
        " ".join(command), "has ended" if ended else "is not ready after %g s" % timeout,
        text or "it says nothing"))
