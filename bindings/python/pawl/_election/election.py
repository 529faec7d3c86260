"""An election makes one of many candidates the leader, and everybody can see who it is. It is a
lock whose key is the election's name: the leader holds the lock, candidates wait for it in order,
the value is what the leader proclaims, and the token grows from leader to leader."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from typing import Any, Callable, List, Optional

from .._env.arguments import Bytes, check_callback, to_bytes, to_text
from .._env.errors import (
    BadRequestError, BusyError, ClosedError, DeniedError, LostError, NotFoundError, PawlError,
    WaitTimeoutError,
)
from .._env.tasks import background
from .._lock.holder import Holder
from .._lock.lock import Asked, Lock, LostFn
from .._lock.options import Options
from .._request.call import Call
from .observe import Leader, Leaders, leader_of

ElectionAskedFn = Callable[[Any, Asked], Optional[bool]]
# After how many seconds a candidate asks again: the leader may be new, or may not have heard.
ASK_AGAIN = 5.0


class YieldError(LostError):
    """Somebody asked this leader to let go, and it does so as soon as the body is over."""

    code = "yield"
    default_message = "this leader was asked to let go, and hands the leadership over"


class Leadership(Lock):
    """The lock of a leader: `leadership = await election.campaign()`, or `async with
    election.campaign() as leadership`.

    In an `async with` the body is canceled when the leadership is lost (`warn` seconds before
    anybody else can lead, if that can be known), or when it yields to somebody who asked for it.
    The leadership is handed over only after the body has ended. Without an `async with`, check
    `leading` and `yielding`, and call `resign()` at the end.
    """

    def __init__(self, election: Election, options: Options, on_lost: Optional[LostFn]) -> None:
        super().__init__(election._client, election.name, options, on_lost)
        self._election = election
        self._successor: Optional[bytes] = None
        self._deciding: Optional[asyncio.Task[None]] = None

    @property
    def leading(self) -> bool:
        """Whether this leads, and nobody has asked it to let go."""
        return self.held and self._cause is None and self._successor is None

    @property
    def yielding(self) -> bool:
        """Whether this leader is to hand over. Stop, and then call `resign()`, which hands over to
        the successor that was asked for."""
        return self._successor is not None

    async def _get(self) -> None:
        self._successor = None
        asking = (background(self._ask_to_yield())
                  if self._election.takeover else None)
        try:
            await super()._get()
        finally:
            if asking is not None:
                asking.cancel()  # Nothing is awaited here, once the lock is held.

    async def _ask_to_yield(self) -> None:
        """While this is a candidate, asks each leader again and again to let go; a leader with a
        lower priority yields."""
        async with self._election.observe() as leaders:
            while True:
                try:
                    leader = await leaders.change(ASK_AGAIN)
                except WaitTimeoutError:
                    leader = leaders.leader
                if leader is not None:
                    with contextlib.suppress(PawlError):
                        await self._client.ask_release(self._key, owner=self._election.candidate,
                                                       priority=self._options.priority)

    async def proclaim(self, value: Bytes) -> None:
        """Proclaims another value, which observers see."""
        await self.update(value)

    async def resign(self) -> None:
        """Stops leading at the moment of the call. The next candidate leads at once; if this leader
        yields to one, that one is next. Once this has begun, no cancellation and no interrupt stops
        it."""
        await self._client._calls.outcomes(self._begin_release())

    def _begin_release(self) -> List[asyncio.Future[Any]]:
        successor, self._successor = self._successor, None
        if successor is not None and self.held and not self._claiming:
            with contextlib.suppress(BusyError, ClosedError):
                handing = background(self._hand_over(self._begin_transfer(successor)))
                self._client._calls.go_on(handing)
                return [handing]
        return super()._begin_release()

    async def _hand_over(self, transfer: Call) -> None:
        """Releases the lock if the transfer has not done so: the successor does not wait any more,
        or a transfer is not possible."""
        try:
            with contextlib.suppress(NotFoundError, BusyError, DeniedError, BadRequestError):
                await self._end_transfer(transfer)
        finally:
            release = self._let_go_of(transfer.params["lock_id"])
        if release is not None:
            await release

    def _listens(self) -> bool:
        return True

    def _asked(self, asked: Asked) -> None:
        self._client._callback(self._decide, asked)

    def _decide(self, asked: Asked) -> None:
        said = self._election.on_asked(self, asked) if self._election.on_asked is not None else None
        if said is None:
            said = bool(asked.to) or asked.priority > self._options.priority
        if said and self._deciding is None:
            self._deciding = background(self._yield_to(asked.to or asked.by))

    async def _yield_to(self, successor: bytes) -> None:
        """Yields to that candidate. If the successor is not a candidate, nothing happens."""
        try:
            waiters = await self._client.waiters(self._key)
        except PawlError:
            return
        finally:
            self._deciding = None
        if any(waiter.owner == successor for waiter in waiters) and self.leading:
            self._successor = successor
            self._guard.stop(YieldError())

    def _stop_listening(self) -> None:
        super()._stop_listening()
        if self._deciding is not None:
            self._deciding.cancel()
            self._deciding = None


class Election:
    """The part that one program has in an election; see Client.election."""

    def __init__(self, client: Holder, name: Bytes, options: Options, takeover: bool,
                 on_asked: Optional[ElectionAskedFn]) -> None:
        self._client, self._options = client, options
        self.name = to_bytes(name, "name")
        check_callback(on_asked, "on_asked")
        self.takeover, self.on_asked = takeover, on_asked

    @property
    def candidate(self) -> str:
        """This candidate's name."""
        return to_text(self._client.owner if self._options.owner is None else self._options.owner)

    def campaign(self, wait: Optional[float] = None, *, value: Optional[Bytes] = None,
                 on_lost: Optional[LostFn] = None) -> Leadership:
        """Returns a leadership to be awaited, or for an `async with`. It waits to be elected, for
        `wait` seconds or for ever, also while there is no quorum and no node can be reached. If the
        time is over it raises WaitTimeoutError, or HeldError if `wait` is 0."""
        own = dataclasses.replace(self._options, wait=wait,
                                  value=self._options.value if value is None else value,
                                  patient=True,
                                  # A client that leads one election and is a candidate of
                                  # another one waits for nobody.
                                  party=os.urandom(16))
        return Leadership(self, own, on_lost)

    def observe(self) -> Leaders:
        """Returns an iterator of leaders: `async for leader in election.observe()`."""
        return Leaders(self._client._watches, self.name)

    async def leader(self) -> Optional[Leader]:
        """Reads from a quorum of the masters who leads now; None: nobody."""
        return leader_of(await self._client.get(self.name, quorum=True))

    async def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how
        many watchers were told."""
        asked = self._options.priority if priority is None else priority
        return await self._client.ask_release(self.name, owner=self.candidate, to=to,
                                              priority=asked)
