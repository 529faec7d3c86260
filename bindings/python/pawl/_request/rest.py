"""Requests rest here until they are sent again: those that a node has refused for a quota, and
those that may wait and that every node has refused."""

from __future__ import annotations

import asyncio
import random
from typing import Callable, Dict, Iterator

from .._env.errors import PawlError, QuotaError
from .call import Call


class Resting:
    def __init__(self, loop: asyncio.AbstractEventLoop, come_back: Callable[[Call], None]) -> None:
        self._loop, self._come_back = loop, come_back
        self._timers: Dict[Call, asyncio.TimerHandle] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._timers)

    def __len__(self) -> int:
        return len(self._timers)

    def take(self, call: Call, error: PawlError) -> bool:
        """Takes a call that was refused for a quota, and sends it again after the time that the
        node names and up to half of it more, so that calls that were refused together do not come
        back together. False: the node names no time, or it is too long for the call."""
        retry_ms = error.details.get("retry_after_ms")
        if not isinstance(error, QuotaError) or not isinstance(retry_ms, int) or call.timer is None:
            return False
        pause = retry_ms / 1000 * random.uniform(1, 1.5)
        if self._loop.time() + pause >= call.timer.when():
            return False
        call.sends -= 1  # The node did nothing.
        self.rest(call, pause)
        return True

    def rest(self, call: Call, pause: float) -> None:
        self._timers[call] = self._loop.call_later(pause, self._wake, call)

    def _wake(self, call: Call) -> None:
        del self._timers[call]
        self._come_back(call)

    def drop(self, call: Call) -> None:
        timer = self._timers.pop(call, None)
        if timer is not None:
            timer.cancel()
