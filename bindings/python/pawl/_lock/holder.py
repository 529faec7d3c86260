"""A client as its locks see it."""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any, Callable, MutableMapping, Optional, Tuple

from .._env.arguments import to_bytes
from .._request.call import Call
from .._request.calls import Calls
from .._request.requests import Requests
from .._watch.watch import Watches
from .leased import LeasedLock
from .renew import Keeper


class Holder(Requests):
    """label: the label of acquisitions that give none."""

    def __init__(self, calls: Calls, owner: bytes, label: str) -> None:
        super().__init__(calls, owner)
        self.label = label
        self._loop = asyncio.get_running_loop()
        self._watches = Watches(calls)
        self._keeper = Keeper(calls)
        # Names the client when nodes look for deadlocks.
        self._party = os.urandom(16)
        # The longest lease that the cluster allows, in milliseconds, if it has said so.
        self._lease_most: Optional[int] = None
        # The locks that this client holds, or has given up and not released yet.
        self._handles: MutableMapping[Tuple[bytes, str], LeasedLock] = weakref.WeakValueDictionary()

    def _take_away(self, call: Call) -> None:
        """A release or transfer by lock_id ends the trust in the lock object of that lock, before
        any node hears of it (docs/protocol.md, Release). A downgrade makes it a shared lock."""
        lock_id, key = call.params.get("lock_id"), call.params.get("key")
        if isinstance(lock_id, (bytes, bytearray)):
            lock_id = bytes(lock_id).hex()
        if not isinstance(lock_id, str) or not isinstance(key, (str, bytes, bytearray)):
            return  # The nodes refuse it.
        lock = self._handles.get((to_bytes(key), lock_id.lower()))
        if lock is not None and lock is not call.holder:
            lock._taken_away(call.method)

    def _callback(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a callback of the program from the loop: the loop reports what it raises, and
        nothing here is disturbed."""
        self._loop.call_soon(function, *arguments)
