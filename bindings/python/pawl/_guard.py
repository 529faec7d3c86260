"""What stops the body of an `async with`; and who may enter it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Optional, Type

from ._errors import PawlError


class Turnstile:
    """One object is one acquisition. Two tasks or threads that share one would both believe to be alone inside: each needs its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._acquiring = self._entered = False

    def begin(self, held: bool) -> None:
        if held or self._acquiring:
            raise RuntimeError("this %s is in use already: make another one for each task, thread or acquisition" % self._what)
        self._acquiring = True

    def end(self) -> None:
        self._acquiring = False

    def enter(self) -> None:
        if self._entered or self._acquiring:
            raise RuntimeError("this %s is in use already: make another one for each task, thread or acquisition" % self._what)
        self._entered = True

    def leave(self) -> None:
        self._entered = False


class BodyGuard:
    """Cancels the task that runs the body of an `async with` when what it relies on is lost, and makes an exception of that."""

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
        """The error that the body was ended for, to be raised; None where it ended for its own reasons."""
        task, cause, self._task = self._task, self._cause, None
        if cause is None or task is None:
            return None
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if not canceled:
            with contextlib.suppress(asyncio.CancelledError):  # the body was over before it came: it is still on its way
                await asyncio.sleep(0)
        uncancel = getattr(task, "uncancel", None)  # from 3.11 on
        if uncancel is not None and uncancel() > 0:  # somebody else wants it canceled, too
            if not canceled:
                raise asyncio.CancelledError
            return None
        return cause if canceled or kind is None else None
