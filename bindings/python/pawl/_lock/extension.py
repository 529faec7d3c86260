"""What a request to extend says of its locks, and how many of them go into one."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple

from .._env import clock
from .leased import LeasedLock

# One request to extend has at most so many locks, objects and bytes of keys: a node reads 65,536
# objects and 4 MiB. A lock is a map of up to six pairs, one of which lists its permit numbers
# (src/client/request/request_copy.h has the same bounds).
BATCH_MAX = 1000
BATCH_OBJECTS, OBJECTS_OF_LOCK = (1 << 16) - 256, 1 + 2 * 6
BATCH_BYTES = 3 << 20


class How(NamedTuple):
    """How an extension is sent. Extensions of the same kind go into one request."""

    # The number of the only connection that may carry it, for locks that are bound to that
    # connection or are to be bound to it; 0: any connection.
    connection: int
    # The extension names the session binding: it binds the locks to that connection, or they were
    # shortened.
    binds: bool
    # The client keeps the deadline. If an extension binds a lock to another connection, it does not
    # (docs/protocol.md, Release on disconnect), unless the lock was shortened.
    kept: bool


def batches(locks: List[LeasedLock]) -> Iterator[List[LeasedLock]]:
    """Yields the locks in lists that fit into one request each."""
    batch: List[LeasedLock] = []
    objects = size = 0
    for lock in locks:
        own = OBJECTS_OF_LOCK + len(lock._slots)
        if batch and (len(batch) == BATCH_MAX or objects + own > BATCH_OBJECTS
                      or size + len(lock._key) > BATCH_BYTES):
            yield batch
            batch, objects, size = [], 0, 0
        batch.append(lock)
        objects, size = objects + own, size + len(lock._key)
    if batch:
        yield batch


def item(lock: LeasedLock, how: How) -> Dict[str, Any]:
    said = {"key": lock._key, "lock_id": lock._lock_id, "lease_ms": lock._lease // clock.MS,
            "token": lock._token}
    if lock._slots:
        said["slots"] = list(lock._slots)
    # The connections and the shortenings of a lock are counted together.
    if how.binds:
        said["bond"] = how.connection + lock._order
    elif lock._order:
        said["order"] = lock._order
    return said
