"""Watches, for programs that block."""

from __future__ import annotations

from types import TracebackType
from typing import Iterator, Optional, Type

from .. import aio
from .._env.errors import ClosedError
from .._watch.event import Event
from .runner import Runner


class Watch:
    """An iterator of events.

    A watch first tells the present state (`present` for each holder, then `current`), and then
    every change, in order for each key. It survives lost connections. If events may have been
    missed, it tells one `overflow`, and then the present state again: a program that keeps a table
    of what it was told, and empties the table at each overflow, is right in the end. A watch tells
    when to look, never that it is safe to act; for that you need a lock and its token. The watch
    ends with `close()` or with the `with` block.
    """

    def __init__(self, runner: Runner, watch: aio.Watch) -> None:
        self._runner, self._watch = runner, watch

    @property
    def current(self) -> bool:
        """Whether every change until about now has been told."""
        return self._watch.current

    def get(self, timeout: Optional[float] = None) -> Event:
        """Returns the next event. WaitTimeoutError: none has come in time."""
        return self._runner.run(self._watch.get, timeout)

    def close(self) -> None:
        """Ends the watch."""
        self._runner.run(self._watch.close)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            return self.get()
        except ClosedError:
            raise StopIteration from None

    def __enter__(self) -> Watch:
        self._runner.do(self._watch.start)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except ClosedError:
            pass
