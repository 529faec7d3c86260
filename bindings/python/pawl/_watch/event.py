"""The events that a watch tells."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from .._request.result import Entry, bytes_in, entry_of, int_in, text_in

PRESENT, CURRENT, ACQUIRED, UPDATED, DOWNGRADED = ("present", "current", "acquired", "updated",
                                                   "downgraded")
RELEASED, EXPIRED, LOST, ASKED, OVERFLOW = "released", "expired", "lost", "asked", "overflow"
ENDS = (RELEASED, EXPIRED, LOST)
KNOWN_EVENTS = frozenset((ACQUIRED, UPDATED, DOWNGRADED, RELEASED, EXPIRED, LOST, ASKED, OVERFLOW))


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened to a key. The types are:

    present: `entry` holds the key, and has held it for a while.
    current: the present state has been told; nobody holds any other key of this watch.
    acquired, updated, downgraded: `entry` holds the key from now on, or has another value or mode.
    released, expired: `entry` held the key until now.
    lost: the lock was taken away from `entry`.
    asked: somebody asks the holder to let go.
    overflow: events may have been missed. Forget what you know; the present state follows.
    """

    type: str
    # None for `current` and `overflow`.
    entry: Optional[Entry] = None
    # For `asked`: the owner that asks, the owner in whose favour it asks (which may be empty), and
    # the priority of the one that asks.
    by: bytes = b""
    to: bytes = b""
    priority: int = 0
    # Opaque bytes: the `since` of a later watch that is to go on after this event.
    position: bytes = b""

    @property
    def key(self) -> bytes:
        return self.entry.key if self.entry else b""


def event_of(said: Mapping[str, Any]) -> Event:
    kind = text_in(said, "type")
    held = kind in (ACQUIRED, UPDATED, DOWNGRADED)
    entry = None if kind == OVERFLOW else entry_of(said, held=held)
    return Event(kind, entry, bytes_in(said, "by"), bytes_in(said, "to"), int_in(said, "priority"),
                 bytes_in(said, "position"))
