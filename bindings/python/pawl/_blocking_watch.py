"""Watches and elections, for programs that block."""

from __future__ import annotations

from types import TracebackType
from typing import Iterator, List, Optional, Type

from . import _election, _watch
from ._blocking_lock import Lock, LostFn, for_box
from ._errors import ClosedError
from ._runner import Runner
from ._types import Bytes, Event, Leader


class Watch:
    """An iterator of events.

    First the present state is told (`present` for each holder, then `current`), then every change,
    in order for each key. It lasts over lost connections. Where changes may be missing comes one
    `overflow`, and then the present state again: a program that keeps a table of what it was told,
    and empties it at each overflow, is right in the end. A watch tells when to look, never that it
    is safe
    to act: that is what a lock and its token are for. Ends with `close()` or the `with`.
    """

    def __init__(self, runner: Runner, watch: _watch.Watch) -> None:
        self._runner, self._watch = runner, watch

    @property
    def current(self) -> bool:
        """Every change until about now has been told."""
        return self._watch.current

    def get(self, timeout: Optional[float] = None) -> Event:
        """The next event. WaitTimeoutError when none has come in time."""
        return self._runner.run(self._watch.get(timeout))

    def close(self) -> None:
        """Ends the watch."""
        self._runner.run(self._watch.close())

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


class Leadership(Lock):
    """Being the leader: `with election.campaign() as leadership:`, or `election.campaign()` and
    later `resign()`.

    Act only while `leading`: it is false from `warn` seconds before anybody else can lead, and when
    somebody has asked this leader to let go; then stop, and leave the `with` (or `resign()`), which
    hands over.
    """

    _lock: _election.Leadership

    @property
    def leading(self) -> bool:
        """It leads, and nobody has asked it to let go."""
        return self._lock.leading

    @property
    def yielding(self) -> bool:
        """It is to hand over: stop, then `resign()`, which hands over to the one that it was asked
        for."""
        return self._lock.yielding

    def proclaim(self, value: Bytes) -> None:
        """Another value: what observers see."""
        self._runner.run(self._lock.proclaim(value))

    def resign(self) -> None:
        """Leads no more from the call on. The next candidate leads at once: the one that it yields
        to, if it does."""
        self._let_go = True
        self._runner.run(self._lock.resign())


class Leaders:
    """Who leads, as an iterator: the present leader (or None) first, then every change in order,
    also another value of the same one."""

    def __init__(self, runner: Runner, leaders: _election.Leaders) -> None:
        self._runner, self._leaders = runner, leaders

    @property
    def leader(self) -> Optional[Leader]:
        """The one that was told last."""
        return self._leaders.leader

    def change(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """The next change: the leader from now on, or None for nobody. WaitTimeoutError when none
        has come in time."""
        return self._runner.run(self._leaders.change(timeout))

    def close(self) -> None:
        """Ends observing."""
        self._runner.run(self._leaders.close())

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
    """One program's part in an election; see Client.election."""

    def __init__(self, runner: Runner, election: _election.Election) -> None:
        self._runner, self._election = runner, election

    @property
    def candidate(self) -> str:
        """This candidate's name."""
        return self._election.candidate

    def campaign(self, wait: Optional[float] = None, *, value: Optional[Bytes] = None,
                 on_lost: Optional[LostFn] = None) -> Leadership:
        """Waits to be elected, for ever or so many seconds (WaitTimeoutError; with 0,
        HeldError)."""
        box: List[Leadership] = []
        lost = for_box(box, on_lost, "on_lost")
        inner = self._runner.do(lambda: self._election.campaign(wait, value=value, on_lost=lost))
        box.append(Leadership(self._runner, inner))
        return box[0].acquire()

    def observe(self) -> Leaders:
        """Who leads: `for leader in election.observe()`."""
        return Leaders(self._runner, self._runner.do(self._election.observe))

    def leader(self) -> Optional[Leader]:
        """Who leads now, by a quorum of the masters; None: nobody."""
        return self._runner.run(self._election.leader())

    def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how
        many watchers were told."""
        return self._runner.run(self._election.ask(to=to, priority=priority))
