"""An event loop in a thread of its own, for programs that have none."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from typing import Any, Callable, Coroutine, Generic, Optional, TypeVar

from .._env.errors import ClosedError
from .._env.tasks import background

T = TypeVar("T")


class _Job(Generic[T]):
    """A coroutine that is made and run in the loop's thread. Only that thread changes the job,
    because an interrupt may stop any other thread between any two steps."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work: Optional[Callable[[], Coroutine[Any, Any, T]]] = work
        self._task: Optional[asyncio.Task[T]] = None
        # Is released when the outcome is known.
        self._over = threading.Lock()
        self._over.acquire()

    def start(self) -> None:
        """Is called in the loop; a second time it does nothing."""
        work, self._work = self._work, None
        if work is not None:
            self._task = background(_made(work))
            self._task.add_done_callback(self._end)

    def stop(self) -> None:
        """Is called in the loop: nobody waits for the outcome any more."""
        self._work = None
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # Perhaps nobody looks at it.
        self._over.release()

    def wait(self) -> None:
        self._over.acquire()

    def result(self) -> T:
        assert self._task is not None
        if self._task.cancelled():
            raise ClosedError()
        return self._task.result()


class Runner:
    """Runs the event loop in a thread that renews the locks whatever other threads do."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        # Work is handed over under this lock, so that it comes before the loop is told to stop. A
        # signal handler may call this package while its thread has the lock.
        self._guard = threading.RLock()
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
        if self._stopped:
            raise ClosedError()

    def _post(self, step: Callable[[], None]) -> bool:
        with self._guard:
            if not self._stopped:
                self._loop.call_soon_threadsafe(step)
            return not self._stopped

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], /, *arguments: Any,
            **named: Any) -> T:
        """Runs the coroutine of that call in that thread, and returns its result. An interrupt
        cancels it."""
        job = _Job(lambda: work(*arguments, **named))
        return self._await(job, job.stop)

    def finish(self, work: Callable[..., Coroutine[Any, Any, T]], /, *arguments: Any) -> T:
        """Does the same, but an interrupt only ends the wait, and the coroutine runs all the
        same."""
        job = _Job(lambda: work(*arguments))
        return self._await(job, job.start)

    def _await(self, job: _Job[T], if_interrupted: Callable[[], None]) -> T:
        self._check()
        try:
            if not self._post(job.start):
                raise ClosedError()
            job.wait()
        except ClosedError:
            raise
        except BaseException:
            # It is unknown whether the first step has been handed over.
            self._post(if_interrupted)
            raise
        return job.result()

    def do(self, function: Callable[[], T]) -> T:
        """Runs a plain function in that thread, and returns its result."""

        async def work() -> T:
            return function()

        return self.run(work)

    def stop(self) -> None:
        """Ends the loop and the thread. If this was interrupted, it may be called again."""
        if os.getpid() != self._process:
            return
        with self._guard:
            self._stopped = True
            with contextlib.suppress(RuntimeError):  # The loop is closed already.
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _made(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await work()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
