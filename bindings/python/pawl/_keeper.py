"""Keeps locks: extends them at a third of their lease, many in one request, and gives them up in
time."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Coroutine, Dict, List, NamedTuple, Optional, Set, Tuple

from . import _clock
from ._session_binding import SessionBindings
from ._call import Answer, Call
from ._errors import (
    DeniedError,
    LostError,
    NoQuorumError,
    NotFoundError,
    PawlError,
    ProtocolError,
    RecoveringError,
    UnreachableError,
    UnsureError,
    WaitTimeoutError,
    from_wire,
)
from ._link import Link
from ._failover import Failover

BATCH_MAX = 1000
RETRY_LEAST = 10 * _clock.MS
# The loop's own clock stands still while the machine sleeps: the clocks that count are looked at at
# least so often.
NAP_LONGEST = 1.0


class Kept:
    """A lock as the keeper sees it. Locks derive from it; `_gone` and `_claim` are theirs."""

    def __init__(self, key: bytes, lease_ms: int, warn_ms: int, renew: bool) -> None:
        self._key = key
        self._lease = lease_ms * _clock.MS
        self._warn = warn_ms * _clock.MS
        self._renew = renew
        self._lock_id = ""
        self._token = 0
        self._slots: Tuple[int, ...] = ()  # of a semaphore
        self._deadline = _clock.NEVER
        self._cause: Optional[PawlError] = None  # why it is lost
        # Of the extensions since the last one that succeeded.
        self._last_error: Optional[PawlError] = None
        self._failures = 0
        self._renew_at: Optional[int] = None  # on CLOCK_BOOTTIME
        self._suspended = False  # being handed over: not trusted, not extended
        self._binding = 0  # the connection that it is known to end with; 0: with none
        self._first_connection = 0  # over which it was got
        self._claiming = False  # it is being acquired again

    def _left(self) -> int:
        """Nanoseconds for which it may still be trusted."""
        if self._suspended or isinstance(self._cause, LostError):
            return 0
        return _clock.left(self._deadline, _clock.now())

    def _claim(self) -> Dict[str, Any]:
        """An acquire of the same lock, as it is now."""
        raise NotImplementedError

    def _gone(self) -> None:
        """It is lost; `_cause` says why."""

    def _lose(self, cause: PawlError) -> None:
        if self._cause is None:
            self._cause = cause
            self._renew_at = None
            self._gone()


class _How(NamedTuple):
    """An extension may go over any connection (0), or over one only: that of a lock that ends with
    it, or one that it is to be bound to, which is not asked for the sake of the deadline that is
    kept (docs/protocol.md, Release on disconnect)."""

    connection: int
    binds: bool


class Keeper:
    def __init__(self, failover: Failover) -> None:
        self._failover = failover
        self._loop = asyncio.get_running_loop()
        self._locks: Dict[Kept, None] = {}
        self._bindings = SessionBindings(self._lose)
        self._timer: Optional[asyncio.TimerHandle] = None
        self._shortest = 0
        self._tasks: Set[asyncio.Task[None]] = set()

    def share(self) -> float:
        """While locks are held nothing takes longer than a sixth of the shortest lease, in seconds,
        so that two nodes that hang can be left between a third of the lease and the warning."""
        return self._shortest / 6 / _clock.SECOND if self._shortest else float("inf")

    def bound(self) -> bool:
        """Some lock has to have a connection that it ends with."""
        return any(lock._binding and lock._renew for lock in self._locks)

    def locks(self) -> List[Kept]:
        return list(self._locks)

    def add(self, lock: Kept, at_once: bool, connection: int) -> None:
        """connection: the connection that it ends with; 0: with none."""
        self._locks[lock] = None
        lock._binding = 0
        if connection:
            self._bindings.begin(lock, connection)
        self._measure()
        # The connection that was left may have answered first.
        self._schedule(lock, at_once or connection not in (0, self._failover.connection))
        self._arm()

    def remove(self, lock: Kept) -> None:
        if lock in self._locks:
            del self._locks[lock]
            lock._renew_at = None
            self._measure()
        self._settle()

    def _settle(self) -> None:
        """Closes the connections that no lock depends on any more."""
        self._bindings.settle()
        self._failover.settle()

    def connection_lost(self, link: Link) -> None:
        """It is about to be closed, or is."""
        for lock in self.locks():
            # It must not be trusted again if nothing comes of the transfer.
            if lock._binding and lock._suspended:
                self._lose(lock, LostError("the connection that the lock ends with is gone"))
        self._bindings.connection_lost(link)
        self._arm()

    def needs(self, link: Link) -> bool:
        """The connection must not be closed yet."""
        return self._bindings.depends(link.number)

    def move_on(self, error: PawlError) -> None:
        if not self._bindings.full(self._failover.connection):
            self._failover.move_on(error)

    def connection_up(self) -> None:
        """Until locks are bound to it the death of this process would not be noticed."""
        now = _clock.now()
        for lock in self._locks:
            if lock._binding and lock._renew:
                lock._renew_at = now.boot
        self._renew_due(now)
        self._arm()

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
        self._bindings.close()

    def _measure(self) -> None:
        self._shortest = min((lock._lease for lock in self._locks), default=0)

    def _lose(self, lock: Kept, cause: PawlError) -> None:
        lock._lose(cause)
        self.remove(lock)

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
        wait = min((lock._lease // 64) << min(lock._failures, 3),
                   _clock.left(lock._deadline, now) // 4)
        lock._failures += 1
        lock._renew_at = now.boot + max(RETRY_LEAST, int(wait * random.uniform(0.5, 1.5)))

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._locks and not self._bindings.keeping:
            return
        now = _clock.now()
        nap = int(NAP_LONGEST * _clock.SECOND)
        for lock in self._locks:
            if lock._suspended:
                continue
            nap = min(nap, _clock.left(lock._deadline, now) - lock._warn)
            asks_at = self._asks_at(lock)
            if asks_at is not None:
                nap = min(nap, asks_at - now.boot)
        self._timer = self._loop.call_later(max(0.001, nap / _clock.SECOND), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = _clock.now()
        for lock in self.locks():
            if _clock.left(lock._deadline, now) <= lock._warn and not lock._suspended:
                self._lose(lock, self._cause_of(lock, now))
        self._settle()
        self._renew_due(now)
        self._arm()

    def _cause_of(self, lock: Kept, now: _clock.Instant) -> PawlError:
        if _clock.distrusted(lock._deadline, now):
            return LostError("the lease expired before it could be extended")
        if lock._last_error is not None:
            return lock._last_error
        if lock._binding and self._failover.trouble is not None:
            return self._failover.trouble
        return WaitTimeoutError("the lease could not be extended in time"
                                if lock._renew else "the lease is nearly over")

    def _asks_at(self, lock: Kept) -> Optional[int]:
        """What is to go over one connection waits until there is one."""
        return (None if lock._suspended or (lock._binding and not self._failover.connection)
                else lock._renew_at)

    def _renew_due(self, now: _clock.Instant) -> None:
        waiting = [(lock, asks_at) for lock in self._locks for asks_at in [self._asks_at(lock)]
                   if asks_at is not None]
        if not any(asks_at <= now.boot for _, asks_at in waiting):
            return
        # Who is due within an eighth of its lease goes along: locks that began at different times
        # soon have their time together.
        due: Dict[_How, List[Kept]] = {}
        for lock, asks_at in waiting:
            if asks_at - (0 if lock._failures else lock._lease // 8) <= now.boot:
                lock._renew_at = None
                connection = self._failover.connection if lock._binding else 0
                due.setdefault(_How(connection, connection != lock._binding), []).append(lock)
        for how, locks in due.items():
            for begin in range(0, len(locks), BATCH_MAX):
                self._begin(self._extend(locks[begin : begin + BATCH_MAX], how))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- extending ----

    async def _extend(self, batch: List[Kept], how: _How) -> None:
        items: List[Dict[str, Any]] = []
        for lock in batch:
            items.append({"key": lock._key, "lock_id": lock._lock_id,
                          "lease_ms": lock._lease // _clock.MS, "token": lock._token})
            if lock._slots:
                items[-1]["slots"] = list(lock._slots)
            if how.binds:
                items[-1]["bond"] = how.connection
        call = Call("extend", {"locks": items, "deadline_kept": not how.binds})
        call.internal, call.connection = True, how.connection
        now = _clock.now()
        longest = max(_clock.left(lock._deadline, now) for lock in batch) / _clock.SECOND
        outcomes: List[Any] = []
        failure: PawlError = ProtocolError("no outcome for the lock")
        answer = Answer({}, now)
        try:
            answer = await self._failover.run(call, max(longest, 0.001))
            found = answer.result.get("locks")
            outcomes = found if isinstance(found, list) else []
        except PawlError as error:
            failure = error
        useless = [self._judge(outcome) for outcome in outcomes] or [failure]
        for i, lock in enumerate(batch):
            if self._is_still(lock, items[i]["lock_id"]):
                self._extended(lock, outcomes[i] if i < len(outcomes) else failure, answer.sent_at,
                               how)
        if all(isinstance(error, (NoQuorumError, RecoveringError)) for error in useless):
            self.move_on(NoQuorumError())
        self._arm()

    def _is_still(self, lock: Kept, lock_id: str) -> bool:
        return lock in self._locks and lock._lock_id == lock_id and not lock._suspended

    @staticmethod
    def _judge(outcome: Any) -> Optional[PawlError]:
        """Why it was not extended; None: it was."""
        if not isinstance(outcome, dict):
            return (outcome if isinstance(outcome, PawlError)
                    else ProtocolError("no outcome for the lock"))
        if outcome.get("error") is not None:
            return from_wire(outcome["error"])
        return (None if isinstance(outcome.get("valid_ms"), int)
                else ProtocolError("an extension without valid_ms"))

    def _extended(self, lock: Kept, outcome: Any, sent_at: _clock.Instant, how: _How) -> None:
        error = self._judge(outcome)
        if _clock.distrusted(lock._deadline, _clock.now()):
            # docs/protocol.md, Extend: a deadline that has passed is final, whatever arrives later.
            self._lose(lock, error or LostError("the answer arrived after the lease had expired"))
        elif error is None:
            self._prolong(lock, outcome, sent_at, how.connection)
        elif isinstance(error, (LostError, NotFoundError)):
            self._lose(lock, LostError(error.message, error.details))
        elif isinstance(error, DeniedError):
            self._lose(lock, error)
        elif (isinstance(error, UnsureError) and how.binds
              and how.connection == self._failover.connection and not lock._claiming):
            lock._claiming = True
            self._begin(self._claim(lock, how))
        else:
            self._retry(lock, error)

    async def _claim(self, lock: Kept, how: _How) -> None:
        """It is to be bound to another connection, and too few masters *had* it: some have learned
        it anew, after a restart or a pause, so that somebody else's may have come between
        (docs/protocol.md, Extend). It is acquired again under its lock_id, and bound by that; it
        may have a higher token then."""
        lock_id = lock._lock_id
        call = Call("acquire", lock._claim())
        call.internal, call.connection = True, how.connection
        outcome: Any
        try:
            answer = await self._failover.run(call)
            outcome = answer.result
        except (NoQuorumError, DeniedError, RecoveringError, UnreachableError) as error:
            outcome, answer = error, Answer({}, _clock.now())
        except PawlError as error:  # leaves it open whether the lock is held
            outcome, answer = UnsureError(error.message), Answer({}, _clock.now())
        if self._is_still(lock, lock_id):
            self._extended(lock, outcome, answer.sent_at, how)
            self._arm()
        lock._claiming = False

    def _prolong(self, lock: Kept, outcome: Dict[str, Any], sent_at: _clock.Instant,
                 connection: int) -> None:
        now = _clock.now()
        deadline = sent_at.plus(int(outcome["valid_ms"]) * _clock.MS)
        slots = outcome.get("slots")
        numbers = tuple(slots) if isinstance(slots, list) and slots else lock._slots
        # The deadline may be earlier than the present one in two cases. Numbers go with the
        # deadline that they were granted for. And if the lock has moved to another connection,
        # masters that have not heard of that drop it when the earlier connection is closed.
        moved = self._bindings.made(lock, connection)
        if (moved or numbers != lock._slots
                or _clock.left(deadline, now) > _clock.left(lock._deadline, now)):
            # Whole, never one clock of each: both must have been promised together.
            lock._deadline = deadline
        lock._slots = numbers  # these and no others from now on (docs/protocol.md, section 10)
        token = outcome.get("token")
        if isinstance(token, int) and token > lock._token:
            lock._token = token
        lock._last_error = None
        lock._failures = 0
        self._failover.settle()
        self._schedule(lock, lock._binding != (self._failover.connection if lock._binding else 0))
