"""Two clocks, read together. CLOCK_BOOTTIME counts suspend but is slewed by NTP;
CLOCK_MONOTONIC_RAW is not slewed but stands still in a suspend. Trust in a lock ends as soon as
EITHER says so (docs/protocol.md, Time)."""

from __future__ import annotations

import time
from typing import NamedTuple

MS = 1_000_000
SECOND = 1_000_000_000


class Instant(NamedTuple):
    """Readings of both clocks, in nanoseconds."""

    boot: int
    raw: int

    def plus(self, nanoseconds: int) -> Instant:
        return Instant(self.boot + nanoseconds, self.raw + nanoseconds)


NEVER = Instant(0, 0)  # As a deadline it has always passed.


def now() -> Instant:
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME),
                   time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))


def left(deadline: Instant, at: Instant) -> int:
    """Returns the nanoseconds until the deadline, by the clock that says less; never negative."""
    return max(0, min(deadline.boot - at.boot, deadline.raw - at.raw))


def distrusted(deadline: Instant, at: Instant) -> bool:
    return at.boot >= deadline.boot or at.raw >= deadline.raw
