"""The options of a lock."""

from __future__ import annotations

import dataclasses
import os
import socket
from typing import Any, Dict, Optional

from .._env.arguments import EXCLUSIVE, SHARED, Bytes, check_text, check_whole, to_bytes, to_ms
from .holder import Holder

# The lease if none is given, in seconds.
LEASE = 30.0


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


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a lock; see Client.lock."""

    lease: Optional[float] = None
    wait: Optional[float] = 0.0
    owner: Optional[Bytes] = None
    value: Bytes = b""
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0
    priority: int = 0
    lock_delay: float = 0.0
    release_on_disconnect: bool = False
    label: Optional[str] = None
    warn: Optional[float] = None
    renew: bool = True
    # For whom the lock is, when nodes look for deadlocks: 16 bytes. None: for the client.
    party: Optional[bytes] = None
    # Goes on waiting while no node can be reached, or while too few masters vote.
    patient: bool = False
    # Others are shown that the key is an election.
    election: bool = False

    def __post_init__(self) -> None:
        """Refuses impossible options before any node is asked."""
        _ = self.lease_ms, self.warn_ms, to_bytes(self.value, "value")
        to_ms(self.lock_delay, "lock_delay")
        check_whole(self.priority, "priority")
        mode_params(self.mode, self.permits, self.of)
        if self.wait is not None:
            to_ms(self.wait, "wait")
        if self.owner is not None:
            to_bytes(self.owner, "owner")
        if self.label is not None:
            check_text(self.label, "label")
        if self.party is not None and (not isinstance(self.party, bytes) or len(self.party) != 16):
            raise ValueError("party: give 16 bytes")

    @property
    def lease_ms(self) -> int:
        lease = to_ms(LEASE if self.lease is None else self.lease, "lease")
        if lease < 1:
            raise ValueError("lease: it must be at least a millisecond")
        return lease

    @property
    def warn_ms(self) -> int:
        if self.warn is None:
            return self.lease_ms // 6
        warn = to_ms(self.warn, "warn")
        if warn > self.lease_ms // 2:
            raise ValueError("warn: it must be at most half of the lease")
        return warn

    def within(self, most_ms: Optional[int]) -> Options:
        """Returns these options with a lease that the cluster allows, if the lease was left open.
        What it allows covers the lock delay, too."""
        if self.lease is not None or most_ms is None:
            return self
        delay_ms = to_ms(self.lock_delay, "lock_delay")
        lease_ms = min(self.lease_ms, most_ms - delay_ms if most_ms > delay_ms else most_ms)
        warn = None if self.warn is None else min(self.warn, lease_ms // 2 / 1000)
        return dataclasses.replace(self, lease=lease_ms / 1000, warn=warn)

    def params(self, client: Holder) -> Dict[str, Any]:
        """Returns the parameters of an acquire, except for the keys and their modes."""
        said: Dict[str, Any] = {"lease_ms": self.lease_ms, "host": socket.gethostname()[:64],
                                "pid": os.getpid()}
        said["party"] = self.party or client._party
        said["owner"] = to_bytes(client.owner if self.owner is None else self.owner)
        label = client.label if self.label is None else self.label
        more = {
            "value": to_bytes(self.value),
            "priority": self.priority,
            "lock_delay_ms": to_ms(self.lock_delay, "lock_delay"),
            "release_on_disconnect": self.release_on_disconnect,
            "label": label,
            "election": self.election,
        }
        said.update({name: what for name, what in more.items() if what})
        return said
