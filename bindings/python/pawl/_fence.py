"""For what a lock protects: the highest tokens seen, by name.

Every request to the resource carries the token of the lock that it is made under, and is refused when somebody newer was here. So whoever
was stopped, or is cut off, and still believes to hold the lock, does no harm once the next one has begun. A resource with transactions (a
database) keeps the number in its own table instead: then the check and the write happen together or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import zlib
from types import TracebackType
from typing import Dict, Iterator, List, Optional, Tuple, Type

from ._types import EXCLUSIVE, PERMITS, SHARED, Bytes, to_bytes

NAME_MAX = 1024  # bytes
NAMES_MAX = 1_000_000
TOKEN_MAX = 2**64 - 1
HEADER = b"pawl-python-fence 1\n"
COMPACT_LEAST = 1000  # records


class FenceError(Exception):
    """The store cannot tell: refuse the request. The file is damaged, cannot be written, or there are too many names."""


def fence_check(highest: int, token: int) -> bool:
    """Whether the holder of `token` is the newest one seen, where `highest` is the highest token seen before (0 at first): then keep
    `token` as the new highest, in the same transaction as the write. Token 0 is always refused."""
    return token > 0 and token >= highest


class _Marks:
    """Of one name: the highest exclusive token, and the highest of all."""

    __slots__ = ("exclusive", "any")

    def __init__(self) -> None:
        self.exclusive = self.any = 0

    def allows(self, token: int, exclusive: bool) -> bool:
        return token >= (self.any if exclusive else self.exclusive)

    def raised(self, token: int, exclusive: bool) -> bool:
        """Whether the token is more than what is known already."""
        return token > self.any or (exclusive and token > self.exclusive)

    def note(self, token: int, exclusive: bool) -> None:
        self.any = max(self.any, token)
        if exclusive:
            self.exclusive = max(self.exclusive, token)


def _record(name: bytes, token: int, exclusive: bool) -> bytes:
    body = b"%s %d %s" % (b"x" if exclusive else b"s", token, name.hex().encode())
    return b"%s %08x\n" % (body, zlib.crc32(body))


def _parse(line: bytes) -> Optional[Tuple[bytes, int, bool]]:
    """A record without its end of line; None: it is damaged."""
    body, _, checksum = line.rpartition(b" ")
    parts = body.split(b" ")
    try:
        if len(parts) != 3 or parts[0] not in (b"x", b"s") or int(checksum, 16) != zlib.crc32(body):
            return None
        return bytes.fromhex(parts[2].decode("ascii")), int(parts[1]), parts[0] == b"x"
    except ValueError:
        return None


class FenceStore:
    """Keeps the highest tokens in a file (None: in memory only), for the process that guards a resource.

    A token is on disk before it is allowed, so that no crash forgets it, also not of the machine, as far as the disk keeps what it has
    confirmed. A crash can leave a token that was being written, although nobody was told that it is allowed (then an older one is
    refused, which is only stricter); it cannot make an older token pass. A file that is damaged anywhere but in a half-written end is
    refused and never repaired by guessing. Losing the file forgets everything: do not put it into a temporary directory.

    Several processes of one machine, and several threads, may use the same file. Not for network file systems.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._marks: Dict[bytes, _Marks] = {}
        self._file = -1
        self._read_to = 0
        self._records = 0
        self._closed = False
        if path is not None:
            with self._guard, self._locked():
                pass  # reads what is there

    def check(self, name: Bytes, token: int, mode: str = EXCLUSIVE) -> bool:
        """Whether the holder of `token` may use what is stored under `name` (usually the lock's key); then it is recorded.

        exclusive: not below any token seen, and raises the mark for everybody. shared (readers) and permits: not below any exclusive
        token seen; exclusive ones must from now on not be below it. Where each permit guards a thing of its own put its number into
        the name, and use exclusive. FenceError: not known, refuse it.
        """
        key = to_bytes(name)
        if mode not in (EXCLUSIVE, SHARED, PERMITS):
            raise ValueError("mode: %r is neither exclusive, shared nor permits" % mode)
        if not 1 <= token <= TOKEN_MAX or len(key) > NAME_MAX:
            raise ValueError("a token from 1 to 2^64 - 1, and a name of at most %d bytes" % NAME_MAX)
        exclusive = mode == EXCLUSIVE
        with self._guard, self._locked():
            marks = self._marks.get(key) or _Marks()
            if not marks.allows(token, exclusive):
                return False
            if marks.raised(token, exclusive):
                if key not in self._marks and len(self._marks) >= NAMES_MAX:
                    raise FenceError("more than %d names" % NAMES_MAX)
                self._append(_record(key, token, exclusive))
                self._marks[key] = marks
                marks.note(token, exclusive)
                self._compact_if_due()
            return True

    def highest(self, name: Bytes) -> int:
        """The highest token seen under the name, 0: none."""
        with self._guard, self._locked():
            marks = self._marks.get(to_bytes(name))
            return marks.any if marks else 0

    def close(self) -> None:
        """Allows nothing any more; what was in memory is forgotten."""
        with self._guard:
            self._closed = True
            self._forget()

    def __enter__(self) -> FenceStore:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- the file ----

    def _forget(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._read_to, self._records = -1, 0, 0
        if self._path is not None:
            self._marks = {}

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the file, and up to date with what other processes have added."""
        if self._closed:
            raise FenceError("the store is closed")
        if self._path is None:
            yield
            return
        try:
            self._lock_present(self._path)
            try:
                self._read_new()
                yield
            finally:
                if self._file >= 0:
                    fcntl.flock(self._file, fcntl.LOCK_UN)
        except OSError as error:
            self._forget()  # what has reached the disk is read anew
            raise FenceError("%s: %s" % (self._path, error)) from error

    def _lock_present(self, path: str) -> None:
        """Another process may have written the file anew: then ours is not the one of that name any more."""
        while True:
            if self._file < 0:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                raise FenceError("%s has been removed: what it knew is lost" % path) from None
            ours = os.fstat(self._file)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return
            self._forget()

    def _read_new(self) -> None:
        size = os.fstat(self._file).st_size
        if size < self._read_to:
            raise FenceError("%s has become shorter" % self._path)
        data = b""
        while len(data) < size - self._read_to:
            piece = os.pread(self._file, size - self._read_to - len(data), self._read_to + len(data))
            if not piece:
                break
            data += piece
        if self._read_to == 0:
            data = self._take_header(data)
        lines = data.split(b"\n")
        self._take_records(lines[:-1])
        if lines[-1]:  # half-written: nobody was told that it is allowed
            os.ftruncate(self._file, self._read_to)

    def _take_header(self, data: bytes) -> bytes:
        if len(data) < len(HEADER) and HEADER.startswith(data):  # new, or half-written
            os.ftruncate(self._file, 0)
            self._write(HEADER)
            self._sync_folder()
            self._read_to = len(HEADER)
            return b""
        if not data.startswith(HEADER):
            raise FenceError("%s is no store of tokens" % self._path)
        self._read_to = len(HEADER)
        return data[len(HEADER) :]

    def _take_records(self, lines: List[bytes]) -> None:
        for line in lines:
            record = _parse(line)
            if record is None:
                raise FenceError("%s is damaged at byte %d" % (self._path, self._read_to))
            name, token, exclusive = record
            self._marks.setdefault(name, _Marks()).note(token, exclusive)
            self._read_to += len(line) + 1
            self._records += 1

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def _append(self, record: bytes) -> None:
        if self._path is None:
            return
        try:
            self._write(record)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._read_to)
            raise
        self._read_to += len(record)
        self._records += 1

    def _compact_if_due(self) -> None:
        if self._path is None or self._records < max(COMPACT_LEAST, 4 * len(self._marks)):
            return
        fresh = self._path + ".new"
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", closefd=True) as out:
            out.write(HEADER)
            for name, marks in self._marks.items():
                if marks.exclusive:
                    out.write(_record(name, marks.exclusive, True))
                if marks.any > marks.exclusive:
                    out.write(_record(name, marks.any, False))
            out.flush()
            os.fsync(out.fileno())
        os.rename(fresh, self._path)
        self._sync_folder()
        self._forget()  # the lock goes with it; whoever comes next reads the new one

    def _sync_folder(self) -> None:
        assert self._path is not None
        folder = os.open(os.path.dirname(os.path.abspath(self._path)), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
