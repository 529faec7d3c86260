"""The blocks (`async with`) of programs: what may enter a block, and what stops its body."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Generator, Iterable, List, Optional, Sequence, Type, TypeVar

from .._env.errors import PawlError
from .holder import Holder
from .wanted import Wanted


class Turnstile:
    """Lets an object be used for one acquisition at a time. Two tasks or threads that shared one
    object would both believe that they are alone inside, so each needs an object of its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._acquiring = self._entered = False

    def begin(self, held: bool) -> None:
        if held or self._acquiring:
            raise RuntimeError("this %s is already in use: make another one for each task, thread "
                               "or acquisition" % self._what)
        self._acquiring = True

    def end(self) -> None:
        self._acquiring = False

    def enter(self) -> None:
        if self._entered or self._acquiring:
            raise RuntimeError("this %s is already in use: make another one for each task, thread "
                               "or acquisition" % self._what)
        self._entered = True

    def leave(self) -> None:
        self._entered = False


class BodyGuard:
    """Cancels the task that runs the body of an `async with` when the lock that it relies on is
    lost, and raises the cause at the end of the body."""

    def __init__(self) -> None:
        self._task: Optional[asyncio.Task[Any]] = None
        self._cause: Optional[PawlError] = None

    def enter(self) -> None:
        self._task, self._cause = asyncio.current_task(), None

    def stop(self, cause: PawlError) -> None:
        if self._task is not None and self._cause is None:
            self._cause = cause
            self._task.cancel()

    async def leave(self, kind: Optional[Type[BaseException]]) -> Optional[PawlError]:
        """Returns the error because of which the body was canceled, which the caller raises; None
        if the body ended for another reason."""
        task, cause, self._task = self._task, self._cause, None
        if cause is None or task is None:
            return None
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if not canceled:
            # The body ended before the cancellation arrived; await it here.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        uncancel = getattr(task, "uncancel", None)  # Python 3.11 and later have it.
        if uncancel is not None and uncancel() > 0:  # Somebody else has canceled the task, too.
            if not canceled:
                raise asyncio.CancelledError
            return None
        return cause if canceled or kind is None else None


H = TypeVar("H", bound="Holding")


class Holding:
    """A lock or a set of locks, which can be acquired and be the subject of an `async with`. The
    derived classes define `_has_it`, `_get`, `_causes` and `_begin_release`.

    Letting go has two parts. The first one, `_begin_release`, does not wait for anything, so
    nothing can come between the end of the trust and the beginning of the release. The second one
    only waits for the outcome, and whatever ends this wait does not end the release."""

    def __init__(self, client: Holder, what: str) -> None:
        self._client = client
        self._guard = BodyGuard()
        self._turnstile = Turnstile(what)
        self._wanted: Optional[Wanted] = None

    def _has_it(self) -> bool:
        raise NotImplementedError

    async def _get(self) -> None:
        """Acquires. Once it is granted, this waits for nothing more: a cancellation would leave
        it held."""
        raise NotImplementedError

    def _causes(self) -> Iterable[Optional[PawlError]]:
        """Returns for each lock why it is lost, or None."""
        raise NotImplementedError

    def _begin_release(self) -> List[asyncio.Future[Any]]:
        """Stops trusting and renewing what is held, and begins to release it. Returns what goes on
        then, whatever happens to the caller."""
        raise NotImplementedError

    async def acquire(self: H) -> H:
        """Acquires the lock, or all locks of the set, as the options say. HeldError or
        WaitTimeoutError: somebody else holds a key; for a set, `details["key"]` of the error is
        that key. RuntimeError: this object is in use already; each acquisition needs an object of
        its own."""
        self._turnstile.begin(self._has_it())
        try:
            await self._get()
        finally:
            self._turnstile.end()
        return self

    def __await__(self: H) -> Generator[Any, None, H]:
        return self.acquire().__await__()

    async def _enter(self) -> None:
        """Begins a block. The lock may be held already."""
        self._turnstile.enter()
        try:
            if not self._has_it():
                await self.acquire()
        except BaseException:
            self._turnstile.leave()
            raise

    def _begin_part(self) -> List[asyncio.Future[Any]]:
        """Ends a block: begins to release."""
        self._turnstile.leave()
        self._wanted = None
        return self._begin_release()

    async def _part(self, parting: Sequence[asyncio.Future[Any]]) -> None:
        """Waits until it is released. If that fails, the lease runs out by itself."""
        with contextlib.suppress(PawlError):
            await self._client._calls.outcomes(parting)

    # ---- for the blocking layer ----

    async def _acquire_while(self, wanted: Wanted) -> None:
        """Acquires for as long as it is wanted."""
        await self.acquire()
        self._want(wanted)

    async def _enter_while(self, wanted: Wanted) -> None:
        """Begins a block that lasts for as long as it is wanted."""
        await self._enter()
        self._want(wanted)

    def _want(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._client._keeper.hold_while(wanted, lambda: self._unwanted(wanted))

    def _unwanted(self, wanted: Wanted) -> List[asyncio.Future[Any]]:
        """Lets go, unless it was let go or acquired anew since."""
        return self._begin_part() if self._wanted is wanted else []

    async def _leave(self, wanted: Optional[Wanted] = None) -> None:
        """Ends a block. With `wanted`, ends only what was acquired for that."""
        await self._part(self._begin_part() if wanted is None else self._unwanted(wanted))

    async def __aenter__(self: H) -> H:
        await self._enter()
        self._guard.enter()
        for cause in self._causes():
            if cause is not None:
                self._guard.stop(cause)
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        # This comes before the first await, where a cancellation may arrive.
        parting = self._begin_part()
        cause = await self._guard.leave(kind)
        await self._part(parting)
        if cause is not None:
            raise cause
