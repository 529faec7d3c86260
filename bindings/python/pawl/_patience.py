"""How long a node may be silent before the client asks whether it is still there, and whether it
may be left for that: decisions alone, in seconds (src/client/link/patience.c has the same)."""

from __future__ import annotations

LEAST = 0.006  # ordinary pauses of a busy machine are shorter
SLOWEST_TIMES = 4
SLOWEST_FIRST = 0.025  # before there has been an answer
SLOWEST_FADES = 32
LATE_MOST = 0.1  # a longer pause of this process says nothing about the next one
DOUBLINGS_MAX = 20
HALVED_AFTER = 1.0
BUDGET_FULL, BUDGET_OF_REQUEST, BUDGET_LEAST = 100, 10, 50  # in tenths of a request


class Patience:
    def __init__(self) -> None:
        self._slowest = SLOWEST_FIRST  # the slowest answer of late, which fades with each answer
        self._answered = False
        self._doublings = 0
        self._doubled_at = 0.0
        self._budget = BUDGET_FULL  # for requests that are sent again

    def answered(self, took: float, now: float) -> None:
        """An answer to a request that does not wait."""
        faded = self._slowest - self._slowest / SLOWEST_FADES
        self._slowest = max(took, faded) if self._answered else took
        self._answered = True
        self._budget = min(self._budget + 1, BUDGET_FULL)
        if self._doublings and now - self._doubled_at >= HALVED_AFTER:
            self._doublings -= 1
            self._doubled_at = now

    def late(self, late: float) -> None:
        """This process itself stood still, and is likely to do so again: that is not to be taken
        for the silence of a node."""
        self._slowest = max(self._slowest, min(late, LATE_MOST))

    def switched(self, repeated: int, now: float) -> None:
        """A silent node was left, and so many requests are sent again."""
        self._budget = max(0, self._budget - repeated * BUDGET_OF_REQUEST)
        self.too_short(now)

    def too_short(self, now: float) -> None:
        """The node that was left has answered all the same, soon after that."""
        self._doublings = min(self._doublings + 1, DOUBLINGS_MAX)
        self._doubled_at = now

    def time(self, longest: float) -> float:
        """How long a node may be silent before it is pinged, and then take to answer the ping."""
        most = max(LEAST, SLOWEST_TIMES * self._slowest)
        return float(min(longest, most * (1 << self._doublings)))

    @property
    def allows(self) -> bool:
        """Enough of the budget is left to leave a node before the whole silence is over."""
        return self._budget >= BUDGET_LEAST
