"""Renews locks: extends each whenever a third of its lease has passed, many in one request, and
gives up in time those that cannot be extended."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Callable, Coroutine, Dict, List, Optional, Set, Tuple
from weakref import ReferenceType, ref

from .._env import clock
from .._env.errors import (
    BadRequestError, DeniedError, LostError, MovedError, NoQuorumError, NotFoundError, PawlError,
    ProtocolError, RecoveringError, TooLongError, UnreachableError, UnsureError, WaitTimeoutError,
    from_wire,
)
from .._env.tasks import background
from .._link.link import Link
from .._request.call import Answer, Call
from .._request.calls import Calls
from .extension import How, batches, item
from .leased import LeasedLock
from .session_binding import SessionBindings
from .wanted import Wanted

RETRY_LEAST = 10 * clock.MS
# The loop's own clock stands still while the machine sleeps. So the two clocks that count are read
# at least once in this many seconds.
NAP_LONGEST = 1.0


class Keeper:
    def __init__(self, calls: Calls) -> None:
        self._calls, self._failover = calls, calls.failover
        self._loop = asyncio.get_running_loop()
        # The locks, which this does not keep, each with what releases it once nobody keeps it.
        self._locks: Dict[ReferenceType[LeasedLock], Callable[[], object]] = {}
        self._bindings = SessionBindings(self.lose)
        self._timer: Optional[asyncio.TimerHandle] = None
        self._shortest = 0
        # What a thread has acquired and not taken over yet, with the function that lets it go.
        self._wanted: Dict[Wanted, Callable[[], object]] = {}
        self._tasks: Set[asyncio.Task[None]] = set()

    def share(self) -> float:
        """Returns for how many seconds one step may take: a sixth of the shortest lease. So the
        client can leave two hanging nodes between a third of the lease and the warning."""
        return self._shortest / 6 / clock.SECOND if self._shortest else float("inf")

    def bound(self) -> bool:
        """Returns whether some lock must have a connection that it is bound to."""
        return any(lock._binding and lock._renew for lock in self.locks())

    def locks(self) -> List[LeasedLock]:
        return [lock for lock in (kept() for kept in self._locks) if lock is not None]

    def add(self, lock: LeasedLock, at_once: bool, connection: int,
            drop: Callable[[], object]) -> None:
        """Begins to renew the lock, which is bound to the connection of that number; 0: to none.
        drop: is called within a second after nobody keeps the lock any more, unless it was removed
        before."""
        self._locks[ref(lock)] = drop
        lock._binding = 0
        if connection:
            self._bindings.begin(lock, connection)
        self._measure()
        # The connection that was left may have answered first.
        self._schedule(lock, at_once or connection not in (0, self._failover.connection))
        self._arm()

    def remove(self, lock: LeasedLock) -> None:
        if self._has(lock):
            del self._locks[ref(lock)]
            lock._renew_at = None
            self._measure()
        self._settle()

    def _has(self, lock: LeasedLock) -> bool:
        return ref(lock) in self._locks

    def release_dropped(self) -> None:
        """Releases the locks that nobody keeps any more. Whichever thread has dropped them, this
        is done here, in that of the loop."""
        for kept, drop in list(self._locks.items()):
            if kept() is None:
                del self._locks[kept]
                drop()
                self._measure()

    def _settle(self) -> None:
        """Closes the connections that no lock depends on any more."""
        self._bindings.settle()
        self._failover.settle()

    def connection_lost(self, link: Link) -> None:
        """Is called when the connection is about to be closed, or is closed."""
        for lock in self.locks():
            # A transfer of this lock is under way. If the transfer fails, the lock must not be
            # trusted again. (A lock that is bound to a later connection does not depend on this
            # one.)
            if lock._suspended and 0 < lock._binding <= link.number:
                self.lose(lock, LostError("the connection that the lock ends with is gone"))
        self._bindings.connection_lost(link)
        self._arm()

    def needs(self, link: Link) -> bool:
        """Returns whether the connection must not be closed yet."""
        return self._bindings.depends(link.number)

    def move_on(self, error: PawlError) -> None:
        if not self._bindings.full(self._failover.connection):
            self._failover.move_on(error)

    def connection_up(self) -> None:
        """Binds the locks to the new connection at once. Until then the nodes would not notice the
        death of this process."""
        now = clock.now()
        for lock in self.locks():
            if lock._binding and lock._renew:
                lock._renew_at = now.boot
        self._renew_due(now)
        self._arm()

    def hold_while(self, wanted: Wanted, let_go: Callable[[], object]) -> None:
        """Lets go as soon as it is not wanted any more."""
        self._wanted[wanted] = let_go

    def _drop_unwanted(self) -> None:
        for wanted, let_go in list(self._wanted.items()):
            if wanted.taken or not wanted:
                del self._wanted[wanted]
            if not wanted:
                let_go()

    def resume(self, lock: LeasedLock) -> None:
        """Renews the lock again after a transfer that did not happen."""
        if self._has(lock) and lock._cause is None:
            self._schedule(lock, False)
            self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wanted.clear()
        for task in self._tasks:
            task.cancel()
        self._bindings.close()

    def _measure(self) -> None:
        self._shortest = min((lock._lease for lock in self.locks()), default=0)

    def lose(self, lock: LeasedLock, cause: PawlError) -> None:
        lock._lose(cause)
        self.remove(lock)

    # ---- when ----

    def _schedule(self, lock: LeasedLock, at_once: bool) -> None:
        if not lock._renew:
            lock._renew_at = None
            return
        now = clock.now()
        wait = clock.left(lock._deadline, now) - lock._lease // 3 * 2
        # A node may grant a shorter lease than was asked for. Do not ask it all the time then.
        lock._renew_at = now.boot + (0 if at_once else max(wait, lock._lease // 16))

    def _retry(self, lock: LeasedLock, error: PawlError) -> None:
        """Schedules another try: soon, later after each failure, with a random part, and still
        several times before the deadline."""
        lock._last_error = error
        now = clock.now()
        wait = min((lock._lease // 64) << min(lock._failures, 3),
                   clock.left(lock._deadline, now) // 4)
        lock._failures += 1
        lock._renew_at = now.boot + max(RETRY_LEAST, int(wait * random.uniform(0.5, 1.5)))

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._locks and not self._bindings.retaining:
            return
        now = clock.now()
        nap = int(NAP_LONGEST * clock.SECOND)
        for lock in self.locks():
            if lock._suspended:
                continue
            nap = min(nap, clock.left(lock._deadline, now) - lock._warn)
            asks_at = self._asks_at(lock)
            if asks_at is not None:
                nap = min(nap, asks_at - now.boot)
        self._timer = self._loop.call_later(max(0.001, nap / clock.SECOND), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._drop_unwanted()
        self.release_dropped()
        now = clock.now()
        for lock in self.locks():
            if clock.left(lock._deadline, now) <= lock._warn and not lock._suspended:
                self.lose(lock, self._cause_of(lock, now))
        self._settle()
        self._renew_due(now)
        self._arm()

    def _cause_of(self, lock: LeasedLock, now: clock.Instant) -> PawlError:
        if clock.distrusted(lock._deadline, now):
            return LostError("the lease expired before it could be extended")
        if lock._last_error is not None:
            return lock._last_error
        if lock._binding and self._failover.trouble is not None:
            return self._failover.trouble
        return WaitTimeoutError("the lease could not be extended in time"
                                if lock._renew else "the lease is nearly over")

    def _asks_at(self, lock: LeasedLock) -> Optional[int]:
        """Returns when the lock is due. A lock that is bound to a connection waits until there is
        one."""
        return (None if lock._suspended or (lock._binding and not self._failover.connection)
                else lock._renew_at)

    def _renew_due(self, now: clock.Instant) -> None:
        waiting = [(lock, asks_at) for lock in self.locks() for asks_at in [self._asks_at(lock)]
                   if asks_at is not None]
        if not any(asks_at <= now.boot for _, asks_at in waiting):
            return
        # Locks that will be due within an eighth of their lease are extended as well, so that locks
        # which began at different times are soon due together.
        due: Dict[How, List[LeasedLock]] = {}
        for lock, asks_at in waiting:
            if asks_at - (0 if lock._failures else lock._lease // 8) <= now.boot:
                lock._renew_at = None
                due.setdefault(self._how(lock), []).append(lock)
        for how, locks in due.items():
            for batch in batches(locks):
                self._begin(self._extend(batch, how))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = background(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- extending ----

    def _how(self, lock: LeasedLock) -> How:
        """Returns how the lock is extended now."""
        connection = self._failover.connection if lock._binding else 0
        moves, shortened = connection != lock._binding, lock._order > 0
        return How(connection, moves or bool(connection and shortened), not moves or shortened)

    def _check_connected(self, lock: LeasedLock) -> None:
        if lock._binding and not self._failover.connection:
            raise self._failover.trouble or UnreachableError()

    def _extension(self, batch: List[LeasedLock], how: How) -> Call:
        params: Dict[str, Any] = {"locks": [item(lock, how) for lock in batch],
                                  "deadline_kept": how.kept}
        parties = {lock._party for lock in batch}
        if len(parties) == 1:
            # A node that did not grant the locks learns it so.
            params["party"] = parties.pop()
        call = Call("extend", params)
        call.internal, call.connection = True, how.connection
        return call

    async def extend(self, lock: LeasedLock, lease_ms: Optional[int]) -> None:
        """Extends the lock now, beside what is done at a third of its lease. Raises the error if
        that fails."""
        self._check_connected(lock)
        before, version, how = lock._lease, lock._version, self._how(lock)
        if lease_ms is not None:
            lock._lease = lease_ms * clock.MS
        call = self._extension([lock], how)
        lock._lease = before
        outcome, sent_at = await self._ask(lock, call)
        error = self._judge(outcome)
        if isinstance(error, MovedError) and not call.moved:
            again = Call("extend", call.params)
            again.internal, again.connection = True, how.connection
            outcome, sent_at = await self._ask(lock, again, error)
            error = self._judge(outcome)
        if self._has(lock) and lock._lock_id == version[0] and lock._version != version:
            raise UnsureError("the lease was shortened meanwhile, and the answer does not count")
        if not self._is_still(lock, version):
            raise lock._cause or LostError()
        if error is None and lease_ms is not None:
            lock._lease = lease_ms * clock.MS
            lock._warn = min(lock._warn, lock._lease // 2)
            self._measure()
        if not isinstance(error, TooLongError):
            self._extended(lock, outcome, sent_at, how)
        self._arm()
        if lock._cause is not None or error is not None:
            raise lock._cause or error or LostError()

    async def _ask(self, lock: LeasedLock, call: Call,
                   moved: Optional[PawlError] = None) -> Tuple[Any, clock.Instant]:
        """Makes the call, which extends this lock, and returns its outcome and when it was sent."""
        left = clock.left(lock._deadline, clock.now()) / clock.SECOND
        answer = await self._calls.run(call, max(left, 0.001), moved)
        found = answer.result.get("locks")
        return found[0] if isinstance(found, list) and found else None, answer.sent_at

    async def _extend(self, batch: List[LeasedLock], how: How,
                      moved: Optional[PawlError] = None) -> None:
        """moved: a node has said that these locks are to be extended elsewhere."""
        call, versions = self._extension(batch, how), [lock._version for lock in batch]
        now = clock.now()
        longest = max(clock.left(lock._deadline, now) for lock in batch) / clock.SECOND
        outcomes: List[Any] = []
        failure: PawlError = ProtocolError("no outcome for the lock")
        answer = Answer({}, now)
        try:
            answer = await self._calls.run(call, max(longest, 0.001), moved)
            found = answer.result.get("locks")
            outcomes = found if isinstance(found, list) else []
        except PawlError as error:
            failure = error
        if isinstance(failure, (DeniedError, BadRequestError)) and len(batch) > 1:
            # A node refuses a request as a whole if this client may not extend one of its locks (or
            # one was shortened, at 0.2.0). So that the others stay held, each half is asked alone.
            still = [lock for i, lock in enumerate(batch) if self._is_still(lock, versions[i])]
            for half in still[:len(batch) // 2], still[len(batch) // 2:]:
                if half:
                    self._begin(self._extend(half, how))
            return
        errors = [self._judge(outcome) for outcome in outcomes]
        elsewhere: Dict[Tuple[str, ...], List[Tuple[LeasedLock, MovedError]]] = {}
        for i, lock in enumerate(batch):
            why = errors[i] if i < len(errors) else None
            if not self._is_still(lock, versions[i]):
                continue
            if isinstance(why, MovedError) and moved is None and not call.moved:
                elsewhere.setdefault(why.endpoints, []).append((lock, why))
            else:
                self._extended(lock, outcomes[i] if i < len(outcomes) else failure, answer.sent_at,
                               how)
        for some in elsewhere.values():
            self._begin(self._extend([lock for lock, _ in some], how, some[0][1]))
        if not call.moved and all(isinstance(why, (NoQuorumError, RecoveringError))
                                  for why in errors or [failure]):
            self.move_on(NoQuorumError())
        elif isinstance(failure, BadRequestError) and batch[0]._order:
            self.move_on(failure)  # Another node may be of a later release.
        self._arm()

    def _is_still(self, lock: LeasedLock, version: Tuple[str, int]) -> bool:
        """Returns whether the answer to a request of that version of the lock counts."""
        return self._has(lock) and lock._version == version and not lock._suspended

    @staticmethod
    def _judge(outcome: Any) -> Optional[PawlError]:
        """Returns why the lock was not extended; None if it was."""
        if not isinstance(outcome, dict):
            return (outcome if isinstance(outcome, PawlError)
                    else ProtocolError("no outcome for the lock"))
        if outcome.get("error") is not None:
            return from_wire(outcome["error"])
        return (None if isinstance(outcome.get("valid_ms"), int)
                else ProtocolError("an extension without valid_ms"))

    def _extended(self, lock: LeasedLock, outcome: Any, sent_at: clock.Instant, how: How) -> None:
        error = self._judge(outcome)
        if clock.distrusted(lock._deadline, clock.now()):
            # docs/protocol.md, Extend: a deadline that has passed is final, whatever arrives later.
            self.lose(lock, error or LostError("the answer arrived after the lease had expired"))
        elif error is None:
            self._prolong(lock, outcome, sent_at, how.connection)
        elif isinstance(error, (LostError, NotFoundError)):
            self.lose(lock, LostError(error.message, error.details))
        elif isinstance(error, DeniedError):
            self.lose(lock, error)
        elif (isinstance(error, UnsureError) and not how.kept
              and how.connection == self._failover.connection and not lock._claiming):
            lock._claiming = True
            self._begin(self._claim(lock, how))
        elif isinstance(error, TooLongError) and self._shorten(lock, error):
            self._schedule(lock, True)
        else:
            self._retry(lock, error)

    def _shorten(self, lock: LeasedLock, error: TooLongError) -> bool:
        """Renews the lock for what the cluster allows now. Locks stay held when max_lease is
        lowered (docs/operations/change.md). False: the node does not say what is allowed."""
        limit = error.details.get("limit_ms")
        if not isinstance(limit, int) or not 0 < limit * clock.MS < lock._lease:
            return False
        self._set_lease(lock, limit)
        return True

    def _set_lease(self, lock: LeasedLock, lease_ms: int) -> None:
        usual = lock._warn == lock._lease // clock.MS // 6 * clock.MS
        lock._lease = lease_ms * clock.MS
        lock._warn = lease_ms // 6 * clock.MS if usual else min(lock._warn, lock._lease // 2)
        self._measure()

    async def shorten(self, locks: List[LeasedLock], lease_ms: int) -> None:
        """Gives up the trust in any later end of all these locks, and then asks for the shorter
        lease. Raises the first error."""
        for lock in locks:
            self._check_connected(lock)
        for lock in locks:
            self._give_up_later_end(lock, lease_ms)
        begun = [self._begin_shortening(lock) for lock in locks]
        self._arm()
        outcomes = await asyncio.gather(*begun, return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def _give_up_later_end(self, lock: LeasedLock, lease_ms: int) -> None:
        self._set_lease(lock, lease_ms)
        lock._order += 1
        now = clock.now()
        # The drift is at most a tenth (docs/operations/reference.md), and the answer says how much.
        trusted = now.plus(lock._lease - lock._lease // 8)
        if clock.left(trusted, now) < clock.left(lock._deadline, now):
            lock._deadline = trusted

    def _begin_shortening(self, lock: LeasedLock) -> Coroutine[Any, Any, None]:
        how = self._how(lock)
        call = Call("extend", {**item(lock, how), "shorten": True, "deadline_kept": True,
                               "party": lock._party})
        call.connection = how.connection
        self._schedule(lock, False)
        try:
            self._calls.start(call, lock._lease / clock.SECOND)
        except PawlError as error:
            call.finish(None, error)
        return self._end_shortening(lock, lock._version, how, call)

    async def _end_shortening(self, lock: LeasedLock, version: Tuple[str, int], how: How,
                              call: Call) -> None:
        outcome: Any
        try:
            answer = await self._calls.wait(call)
            outcome = answer.result
        except PawlError as error:
            outcome, answer = error, Answer({}, clock.now())
        if self._is_still(lock, version):
            if isinstance(outcome, BadRequestError) and call.sends == 1:
                # Nothing was done: a node of release 0.2.0 does not know the parameters.
                lock._order -= 1
            self._extended(lock, outcome, answer.sent_at, how)
            self._arm()
        why = self._judge(outcome)
        if why is not None:
            raise lock._cause or why

    async def _claim(self, lock: LeasedLock, how: How) -> None:
        """Acquires the lock again under its lock_id, which binds it to the connection. This is
        needed when too few masters still *had* the lock: some have learned it anew after a restart
        or a pause, so another holder may have come in between (docs/protocol.md, Extend). The lock
        may have a higher token afterwards."""
        version = lock._version
        call = Call("acquire", lock._claim())
        call.internal, call.connection = True, how.connection
        outcome: Any
        try:
            answer = await self._calls.run(call)
            outcome = answer.result
        except (NoQuorumError, DeniedError, RecoveringError, UnreachableError) as error:
            outcome, answer = error, Answer({}, clock.now())
        except PawlError as error:  # The error leaves open whether the lock is held.
            outcome, answer = UnsureError(error.message), Answer({}, clock.now())
        if self._is_still(lock, version):
            self._extended(lock, outcome, answer.sent_at, how)
            self._arm()
        lock._claiming = False

    def _prolong(self, lock: LeasedLock, outcome: Dict[str, Any], sent_at: clock.Instant,
                 connection: int) -> None:
        now = clock.now()
        deadline = sent_at.plus(int(outcome["valid_ms"]) * clock.MS)
        slots = outcome.get("slots")
        numbers = tuple(slots) if isinstance(slots, list) and slots else lock._slots
        # The deadline may move to an earlier time in two cases: other permit numbers go with the
        # deadline that they were granted for; and if the lock has moved to another connection,
        # masters that have not heard of that drop it when the earlier connection is closed.
        moved = self._bindings.made(lock, connection)
        if (moved or numbers != lock._slots
                or clock.left(deadline, now) > clock.left(lock._deadline, now)):
            # Both clocks of a deadline must come from one promise, so never mix two deadlines.
            lock._deadline = deadline
        # From now on the lock has these permit numbers and no others (docs/protocol.md, section
        # 10).
        lock._slots = numbers
        token = outcome.get("token")
        if isinstance(token, int) and token > lock._token:
            lock._token = token
        lock._last_error = None
        lock._failures = 0
        self._failover.settle()
        self._schedule(lock, lock._binding != (self._failover.connection if lock._binding else 0))
