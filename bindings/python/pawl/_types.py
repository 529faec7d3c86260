"""What the service tells, as objects. Durations are seconds; keys, owners and values are bytes."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

Bytes = Union[str, bytes]

EXCLUSIVE, SHARED, PERMITS = "exclusive", "shared", "permits"


def to_bytes(data: Bytes, what: str = "a name or value") -> bytes:
    """Text as UTF-8. Names that came from bytes which are not UTF-8 get their old bytes again."""
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    # Of a number bytes() makes so many NULs.
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("%s: str or bytes, not %s" % (what, type(data).__name__))
    return bytes(data)


def to_text(data: Bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def to_ms(seconds: float, what: str) -> int:
    if not isinstance(seconds, numbers.Number) or isinstance(seconds, (bool, complex)):
        raise TypeError("%s: seconds, not %s" % (what, type(seconds).__name__))
    if not 0 <= seconds <= 10**9:  # nor what is no number at all
        raise ValueError("%s: %r is no duration in seconds" % (what, seconds))
    return round(seconds * 1000)


def check_whole(number: int, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError("%s: a whole number, not %r" % (what, number))
    return number


def check_text(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError("%s: str, not %s" % (what, type(text).__name__))
    return text


def check_callback(function: Any, what: str) -> None:
    if function is not None and not callable(function):
        raise TypeError("%s: a function, not %s" % (what, type(function).__name__))


# ---- reading maps that nodes have sent ----
# What is not there, or is of another kind, has its default.



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
    """A key as reads and events show it, with its holder (the first of them, where there are
    several)."""

    key: bytes
    held: bool
    owner: bytes = b""
    value: bytes = b""
    value_seq: bytes = b""  # names the write of the value; opaque, for Lock.update(expect=...)
    token: int = 0
    remaining: float = 0.0  # of the lease as the node sees it; its holder stops earlier
    lock_id: str = ""  # empty unless this client may see it
    # After a recovery several may hold it: nobody gets it until one is left.
    contested: bool = False
    recovering: bool = False  # the node does not know enough yet
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0
    slots: Tuple[int, ...] = ()
    held_for: Optional[float] = None  # since it was acquired
    lock_delay: float = 0.0
    # The lease is over and its lock delay runs for so long: nobody holds the key, or gets it.
    closing: Optional[float] = None
    label: str = ""
    host: str = ""
    pid: int = 0
    identity: str = ""  # the name in the holder's certificate
    barred: bool = False  # an administrator has barred it from extending (explain)
    holder_count: int = 0
    holders: Tuple[Entry, ...] = ()  # all of them, where there are several and the node told
    node: str = ""  # who was asked
    role: str = ""
    age: Optional[float] = None  # how old the view may be; None: not said (a master)


def entry_of(said: Mapping[str, Any], key: bytes = b"", held: Optional[bool] = None) -> Entry:
    """held: for maps that do not say it, because it is plain from where they stand."""
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
    """Keys in order, and whether there are more after the last one."""

    entries: Tuple[Entry, ...]
    more: bool


@dataclasses.dataclass(frozen=True)
class Waiter:
    """One who waits for a key."""

    key: bytes
    owner: bytes
    since: float  # so long
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
    state: str  # voting, silent, recovering, ...
    home: bool = False  # it keeps the key's queue
    waiting: int = 0
    records: Tuple[Entry, ...] = ()
    # It has promised the key to somebody who is acquiring it.
    promise: Optional[Dict[str, Any]] = None
    kept: int = 0  # requests that it answers when the key is free there


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why a key is as it is: the holder, and what each master says."""

    entry: Entry
    masters: Tuple[Testimony, ...]
    details: Dict[str, Any]  # everything, as the node sent it


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
    """What became of a key.

    type: `present` (entry holds the key, and has done so for a while), `current` (that was the
    present state: nobody holds any other watched key), `acquired`, `updated`, `downgraded`,
    `released`, `expired`, `lost` (taken away), `asked` (somebody asks the holder to
    let go), `overflow` (changes may be missing: forget what you know, the present state follows).
    """

    type: str
    entry: Optional[Entry] = None  # not of `current` and `overflow`
    by: bytes = b""  # asked: who asks
    to: bytes = b""  # asked: in whose favour; may be empty
    priority: int = 0  # asked
    position: bytes = b""  # opaque: `since` of a later watch that goes on after this event

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
    """Somebody asks the holder to let go."""

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
    """One of several keys: exclusive, shared, or so many permits of a semaphore that has `of`."""

    key: Bytes
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0


def mode_params(mode: str, permits: int, of: int) -> Dict[str, Any]:
    """How an acquire names what it wants."""
    check_whole(permits, "permits")
    check_whole(of, "of")
    if permits or of:
        if mode == SHARED or not 1 <= permits <= of:
            raise ValueError("permits: 1 to `of` of a semaphore, without another mode")
        return {"permits": permits, "of": of}
    if mode not in (EXCLUSIVE, SHARED):
        raise ValueError("mode: %r is neither exclusive nor shared" % mode)
    return {"mode": SHARED} if mode == SHARED else {}
