"""A lock as those see it that renew it and that look after its connection."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from .._env import clock
from .._env.errors import LostError, PawlError


class LeasedLock:
    """A lock as the keeper sees it. Lock derives from it, and defines `_gone`, `_claim` and
    `_taken_away`."""

    def __init__(self, key: bytes, lease_ms: int, warn_ms: int, renew: bool) -> None:
        self._key = key
        self._lease = lease_ms * clock.MS
        self._warn = warn_ms * clock.MS
        self._renew = renew
        self._lock_id = ""
        self._token = 0
        # The permit numbers, if this is a lock of a semaphore.
        self._slots: Tuple[int, ...] = ()
        # For whom the lock is, when nodes look for deadlocks.
        self._party = b""
        self._deadline = clock.NEVER
        # Why the lock is lost.
        self._cause: Optional[PawlError] = None
        # The last error, and how many extensions have failed since the last one that succeeded.
        self._last_error: Optional[PawlError] = None
        self._failures = 0
        # The time of the next extension on CLOCK_BOOTTIME, in nanoseconds.
        self._renew_at: Optional[int] = None
        # A transfer is under way: the lock is neither trusted nor extended.
        self._suspended = False
        # The number of the connection to which the lock is known to be bound; 0: to none.
        self._binding = 0
        # The number of the connection over which the lock was acquired.
        self._first_connection = 0
        # The lock is being acquired again.
        self._claiming = False
        # How often its lease was shortened (docs/client-protocol.md, shorten).
        self._order = 0

    @property
    def _version(self) -> Tuple[str, int]:
        """What an answer has to be about: once the lease was shortened, no answer to an earlier
        request counts."""
        return self._lock_id, self._order

    def _left(self) -> int:
        """Returns for how many nanoseconds the lock may still be trusted."""
        if self._suspended or isinstance(self._cause, LostError):
            return 0
        return clock.left(self._deadline, clock.now())

    def _claim(self) -> Dict[str, Any]:
        """Returns the parameters of an acquire of the same lock as it is now."""
        raise NotImplementedError

    def _taken_away(self, method: str) -> None:
        """Is called when this client lets go by the lock_id, before any node hears of it."""
        raise NotImplementedError

    def _gone(self) -> None:
        """Is called when the lock is lost; `_cause` says why."""

    def _lose(self, cause: PawlError) -> None:
        if self._cause is None:
            self._cause = cause
            self._renew_at = None
            self._gone()
