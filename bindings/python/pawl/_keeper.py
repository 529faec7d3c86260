"""Keeps locks: extends them at a third of their lease, many in one request, and gives them up in time."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Dict, List, Optional, Set

from . import _clock
from ._call import Answer, Call
from ._errors import (
    DeniedError,
    LostError,
    NoQuorumError,
    NotFoundError,
    PawlError,
    ProtocolError,
    RecoveringError,
    WaitTimeoutError,
    from_wire,
)
from ._reach import Reach

BATCH_MAX = 1000
RETRY_LEAST = 10 * _clock.MS
# The loop's own clock stands still while the machine sleeps: the clocks that count are looked at at least so often.
NAP_LONGEST = 1.0


class Kept:
    """A lock as the keeper sees it. Locks derive from it; `_changed` and `_gone` are theirs."""

    def __init__(self, key: bytes, lease_ms: int, warn_ms: int, renew: bool) -> None:
        self._key = key
        self._lease = lease_ms * _clock.MS
        self._warn = warn_ms * _clock.MS
        self._renew = renew
        self._lock_id = ""
        self._token = 0
        self._deadline = _clock.NEVER
        self._cause: Optional[PawlError] = None  # why it is lost
        self._last_error: Optional[PawlError] = None  # of the extensions since the last one that succeeded
        self._failures = 0
        self._renew_at: Optional[int] = None  # on CLOCK_BOOTTIME
        self._suspended = False  # being handed over: not trusted, not extended
        self._bound = False  # lost with the connection

    def _prolonged(self) -> None:
        """An extension succeeded."""

    def _gone(self) -> None:
        """It is lost; `_cause` says why."""

    def _lose(self, cause: PawlError) -> None:
        if self._cause is None:
            self._cause = cause
            self._renew_at = None
            self._gone()


class Keeper:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._loop = asyncio.get_running_loop()
        self._locks: Dict[Kept, None] = {}
        self._timer: Optional[asyncio.TimerHandle] = None
        self._shortest = 0
        self._tasks: Set[asyncio.Task[None]] = set()

    def share(self) -> float:
        """While locks are held nothing takes longer than a sixth of the shortest lease, in seconds, so that two nodes that hang can be
        left between a third of the lease and the warning."""
        return self._shortest / 6 / _clock.SECOND if self._shortest else float("inf")

    def bound(self) -> bool:
        return any(lock._bound for lock in self._locks)

    def locks(self) -> List[Kept]:
        return list(self._locks)

    def add(self, lock: Kept, at_once: bool) -> None:
        self._locks[lock] = None
        self._measure()
        self._schedule(lock, at_once)
        self._arm()

    def remove(self, lock: Kept) -> None:
        if lock in self._locks:
            del self._locks[lock]
            lock._renew_at = None
            self._measure()

    def broken(self) -> None:
        """The connection is gone."""
        for lock in self.locks():
            if lock._bound:
                self._lose(lock, LostError("the connection that the lock ends with is gone"))

    def resume(self, lock: Kept) -> None:
        """It was not handed over after all."""
        if lock in self._locks and lock._cause is None:
            self._schedule(lock, False)
            self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _measure(self) -> None:
        self._shortest = min((lock._lease for lock in self._locks), default=0)

    def _lose(self, lock: Kept, cause: PawlError) -> None:
        self.remove(lock)
        lock._lose(cause)

    # ---- when ----

    def _schedule(self, lock: Kept, at_once: bool) -> None:
        if not lock._renew:
            lock._renew_at = None
            return
        now = _clock.now()
        wait = _clock.left(lock._deadline, now) - lock._lease // 3 * 2
        # A node that grants less than was asked for is not asked without end.
        lock._renew_at = now.boot + (0 if at_once else max(wait, lock._lease // 16))

    def _retry(self, lock: Kept, error: PawlError) -> None:
        """Soon again, later each time, at random, and still several times before the deadline."""
        lock._last_error = error
        now = _clock.now()
        wait = min((lock._lease // 64) << min(lock._failures, 3), _clock.left(lock._deadline, now) // 4)
        lock._failures += 1
        lock._renew_at = now.boot + max(RETRY_LEAST, int(wait * random.uniform(0.5, 1.5)))

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._locks:
            return
        now = _clock.now()
        nap = int(NAP_LONGEST * _clock.SECOND)
        for lock in self._locks:
            if lock._suspended:
                continue
            nap = min(nap, _clock.left(lock._deadline, now) - lock._warn)
            if lock._renew_at is not None:
                nap = min(nap, lock._renew_at - now.boot)
        self._timer = self._loop.call_later(max(0.001, nap / _clock.SECOND), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = _clock.now()
        for lock in self.locks():
            if _clock.left(lock._deadline, now) <= lock._warn and not lock._suspended:
                self._lose(lock, self._cause_of(lock, now))
        self._renew_due(now)
        self._arm()

    @staticmethod
    def _cause_of(lock: Kept, now: _clock.Instant) -> PawlError:
        if _clock.distrusted(lock._deadline, now):
            return LostError("the lease was over before it could be extended")
        if lock._last_error is not None:
            return lock._last_error
        return WaitTimeoutError("the lease could not be extended in time" if lock._renew else "the lease is nearly over")

    def _renew_due(self, now: _clock.Instant) -> None:
        waiting = [lock for lock in self._locks if lock._renew_at is not None and not lock._suspended]
        if not any(lock._renew_at is not None and lock._renew_at <= now.boot for lock in waiting):
            return
        # Who is due within an eighth of its lease goes along: locks that began at different times soon have their time together.
        due = []
        for lock in waiting:
            slack = 0 if lock._failures else lock._lease // 8
            if lock._renew_at is not None and lock._renew_at - slack <= now.boot:
                lock._renew_at = None
                due.append(lock)
        for begin in range(0, len(due), BATCH_MAX):
            task = self._loop.create_task(self._extend(due[begin : begin + BATCH_MAX]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # ---- extending ----

    async def _extend(self, batch: List[Kept]) -> None:
        items = [{"key": k._key, "lock_id": k._lock_id, "lease_ms": k._lease // _clock.MS, "token": k._token} for k in batch]
        call = Call("extend", {"locks": items, "deadline_kept": True})
        call.internal = True
        now = _clock.now()
        longest = max(_clock.left(lock._deadline, now) for lock in batch) / _clock.SECOND
        outcomes: List[Any] = []
        failure: PawlError = ProtocolError("no outcome for the lock")
        answer = Answer({}, now)
        try:
            answer = await self._reach.run(call, max(longest, 0.001))
            found = answer.result.get("locks")
            outcomes = found if isinstance(found, list) else []
        except PawlError as error:
            failure = error
        useless = [self._judge(outcome, failure) for outcome in outcomes] or [failure]
        for i, lock in enumerate(batch):
            if lock in self._locks and lock._lock_id == items[i]["lock_id"] and not lock._suspended:
                self._extended(lock, outcomes[i] if i < len(outcomes) else None, failure, answer.sent_at)
        if all(isinstance(error, (NoQuorumError, RecoveringError)) for error in useless):
            self._reach.move_on(NoQuorumError())
        self._arm()

    @staticmethod
    def _judge(outcome: Any, failure: PawlError) -> Optional[PawlError]:
        """Why it was not extended; None: it was."""
        if not isinstance(outcome, dict):
            return failure
        if outcome.get("error") is not None:
            return from_wire(outcome["error"])
        return None if isinstance(outcome.get("valid_ms"), int) else ProtocolError("an extension without valid_ms")

    def _extended(self, lock: Kept, outcome: Any, failure: PawlError, sent_at: _clock.Instant) -> None:
        error = self._judge(outcome, failure)
        if _clock.distrusted(lock._deadline, _clock.now()):
            # docs/protocol.md, Extend: a deadline that has passed is final, whatever arrives later.
            self._lose(lock, error or LostError("the answer came when the lease was over"))
        elif error is None:
            self._prolong(lock, outcome, sent_at)
        elif isinstance(error, (LostError, NotFoundError)):
            self._lose(lock, LostError(error.message, error.details))
        elif isinstance(error, DeniedError):
            self._lose(lock, error)
        else:
            self._retry(lock, error)

    def _prolong(self, lock: Kept, outcome: Dict[str, Any], sent_at: _clock.Instant) -> None:
        now = _clock.now()
        deadline = sent_at.plus(int(outcome["valid_ms"]) * _clock.MS)
        if _clock.left(deadline, now) > _clock.left(lock._deadline, now):
            lock._deadline = deadline  # whole, never one clock of each: both must have been promised together
        token = outcome.get("token")
        if isinstance(token, int) and token > lock._token:
            lock._token = token
        lock._last_error = None
        lock._failures = 0
        self._schedule(lock, False)
        lock._prolonged()
