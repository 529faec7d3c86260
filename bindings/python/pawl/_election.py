"""One leader among many candidates, and everybody knows who it is. An election is a lock whose key
is the election's name: the leader holds it, candidates wait for it in order, the proclamation is
its value, and the token grows from leader to leader."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Optional, Type

from ._acquire import Options
from ._errors import BusyError, ClosedError, LostError, NotFoundError, PawlError, WaitTimeoutError
from ._lock import Lock, LostFn
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
ASK_AGAIN = 5.0  # a leader that has just come, or did not hear


class YieldError(LostError):
    """Somebody asked this leader to let go, and it does as soon as the body is over."""

    code = "yield"
    default_message = "somebody else was asked for: the leadership is handed over"


class Leadership(Lock):
    """Being the leader, from `await election.campaign()` or `async with election.campaign() as
    leadership` on.

    In an `async with` the body is canceled when the leadership is lost (`warn` seconds before
    anybody else can lead, if that can be known), or when it yields to somebody who asked for it;
    only after the body is over is it handed on. Without it look at `leading` and `yielding`, and
    then call `resign()`.
    """

    def __init__(self, election: Election, options: Options, on_lost: Optional[LostFn]) -> None:
        super().__init__(election._client, election.name, options, on_lost)
        self._election = election
        self._successor: Optional[bytes] = None
        self._deciding: Optional[asyncio.Task[None]] = None

    @property
    def leading(self) -> bool:
        """It leads, and nobody has asked it to let go."""
        return self.held and self._cause is None and self._successor is None

    @property
    def yielding(self) -> bool:
        """It is to hand over: stop, then `resign()`, which hands over to the one that it was asked
        for."""
        return self._successor is not None

    async def _get(self) -> None:
        self._successor = None
        asking = (asyncio.get_running_loop().create_task(self._ask_to_yield())
                  if self._election.takeover else None)
        try:
            await super()._get()
        finally:
            if asking is not None:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    async def _ask_to_yield(self) -> None:
        """While it is a candidate it asks each leader, again and again: one with a lower priority
        yields."""
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
        """Another value: what observers see."""
        await self.update(value)

    async def resign(self) -> None:
        """Leads no more from the call on. The next candidate leads at once: the one that it yields
        to, if it does."""
        successor, self._successor = self._successor, None
        if successor is not None and self.held:
            # Nobody of that name waits any more; or not now.
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
            self._deciding = asyncio.get_running_loop().create_task(
                self._yield_to(asked.to or asked.by))

    async def _yield_to(self, successor: bytes) -> None:
        """If that one is no candidate nothing happens."""
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
    """Who leads, as an asynchronous iterator: the present leader (or None) first, then every change
    in order, also another value of the same leader."""

    def __init__(self, client: Client, name: bytes) -> None:
        self._watch = Watch(client, key=name)
        self._holders: Dict[int, Entry] = {}
        self._newest = 0  # token: another node may know less than the one before
        self.leader: Optional[Leader] = None
        self._told = False

    def start(self) -> None:
        """Begins to observe, if it has not begun."""
        self._watch.start()

    async def change(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """The next change: the leader from now on, or None for nobody. WaitTimeoutError when none
        has come in time."""
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
                continue  # the present state counts when it is whole
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
    """One program's part in an election; see Client.election."""

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
        """To be awaited, or for an `async with`: waits to be elected, for ever or so many seconds
        (WaitTimeoutError; with 0, HeldError). While it waits it also outlasts times without a
        majority or a node."""
        own = dataclasses.replace(self._options, wait=wait,
                                  value=self._options.value if value is None else value,
                                  patient=True)
        return Leadership(self, own, on_lost)

    def observe(self) -> Leaders:
        """Who leads: `async for leader in election.observe()`."""
        return Leaders(self._client, self.name)

    async def leader(self) -> Optional[Leader]:
        """Who leads now, by a quorum of the masters; None: nobody."""
        return leader_of(await self._client.get(self.name, quorum=True))

    async def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how
        many watchers were told."""
        asked = self._options.priority if priority is None else priority
        return await self._client.ask_release(self.name, owner=self.candidate, to=to,
                                              priority=asked)
