"""An event loop in a thread of its own, for programs that have none."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from typing import Any, Callable, Coroutine, TypeVar

from ._errors import ClosedError

T = TypeVar("T")


class Runner:
    """Runs the event loop in a thread that renews the locks whatever other threads do."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        # Work is handed over under this lock, so that it comes before the loop is told to stop.
        self._guard = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._main, name="pawl", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(_cancel_all())  # This wakes those that still wait.
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _check(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("this would wait for itself: callbacks of pawl must not call "
                               "anything that blocks")
        if os.getpid() != self._process:
            raise ClosedError("after a fork only the parent may go on with a client")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine in that thread, and returns its result. An interrupt cancels it."""
        try:
            self._check()
            with self._guard:
                if self._stopped:
                    raise ClosedError()
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ClosedError() from None
        except BaseException:
            future.cancel()
            raise

    def do(self, function: Callable[[], T]) -> T:
        """Runs a plain function in that thread, and returns its result."""

        async def work() -> T:
            return function()

        return self.run(work())

    def stop(self) -> None:
        if os.getpid() != self._process:
            return
        with self._guard:
            if not self._stopped:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
