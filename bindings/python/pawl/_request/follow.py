"""Requests that another cluster serves: they are asked at the endpoints that a node has named, each
over a connection of its own that ends with the request (docs/client-protocol.md, Moved)."""

from __future__ import annotations

import asyncio
from typing import Callable, Dict, Iterator, List, Optional

from .._env.errors import MovedError, PawlError, UnreachableError
from .._env.tasks import background
from .._link.endpoint import Endpoint
from .._link.failover import Failover
from .._link.link import Link
from .call import Call

# Other methods are about one node, or about one connection.
FOLLOWED = frozenset(("acquire", "extend", "update", "release", "downgrade", "transfer",
                      "ask_release", "get", "list", "wait", "waiters", "explain", "break"))


class Followed:
    """send: sends a call over a connection.
    land: forgets that the call was sent. Returns whether it was still under way.
    lost: ends a call whose connection is gone, and that must not be repeated.
    end: ends a call with an error; the last one was the answer of a node if the flag says so."""

    def __init__(self, failover: Failover, send: Callable[[Link, Call], None],
                 land: Callable[[Call], bool], lost: Callable[[Call, PawlError], None],
                 end: Callable[[Call, PawlError, bool], None]) -> None:
        self._failover, self._send, self._land = failover, send, land
        self._lost, self._end = lost, end
        self._tasks: Dict[Call, asyncio.Task[None]] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def take(self, call: Call, link: Optional[Link], error: PawlError) -> bool:
        """Takes a call that was answered with `moved`, over this connection. False: it must not be
        followed, or was followed already."""
        if not isinstance(error, MovedError) or call.moved:
            return False
        bound = call.binds or any("bond" in lock for lock in call.locks())
        if call.method not in FOLLOWED or bound:
            return False
        named = self._failover.named(link, error.details.get("endpoints"))
        if not named:
            return False
        call.moved = True
        call.sends = 0  # No node has done anything.
        self._tasks[call] = background(self._follow(call, named))
        return True

    def drop(self, call: Call) -> None:
        task = self._tasks.pop(call, None)
        if task is not None:
            task.cancel()

    async def _follow(self, call: Call, named: List[Endpoint]) -> None:
        error: PawlError = UnreachableError()
        async for link in self._failover.aside(named):
            if isinstance(link, PawlError):
                error = link
                continue
            try:
                self._send(link, call)
                await asyncio.wait((link.down, call.future), return_when=asyncio.FIRST_COMPLETED)
            finally:
                link.close()
            if call.future.done():
                break
            error = self._failover.why_gone(link)
            if self._land(call) and not call.repeatable:
                del self._tasks[call]
                self._lost(call, error)
                return
        if self._tasks.pop(call, None) is not None:
            self._end(call, error, call.sends == 0)
