"""Watches, which tell what happens to a key, or to all keys with a prefix, as it happens."""

from __future__ import annotations

import asyncio
import collections
import random
from types import TracebackType
from typing import Any, AsyncIterator, Deque, Dict, Iterable, List, Optional, Type

from .._env.arguments import Bytes, to_bytes
from .._env.errors import (
    BadRequestError, ClosedError, DeniedError, FullError, MovedError, PawlError, ProtocolError,
    TlsError, TooLargeError, WaitTimeoutError,
)
from .._env.tasks import background
from .._request.call import Call
from .._request.calls import Calls
from .._request.result import Entry, entry_of
from .event import CURRENT, KNOWN_EVENTS, OVERFLOW, PRESENT, Event, event_of

# How many events may wait for the program. After that it is told of an overflow, and then of the
# present state.
EVENTS_MAX = 10000
PAUSE_FIRST, PAUSE_LAST = 0.05, 5.0
FOR_GOOD = (DeniedError, BadRequestError, TooLargeError, FullError, TlsError, ClosedError,
            MovedError)
LIST_LIMIT = 1000


class Watches:
    """All watches of one client, by the numbers that they have on the present connection."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self._all: Dict[Watch, None] = {}
        self._by_number: Dict[int, Watch] = {}
        # The watches for which the node had no room, each with what lets it ask again. The first
        # one asks from time to time, for all of them.
        self._crowded: Dict[Watch, asyncio.Event] = {}

    def add(self, watch: Watch) -> None:
        self._all[watch] = None

    def remove(self, watch: Watch) -> Optional[int]:
        """Removes the watch, and returns the number that the node can forget, if there is one."""
        self._all.pop(watch, None)
        self._placed(watch)
        number = watch._number
        if number is not None and self._by_number.get(number) is watch:
            del self._by_number[number]
            return number
        return None

    def bind(self, watch: Watch, number: int) -> None:
        watch._number = number
        self._by_number[number] = watch
        self._placed(watch)

    async def await_room(self, watch: Watch, pause: float) -> None:
        """Waits until the watch may ask again whether the node has room for it."""
        again = self._crowded.setdefault(watch, asyncio.Event())
        again.clear()
        timer = (asyncio.get_running_loop().call_later(pause, again.set)
                 if next(iter(self._crowded)) is watch else None)
        try:
            await again.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _placed(self, watch: Watch) -> None:
        """The watch needs no room any more. If it asked for others, too, the next one does now."""
        first = next(iter(self._crowded), None)
        if self._crowded.pop(watch, None) is not None and first is watch:
            for again in list(self._crowded.values())[:1]:
                again.set()

    def listening(self) -> bool:
        return bool(self._by_number)

    def broken(self) -> None:
        self._by_number.clear()
        for watch in list(self._all):
            watch._broken()
        for again in self._crowded.values():
            again.set()  # The next node may have room.

    def deliver(self, said: Dict[str, Any]) -> None:
        watch = self._by_number.get(said["watch"]) if isinstance(said.get("watch"), int) else None
        if watch is not None:
            watch._deliver(event_of(said))

    def close(self) -> None:
        for watch in list(self._all):
            watch._end(ClosedError())


class Watch:
    """An asynchronous iterator of events.

    A watch first tells the present state (`present` for each holder, then `current`), and then
    every change, in order for each key. It survives lost connections. If events may have been
    missed, it tells one `overflow`, and then the present state again: a program that keeps a table
    of what it was told, and empties the table at each overflow, is right in the end. (After an
    overflow, an acquisition that is part of the present state may be told once more as `acquired`,
    with the same token.) A watch tells when to look, never that it is safe to act; for that you
    need a lock and its token.

    The watch begins with the first `async for`, `get` or `async with`, and ends with `close()` or
    with the `async with` block.
    """

    def __init__(self, watches: Watches, key: Optional[Bytes] = None,
                 prefix: Optional[Bytes] = None, since: Optional[bytes] = None,
                 lasts: bool = False) -> None:
        if (key is None) == (prefix is None):
            raise ValueError("watch: give either a key or a prefix")
        self._watches, self._calls = watches, watches.calls
        self._key = None if key is None else to_bytes(key, "key")
        self._prefix = b"" if prefix is None else to_bytes(prefix, "prefix")
        self._position = to_bytes(since or b"", "since")
        self._number: Optional[int] = None
        self._queue: Deque[Event] = collections.deque()
        # The events that have come while the present state is being read; None at other times.
        self._held_back: Optional[List[Event]] = None
        self._error: Optional[PawlError] = None
        # If the node has no room for the watch, it waits for room, instead of ending.
        self._lasts = lasts
        # It waits for room, because the node has refused it with this error.
        self._full: Optional[FullError] = None
        self._task: Optional[asyncio.Task[None]] = None
        # The connection is gone, or events may have been missed.
        self._again = asyncio.Event()
        # Events may have been missed.
        self._missing = False
        # The present state must be told.
        self._fresh = not self._position
        # Those that wait in `get`.
        self._waiters: List[asyncio.Future[None]] = []
        # Somebody waits in `get`.
        self._asked = asyncio.Event()
        self._pause = PAUSE_FIRST
        # Every change until about now has been told.
        self.current = False

    # ---- the program's side ----

    def start(self) -> None:
        """Begins to watch, unless the watch has begun already."""
        if self._task is None and self._error is None:
            self._watches.add(self)
            self._task = background(self._main())

    async def get(self, timeout: Optional[float] = None) -> Event:
        """Returns the next event. WaitTimeoutError: none has come in time. If the watch has ended,
        this raises the reason."""
        self.start()
        end = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while not self._queue:
            if self._error is not None:
                raise self._error
            left = None if end is None else end - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                raise WaitTimeoutError("no event came in time")
            await self._arrival(left)
        return self._queue.popleft()

    async def _arrival(self, seconds: Optional[float]) -> None:
        """Waits until something arrives, or for at most this many seconds. (asyncio.wait_for may
        lose a cancellation that comes at the same moment.)"""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, waiter) if seconds is not None else None
        self._waiters.append(waiter)
        self._asked.set()
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)
            if timer is not None:
                timer.cancel()

    def _wake_all(self) -> None:
        for waiter in self._waiters:
            _wake(waiter)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        try:
            return await self.get()
        except ClosedError:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Watch:
        self.start()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the watch."""
        number = self._watches.remove(self)
        self._end(ClosedError("the watch is closed"))
        if number is not None:
            self._unwatch(number)

    def _unwatch(self, number: int) -> None:
        if not self._calls.closing:
            call = Call("unwatch", {"watch": number})
            call.internal = True
            call.future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._calls.start(call)

    def _end(self, error: PawlError) -> None:
        if self._error is None:
            self._error = error
        if self._task is not None and self._task is not _current_task():
            self._task.cancel()
        self._watches.remove(self)
        self.current = False
        self._wake_all()

    # ---- what comes from the node ----

    def _broken(self) -> None:
        self._number = None
        self.current = False
        self._again.set()

    def _deliver(self, event: Event) -> None:
        if event.position:
            self._position = event.position
        if event.type == OVERFLOW:
            self._overflow()
        elif event.type not in KNOWN_EVENTS:
            return
        elif self._missing:
            return
        elif self._held_back is not None:
            self._held_back.append(event)
            if len(self._held_back) > EVENTS_MAX:
                self._overflow()
        else:
            self._push(event)

    def _push(self, event: Event) -> None:
        if len(self._queue) >= EVENTS_MAX:
            self._queue.clear()
            self._overflow()
            return
        self._queue.append(event)
        self._wake_all()

    def _overflow(self) -> None:
        """Reads the whole state again; the events that came before are of no use."""
        self._missing = True
        self.current = False
        self._held_back = None
        self._again.set()

    # ---- the watch's own life ----

    async def _main(self) -> None:
        try:
            while True:
                try:
                    await self._round()
                except FOR_GOOD as error:
                    if not (self._lasts and isinstance(error, FullError)):
                        self._end(error)
                        return
                    self._full = error
                    await self._watches.await_room(self, self._next_pause())
                except PawlError:
                    await asyncio.sleep(self._next_pause())
        except asyncio.CancelledError:
            pass

    def _next_pause(self) -> float:
        pause = self._pause * random.uniform(0.5, 1.5)
        self._pause = min(2 * self._pause, PAUSE_LAST)
        return pause

    async def _round(self) -> None:
        """Watches until the connection is gone, or events may have been missed."""
        if self._missing:
            await self._hungry()
            self._missing = False
            self._fresh = True
            self._push(Event(OVERFLOW))
        self._again.clear()
        self._held_back = []
        said = await self._begin() if self._number is None else None
        if self._fresh:
            if not await self._present(said):
                return  # The connection is gone: begin again.
            self._fresh = False
        self._tell_held_back()
        self._pause = PAUSE_FIRST
        self.current = not self._again.is_set()
        await self._again.wait()

    async def _hungry(self) -> None:
        """Waits until the program has taken all events and asks for more."""
        while self._queue or not self._waiters:
            self._asked.clear()
            await self._asked.wait()

    async def _begin(self) -> Dict[str, Any]:
        params: Dict[str, Any] = ({"prefix": self._prefix}
                                  if self._key is None else {"key": self._key})
        if not self._fresh and self._position:
            params["from"] = self._position
        call = Call("watch", params)
        call.internal = True
        call.on_answer = self._bound_to
        # If the watch is closed meanwhile, the answer tells what the node can forget.
        asking = background(self._calls.run(call))
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())
        answer = await asyncio.shield(asking)
        return answer.result

    def _bound_to(self, said: Dict[str, Any]) -> None:
        number, position = said.get("watch"), said.get("position")
        if not isinstance(number, int):
            raise ProtocolError("the answer to a watch has no number")
        if self._error is not None:
            self._unwatch(number)
            return
        self._watches.bind(self, number)
        self._full = None
        if not self._missing:
            self._again.clear()  # Connections that were lost before do not matter any more.
        if self._fresh and isinstance(position, bytes):
            self._position = position

    async def _present(self, said: Optional[Dict[str, Any]]) -> bool:
        """Tells the present state. Events that come meanwhile are told after it. False: begin
        again."""
        if self._key is not None:
            if said is None:
                said = await self._ask("get", {"key": self._key})
            if self._again.is_set():
                return False
            entry = entry_of(said, self._key)
            await self._tell(entry.holders or ([entry] if entry.held else []))
        else:
            after: Optional[bytes] = b""
            while after is not None:
                page = await self._ask("list", {"prefix": self._prefix, "limit": LIST_LIMIT,
                                                **({"after": after} if after else {})})
                if self._again.is_set():
                    return False
                found = page.get("keys")
                entries = ([entry_of(item, held=True) for item in found if isinstance(item, dict)]
                           if isinstance(found, list) else [])
                for entry in entries:
                    if entry.holder_count > 1:
                        entry = entry_of(await self._ask("get", {"key": entry.key}), entry.key)
                    await self._tell(entry.holders or ([entry] if entry.held else []))
                if self._again.is_set():
                    return False
                after = entries[-1].key if entries and page.get("more") else None
        self._push(Event(CURRENT, position=self._position))
        return not self._again.is_set()

    async def _ask(self, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        call = Call(method, params)
        call.internal = True
        answer = await self._calls.run(call)
        return answer.result

    async def _tell(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if len(self._queue) >= EVENTS_MAX // 2:
                await self._hungry()
            self._push(Event(PRESENT, entry))

    def _tell_held_back(self) -> None:
        held_back, self._held_back = self._held_back or [], None
        for event in held_back:
            self._push(event)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _current_task() -> Optional[asyncio.Task[Any]]:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
