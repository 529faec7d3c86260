"""The objects that the service returns. Durations are in seconds; keys, owners and values are
bytes."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._env.arguments import EXCLUSIVE, to_bytes, to_text

# ---- reading maps that nodes have sent ----
# A field that is missing, or has another type, gets its default.


def bytes_in(said: Mapping[str, Any], name: str) -> bytes:
    found = said.get(name)
    return to_bytes(found) if isinstance(found, (str, bytes)) else b""


def text_in(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    return to_text(found) if isinstance(found, (str, bytes)) else ""


def int_in(said: Mapping[str, Any], name: str) -> int:
    found = said.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def seconds_in(said: Mapping[str, Any], name: str) -> Optional[float]:
    return int_in(said, name) / 1000 if isinstance(said.get(name), int) else None


def maps_in(said: Mapping[str, Any], name: str) -> List[Dict[str, Any]]:
    found = said.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def slots_in(said: Mapping[str, Any]) -> Tuple[int, ...]:
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
    # How much of the lease is left as the node sees it: until the latest end that it knows of. So
    # it is no time that a holder may count on.
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
    # How old the view may be, at most. None: the node does not say, because it is a master.
    age: Optional[float] = None
    # A read of a quorum: for at least so long, from the sending of the request on, nobody else is
    # granted the key, unless the lock is released, shortened or broken; and for at most so long,
    # from the answer on, the lease runs, unless it is extended. None: the node does not say.
    valid_at_least: Optional[float] = None
    held_at_most: Optional[float] = None


def entry_of(said: Mapping[str, Any], key: bytes = b"", held: Optional[bool] = None) -> Entry:
    """Reads an entry. `held` is for maps that do not say it themselves, because it is clear from
    their place in the answer."""
    is_held = bool(said.get("held", False if held is None else held))
    holders = tuple(entry_of(item, key, True) for item in maps_in(said, "holders"))
    closing = seconds_in(said, "closing_ms")
    return Entry(
        key=bytes_in(said, "key") or key,
        held=is_held and closing is None,
        owner=bytes_in(said, "owner"),
        value=bytes_in(said, "value"),
        value_seq=bytes_in(said, "value_seq"),
        token=int_in(said, "token"),
        remaining=seconds_in(said, "remaining_ms") or 0.0,
        lock_id=text_in(said, "lock_id"),
        contested=bool(said.get("contested", False)),
        recovering=bool(said.get("recovering", False)),
        mode=text_in(said, "mode") or EXCLUSIVE,
        permits=int_in(said, "permits"),
        of=int_in(said, "of"),
        slots=slots_in(said),
        held_for=seconds_in(said, "held_ms"),
        lock_delay=seconds_in(said, "lock_delay_ms") or 0.0,
        closing=closing,
        label=text_in(said, "label"),
        host=text_in(said, "host"),
        pid=int_in(said, "pid"),
        identity=text_in(said, "identity"),
        barred=bool(said.get("barred", False)),
        holder_count=len(holders) or int_in(said, "holders") or int(is_held),
        holders=holders,
        node=text_in(said, "node"),
        role=text_in(said, "role"),
        age=seconds_in(said, "age_ms"),
        valid_at_least=seconds_in(said, "valid_at_least_ms"),
        held_at_most=seconds_in(said, "held_at_most_ms"),
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
        key=bytes_in(said, "key") or key,
        owner=bytes_in(said, "owner"),
        since=seconds_in(said, "since_ms") or 0.0,
        node=text_in(said, "node"),
        lock_id=text_in(said, "lock_id"),
        mode=text_in(said, "mode") or EXCLUSIVE,
        permits=int_in(said, "permits"),
        of=int_in(said, "of"),
        priority=int_in(said, "priority"),
        label=text_in(said, "label"),
        host=text_in(said, "host"),
        pid=int_in(said, "pid"),
        identity=text_in(said, "identity"),
    )


@dataclasses.dataclass(frozen=True)
class Report:
    """What one master reports of a key."""

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
    parked: int = 0

    @property
    def kept(self) -> int:
        """The name of `parked` in 0.2.0, and in the client protocol."""
        return self.parked


# The name of Report in 0.2.0.
Testimony = Report


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The explanation of the state of a key: its holder, and the reports of the masters."""

    entry: Entry
    masters: Tuple[Report, ...]
    # The whole answer, as the node sent it.
    details: Dict[str, Any]


def explanation_of(said: Mapping[str, Any], key: bytes) -> Explanation:
    masters = []
    for one in maps_in(said, "masters"):
        promise = one.get("promise")
        masters.append(
            Report(
                node=text_in(one, "node"),
                state=text_in(one, "state"),
                home=bool(one.get("home", False)),
                waiting=int_in(one, "waiting"),
                records=tuple(entry_of(record, key, True) for record in maps_in(one, "records")),
                promise=promise if isinstance(promise, dict) else None,
                parked=int_in(one, "kept"),
            )
        )
    return Explanation(entry_of(said, key), tuple(masters), dict(said))


# ---- events ----
