"""For what a lock protects: the highest tokens seen, by name.

Every request to the resource carries the token of the lock that it is made under, and is refused
when somebody newer was here. So whoever was stopped, or is cut off, and still believes to hold the
lock, does no harm once the next one has begun. A resource with transactions (a
database) keeps the number in its own table instead: then the check and the write happen together or
not at all.
"""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import ContextManager, Dict, Optional, Type

from ._fence_file import NAME_MAX, FenceError, FenceFile, Record
from ._types import EXCLUSIVE, PERMITS, SHARED, Bytes, check_whole, to_bytes

NAMES_MAX = 1_000_000
TOKEN_MAX = 2**64 - 1
REWRITE_RECORDS_LEAST = 1024  # shorter files are not worth it


def fence_check(highest: int, token: int) -> bool:
    """Whether the holder of `token` is the newest one seen, where `highest` is the highest token
    seen before (0 at first): then keep `token` as the new highest, in the same transaction as the
    write. Token 0 is always refused."""
    return token > 0 and token >= highest


class FenceStore:
    """Keeps the highest tokens in a file (None: in memory only), for the process that guards a
    resource.

    The file is the same as that of `pawl fence check` and of the C library (fence.h): all of them,
    several processes of one machine, and several threads, may use one file together. Not for
    network file systems.

    A token is on disk before it is allowed, so that no crash forgets it, also not of the machine,
    as far as the disk keeps what it has confirmed. A crash can leave a token that was being
    written, although nobody was told that it is allowed (then an older one is refused, which is
    only stricter); it cannot make an older token pass. A file that is damaged anywhere but in a
    half-written end is refused and never repaired by guessing. Losing the file forgets everything:
    do not put it into a temporary directory.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        self._guard = threading.Lock()
        self._marks: Dict[bytes, Record] = {}
        self._closed = False
        self._file = FenceFile(path, self._take) if path is not None else None
        try:
            with self._guard, self._locked():
                pass  # so that a file that is damaged, or not to be had, is known at once
        except BaseException:
            self.close()
            raise

    def check(self, name: Bytes, token: int, mode: str = EXCLUSIVE) -> bool:
        """Whether the holder of `token` may use what is stored under `name` (usually the lock's
        key); then it is recorded.

        exclusive: not below any token seen, and raises the mark for everybody. shared (readers) and
        permits: not below any exclusive token seen; exclusive ones must from now on not be below
        it. Where each permit guards a thing of its own put its number into the name, and use
        exclusive. FenceError: not known, refuse it.
        """
        key = to_bytes(name, "name")
        check_whole(token, "token")
        if mode not in (EXCLUSIVE, SHARED, PERMITS):
            raise ValueError("mode: %r is neither exclusive, shared nor permits" % mode)
        if not 1 <= token <= TOKEN_MAX or len(key) > NAME_MAX:
            raise ValueError("a token from 1 to 2^64 - 1, and a name of at most %d bytes"
                             % NAME_MAX)
        exclusive = mode == EXCLUSIVE
        with self._guard, self._locked():
            mark = self._mark(key)
            if token < (mark.highest if exclusive else mark.exclusive):
                return False
            self._record(mark, Record(key, max(mark.exclusive, token if exclusive else 0),
                                      max(mark.highest, token)))
            return True

    def highest(self, name: Bytes) -> int:
        """The highest token seen under the name, 0: none."""
        with self._guard, self._locked():
            mark = self._marks.get(to_bytes(name, "name"))
            return mark.highest if mark else 0

    def close(self) -> None:
        """Allows nothing any more; what was in memory is forgotten."""
        with self._guard:
            self._closed = True
            self._marks = {}
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> FenceStore:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- what is known ----

    def _locked(self) -> ContextManager[None]:
        if self._closed:
            raise FenceError("the store is closed")
        return contextlib.nullcontext() if self._file is None else self._file.locked()

    def _mark(self, name: bytes) -> Record:
        mark = self._marks.get(name)
        if mark is None and len(self._marks) >= NAMES_MAX:
            raise FenceError("more than %d names" % NAMES_MAX)
        return mark or Record(name, 0, 0)

    def _take(self, record: Record) -> None:
        """Numbers only grow, so the order of records, and reading some of them twice, is of no
        matter."""
        mark = self._mark(record.name)
        self._marks[record.name] = Record(record.name, max(mark.exclusive, record.exclusive),
                                          max(mark.highest, record.highest))

    def _record(self, before: Record, now: Record) -> None:
        if self._file is not None:
            if now == before:
                self._file.sync()
            else:
                self._file.append(now)
        self._marks[now.name] = now
        if (self._file is not None and self._file.records
            >= max(REWRITE_RECORDS_LEAST, 2 * len(self._marks))):
            self._file.rewrite(self._marks.values())
            self._file.records = len(self._marks)
