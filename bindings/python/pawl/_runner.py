"""An event loop in a thread of its own, for those who have none."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Callable, Coroutine, TypeVar

from ._errors import ClosedError

T = TypeVar("T")


class Runner:
    """Locks are renewed in this thread whatever the others do."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._main, name="pawl", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _check(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("this would wait for itself: callbacks of pawl must not call what blocks")
        if os.getpid() != self._process:
            raise ClosedError("after a fork only the parent may go on with a client")
        if not self._thread.is_alive():
            raise ClosedError()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs it there and waits for what comes of it. An interrupt cancels it."""
        try:
            self._check()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def do(self, function: Callable[[], T]) -> T:
        """The same for a plain function."""

        async def work() -> T:
            return function()

        return self.run(work())

    def stop(self) -> None:
        if os.getpid() == self._process and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.current_thread() is not self._thread:
                self._thread.join()
