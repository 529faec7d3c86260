"""The objects that the service returns. Durations are in seconds; keys, owners and values are
bytes."""

from __future__ import annotations

import dataclasses
import numbers
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

Bytes = Union[str, bytes]

EXCLUSIVE, SHARED, PERMITS = "exclusive", "shared", "permits"


def to_bytes(data: Bytes, what: str = "a name or value") -> bytes:
    """Encodes text as UTF-8. A name that was decoded from bytes which are not UTF-8 gets those
    bytes again."""
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    # bytes(5) would make five zero bytes.
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("%s: expected str or bytes, not %s" % (what, type(data).__name__))
    return bytes(data)


def to_text(data: Bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def to_ms(seconds: float, what: str) -> int:
    if not isinstance(seconds, numbers.Number) or isinstance(seconds, (bool, complex)):
        raise TypeError("%s: expected seconds, not %s" % (what, type(seconds).__name__))
    if not 0 <= seconds <= 10**9:  # This also refuses NaN.
        raise ValueError("%s: %r is not a duration in seconds (from 0 to 10^9)" % (what, seconds))
    return round(seconds * 1000)


def check_whole(number: int, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError("%s: expected a whole number, not %r" % (what, number))
    return number


def check_text(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError("%s: expected str, not %s" % (what, type(text).__name__))
    return text


def valid_trace(text: str) -> bool:
    """Returns whether the text is a traceparent of W3C Trace Context."""
    found = re.fullmatch("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", text)
    return found is not None and found[1] != "ff" and found[2].strip("0") != "" \
        and found[3].strip("0") != ""


def check_trace(text: str) -> str:
    if not valid_trace(check_text(text, "trace")):
        raise ValueError("trace: expected a traceparent, such as "
                         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    return text


def check_callback(function: Any, what: str) -> None:
    if function is not None and not callable(function):
        raise TypeError("%s: expected a function, not %s" % (what, type(function).__name__))


# ---- reading maps that nodes have sent ----
# A field that is missing, or has another type, gets its default.


def _bytes(said: Mapping[str, Any], name: str) -> bytes:
    found = said.get(name)
    return to_bytes(found) if isinstance(found, (str, bytes)) else b""


def _text(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    return to_text(found) if isinstance(found, (str, bytes)) else ""


def _int(said: Mapping[str, Any], name: str) -> int:
    found = said.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _seconds(said: Mapping[str, Any], name: str) -> Optional[float]:
    return _int(said, name) / 1000 if isinstance(said.get(name), int) else None


def _maps(said: Mapping[str, Any], name: str) -> List[Dict[str, Any]]:
    found = said.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _slots(said: Mapping[str, Any]) -> Tuple[int, ...]:
    found = said.get("slots")
    return tuple(n for n in found if isinstance(n, int)) if isinstance(found, list) else ()


@dataclasses.dataclass(frozen=True)
class Entry:
    """A key as reads and events show it, with its holder; if there are several, with the first of
    them."""

    key: bytes
    held: bool
    owner: bytes = b""
    value: bytes = b""
    # Opaque bytes that name the write of the value, for Lock.update(expect=...).
    value_seq: bytes = b""
    token: int = 0
    # How much of the lease is left as the node sees it. The holder stops earlier.
    remaining: float = 0.0
    # Empty unless this client may see it.
    lock_id: str = ""
    # After a recovery several holders may exclude one another. Nobody gets the key until one of
    # them is left.
    contested: bool = False
    # The node does not know enough yet.
    recovering: bool = False
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0
    slots: Tuple[int, ...] = ()
    # How long ago the lock was acquired.
    held_for: Optional[float] = None
    lock_delay: float = 0.0
    # For how much longer the lock delay keeps the key closed, after the lease has run out. Nobody
    # holds the key then, and nobody gets it.
    closing: Optional[float] = None
    label: str = ""
    host: str = ""
    pid: int = 0
    # The name in the holder's certificate.
    identity: str = ""
    # An administrator has barred the holder from extending (explain).
    barred: bool = False
    holder_count: int = 0
    # All holders, if there are several and the node tells them.
    holders: Tuple[Entry, ...] = ()
    # The node that was asked.
    node: str = ""
    role: str = ""
    # How old the view may be. None: the node does not say, because it is a master.
    age: Optional[float] = None


def entry_of(said: Mapping[str, Any], key: bytes = b"", held: Optional[bool] = None) -> Entry:
    """Reads an entry. `held` is for maps that do not say it themselves, because it is clear from
    their place in the answer."""
    is_held = bool(said.get("held", False if held is None else held))
    holders = tuple(entry_of(item, key, True) for item in _maps(said, "holders"))
    closing = _seconds(said, "closing_ms")
    return Entry(
        key=_bytes(said, "key") or key,
        held=is_held and closing is None,
        owner=_bytes(said, "owner"),
        value=_bytes(said, "value"),
        value_seq=_bytes(said, "value_seq"),
        token=_int(said, "token"),
        remaining=_seconds(said, "remaining_ms") or 0.0,
        lock_id=_text(said, "lock_id"),
        contested=bool(said.get("contested", False)),
        recovering=bool(said.get("recovering", False)),
        mode=_text(said, "mode") or EXCLUSIVE,
        permits=_int(said, "permits"),
        of=_int(said, "of"),
        slots=_slots(said),
        held_for=_seconds(said, "held_ms"),
        lock_delay=_seconds(said, "lock_delay_ms") or 0.0,
        closing=closing,
        label=_text(said, "label"),
        host=_text(said, "host"),
        pid=_int(said, "pid"),
        identity=_text(said, "identity"),
        barred=bool(said.get("barred", False)),
        holder_count=len(holders) or _int(said, "holders") or int(is_held),
        holders=holders,
        node=_text(said, "node"),
        role=_text(said, "role"),
        age=_seconds(said, "age_ms"),
    )


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of keys in order, and whether there are more keys after the last one."""

    entries: Tuple[Entry, ...]
    more: bool


@dataclasses.dataclass(frozen=True)
class Waiter:
    """A client that waits for a key."""

    key: bytes
    owner: bytes
    # How long it has waited.
    since: float
    node: str = ""
    lock_id: str = ""
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0
    priority: int = 0
    label: str = ""
    host: str = ""
    pid: int = 0
    identity: str = ""


def waiter_of(said: Mapping[str, Any], key: bytes) -> Waiter:
    return Waiter(
        key=_bytes(said, "key") or key,
        owner=_bytes(said, "owner"),
        since=_seconds(said, "since_ms") or 0.0,
        node=_text(said, "node"),
        lock_id=_text(said, "lock_id"),
        mode=_text(said, "mode") or EXCLUSIVE,
        permits=_int(said, "permits"),
        of=_int(said, "of"),
        priority=_int(said, "priority"),
        label=_text(said, "label"),
        host=_text(said, "host"),
        pid=_int(said, "pid"),
        identity=_text(said, "identity"),
    )


@dataclasses.dataclass(frozen=True)
class Testimony:
    """What one master says about a key."""

    node: str
    # voting, silent, recovering, ...
    state: str
    # The master is the home of the key, so it has the key's queue.
    home: bool = False
    # How many waiters the queue has.
    waiting: int = 0
    records: Tuple[Entry, ...] = ()
    # The promise that the master has given to somebody who is acquiring the key.
    promise: Optional[Dict[str, Any]] = None
    # How many parked requests the master has for the key.
    kept: int = 0


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The explanation of the state of a key: its holder, and what each master says."""

    entry: Entry
    masters: Tuple[Testimony, ...]
    # The whole answer, as the node sent it.
    details: Dict[str, Any]


def explanation_of(said: Mapping[str, Any], key: bytes) -> Explanation:
    masters = []
    for one in _maps(said, "masters"):
        promise = one.get("promise")
        masters.append(
            Testimony(
                node=_text(one, "node"),
                state=_text(one, "state"),
                home=bool(one.get("home", False)),
                waiting=_int(one, "waiting"),
                records=tuple(entry_of(record, key, True) for record in _maps(one, "records")),
                promise=promise if isinstance(promise, dict) else None,
                kept=_int(one, "kept"),
            )
        )
    return Explanation(entry_of(said, key), tuple(masters), dict(said))


# ---- events ----

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
    kind = _text(said, "type")
    held = kind in (ACQUIRED, UPDATED, DOWNGRADED)
    entry = None if kind == OVERFLOW else entry_of(said, held=held)
    return Event(kind, entry, _bytes(said, "by"), _bytes(said, "to"), _int(said, "priority"),
                 _bytes(said, "position"))


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request to the holder to let go: who asks, in whose favour, and with which priority."""

    by: bytes
    to: bytes
    priority: int


@dataclasses.dataclass(frozen=True)
class Leader:
    """The leader of an election."""

    name: str
    value: bytes  # what it proclaims
    token: int
    label: str = ""
    host: str = ""
    pid: int = 0


def leader_of(entry: Optional[Entry]) -> Optional[Leader]:
    if entry is None or not entry.held:
        return None
    return Leader(to_text(entry.owner), entry.value, entry.token, entry.label, entry.host,
                  entry.pid)


@dataclasses.dataclass(frozen=True)
class Want:
    """One of several keys to acquire, in a mode, or with `permits` of the `of` permits of a
    semaphore."""

    key: Bytes
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0


def mode_params(mode: str, permits: int, of: int) -> Dict[str, Any]:
    """Returns the parameters of an acquire that name the mode."""
    check_whole(permits, "permits")
    check_whole(of, "of")
    if permits or of:
        if mode == SHARED or not 1 <= permits <= of:
            raise ValueError("permits: give 1 to `of` permits, and no other mode")
        return {"permits": permits, "of": of}
    if mode not in (EXCLUSIVE, SHARED):
        raise ValueError("mode: %r is neither exclusive nor shared" % mode)
    return {"mode": SHARED} if mode == SHARED else {}
