"""Which endpoint is next, and when: in turn, with a pause after a round in which all have
failed."""

from __future__ import annotations

import random
from typing import List, Optional

from ._endpoint import Endpoint
from ._errors import DeniedError, PawlError, TlsError

PAUSE_FIRST, PAUSE_LAST = 0.05, 1.0


class Rounds:
    def __init__(self, endpoints: List[Endpoint], prefer_first: bool) -> None:
        self._endpoints = endpoints
        # By chance, so that clients spread over the nodes.
        self.at = 0 if prefer_first else random.randrange(len(endpoints))
        self._failed = 0  # in this round
        self._failed_for_good = 0  # for reasons that do not pass
        self._rounds_failed = 0
        self.hopeless = False  # in the last round all have failed for good

    @property
    def present(self) -> Endpoint:
        return self._endpoints[self.at]

    def endpoint(self, at: int) -> Endpoint:
        return self._endpoints[at]

    def others(self, last: Optional[int] = None) -> List[int]:
        """All but the present one, in turn; this one last."""
        found = [(self.at + i) % self.count for i in range(1, self.count)]
        return sorted(found, key=lambda at: at == last)

    @property
    def count(self) -> int:
        return len(self._endpoints)

    def good(self) -> None:
        """The present one has talked."""
        self._failed = self._failed_for_good = self._rounds_failed = 0

    def go_on(self, error: Optional[PawlError]) -> bool:
        """The present one is of no use any more. True: that was a whole round of failures."""
        self._failed += 1
        self._failed_for_good += isinstance(error, (TlsError, DeniedError))
        self.at = (self.at + 1) % len(self._endpoints)
        if self._failed < len(self._endpoints):
            return False
        self.hopeless = self._failed_for_good >= len(self._endpoints)
        self._failed = self._failed_for_good = 0
        return True

    def pause(self, longest: float) -> float:
        """Seconds, at random, so that the clients of a dead node do not march in step."""
        pause = min(PAUSE_LAST, PAUSE_FIRST * (1 << min(self._rounds_failed, 5)), longest)
        self._rounds_failed += 1
        return pause * random.uniform(0.5, 1.5)
