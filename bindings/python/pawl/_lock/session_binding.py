"""Locks that end with the connection (docs/protocol.md, Release on disconnect). The session binding
of a lock is the number of the connection that ends it. Over a new connection the lock is first of
all extended under the new number. A connection that this side has given up is retained until no
lock depends on it any more, because its node would release these locks when it is closed."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional
from weakref import ReferenceType, ref

from .._env.errors import LostError
from .._link.link import Descriptor, Link
from .leased import LeasedLock

# The largest number of connections that are retained.
RETAINED_MAX = 64
# Once this many connections are retained, none is given up any more only because its node does not
# reach a quorum: the other nodes do not reach one either.
RETAINED_BEFORE_STAYING = 8


class _Retained(NamedTuple):
    """A connection that was given up and is still open."""

    number: int
    descriptor: Descriptor


class SessionBindings:
    def __init__(self, lose: Callable[[LeasedLock, LostError], None]) -> None:
        self._lose = lose
        # A lock that is given up stays in here for as long as it is trusted. Nobody trusts a lock
        # that nobody keeps.
        self._locks: Dict[ReferenceType[LeasedLock], None] = {}
        self._retained: List[_Retained] = []

    @property
    def retaining(self) -> bool:
        """Whether some connection is retained."""
        return bool(self._retained)

    def begin(self, lock: LeasedLock, number: int) -> None:
        """Binds a lock to the present connection, over which it was acquired."""
        lock._first_connection = lock._binding = number
        self._locks[ref(lock)] = None

    def made(self, lock: LeasedLock, number: int) -> bool:
        """Notes that an extension under that number was accepted. Returns whether it has moved the
        lock there from an earlier connection; then only this answer counts."""
        moved = bool(lock._binding) and number > lock._binding
        if moved:
            lock._binding = number
            self.settle()
        return moved

    def _dependent(self, number: int) -> Optional[LeasedLock]:
        """Returns a lock that would, or could, end with that connection while somebody still trusts
        it: it is known to be bound to that connection, or to an earlier one and perhaps to that one
        since."""
        for kept in self._locks:
            lock = kept()
            if (lock is not None and lock._first_connection <= number and lock._binding <= number
                    and lock._left() > 0):
                return lock
        return None

    def _lose_dependents(self, number: int) -> None:
        """Gives up the locks that depend on a connection before that connection is closed."""
        lock = self._dependent(number)
        while lock is not None:
            self._lose(lock, LostError("the connection that the lock ends with is gone"))
            lock = self._dependent(number)

    def depends(self, number: int) -> bool:
        return self._dependent(number) is not None

    def full(self, number: int) -> bool:
        """Returns whether too many connections are retained to give up the present one, which has
        that number, for another node."""
        return (len(self._retained) >= RETAINED_BEFORE_STAYING
                and self._dependent(number) is not None)

    def connection_lost(self, link: Link) -> None:
        """Is called when the connection is about to be closed, or is closed. If the node has closed
        it, the locks live on."""
        if link.ended or self._dependent(link.number) is None:
            return
        if len(self._retained) == RETAINED_MAX:
            self._lose_dependents(self._retained[0].number)
        descriptor = None if link.broken else link.leave_open()
        if descriptor is None:  # No connection is left that could be retained.
            self._lose_dependents(link.number)
        else:
            self._retained.append(_Retained(link.number, descriptor))
            self.settle()

    def settle(self) -> None:
        """Closes the connections on which no lock depends any more."""
        for kept in list(self._locks):
            lock = kept()
            if lock is None or (lock._left() == 0 and not lock._suspended):
                del self._locks[kept]
        for one in [one for one in self._retained if self._dependent(one.number) is None]:
            self._retained.remove(one)
            one.descriptor.close()

    def close(self) -> None:
        while self._retained:
            self._retained.pop().descriptor.close()
