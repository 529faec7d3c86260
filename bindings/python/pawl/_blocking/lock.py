"""Held locks, for programs that block."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Tuple, Type, TypeVar, Union

from .. import aio
from .._env.arguments import Bytes, check_callback
from .._env.errors import PawlError
from .._lock.wanted import Wanted
from .block import Block
from .runner import Runner

_Target = Union[aio.Lock, aio.LockSet]
LostFn = Callable[[Any, PawlError], None]
B = TypeVar("B", bound="_Held")


class _Alive:
    """Lives for as long as a call does."""


class _Held(Block):
    """A lock or a set of locks: it can be acquired, trusted for a while, and released."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self._runner = runner
        # The program has released it within the block.
        self._let_go = False

    def _target(self) -> _Target:
        raise NotImplementedError

    @property
    def valid(self) -> float:
        """For how many seconds this may still be trusted; 0.0 for ever once the deadline has
        passed. This only reads two clocks. A write that must not happen without the lock must
        either end before this time is over, or carry the token to a resource that checks it."""
        return self._target().valid

    @property
    def held(self) -> bool:
        """Whether this may be trusted now."""
        return self._target().held

    def check(self) -> None:
        """If the lock is lost, raises the cause: LostError, NoQuorumError, ... Call this between
        the steps of what the lock protects."""
        self._target().check()

    def acquire(self: B) -> B:
        """Acquires as the options say. HeldError or WaitTimeoutError: somebody else holds the key.
        RuntimeError: this object is in use already; each acquisition and each thread needs an
        object of its own."""
        call = _Alive()
        wanted = Wanted(weakref.ref(call))
        try:
            self._let_go = False
            self._runner.run(self._target()._acquire_while, wanted)
            wanted.taken = True
            return self
        except BaseException as error:
            del call
            self._give_up(wanted, error)
            raise

    def _give_up(self, wanted: Wanted, error: BaseException) -> None:
        """Lets go of what an interrupt has left, perhaps just after it was acquired."""
        wanted.taken = False
        if not isinstance(error, Exception):
            self._leave(wanted)

    def _leave(self, wanted: Optional[Wanted] = None) -> None:
        with contextlib.suppress(PawlError):
            self._runner.finish(self._target()._leave, wanted)

    def __enter__(self: B) -> B:
        call = _Alive()
        block = self._begun()
        wanted = Wanted(block or weakref.ref(call))
        try:
            self._let_go = False
            self._runner.run(self._target()._enter_while, wanted)
            wanted.taken = block is None
            return self
        except BaseException as error:
            del call
            self._give_up(wanted, error)
            raise

    def _exit(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
              trace: Optional[TracebackType]) -> None:
        cause: Optional[PawlError] = None
        try:
            self.check()
        except PawlError as lost:
            cause = lost
        let_go = self._let_go or self._parts_let_go()
        self._leave()
        if cause is not None and kind is None and not let_go:
            raise cause

    def _parts_let_go(self) -> bool:
        return False


class Lock(_Held):
    """A lock: `with client.lock("key") as lock:`, or `lock = client.lock("key").acquire()` and
    later `lock.release()`. A background thread renews it whenever a third of its lease has passed.

    The body of a `with` cannot be stopped from outside: call `check()` between its steps, or look
    at `valid`. If the lock was lost while the body ran, the end of the `with` raises the cause.

    A lock that the program does not keep is released within about a second after Python has found
    that, with a ResourceWarning and a line in the log of `pawl`.
    """

    def __init__(self, runner: Runner, lock: aio.Lock, part_of: Optional[LockSet] = None) -> None:
        super().__init__(runner)
        # Whoever keeps one lock of a set keeps the set.
        self._lock, self._part_of = lock, part_of

    def _target(self) -> aio.Lock:
        return self._lock

    @property
    def key(self) -> bytes:
        return self._lock.key

    @property
    def lock_id(self) -> str:
        """The lock_id of this acquisition, in 32 hex digits."""
        return self._lock.lock_id

    @property
    def token(self) -> int:
        """The fencing token. It may grow while the lock is held, so read it each time."""
        return self._lock.token

    @property
    def mode(self) -> str:
        """The present mode: `exclusive`, `shared` or `permits`."""
        return self._lock.mode

    @property
    def slots(self) -> Tuple[int, ...]:
        """The permit numbers that this lock holds. They go from 0 to of - 1, and no two holders
        have the same one."""
        return self._lock.slots

    @property
    def asked_error(self) -> Optional[PawlError]:
        """Why `on_asked` is not called although others may ask; None: it is. FullError: the node
        has no room for more watches of this client (`watches_per_client` in its configuration,
        1,000 unless it says otherwise); the client asks again while the lock is held, so this may
        pass. Other errors are final. The lock is held nevertheless."""
        return self._lock.asked_error

    @property
    def error(self) -> Optional[PawlError]:
        """Why the lock is lost, or is about to be; None while it is renewed."""
        return self._lock.error

    def release(self, *, close: float = 0.0) -> bool:
        """Stops trusting the lock at once, and then releases it. False: it was not held any more.
        Once this has begun, no cancellation and no interrupt stops the release. close: for how many
        seconds nobody gets the key after that; nodes of release 0.2.0 refuse it."""
        self._let_go = True
        return self._runner.finish(lambda: self._lock.release(close=close))

    def extend(self, lease: Optional[float] = None) -> None:
        """Extends the lock now, although the client does that by itself: before a step that needs
        all of the lease. With `lease` (in seconds) it is renewed for that long from now on; what it
        has is never shortened. Raises the cause if the lock is lost. After any other error the lock
        is held as before."""
        self._runner.run(self._lock.extend, lease)

    def gate(self, margin: float = 0.0) -> int:
        """Returns the token for a write that is sent now. If the lock is lost, or may be trusted
        for less than `margin` seconds, which is what the write may take, this raises the cause or
        LostError, and the write must not be sent."""
        return self._lock.gate(margin)

    def update(self, value: Bytes, expect: Optional[Bytes] = None) -> bytes:
        """Writes the value and returns its value_seq. With `expect` it writes only if `expect` is
        the present value or its value_seq; otherwise it raises MismatchError. UnsureError: the
        write may still take effect."""
        return self._runner.run(self._lock.update, value, expect)

    def downgrade(self) -> None:
        """Makes an exclusive lock a shared one without letting go. From the moment of the call this
        object has the mode `shared`, whatever the outcome. You can safely repeat the call."""
        self._runner.run(self._lock.downgrade)

    def shorten(self, lease: float) -> None:
        """Makes the lease end within so many seconds from now, and from now on renews the lock for
        that long, if it is renewed. `valid` falls at once, before any node is asked, whatever the
        outcome. After an error the key may be closed to others until the earlier end. Nodes of
        release 0.2.0 refuse it."""
        self._runner.run(self._lock.shorten, lease)

    def transfer(self, to: Bytes) -> None:
        """Releases the lock in favour of the waiter whose owner is `to`, whoever waits ahead of it.
        NotFoundError: nobody of this name waits, nothing was released, and the lock is held as
        before. After any other error the lock is released without a successor."""
        self._runner.run(self._lock.transfer, to)
        self._let_go = True

    def wait_lost(self, timeout: Optional[float] = None) -> Optional[PawlError]:
        """Waits until the lock is lost, and returns the cause; returns None if the time is over
        first."""
        return self._runner.run(_within, self._lock, timeout)


async def _within(lock: aio.Lock, timeout: Optional[float]) -> Optional[PawlError]:
    try:
        return await asyncio.wait_for(lock.wait_lost(), timeout)
    except asyncio.TimeoutError:
        return None


L = TypeVar("L", bound=Lock)


class LockSet(_Held):
    """Several locks that are acquired together, all or none. `locks[key]` gives one of them, and
    iteration gives all of them in the order in which they were named."""

    def __init__(self, runner: Runner, locks: aio.LockSet) -> None:
        super().__init__(runner)
        self._locks = locks
        self._each = {lock.key: Lock(runner, lock, self) for lock in locks}

    def _target(self) -> aio.LockSet:
        return self._locks

    def _parts_let_go(self) -> bool:
        return any(lock._let_go for lock in self)

    def __getitem__(self, key: Bytes) -> Lock:
        return self._each[self._locks[key].key]

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._each.values())

    def __len__(self) -> int:
        return len(self._each)

    def shorten(self, lease: float) -> None:
        """Shortens all of them; see Lock.shorten. Raises the first error."""
        self._runner.run(self._locks.shorten, lease)

    def release(self) -> None:
        """Stops trusting all of them at once, and then releases them. Once this has begun, no
        cancellation and no interrupt stops the releases."""
        self._let_go = True
        self._runner.finish(self._locks.release)


R = TypeVar("R")


class Box:
    """Has a blocking lock for the callbacks of the asynchronous one, and does not keep it."""

    def __init__(self) -> None:
        self.lock: Callable[[], Optional[Lock]] = lambda: None

    def put(self, lock: L) -> L:
        self.lock = weakref.ref(lock)
        return lock

    def call(self, function: Optional[Callable[[Any, Any], object]],
             what: str) -> Optional[Callable[[Any, Any], None]]:
        """Returns a callback that gets the blocking lock instead of the asynchronous one. Once the
        program has dropped the lock, it is not called."""
        check_callback(function, what)
        if function is None:
            return None
        wanted = function

        def call(inner: Any, said: Any) -> None:
            lock = self.lock()
            if lock is not None:
                wanted(lock, said)

        return contain(call, what)


def contain(function: Optional[Callable[[Any, Any], R]],
            what: str) -> Optional[Callable[[Any, Any], R]]:
    """Returns a callback that cannot end the thread that renews the locks, as sys.exit() would. The
    loop reports what it raises instead."""
    check_callback(function, what)
    if function is None:
        return None
    wanted = function

    def call(subject: Any, said: Any) -> R:
        try:
            return wanted(subject, said)
        except Exception:
            raise
        except BaseException as error:
            raise RuntimeError("%s: %s in a callback does not end the program, because callbacks "
                               "run in a thread of their own: tell the main thread to end"
                               % (what, type(error).__name__)) from error

    return call
