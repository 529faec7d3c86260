"""Elections, for programs that block."""

from __future__ import annotations

from types import TracebackType
from typing import Iterator, Optional, Type

from .. import aio
from .._election.observe import Leader
from .._env.arguments import Bytes
from .._env.errors import ClosedError
from .lock import Box, Lock, LostFn
from .runner import Runner


class Leadership(Lock):
    """The lock of a leader: `with election.campaign() as leadership:`, or `leadership =
    election.campaign()` and later `leadership.resign()`.

    Act only while `leading` is true. It becomes false `warn` seconds before anybody else can lead,
    and when somebody has asked this leader to let go. Then stop, and leave the `with` block (or
    call `resign()`), which hands the leadership over.
    """

    _lock: aio.Leadership

    @property
    def leading(self) -> bool:
        """Whether this leads, and nobody has asked it to let go."""
        return self._lock.leading

    @property
    def yielding(self) -> bool:
        """Whether this leader is to hand over. Stop, and then call `resign()`, which hands over to
        the successor that was asked for."""
        return self._lock.yielding

    def proclaim(self, value: Bytes) -> None:
        """Proclaims another value, which observers see."""
        self._runner.run(self._lock.proclaim, value)

    def resign(self) -> None:
        """Stops leading at the moment of the call. The next candidate leads at once; if this leader
        yields to one, that one is next. Once this has begun, no cancellation and no interrupt stops
        it."""
        self._let_go = True
        self._runner.finish(self._lock.resign)


class Leaders:
    """An iterator of leaders: the present one (or None) first, and then every change in order,
    which may also be another value of the same leader."""

    def __init__(self, runner: Runner, leaders: aio.Leaders) -> None:
        self._runner, self._leaders = runner, leaders

    @property
    def leader(self) -> Optional[Leader]:
        """The leader that was told last."""
        return self._leaders.leader

    def change(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """Waits for the next change, and returns the leader from now on, or None if nobody leads.
        WaitTimeoutError: no change has come in time."""
        return self._runner.run(self._leaders.change, timeout)

    def close(self) -> None:
        """Ends observing."""
        self._runner.run(self._leaders.close)

    def __iter__(self) -> Iterator[Optional[Leader]]:
        return self

    def __next__(self) -> Optional[Leader]:
        try:
            return self.change()
        except ClosedError:
            raise StopIteration from None

    def __enter__(self) -> Leaders:
        self._runner.do(self._leaders.start)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except ClosedError:
            pass


class Election:
    """The part that one program has in an election; see Client.election."""

    def __init__(self, runner: Runner, election: aio.Election) -> None:
        self._runner, self._election = runner, election

    @property
    def candidate(self) -> str:
        """This candidate's name."""
        return self._election.candidate

    def campaign(self, wait: Optional[float] = None, *, value: Optional[Bytes] = None,
                 on_lost: Optional[LostFn] = None) -> Leadership:
        """Waits to be elected: for `wait` seconds, or for ever. If the time is over it raises
        WaitTimeoutError, or HeldError if `wait` is 0."""
        box = Box()
        lost = box.call(on_lost, "on_lost")
        inner = self._runner.do(lambda: self._election.campaign(wait, value=value, on_lost=lost))
        return box.put(Leadership(self._runner, inner)).acquire()

    def observe(self) -> Leaders:
        """Returns an iterator of leaders: `for leader in election.observe()`."""
        return Leaders(self._runner, self._runner.do(self._election.observe))

    def leader(self) -> Optional[Leader]:
        """Reads from a quorum of the masters who leads now; None: nobody."""
        return self._runner.run(self._election.leader)

    def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how
        many watchers were told."""
        return self._runner.run(self._election.ask, to=to, priority=priority)
