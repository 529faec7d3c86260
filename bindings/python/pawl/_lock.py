"""Locks for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _clock
from ._acquire import Grant, Options, acquire
from ._call import new_lock_id
from ._errors import (
    BadRequestError,
    BusyError,
    DeniedError,
    LostError,
    NotFoundError,
    PawlError,
    ProtocolError,
)
from ._guard import Holding
from ._keeper import LeasedLock
from ._tasks import background
from ._types import EXCLUSIVE, SHARED, Asked, Bytes, Want, check_callback, mode_params, to_bytes
from ._watch import Watch

if TYPE_CHECKING:
    from ._client import Client

LostFn = Callable[[Any, PawlError], None]
AskedFn = Callable[[Any, Asked], None]


class Lock(LeasedLock, Holding):
    """A lock. It is acquired by `await lock`, `await lock.acquire()` or `async with lock`, renewed
    in the background whenever a third of its lease has passed, and released by `release()` or at
    the end of the `async with`.

    When the lock is lost, the body of the `async with` is canceled, `warn` seconds before the lease
    is over if that can be known, and the statement raises the cause: LostError, NoQuorumError,
    UnreachableError, ... Without an `async with`, use `valid`, `check()` or `on_lost`.
    """

    def __init__(
        self, client: Client, key: Bytes, options: Options, on_lost: Optional[LostFn] = None,
        on_asked: Optional[AskedFn] = None
    ) -> None:
        LeasedLock.__init__(self, to_bytes(key, "key"), options.lease_ms, options.warn_ms,
                            options.renew)
        Holding.__init__(self, "lock")
        check_callback(on_lost, "on_lost")
        check_callback(on_asked, "on_asked")
        self._mode_params = mode_params(options.mode, options.permits, options.of)
        self._client, self._options = client, options
        self._party = options.party or client._party
        self._on_lost, self._on_asked = on_lost, on_asked
        self._acquired = False
        self._mode, self._value = EXCLUSIVE, b""
        self._process = os.getpid()
        self._lost_event: asyncio.Future[PawlError] = asyncio.get_running_loop().create_future()
        self._listener: Optional[asyncio.Task[None]] = None

    # ---- what it is ----

    @property
    def key(self) -> bytes:
        return self._key

    @property
    def lock_id(self) -> str:
        """The lock_id of this acquisition, in 32 hex digits."""
        return self._lock_id

    @property
    def token(self) -> int:
        """The fencing token. It may grow while the lock is held, so read it each time."""
        return self._token

    @property
    def mode(self) -> str:
        """The present mode: `exclusive`, `shared` or `permits`."""
        return self._mode

    @property
    def slots(self) -> Tuple[int, ...]:
        """The permit numbers that this lock holds. They go from 0 to of - 1, and no two holders
        have the same one."""
        return self._slots

    @property
    def valid(self) -> float:
        """For how many seconds the lock may still be trusted; 0.0 for ever once the deadline has
        passed. The time counts from the sending of the last request that was granted. This only
        reads two clocks, and any thread may ask."""
        return (self._left() / _clock.SECOND if self._acquired and self._process == os.getpid()
                else 0.0)

    @property
    def held(self) -> bool:
        """Whether the lock may be trusted now."""
        return self.valid > 0.0

    @property
    def error(self) -> Optional[PawlError]:
        """Why the lock is lost, or is about to be; None while it is renewed."""
        return self._cause

    def check(self) -> None:
        """If the lock is lost, raises the cause, even if some of its time is left."""
        if self._cause is not None:
            raise self._cause
        if not self.held:
            raise LostError()

    # ---- getting it ----

    def _has_it(self) -> bool:
        return self._acquired and self._cause is None

    def _causes(self) -> Iterable[Optional[PawlError]]:
        return [self._cause]

    async def _get(self) -> None:
        self._forget_lost()
        self._begin(await acquire(self._client, self._options,
                                  dict(self._mode_params, key=self._key)))

    def _forget_lost(self) -> None:
        """Releases a lock that this object has given up and the cluster may still have, so that the
        next acquire gets it sooner."""
        if self._acquired:
            self._client._failover.release_quietly(self._key, self._forget())

    def _begin(self, grant: Grant, said: Optional[Mapping[str, Any]] = None) -> None:
        """Takes over what was granted. If the grant is for several locks, `said` is the part for
        this one."""
        said = grant.result if said is None else said
        token = said.get("token")
        self._lock_id, self._deadline = grant.ids[self._key], grant.deadline
        self._token = token if isinstance(token, int) else 0
        self._lease = grant.options.lease_ms * _clock.MS
        self._warn = grant.options.warn_ms * _clock.MS
        self._mode = str(said.get("mode") or ("permits"
                                              if self._options.permits else self._options.mode))
        self._value = to_bytes(self._options.value)
        slots = said.get("slots")
        self._slots = tuple(slots) if isinstance(slots, list) else ()
        self._cause = self._last_error = None
        self._failures, self._suspended, self._claiming = 0, False, False
        if self._lost_event.done():
            self._lost_event = asyncio.get_running_loop().create_future()
        self._acquired = True
        # A client that has waited for a long time extends at once (docs/protocol.md, What the
        # holder may count on).
        connection = grant.connection if self._options.release_on_disconnect else 0
        self._client._keeper.add(self, grant.waited_ms * _clock.MS > self._lease, connection)
        self._start_listening()

    def _claim(self) -> Dict[str, Any]:
        which = {"mode": SHARED} if self._mode == SHARED else self._mode_params
        return {**self._options.params(self._client), **which, "key": self._key,
                "lock_id": self._lock_id, "value": self._value,
                "lease_ms": self._lease // _clock.MS}

    # ---- what comes ----

    def _gone(self) -> None:
        assert self._cause is not None
        self._stop_listening()
        if not self._lost_event.done():
            self._lost_event.set_result(self._cause)
        self._guard.stop(self._cause)
        if self._on_lost is not None:
            self._client._callback(self._on_lost, self, self._cause)

    async def wait_lost(self) -> PawlError:
        """Waits until the lock is lost, and returns the cause. A release does not end the wait."""
        return await asyncio.shield(self._lost_event)

    def _listens(self) -> bool:
        return self._on_asked is not None

    def _start_listening(self) -> None:
        if self._listens() and self._listener is None:
            self._listener = background(self._listen())

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _listen(self) -> None:
        with contextlib.suppress(PawlError):
            async with Watch(self._client, key=self._key) as watch:
                async for event in watch:
                    if event.type == "asked" and self._acquired and self._cause is None:
                        self._asked(Asked(event.by, event.to, event.priority))

    def _asked(self, asked: Asked) -> None:
        if self._on_asked is not None:
            self._client._callback(self._on_asked, self, asked)

    # ---- using it, and letting go ----

    async def update(self, value: Bytes, expect: Optional[Bytes] = None) -> bytes:
        """Writes the value and returns its value_seq. With `expect` it writes only if `expect` is
        the present value or its value_seq; otherwise it raises MismatchError. UnsureError: the
        write may still take effect."""
        params: Dict[str, Any] = {"key": self._key, "lock_id": self._lock_id,
                                  "value": to_bytes(value, "value")}
        if expect is not None:
            params["expect"] = to_bytes(expect, "expect")
        result = await self._client.call("update", **params)
        self._value = to_bytes(value)
        seq = result.get("value_seq")
        return seq if isinstance(seq, bytes) else b""

    def _forget(self) -> str:
        """Stops trusting the lock. Returns the lock_id that it had, or an empty string if it was
        not held."""
        lock_id = self._lock_id if self._acquired else ""
        self._acquired = False
        self._deadline, self._suspended = _clock.NEVER, False
        self._client._keeper.remove(self)
        self._stop_listening()
        return lock_id

    async def _let_go(self) -> None:
        await self.release()

    async def release(self) -> bool:
        """Stops trusting the lock at once, and then releases it. False: it was not held any
        more."""
        # The client stops trusting the lock before it asks (docs/protocol.md, Release).
        lock_id = self._forget()
        if not lock_id:
            return False
        return await self._client.release(self._key, lock_id)

    async def downgrade(self) -> None:
        """Makes an exclusive lock a shared one without letting go. From the moment of the call this
        object has the mode `shared`, whatever the outcome. You can safely repeat the call."""
        if self._mode not in (EXCLUSIVE, SHARED):
            raise ValueError("downgrade: only an exclusive lock can be made a shared one")
        self._mode = SHARED
        await self._client.call("downgrade", key=self._key, lock_id=self._lock_id)

    async def transfer(self, to: Bytes) -> None:
        """Releases the lock in favour of the waiter whose owner is `to`, whoever waits ahead of it.
        From the moment of the call the lock is not trusted. NotFoundError: nobody of this name
        waits, nothing was released, and the lock is held as before. After any other error the lock
        is released without a successor."""
        successor = to_bytes(to, "to")
        self.check()
        if self._claiming:
            raise BusyError("the lock is just being bound to another connection: call transfer "
                            "again later")
        self._suspended = True
        try:
            result = await self._client.call("transfer", key=self._key, lock_id=self._lock_id,
                                             to=successor)
        except (NotFoundError, DeniedError, BadRequestError) as error:
            if error.details.get("transferred") or error.details.get("released"):
                self._forget()
            else:
                self._suspended = False
                self._client._keeper.resume(self)
            raise
        except BaseException:
            lock_id = self._forget()
            self._client._failover.release_quietly(self._key, lock_id)
            raise
        self._forget()
        if not result.get("transferred", True):
            raise LostError()


class LockSet(Holding):
    """Several locks that are acquired together, all or none, by `await locks`, `await
    locks.acquire()` or `async with locks`. The body of the `async with` is canceled when one of
    them is lost. `locks[key]` gives one of them, and iteration gives all of them in the order in
    which they were named."""

    def __init__(self, client: Client, wants: Sequence[Union[Bytes, Want]], options: Options,
                 on_lost: Optional[LostFn] = None) -> None:
        super().__init__("set of locks")
        check_callback(on_lost, "on_lost")
        if isinstance(wants, (str, bytes, bytearray)):  # Each letter would be a key.
            raise TypeError("keys: expected a list of keys, not one %s" % type(wants).__name__)
        self._client, self._options, self._on_lost = client, options, on_lost
        self._wants = [want if isinstance(want, Want) else Want(want) for want in wants]
        self._locks: Dict[bytes, Lock] = {}
        for want in self._wants:
            own = dataclasses.replace(options, mode=want.mode, permits=want.permits, of=want.of)
            self._locks[to_bytes(want.key)] = Lock(client, want.key, own, self._lost)
        if not 1 <= len(self._locks) == len(self._wants):
            raise ValueError("keys: give at least one key, and no key twice")

    def __getitem__(self, key: Bytes) -> Lock:
        return self._locks[to_bytes(key)]

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._locks.values())

    def __len__(self) -> int:
        return len(self._locks)

    @property
    def valid(self) -> float:
        """For how many seconds all of them may still be trusted."""
        return min(lock.valid for lock in self)

    @property
    def held(self) -> bool:
        return self.valid > 0.0

    def check(self) -> None:
        """If one of them is lost, raises the cause."""
        for lock in self:
            lock.check()

    def _lost(self, lock: Lock, cause: PawlError) -> None:
        self._guard.stop(cause)
        if self._on_lost is not None:
            self._client._callback(self._on_lost, lock, cause)

    def _has_it(self) -> bool:
        return all(lock._has_it() for lock in self)

    async def _get(self) -> None:
        for lock in self:
            lock._forget_lost()
        items = [dict(lock._mode_params, key=lock.key, lock_id=new_lock_id()) for lock in self]
        grant = await acquire(self._client, self._options, {"locks": items})
        found = grant.result.get("locks")
        said = {item["key"]: item for item in found or [] if isinstance(item, dict)
                and isinstance(item.get("key"), bytes)}
        if set(said) != set(self._locks):
            for key, lock_id in grant.ids.items():
                self._client._failover.release_quietly(key, lock_id)
            raise ProtocolError("the answer is not about the keys that were asked for")
        for key, lock in self._locks.items():
            lock._begin(grant, said[key])

    def _causes(self) -> Iterable[Optional[PawlError]]:
        return [lock.error for lock in self]

    async def _let_go(self) -> None:
        await self.release()

    async def release(self) -> None:
        """Releases all of them."""
        outcomes = await asyncio.gather(*[lock.release() for lock in self], return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
