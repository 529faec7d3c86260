"""The file of a token store. It has the format of the C library and of `pawl fence`
(src/client/fence/fence_file.h): a header, and then records, each of which holds everything that is
known of one name. The file only grows, until it is written anew under another name and moved into
its place. Readers and writers hold the lock of the file (flock).

  record: length of the name (2 bytes), the same with its bits inverted (2), highest exclusive token
          (8), highest token (8), the name, and a checksum of all that (8); the low byte of each
          number comes first

A crash can leave a part of one record at the end, which was not confirmed to anybody; it is cut
off. Anything else that is not a record is damage."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
from typing import Callable, Iterable, Iterator, NamedTuple, Optional, Tuple

from .siphash import siphash

NAME_MAX = 1024  # bytes
HEADER = b"pawl fence 1\n\0\0\0"
SUFFIX = ".new"
_HEAD, _SUM = struct.Struct("<HHQQ"), struct.Struct("<Q")
# The checksum is against accidents, not against people: whoever may write the file may write any
# number into it.
_KEY = (0x7061776C20666E63, 1)
RECORD_BYTES_MAX = _HEAD.size + NAME_MAX + _SUM.size
CHUNK_BYTES = 65536


class FenceError(Exception):
    """The store cannot tell, so refuse the request: the file is damaged or cannot be written, the
    store has too many names, or it is closed."""


class Record(NamedTuple):
    name: bytes
    exclusive: int  # the highest token seen of an exclusive lock
    highest: int  # the highest token seen of any lock


def pack_record(record: Record) -> bytes:
    size = len(record.name)
    body = _HEAD.pack(size, ~size & 0xFFFF, record.exclusive, record.highest) + record.name
    return body + _SUM.pack(siphash(_KEY, body))


def unpack_record(data: bytes, at: int) -> Optional[Tuple[Record, int]]:
    """Returns the record that begins at `at`, and where it ends. None: there is no whole record."""
    if len(data) - at < _HEAD.size:
        return None
    size, inverted, exclusive, highest = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + size + _SUM.size
    if size > NAME_MAX or inverted != ~size & 0xFFFF or end > len(data):
        return None
    body = data[at : end - _SUM.size]
    if _SUM.unpack_from(data, end - _SUM.size)[0] != siphash(_KEY, body):
        return None
    return Record(body[_HEAD.size :], exclusive, highest), end


def _torn(rest: bytes) -> bool:
    """Returns whether this is a part of one record, which was never confirmed: no record begins in
    it."""
    return (len(rest) < RECORD_BYTES_MAX and not any(unpack_record(rest, at)
                                                     for at in range(len(rest))))


def _write(file: int, data: bytes, at: int) -> None:
    while data:
        done = os.pwrite(file, data, at)
        data, at = data[done:], at + done


class FenceFile:
    """take: is called with each record, including those that other processes have written. It may
    raise FenceError."""

    def __init__(self, path: str, take: Callable[[Record], None]) -> None:
        self._path, self._take = path, take
        self._process = os.getpid()
        folder, self._name = os.path.split(path)
        self._folder = self._file = -1
        # The records before this offset have been handed out.
        self._read_to = 0
        # Some of them may not be on disk, because another process may have died before its sync.
        self._unsynced = False
        # After a crash of the machine the name may lead to no file, or to the one that was there
        # before the file was written anew.
        self._unnamed = False
        # The disk refused to confirm something, so what is on disk is not known any more.
        self._failed = False
        # How many records the file has.
        self.records = 0
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
        """Holds the lock of the file, and hands out what others have added before."""
        if self._failed:
            raise FenceError("%s: the disk has failed to confirm a write, so tokens may be lost: "
                             "open the store again when the disk works" % self._path)
        if self._process != os.getpid():  # The child would share the lock with its parent.
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
        """Locks the file. While this waits for the lock, the file may be written anew; then this
        opens and locks the new file."""
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
            # The file is new, or its maker died before it had written a record.
            _write(self._file, HEADER, 0)
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
        """Hands out the whole records at the beginning of the chunk, and returns their size in
        bytes."""
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
        """Returns once everything that was handed out is on disk."""
        try:
            if self._unsynced:
                os.fdatasync(self._file)
            if self._unnamed:
                os.fsync(self._folder)
        except OSError:
            # The system reports a failed write only once, so a later success means nothing.
            self._failed = True
            raise
        self._unsynced = self._unnamed = False

    def append(self, record: Record) -> None:
        """Appends the record, and returns once it is on disk."""
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
        """Replaces the file by one that has only these records. If the new file cannot be written,
        the old one stays in use. OSError: the disk has not confirmed which of the two files has the
        name."""
        fresh = self._name + SUFFIX
        with contextlib.suppress(OSError):
            # A process may have died while it wrote this file. Only the holder of the lock writes
            # it, so nobody else does now.
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
        # After a crash of the machine the name may lead to the old file, which lacks what is
        # appended to the new one.
        self._unnamed = True
        self.sync()

    def _make_like(self, made: int) -> None:
        """Gives the new file the owner and the mode of the old one, for others that use it."""
        old, new = os.fstat(self._file), os.fstat(made)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(made, old.st_uid, old.st_gid)
        os.fchmod(made, stat.S_IMODE(old.st_mode))
