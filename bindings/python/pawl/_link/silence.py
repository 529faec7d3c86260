"""Finds out whether a silent node is gone. A node answers pings at once, even while requests wait
in its queues or its quorum is slow."""

from __future__ import annotations

import asyncio
from typing import Callable, Optional

from .patience import Patience

# An alarm that rings later than this, and later than a quarter of its time, says that this process
# stood still, and not the node.
LATE_LEAST = 0.0025


class Silence:
    """Watches one connection. Its owner sets these functions:
    whole: says for how many seconds the node may be silent before the connection is given up.
    may_leave: says whether the client may leave the node before that.
    listening: says whether the node sends events without being asked.
    ping: sends a ping.
    quiet: is called after a ping was sent to a silent node; true: an answer is due.
    overdue: is called when the ping was not answered in time.
    lost: is called when the node was silent for too long."""

    def __init__(self, patience: Patience) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self.whole: Callable[[bool], float] = lambda owed: 2.0
        self.may_leave: Callable[[], bool] = lambda: False
        self.listening: Callable[[], bool] = lambda: False
        self.ping: Callable[[], None] = lambda: None
        self.quiet: Callable[[bool], None] = lambda due: None
        self.overdue: Callable[[], None] = lambda: None
        self.lost: Callable[[], None] = lambda: None
        # How many requests are under way, and how many of them may wait at the node for others.
        self.flights = self.waits = 0
        # The node owes an answer: to a request, to a ping, or to a request that has given up.
        self.owed = False
        # A ping was sent, and nothing has arrived since.
        self.pinged = False
        # No answer to any ping has arrived since the last ping was sent.
        self.pong_due = False
        # The last ping was not answered in time.
        self.is_overdue = False
        # Since when the node is silent. `_quiet_since` is later if this process stood still.
        self._silent_since = self._quiet_since = self._ping_at = self._loop.time()
        # The node has read everything that was sent before `_read_until`, because it has answered a
        # ping that was sent then.
        self._wait_sent_at = self._read_until = 0.0
        self._timer: Optional[asyncio.TimerHandle] = None
        # When the alarm rings, and when it was set.
        self._at = self._set_at = 0.0

    # ---- what happens ----

    def sent(self, waits: bool) -> None:
        now = self._loop.time()
        self.flights += 1
        if waits:
            self.waits += 1
            self._wait_sent_at = now
        if not self.owed:
            self.owed = True
            self._silent_since = self._quiet_since = now
            self.reset()

    def ended(self, waits: bool) -> None:
        """Notes that a request was answered, or has given up."""
        self.flights -= 1
        self.waits -= waits

    def send_ping(self) -> None:
        self._ping_at = self._loop.time()
        self.owed = self.pinged = self.pong_due = True
        self.ping()

    def heard(self) -> None:
        """Notes that bytes have arrived. Call `settle` when they have been handled."""
        self._silent_since = self._quiet_since = self._loop.time()
        self.pinged = self.is_overdue = False

    def ponged(self) -> None:
        self.pong_due = False
        self._read_until = self._ping_at

    def settle(self) -> None:
        unread = self.waits > 0 and self._wait_sent_at > self._read_until
        self.owed = self.flights > self.waits or unread or self.pinged
        if self._timer is None:
            self.reset()

    # ---- the alarm ----

    def reset(self) -> None:
        """Sets the alarm, because what is awaited, or how long it may take, has changed. An alarm
        that rings early does no harm."""
        if not self._awaits():
            return
        at = self._next()
        if self._timer is not None and self._at <= at:
            return
        self.close()
        self._at, self._set_at = at, self._loop.time()
        self._timer = self._loop.call_at(at, self._ring)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _awaits(self) -> bool:
        return self.owed or self.flights > 0 or self.listening()

    def _whole(self) -> float:
        return self.whole(self.owed or self.flights > 0)

    def _ping_limit(self) -> float:
        return self._patience.time(self._whole() / 2)

    def _quiet_limit(self) -> float:
        """Returns for how many seconds the node may be silent before it is pinged. A request that
        waits is treated like any other until the node has shown, by its answer to a ping, that it
        has read the request."""
        if self.may_leave() and self.owed:
            return self._ping_limit()
        return self._whole() / (8 if self.may_leave() and self.flights else 2)

    def _lost_at(self) -> float:
        whole = self._whole()
        return max(self._silent_since + whole, self._ping_at + whole / 2)

    def _next(self) -> float:
        if not self.pinged:
            return self._quiet_since + self._quiet_limit()
        if self.may_leave() and not self.is_overdue:
            return min(self._ping_at + self._ping_limit(), self._lost_at())
        return self._lost_at()

    def _ring(self) -> None:
        self._timer = None
        if not self._awaits():
            return
        now = self._loop.time()
        late = now - self._at
        if late > LATE_LEAST and late > (self._at - self._set_at) / 4:
            self._patience.late(late)
            self._quiet_since = now
            self._ping_at = now if self.pinged else self._ping_at
        elif self.pinged:
            self._unanswered(now)
        elif now >= self._quiet_since + self._quiet_limit():
            due = self.flights > self.waits
            self.send_ping()
            self.quiet(due)
        self.reset()

    def _unanswered(self, now: float) -> None:
        if now >= self._lost_at():
            self.lost()
        elif (self.may_leave() and not self.is_overdue
              and now >= self._ping_at + self._ping_limit()):
            self.is_overdue = True
            self.overdue()
