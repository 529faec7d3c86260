"""Finds out where endpoints are: looks names up, and again, in the background, for each new
connection."""

from __future__ import annotations

import asyncio
from typing import Dict

from .._env.errors import PawlError, UnreachableError
from .._env.tasks import background
from . import look_up
from .endpoint import Endpoint
from .rounds import Rounds

# A name whose addresses are known is not looked up again so soon, in seconds.
LOOK_AGAIN = 1.0


class Locator:
    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self._loop = asyncio.get_running_loop()
        # The look-ups that are under way, and when the last ones began, by source.
        self._tasks: Dict[str, asyncio.Task[None]] = {}
        self._looked_at: Dict[str, float] = {}

    async def _look(self, endpoint: Endpoint) -> None:
        try:
            places = await look_up.look_up(endpoint)
        except PawlError as error:
            raise UnreachableError("%s: %s" % (endpoint.text, error.message)) from error
        finally:
            del self._tasks[endpoint.source]
        self._rounds.found(endpoint.source, places)

    def _start(self, source: Endpoint) -> asyncio.Task[None]:
        task = self._tasks.get(source.source)
        if task is None:
            self._looked_at[source.source] = self._loop.time()
            task = self._tasks[source.source] = background(self._look(source))
            # If nobody waits for it any more, its error is of no interest.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def locate(self, endpoint: Endpoint, limit: float) -> Endpoint:
        """Returns the endpoint with its address. UnreachableError: the name leads to none, or it
        could not be looked up within `limit` seconds. If the address is known this does not wait,
        and only begins to look the name up again."""
        source = self._rounds.source(endpoint)
        if source is None or not source.is_name:
            return endpoint
        last = self._looked_at.get(source.source)
        if endpoint.is_name or last is None or self._loop.time() - last >= LOOK_AGAIN:
            looking = self._start(source)
        if not endpoint.is_name:
            return endpoint
        try:
            await asyncio.wait_for(asyncio.shield(looking), limit)
        except asyncio.TimeoutError:
            raise UnreachableError("%s: looking up the name took too long"
                                   % endpoint.text) from None
        return self._rounds.located(endpoint)

    def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
