"""Locks for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple
from weakref import ReferenceType, ref

from .._env import clock
from .._env.arguments import EXCLUSIVE, SHARED, Bytes, check_callback, to_bytes, to_ms
from .._env.errors import (
    BadRequestError, BusyError, DeniedError, LostError, NotFoundError, PawlError,
)
from .._env.tasks import background
from .._request.call import Answer, Call
from .._watch.watch import Watch
from .acquire import Grant, acquire
from .guard import Holding
from .holder import Holder
from .leased import LeasedLock
from .options import Options, mode_params

@dataclasses.dataclass(frozen=True)
class Asked:
    """A request to the holder to let go: who asks, in whose favour, and with which priority."""

    by: bytes
    to: bytes
    priority: int


LostFn = Callable[[Any, PawlError], None]
AskedFn = Callable[[Any, Asked], None]


class Lock(LeasedLock, Holding):
    """A lock. It is acquired by `await lock`, `await lock.acquire()` or `async with lock`, renewed
    in the background whenever a third of its lease has passed, and released by `release()` or at
    the end of the `async with`.

    When the lock is lost, the body of the `async with` is canceled, `warn` seconds before the lease
    is over if that can be known, and the statement raises the cause: LostError, NoQuorumError,
    UnreachableError, ... Without an `async with`, use `valid`, `check()` or `on_lost`.

    A lock that the program does not keep is released within about a second after Python has found
    that, with a ResourceWarning and a line in the log of `pawl`.
    """

    def __init__(
        self, client: Holder, key: Bytes, options: Options, on_lost: Optional[LostFn] = None,
        on_asked: Optional[AskedFn] = None
    ) -> None:
        LeasedLock.__init__(self, to_bytes(key, "key"), options.lease_ms, options.warn_ms,
                            options.renew)
        Holding.__init__(self, client, "lock")
        check_callback(on_lost, "on_lost")
        check_callback(on_asked, "on_asked")
        self._mode_params = mode_params(options.mode, options.permits, options.of)
        self._options = options
        self._party = options.party or client._party
        self._on_lost, self._on_asked = on_lost, on_asked
        self._acquired = False
        self._mode, self._value = EXCLUSIVE, b""
        self._process = os.getpid()
        self._lost_event: asyncio.Future[PawlError] = asyncio.get_running_loop().create_future()
        self._listener: Optional[asyncio.Task[None]] = None
        # What the listener watches.
        self._ear: Optional[Watch] = None

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
        return (self._left() / clock.SECOND if self._acquired and self._process == os.getpid()
                else 0.0)

    @property
    def held(self) -> bool:
        """Whether the lock may be trusted now."""
        return self.valid > 0.0

    @property
    def error(self) -> Optional[PawlError]:
        """Why the lock is lost, or is about to be; None while it is renewed."""
        return self._cause

    @property
    def asked_error(self) -> Optional[PawlError]:
        """Why `on_asked` is not called although others may ask; None: it is. FullError: the node
        has no room for more watches of this client (`watches_per_client` in its configuration,
        1,000 unless it says otherwise); the client asks again while the lock is held, so this may
        pass. Other errors are final. The lock is held nevertheless."""
        return None if self._ear is None else self._ear._error or self._ear._full

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
        self._let_go()

    def _begin(self, grant: Grant, said: Optional[Mapping[str, Any]] = None) -> None:
        """Takes over what was granted. If the grant is for several locks, `said` is the part for
        this one."""
        said = grant.result if said is None else said
        token = said.get("token")
        self._lock_id, self._deadline = grant.ids[self._key], grant.deadline
        self._token = token if isinstance(token, int) else 0
        self._lease = grant.options.lease_ms * clock.MS
        self._warn = grant.options.warn_ms * clock.MS
        self._mode = str(said.get("mode") or ("permits"
                                              if self._options.permits else self._options.mode))
        self._value = to_bytes(self._options.value)
        slots = said.get("slots")
        self._slots = tuple(slots) if isinstance(slots, list) else ()
        self._cause = self._last_error = None
        self._failures, self._suspended, self._claiming, self._order = 0, False, False, 0
        if self._lost_event.done():
            self._lost_event = asyncio.get_running_loop().create_future()
        self._acquired = True
        self._client._handles[self._key, self._lock_id] = self
        # A client that has waited for a long time extends at once (docs/protocol.md, What the
        # holder may count on).
        connection = grant.connection if self._options.release_on_disconnect else 0
        self._start_listening()
        self._client._keeper.add(self, grant.waited_ms * clock.MS > self._lease, connection,
                                 functools.partial(_drop, self._client, self._key, self._lock_id,
                                                   self._lease / clock.SECOND, self._listener))

    def _claim(self) -> Dict[str, Any]:
        which = {"mode": SHARED} if self._mode == SHARED else self._mode_params
        return {**self._options.params(self._client), **which, "key": self._key,
                "lock_id": self._lock_id, "value": self._value,
                "lease_ms": self._lease // clock.MS}

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
            self._ear = Watch(self._client._watches, key=self._key, lasts=True)
            self._listener = background(_listen(ref(self), self._ear))

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = self._ear = None

    def _asked(self, asked: Asked) -> None:
        if self._on_asked is not None:
            self._client._callback(self._on_asked, self, asked)

    # ---- using it, and letting go ----

    async def extend(self, lease: Optional[float] = None) -> None:
        """Extends the lock now, although the client does that by itself: before a step that needs
        all of the lease. With `lease` (in seconds) it is renewed for that long from now on; what it
        has is never shortened. Raises the cause if the lock is lost. After any other error the lock
        is held as before."""
        lease_ms = None if lease is None else to_ms(lease, "lease")
        if lease_ms == 0:
            raise ValueError("lease: it must be at least a millisecond")
        self.check()
        await self._client._keeper.extend(self, lease_ms)

    def gate(self, margin: float = 0.0) -> int:
        """Returns the token for a write that is sent now. If the lock is lost, or may be trusted
        for less than `margin` seconds, which is what the write may take, this raises the cause or
        LostError, and the write must not be sent."""
        margin_ms = to_ms(margin, "margin")
        token, valid = self._token, self.valid
        if self._cause is not None:
            raise self._cause
        if valid <= 0.0 or valid * 1000 < margin_ms:
            raise LostError("the lock may be trusted for %d ms, and the write needs %d ms"
                            % (valid * 1000, margin_ms))
        return token

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
        if not self._acquired:
            return ""
        lock_id, self._acquired = self._lock_id, False
        self._deadline, self._suspended = clock.NEVER, False
        self._client._handles.pop((self._key, lock_id), None)
        self._client._keeper.remove(self)
        self._stop_listening()
        return lock_id

    def _let_go(self, close_ms: int = 0) -> Optional[asyncio.Future[Answer]]:
        """Stops trusting the lock, and then begins to release it (docs/protocol.md, Release). None:
        it was not held any more."""
        lock_id = self._forget()
        return (self._client._calls.let_go(self._key, lock_id, self._lease / clock.SECOND, close_ms)
                if lock_id else None)

    def _begin_release(self) -> List[asyncio.Future[Any]]:
        release = self._let_go()
        return [] if release is None else [release]

    def _taken_away(self, method: str) -> None:
        if method == "downgrade":
            self._mode = SHARED
            return
        self._deadline = clock.NEVER
        self._client._keeper.lose(self, LostError("this client has let go of the lock by its "
                                                  "lock_id"))

    async def release(self, *, close: float = 0.0) -> bool:
        """Stops trusting the lock at once, and then releases it. False: it was not held any more.
        Once this has begun, no cancellation and no interrupt stops the release. close: for how many
        seconds nobody gets the key after that; nodes of release 0.2.0 refuse it."""
        release = self._let_go(to_ms(close, "close"))
        if release is None:
            return False
        (answer,) = await self._client._calls.outcomes([release])
        return bool(answer.result.get("released"))

    async def downgrade(self) -> None:
        """Makes an exclusive lock a shared one without letting go. From the moment of the call this
        object has the mode `shared`, whatever the outcome. You can safely repeat the call."""
        if self._mode not in (EXCLUSIVE, SHARED):
            raise ValueError("downgrade: only an exclusive lock can be made a shared one")
        self._mode = SHARED
        await self._client.call("downgrade", key=self._key, lock_id=self._lock_id)

    async def shorten(self, lease: float) -> None:
        """Makes the lease end within so many seconds from now, and from now on renews the lock for
        that long, if it is renewed. `valid` falls at once, before any node is asked, whatever the
        outcome. After an error the key may be closed to others until the earlier end. Nodes of
        release 0.2.0 refuse it."""
        lease_ms = to_ms(lease, "lease")
        self._check_shorten(lease_ms)
        await self._client._keeper.shorten([self], lease_ms)

    def _check_shorten(self, lease_ms: int) -> None:
        self.check()
        if not 0 < lease_ms * clock.MS <= self._lease:
            raise ValueError("shorten: the lease is %g seconds, and becomes no longer, nor 0" % (
                self._lease / clock.SECOND))
        if self._suspended or self._claiming:
            raise BusyError("the lock is just being %s: call shorten again later" % (
                "transferred" if self._suspended else "bound to another connection"))

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
        await self._end_transfer(self._begin_transfer(successor))

    def _begin_transfer(self, successor: bytes) -> Call:
        call = Call("transfer", {"key": self._key, "lock_id": self._lock_id, "to": successor})
        call.holder = self
        self._client._calls.start(call)
        self._suspended = True
        return call

    def _let_go_of(self, lock_id: str) -> Optional[asyncio.Future[Answer]]:
        """Lets go, unless that was done since and this object has acquired the key anew."""
        return self._let_go() if self._lock_id == lock_id else None

    async def _end_transfer(self, call: Call) -> None:
        lock_id: str = call.params["lock_id"]
        try:
            result = (await self._client._calls.wait(call)).result
        except (NotFoundError, DeniedError, BadRequestError) as error:
            if error.details.get("transferred") or error.details.get("released"):
                self._let_go_of(lock_id)
            elif self._lock_id == lock_id:
                self._suspended = False
                self._client._keeper.resume(self)
            raise
        except BaseException:
            self._let_go_of(lock_id)
            raise
        if self._lock_id == lock_id:
            self._forget()
        if not result.get("transferred", True):
            raise LostError()


async def _listen(listens: ReferenceType[Lock], ear: Watch) -> None:
    """Hears in the name of a lock who asks for it. This does not keep the lock."""
    with contextlib.suppress(PawlError):
        async with ear:
            async for event in ear:
                lock = listens()
                if (event.type == "asked" and lock is not None and lock._acquired
                        and lock._cause is None):
                    lock._asked(Asked(event.by, event.to, event.priority))
                del lock


def _drop(client: Holder, key: bytes, lock_id: str, lease: float,
          listener: Optional[asyncio.Task[None]]) -> None:
    """Releases a lock that the program has dropped while it was held."""
    if listener is not None:
        listener.cancel()
    client._calls.let_go(key, lock_id, lease)
    said = "a lock was dropped without a release, and is released now: %r" % key
    logging.getLogger("pawl").warning(said)
    # This may raise, as the program's filters say.
    client._loop.call_soon(warnings.warn, said, ResourceWarning)
