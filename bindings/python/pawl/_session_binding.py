"""Locks that end with the connection (docs/protocol.md, Release on disconnect). The binding of each
is the number of the connection that ends
it: over a new one it is extended under that one's number before anything else. A connection that
was given up from this side stays open
until no lock depends on it any more: its node would release them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional

from ._errors import LostError
from ._link import Descriptor, Link

if TYPE_CHECKING:
    from ._keeper import Kept

KEPT_MAX = 64
# With so many none is given up because its node has no quorum: others have none either.
KEPT_FOR_ANOTHER = 8


class _Old(NamedTuple):
    """A connection that is only kept open."""

    number: int
    descriptor: Descriptor


class SessionBindings:
    def __init__(self, lose: Callable[[Kept, LostError], None]) -> None:
        self._lose = lose
        # Also those that are given up, as long as they are trusted.
        self._locks: Dict[Kept, None] = {}
        self._old: List[_Old] = []

    @property
    def keeping(self) -> bool:
        """Some connection waits for its last lock."""
        return bool(self._old)

    def begin(self, lock: Kept, number: int) -> None:
        """It was got over the present connection, which is the one of this number."""
        lock._first_connection = lock._binding = number
        self._locks[lock] = None

    def made(self, lock: Kept, number: int) -> bool:
        """An extension under that number was accepted. Returns whether the lock has moved there
        from an earlier connection: then only this answer counts."""
        moved = bool(lock._binding) and number > lock._binding
        if moved:
            lock._binding = number
            self.settle()
        return moved

    def _dependent(self, number: int) -> Optional[Kept]:
        """A lock that would, or could, end with that connection while somebody still trusts it: it
        is known to be bound to that one, or to an earlier one, and perhaps to this one since."""
        for lock in self._locks:
            if lock._first_connection <= number and lock._binding <= number and lock._left() > 0:
                return lock
        return None

    def _lose_dependents(self, number: int) -> None:
        """Who cannot bind to another connection stops trusting before this one is closed."""
        lock = self._dependent(number)
        while lock is not None:
            self._lose(lock, LostError("the connection that the lock ends with is gone"))
            lock = self._dependent(number)

    def depends(self, number: int) -> bool:
        return self._dependent(number) is not None

    def full(self, number: int) -> bool:
        """The present connection could not be kept open as well if it were given up for another
        node."""
        return len(self._old) >= KEPT_FOR_ANOTHER and self._dependent(number) is not None

    def connection_lost(self, link: Link) -> None:
        """It is about to be closed, or is. Where the node has closed it the locks live on."""
        if link.ended or self._dependent(link.number) is None:
            return
        if len(self._old) == KEPT_MAX:
            self._lose_dependents(self._old[0].number)
        descriptor = None if link.broken else link.leave_open()
        if descriptor is None:  # nothing is left that could be kept open
            self._lose_dependents(link.number)
        else:
            self._old.append(_Old(link.number, descriptor))
            self.settle()

    def settle(self) -> None:
        """Closes what no lock depends on any more."""
        for lock in [lock for lock in self._locks if lock._left() == 0 and not lock._suspended]:
            del self._locks[lock]
        for old in [old for old in self._old if self._dependent(old.number) is None]:
            self._old.remove(old)
            old.descriptor.close()

    def close(self) -> None:
        while self._old:
            self._old.pop().descriptor.close()
