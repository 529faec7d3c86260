"""The file of a store of tokens, the same as that of the C library and of `pawl fence`
(src/client/fence/fence_file.h): a header, then records, each the whole of what is known of one
name. It only grows, until it is written anew under another name and moved into its place. Who reads
or writes holds its lock (flock).

  record: length of the name (2 bytes), the same with its bits turned, highest exclusive token (8),
          highest token (8), the name, checksum of all that (8); numbers with the low byte first

A crash can leave a part of one record at the end, which was not confirmed to anybody: it is cut
off. Anything else that is not a record is damage."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
from typing import Callable, Iterable, Iterator, NamedTuple, Optional, Tuple

from ._siphash import siphash

NAME_MAX = 1024  # bytes
HEADER = b"pawl fence 1\n\0\0\0"
SUFFIX = ".new"
_HEAD, _SUM = struct.Struct("<HHQQ"), struct.Struct("<Q")
# Against accidents, not against people: who may write the file may write any number into it.
_KEY = (0x7061776C20666E63, 1)
RECORD_BYTES_MAX = _HEAD.size + NAME_MAX + _SUM.size
CHUNK_BYTES = 65536


class FenceError(Exception):
    """The store cannot tell: refuse the request. The file is damaged, cannot be written, or there
    are too many names."""


class Record(NamedTuple):
    name: bytes
    exclusive: int  # the highest token that was shown for an exclusive lock
    highest: int  # for any lock


def pack_record(record: Record) -> bytes:
    size = len(record.name)
    body = _HEAD.pack(size, ~size & 0xFFFF, record.exclusive, record.highest) + record.name
    return body + _SUM.pack(siphash(_KEY, body))


def unpack_record(data: bytes, at: int) -> Optional[Tuple[Record, int]]:
    """The record that begins there, and where it ends. None: there is none, or not all of it."""
    if len(data) - at < _HEAD.size:
        return None
    size, turned, exclusive, highest = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + size + _SUM.size
    if size > NAME_MAX or turned != ~size & 0xFFFF or end > len(data):
        return None
    body = data[at : end - _SUM.size]
    if _SUM.unpack_from(data, end - _SUM.size)[0] != siphash(_KEY, body):
        return None
    return Record(body[_HEAD.size :], exclusive, highest), end


def _torn(rest: bytes) -> bool:
    """A part of one record, which was never confirmed: no record begins in it."""
    return (len(rest) < RECORD_BYTES_MAX and not any(unpack_record(rest, at)
                                                     for at in range(len(rest))))


def _write(file: int, data: bytes, at: int) -> None:
    while data:
        done = os.pwrite(file, data, at)
        data, at = data[done:], at + done


class FenceFile:
    """take: is handed what others, too, have written, and may raise FenceError."""

    def __init__(self, path: str, take: Callable[[Record], None]) -> None:
        self._path, self._take = path, take
        self._process = os.getpid()
        folder, self._name = os.path.split(path)
        self._folder = self._file = -1
        self._read_to = 0  # what is before has been handed out
        # Some of that is perhaps not on disk: another process may have died before that.
        self._unsynced = False
        # After a crash of the machine the name may lead to no file yet, or to the one before it was
        # written anew.
        self._unnamed = False
        self._failed = False  # the disk refused to confirm: nothing is known any more
        self.records = 0  # that the file has
        try:
            self._folder = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise FenceError("%s: %s" % (path, error)) from error

    def close(self) -> None:
        self._drop()
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = -1

    def _drop(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _damaged(self) -> FenceError:
        return FenceError("%s is damaged, or is not a fence file" % self._path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the file, and up to date with what others have added."""
        if self._failed:
            raise FenceError("%s: what the disk did not confirm before may be lost" % self._path)
        if self._process != os.getpid():  # the lock would be shared with the parent
            self._drop()
            self._process = os.getpid()
        try:
            self._lock_current()
            try:
                self._catch_up()
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        except OSError as error:
            raise FenceError("%s: %s" % (self._path, error)) from error

    # ---- opening and locking ----

    def _lock_current(self) -> None:
        """The file under that name may have been written anew while the lock of ours was waited
        for."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        while self._file < 0 or not self._is_current():
            self._drop()
            try:
                self._open_locked()
            except BaseException:
                self._drop()
                raise

    def _is_current(self) -> bool:
        try:
            named = os.stat(self._name, dir_fd=self._folder)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._file))

    def _open_locked(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._file = os.open(self._name, flags, 0o600, dir_fd=self._folder)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        state = os.fstat(self._file)
        if not stat.S_ISREG(state.st_mode):
            raise self._damaged()
        found = os.pread(self._file, len(HEADER), 0)
        nothing = bytes(len(found))
        if (state.st_size < len(HEADER) and found in (HEADER[: len(found)], nothing)
            or state.st_size == len(HEADER) and found == nothing):
            _write(self._file, HEADER, 0)  # new, or its maker died before there was anything in it
            os.fsync(self._file)
        elif found != HEADER:
            raise self._damaged()
        self._read_to, self.records, self._unsynced = len(HEADER), 0, True
        self._unnamed = True

    def _catch_up(self) -> None:
        chunk = os.pread(self._file, CHUNK_BYTES, self._read_to)
        while chunk:
            used = self._take_all(chunk)
            rest = chunk[used:]
            if not used and (len(chunk) == CHUNK_BYTES or not _torn(rest)):
                raise self._damaged()
            if not used:
                os.ftruncate(self._file, self._read_to)
                return
            chunk = os.pread(self._file, CHUNK_BYTES, self._read_to)

    def _take_all(self, chunk: bytes) -> int:
        """How many bytes of it are whole records."""
        used = 0
        found = unpack_record(chunk, 0)
        while found is not None:
            record, end = found
            self._take(record)
            self._read_to += end - used
            self.records += 1
            self._unsynced = True
            used = end
            found = unpack_record(chunk, used)
        return used

    # ---- with the lock held ----

    def sync(self) -> None:
        """All that was handed out is on disk."""
        try:
            if self._unsynced:
                os.fdatasync(self._file)
            if self._unnamed:
                os.fsync(self._folder)
        except OSError:
            # What was not confirmed once is never reported again: no later success means anything.
            self._failed = True
            raise
        self._unsynced = self._unnamed = False

    def append(self, record: Record) -> None:
        """And it is on disk."""
        data = pack_record(record)
        try:
            _write(self._file, data, self._read_to)
            self._unsynced = True
            self.sync()
        except OSError:
            try:
                os.ftruncate(self._file, self._read_to)
            except OSError:
                self._failed = True
            raise
        self._read_to += len(data)
        self.records += 1

    def rewrite(self, records: Iterable[Record]) -> None:
        """Only these from now on. Where the new file cannot be had the old one goes on. An OSError
        says that the disk has not confirmed which of the two bears the name."""
        fresh = self._name + SUFFIX
        with contextlib.suppress(OSError):
            # Of one that died at it: only the holder of the lock is here.
            os.unlink(fresh, dir_fd=self._folder)
        made = -1
        try:
            made = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW,
                           0o600, dir_fd=self._folder)
            self._make_like(made)
            fcntl.flock(made, fcntl.LOCK_EX)
            whole = HEADER + b"".join(map(pack_record, records))
            _write(made, whole, 0)
            os.fsync(made)
            os.rename(fresh, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            if made >= 0:
                os.close(made)
                with contextlib.suppress(OSError):
                    os.unlink(fresh, dir_fd=self._folder)
            return
        self._drop()
        self._file, self._read_to = made, len(whole)
        # After a crash of the machine the old file may be there, without what is appended to this
        # one.
        self._unnamed = True
        self.sync()

    def _make_like(self, made: int) -> None:
        """As the old one, for whoever else uses it."""
        old, new = os.fstat(self._file), os.fstat(made)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(made, old.st_uid, old.st_gid)
        os.fchmod(made, stat.S_IMODE(old.st_mode))
