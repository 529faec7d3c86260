"""Decides how long a node may be silent before the client asks whether it is still there, and
whether the client may leave it for that. These are decisions alone, and all times are in seconds
(src/client/link/patience.c decides in the same way)."""

from __future__ import annotations

# The shortest time; ordinary pauses of a busy machine are shorter.
LEAST = 0.006
# A node may be silent for this many times as long as its slowest recent answer has taken.
SLOWEST_TIMES = 4
# The slowest answer before there has been any.
SLOWEST_FIRST = 0.025
# With each answer the slowest one fades by this fraction.
SLOWEST_FADES = 32
# A longer pause of this process, such as a suspend, says nothing about the next one.
LATE_MOST = 0.1
DOUBLINGS_MAX = 20
# Answers halve the time again, but no more often than this.
HALVED_AFTER = 1.0
# The budget for requests that are sent again, in tenths of a request.
BUDGET_FULL, BUDGET_OF_REQUEST, BUDGET_LEAST = 100, 10, 50


class Patience:
    def __init__(self) -> None:
        # The slowest recent answer: a maximum that fades with each answer.
        self._slowest = SLOWEST_FIRST
        self._answered = False
        self._doublings = 0
        self._doubled_at = 0.0
        self._budget = BUDGET_FULL

    def answered(self, took: float, now: float) -> None:
        """Notes an answer to a request that does not wait."""
        faded = self._slowest - self._slowest / SLOWEST_FADES
        self._slowest = max(took, faded) if self._answered else took
        self._answered = True
        self._budget = min(self._budget + 1, BUDGET_FULL)
        if self._doublings and now - self._doubled_at >= HALVED_AFTER:
            self._doublings -= 1
            self._doubled_at = now

    def late(self, late: float) -> None:
        """Notes that this process stood still. It is likely to do so again, and must not take that
        for the silence of a node."""
        self._slowest = max(self._slowest, min(late, LATE_MOST))

    def switched(self, repeated: int, now: float) -> None:
        """Notes that a silent node was left. `repeated` requests are sent again."""
        self._budget = max(0, self._budget - repeated * BUDGET_OF_REQUEST)
        self.too_short(now)

    def too_short(self, now: float) -> None:
        """Notes that the node which was left has answered nevertheless, soon after that."""
        self._doublings = min(self._doublings + 1, DOUBLINGS_MAX)
        self._doubled_at = now

    def time(self, longest: float) -> float:
        """Returns how long a node may be silent before it is pinged, and then how long it may take
        to answer the ping."""
        most = max(LEAST, SLOWEST_TIMES * self._slowest)
        return float(min(longest, most * (1 << self._doublings)))

    @property
    def allows(self) -> bool:
        """Returns whether enough of the budget is left to leave a node before the whole silence is
        over."""
        return self._budget >= BUDGET_LEAST
