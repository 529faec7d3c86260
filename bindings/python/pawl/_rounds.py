"""Decides which endpoint is next, and when. The endpoints take turns, with a pause after a round in
which all have failed."""

from __future__ import annotations

import random
from typing import List, Optional

from ._endpoint import Endpoint
from ._errors import DeniedError, PawlError, TlsError

PAUSE_FIRST, PAUSE_LAST = 0.05, 1.0


class Rounds:
    def __init__(self, endpoints: List[Endpoint], prefer_first: bool) -> None:
        self._endpoints = endpoints
        # The endpoint in use. The first one is drawn, so that clients spread over the nodes.
        self.at = 0 if prefer_first else random.randrange(len(endpoints))
        # How many endpoints have failed in this round, and how many of them for reasons that do not
        # pass by themselves.
        self._failed = 0
        self._failed_for_good = 0
        self._rounds_failed = 0
        # In the last round all have failed for such reasons.
        self.hopeless = False

    @property
    def present(self) -> Endpoint:
        return self._endpoints[self.at]

    def endpoint(self, at: int) -> Endpoint:
        return self._endpoints[at]

    def others(self, last: Optional[int] = None) -> List[int]:
        """Returns all endpoints but the present one, in turn; `last` comes last."""
        found = [(self.at + i) % self.count for i in range(1, self.count)]
        return sorted(found, key=lambda at: at == last)

    @property
    def count(self) -> int:
        return len(self._endpoints)

    def good(self) -> None:
        """Notes that the present endpoint has answered."""
        self._failed = self._failed_for_good = self._rounds_failed = 0

    def go_on(self, error: Optional[PawlError]) -> bool:
        """Leaves the present endpoint, which is of no use. True: all endpoints have failed in this
        round."""
        self._failed += 1
        self._failed_for_good += isinstance(error, (TlsError, DeniedError))
        self.at = (self.at + 1) % len(self._endpoints)
        if self._failed < len(self._endpoints):
            return False
        self.hopeless = self._failed_for_good >= len(self._endpoints)
        self._failed = self._failed_for_good = 0
        return True

    def pause(self, longest: float) -> float:
        """Returns for how many seconds to pause. They are random, so that the clients of a dead
        node do not all come back at the same moment."""
        pause = min(PAUSE_LAST, PAUSE_FIRST * (1 << min(self._rounds_failed, 5)), longest)
        self._rounds_failed += 1
        return pause * random.uniform(0.5, 1.5)
