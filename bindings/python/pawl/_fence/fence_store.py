"""A store of the highest tokens seen, by name, for the process that guards a resource.

Every request to the resource carries the token of the lock under which it is made, and the resource
refuses the request if a newer holder was here. So a holder that was stopped or cut off, and still
believes that it holds the lock, does no harm once the next holder has begun. A resource with
transactions (a database) keeps the number in its own table instead: then the check and the write
happen together or not at all.
"""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import ContextManager, Dict, Optional, Type

from .._env.arguments import EXCLUSIVE, PERMITS, SHARED, Bytes, check_whole, to_bytes
from .fence_file import NAME_MAX, FenceError, FenceFile, Record

NAMES_MAX = 1_000_000
TOKEN_MAX = 2**64 - 1
# A file with fewer records is not rewritten.
REWRITE_RECORDS_LEAST = 1024


def fence_check(highest: int, token: int) -> bool:
    """Returns whether the holder of `token` is the newest one seen; `highest` is the highest token
    seen before (0 at first). If so, store `token` as the new highest one in the same transaction as
    the write. Token 0 is always refused."""
    return token > 0 and token >= highest


class FenceStore:
    """A store keeps the highest tokens in the file `path`, or only in memory if `path` is None. It
    is for the process that guards a resource.

    `pawl fence check` and the C library (fence.h) use the same files. Several programs, processes
    and threads of one machine may use one file together. Do not share it between machines over a
    network file system.

    A token is on disk before it is allowed, so no crash forgets it, not even a crash of the
    machine, as long as the disk keeps what it has confirmed. After a crash, the token that was just
    being written may be stored although nobody was told that it is allowed; an older token is then
    refused, which is only stricter. A crash cannot make an older token pass. A half-written last
    record is dropped; a file that is damaged anywhere else is refused and never repaired by
    guessing. If you lose the file, everything is forgotten: do not put it into a temporary
    directory.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        self._guard = threading.Lock()
        self._marks: Dict[bytes, Record] = {}
        self._closed = False
        self._file = FenceFile(path, self._take) if path is not None else None
        try:
            with self._guard, self._locked():
                pass  # A file that is damaged or cannot be opened is refused at once.
        except BaseException:
            self.close()
            raise

    def check(self, name: Bytes, token: int, mode: str = EXCLUSIVE) -> bool:
        """Returns whether the holder of `token` may use what is stored under `name` (usually the
        key of the lock). If it may, the token is recorded. The mode decides:

        exclusive: the token must not be below any token seen, and from now on no token may be below
        it.
        shared (for readers) and permits: the token must not be below any exclusive token seen, and
        from now on no exclusive token may be below it. If each permit guards its own thing, put the
        permit number into the name and use `exclusive`.

        FenceError: the store cannot tell; refuse the request.
        """
        key = to_bytes(name, "name")
        check_whole(token, "token")
        if mode not in (EXCLUSIVE, SHARED, PERMITS):
            raise ValueError("mode: %r is neither exclusive, shared nor permits" % mode)
        if not 1 <= token <= TOKEN_MAX or len(key) > NAME_MAX:
            raise ValueError("token, name: give a token from 1 to 2^64 - 1, and a name of at most "
                             "%d bytes" % NAME_MAX)
        exclusive = mode == EXCLUSIVE
        with self._guard, self._locked():
            mark = self._mark(key)
            if token < (mark.highest if exclusive else mark.exclusive):
                return False
            self._record(mark, Record(key, max(mark.exclusive, token if exclusive else 0),
                                      max(mark.highest, token)))
            return True

    def highest(self, name: Bytes) -> int:
        """Returns the highest token seen under the name; 0 if there is none."""
        with self._guard, self._locked():
            mark = self._marks.get(to_bytes(name, "name"))
            return mark.highest if mark else 0

    def close(self) -> None:
        """Closes the store, which allows nothing any more. A store that is only in memory is
        forgotten."""
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
            raise FenceError("the store already has %d names, which is its limit" % NAMES_MAX)
        return mark or Record(name, 0, 0)

    def _take(self, record: Record) -> None:
        """Merges a record of the file. Numbers only grow, so the order of the records does not
        matter, and a record may be read twice."""
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
