"""An election makes one of many candidates the leader, and everybody can see who it is. It is a
lock whose key is the election's name: the leader holds the lock, candidates wait for it in order,
the value is what the leader proclaims, and the token grows from leader to leader."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Optional, Type

from ._acquire import Options
from ._errors import BusyError, ClosedError, LostError, NotFoundError, PawlError, WaitTimeoutError
from ._lock import Lock, LostFn
from ._tasks import background
from ._types import (
    CURRENT,
    ENDS,
    OVERFLOW,
    PRESENT,
    Asked,
    Bytes,
    Entry,
    Leader,
    check_callback,
    leader_of,
    to_bytes,
    to_text,
)
from ._watch import Watch

if TYPE_CHECKING:
    from ._client import Client

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
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

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
        yields to one, that one is next."""
        successor, self._successor = self._successor, None
        if successor is not None and self.held:
            # The successor no longer waits, or a transfer is not possible at this moment.
            with contextlib.suppress(NotFoundError, BusyError):
                await self.transfer(successor)
        await self.release()

    async def _let_go(self) -> None:
        await self.resign()

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


class Leaders:
    """An asynchronous iterator of leaders: the present one (or None) first, and then every change
    in order, which may also be another value of the same leader."""

    def __init__(self, client: Client, name: bytes) -> None:
        self._watch = Watch(client, key=name)
        self._holders: Dict[int, Entry] = {}
        # The highest token seen. After a change to another node, that node may know less.
        self._newest = 0
        self.leader: Optional[Leader] = None
        self._told = False

    def start(self) -> None:
        """Begins to observe, unless it has begun already."""
        self._watch.start()

    async def change(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """Waits for the next change, and returns the leader from now on, or None if nobody leads.
        WaitTimeoutError: no change has come in time."""
        end = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while True:
            left = None if end is None else max(0.0, end - asyncio.get_running_loop().time())
            event = await self._watch.get(left)
            if event.type == OVERFLOW:
                self._holders.clear()
            elif event.entry is not None and event.type in ENDS:
                self._holders.pop(event.entry.token, None)
            elif event.entry is not None and event.entry.held:
                if event.entry.token >= self._newest:
                    self._newest = event.entry.token
                    self._holders = {event.entry.token: event.entry}
            elif event.type != CURRENT:
                continue
            if event.type in (OVERFLOW, PRESENT):
                continue  # The present state counts once all of it has been told.
            leader = leader_of(next(iter(self._holders.values()), None))
            if leader != self.leader or not self._told:
                self.leader, self._told = leader, True
                return leader

    def __aiter__(self) -> AsyncIterator[Optional[Leader]]:
        return self

    async def __anext__(self) -> Optional[Leader]:
        try:
            return await self.change()
        except ClosedError:
            raise StopAsyncIteration from None

    async def close(self) -> None:
        """Ends observing."""
        await self._watch.close()

    async def __aenter__(self) -> Leaders:
        self._watch.start()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()


class Election:
    """The part that one program has in an election; see Client.election."""

    def __init__(self, client: Client, name: Bytes, options: Options, takeover: bool,
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
        return Leaders(self._client, self.name)

    async def leader(self) -> Optional[Leader]:
        """Reads from a quorum of the masters who leads now; None: nobody."""
        return leader_of(await self._client.get(self.name, quorum=True))

    async def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how
        many watchers were told."""
        asked = self._options.priority if priority is None else priority
        return await self._client.ask_release(self.name, owner=self.candidate, to=to,
                                              priority=asked)
