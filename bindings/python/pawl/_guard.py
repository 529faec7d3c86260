"""The blocks of programs: who may enter one, and what stops its body."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Generator, Iterable, Optional, Type, TypeVar

from ._errors import PawlError


class Turnstile:
    """One object is one acquisition. Two tasks or threads that share one would both believe to be
    alone inside: each needs its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._acquiring = self._entered = False

    def begin(self, held: bool) -> None:
        if held or self._acquiring:
            raise RuntimeError("this %s is in use already: make another one for each task, thread "
                               "or acquisition" % self._what)
        self._acquiring = True

    def end(self) -> None:
        self._acquiring = False

    def enter(self) -> None:
        if self._entered or self._acquiring:
            raise RuntimeError("this %s is in use already: make another one for each task, thread "
                               "or acquisition" % self._what)
        self._entered = True

    def leave(self) -> None:
        self._entered = False


class BodyGuard:
    """Cancels the task that runs the body of an `async with` when what it relies on is lost, and
    makes an exception of that."""

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
        """The error that the body was ended for, to be raised; None where it ended for its own
        reasons."""
        task, cause, self._task = self._task, self._cause, None
        if cause is None or task is None:
            return None
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if not canceled:
            # The body was over before it came: it is still on its way.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        uncancel = getattr(task, "uncancel", None)  # from 3.11 on
        if uncancel is not None and uncancel() > 0:  # somebody else wants it canceled, too
            if not canceled:
                raise asyncio.CancelledError
            return None
        return cause if canceled or kind is None else None


H = TypeVar("H", bound="Holding")


class Holding:
    """What can be acquired, and be the subject of an `async with`: a lock or a set of them.
    `_has_it`, `_get`, `_causes` and `release` are theirs."""

    def __init__(self, what: str) -> None:
        self._guard = BodyGuard()
        self._turnstile = Turnstile(what)

    def _has_it(self) -> bool:
        raise NotImplementedError

    async def _get(self) -> None:
        raise NotImplementedError

    def _causes(self) -> Iterable[Optional[PawlError]]:
        """Of each part: why it is lost."""
        raise NotImplementedError

    async def _let_go(self) -> None:
        """What the end of a block does."""
        raise NotImplementedError

    async def acquire(self: H) -> H:
        """Acquires it, all of it, as the options say. HeldError or WaitTimeoutError: somebody else
        holds it; of a set, the error names the key that it is about in `details["key"]`.
        RuntimeError: this object has it already; each acquisition needs its own."""
        self._turnstile.begin(self._has_it())
        try:
            await self._get()
        finally:
            self._turnstile.end()
        return self

    def __await__(self: H) -> Generator[Any, None, H]:
        return self.acquire().__await__()

    async def _enter(self) -> None:
        """The beginning of a block, where it may be held already."""
        self._turnstile.enter()
        try:
            if not self._has_it():
                await self.acquire()
        except BaseException:
            self._turnstile.leave()
            raise

    async def _part(self) -> None:
        """The end of a block: what cannot be released now runs out by itself."""
        self._turnstile.leave()
        with contextlib.suppress(PawlError):
            await self._let_go()

    async def __aenter__(self: H) -> H:
        await self._enter()
        self._guard.enter()
        for cause in self._causes():
            if cause is not None:
                self._guard.stop(cause)
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        cause = await self._guard.leave(kind)
        await self._part()
        if cause is not None:
            raise cause
