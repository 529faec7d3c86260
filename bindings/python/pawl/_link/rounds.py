"""Decides which endpoint is next, and when. The endpoints take turns, with a pause after a round in
which all have failed."""

from __future__ import annotations

import random
from typing import List, Optional

from .._env.errors import DeniedError, PawlError, TlsError, UnreachableError
from .endpoint import Endpoint
from .endpoint_list import EndpointList
from .look_up import Place

PAUSE_FIRST, PAUSE_LAST = 0.05, 1.0


class Rounds:
    def __init__(self, endpoints: EndpointList, prefer_first: bool) -> None:
        self._list = endpoints
        # The endpoint in use. The first one is drawn, so that clients spread over the nodes.
        self.at = 0 if prefer_first else random.randrange(self.count)
        # How many endpoints have failed in this round, and how many of them for reasons that do not
        # pass by themselves.
        self._failed = 0
        self._failed_for_good = 0
        self._rounds_failed = 0
        # In the last round all have failed for such reasons.
        self.hopeless = False

    @property
    def present(self) -> Endpoint:
        return self._list.items[self.at]

    @property
    def first(self) -> Endpoint:
        return self._list.items[0]

    @property
    def count(self) -> int:
        return len(self._list.items)

    @property
    def problem(self) -> str:
        """The end of an error message: what is wrong with the files of endpoints."""
        return self._list.problem

    def read_again(self) -> None:
        """Reads the files again if they have changed. Call it before an endpoint is chosen."""
        next_one = self.present
        self._list.read_again()
        self.at = self._list.find(next_one, self.at)

    def found(self, source: str, places: List[Place]) -> None:
        """Takes what a look-up has found."""
        next_one = self.present
        self._list.found(source, places)
        self.at = self._list.find(next_one, self.at)

    def source(self, endpoint: Endpoint) -> Optional[Endpoint]:
        """Returns what has led to the endpoint, as it was written; None: it is not in its file any
        more."""
        for source in self._list.sources:
            if source.text == endpoint.source:
                return source
        return None

    def located(self, endpoint: Endpoint) -> Endpoint:
        """Returns the first endpoint that a name, which was looked up, stands for.
        UnreachableError: it is not in its file any more."""
        for item in self._list.items:
            if item.source == endpoint.source and not item.is_name:
                return item
        raise UnreachableError("%s: the file of endpoints does not name it any more"
                               % endpoint.text)

    def use(self, endpoint: Endpoint) -> None:
        """Notes that this endpoint is in use."""
        self.at = self._list.find(endpoint, self.at)

    def others(self, present: Endpoint, last: Optional[Endpoint] = None) -> List[Endpoint]:
        """Returns all endpoints but the present one, in turn; `last` comes last."""
        at, items = self._list.find(present, self.at), self._list.items
        found = [items[(at + i) % self.count] for i in range(1, self.count + 1)]
        return sorted((one for one in found if not one.same(present)),
                      key=lambda one: last is not None and one.same(last))

    def good(self) -> None:
        """Notes that the present endpoint has answered."""
        self._failed = self._failed_for_good = self._rounds_failed = 0

    def go_on(self, error: Optional[PawlError]) -> bool:
        """Leaves the present endpoint, which is of no use. True: all endpoints have failed in this
        round."""
        self._failed += 1
        self._failed_for_good += isinstance(error, (TlsError, DeniedError))
        self.at = (self.at + 1) % self.count
        if self._failed < self.count:
            return False
        self.hopeless = self._failed_for_good >= self.count
        self._failed = self._failed_for_good = 0
        return True

    def pause(self, longest: float) -> float:
        """Returns for how many seconds to pause. They are random, so that the clients of a dead
        node do not all come back at the same moment."""
        pause = min(PAUSE_LAST, PAUSE_FIRST * (1 << min(self._rounds_failed, 5)), longest)
        self._rounds_failed += 1
        return pause * random.uniform(0.5, 1.5)
