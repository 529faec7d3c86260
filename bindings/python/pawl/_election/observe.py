"""Who leads an election, and every change of that."""

from __future__ import annotations

import asyncio
import dataclasses
from types import TracebackType
from typing import AsyncIterator, Dict, Optional, Type

from .._env.arguments import to_text
from .._env.errors import ClosedError
from .._request.result import Entry
from .._watch.event import CURRENT, ENDS, OVERFLOW, PRESENT
from .._watch.watch import Watch, Watches


@dataclasses.dataclass(frozen=True)
class Leader:
    """The leader of an election."""

    owner: str  # the name of the candidate
    value: bytes  # what it proclaims
    token: int
    label: str = ""
    host: str = ""
    pid: int = 0

    @property
    def name(self) -> str:
        """The name of `owner` in releases until 0.2.0."""
        return self.owner


def leader_of(entry: Optional[Entry]) -> Optional[Leader]:
    if entry is None or not entry.held:
        return None
    return Leader(to_text(entry.owner), entry.value, entry.token, entry.label, entry.host,
                  entry.pid)


class Leaders:
    """An asynchronous iterator of leaders: the present one (or None) first, and then every change
    in order, which may also be another value of the same leader."""

    def __init__(self, watches: Watches, name: bytes) -> None:
        self._watch = Watch(watches, key=name)
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
