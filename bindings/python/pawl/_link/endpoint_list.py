"""The endpoints of a client. What the program and its files name are the sources; each gives one
endpoint or several. Look-ups and files change the list while the client runs."""

from __future__ import annotations

import dataclasses
from typing import Dict, List

from .endpoint import ENDPOINTS_MAX, Endpoint, Endpoints, parse, stamps
from .look_up import Place, by_chance


def expand(given: Endpoint, places: List[Place]) -> List[Endpoint]:
    """Returns the endpoints that a source stands for. One address of each family is still the
    address of one node, and is not written."""
    if not places:
        return [given]
    found = []
    for place in places:
        same = [p.family for p in places if (p.host, p.port) == (place.host, place.port)]
        text = "%s%s:%d%s" % ("tls://" if given.tls else "", place.host, place.port,
                              "@" + place.address if len(same) > len(set(same)) else "")
        found.append(dataclasses.replace(given, text=text, host=place.host, port=place.port,
                                         address=place.address, srv=False))
    return found


class EndpointList:
    """shuffle: chance decides the order of the addresses of a name. ValueError names the endpoint,
    or the file and its line, that is wrong."""

    def __init__(self, endpoints: Endpoints, shuffle: bool) -> None:
        self._given = endpoints if isinstance(endpoints, str) else list(endpoints)
        self._shuffle = shuffle
        # The files as they were when they were last read.
        self._seen = stamps(self._given)
        self.sources = parse(self._given)
        # Why the files as they are now cannot be used, so that what was read before is still in
        # use; empty if they can.
        self.problem = ""
        # Where the names lead to, by what was written.
        self._places: Dict[str, List[Place]] = {}
        self.items: List[Endpoint] = []
        self._fill()

    def _fill(self) -> None:
        """Each source has at least one endpoint, and the last ones of those with many are left out
        if there are too many in all."""
        items: List[Endpoint] = []
        for number, source in enumerate(self.sources):
            room = ENDPOINTS_MAX - len(items) - (len(self.sources) - 1 - number)
            items += expand(source, self._places.get(source.text, []))[:room]
        self.items = items

    def read_again(self) -> None:
        """Reads the files again if any has changed. If that fails, the list stays as it is, and
        `problem` says why."""
        seen = stamps(self._given)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self.sources = parse(self._given)
        except ValueError as error:
            self.problem = "; what was read before is still in use: %s" % error
            return
        self.problem = ""
        texts = {source.text for source in self.sources}
        self._places = {text: p for text, p in self._places.items() if text in texts}
        self._fill()

    def source(self, text: str) -> List[Endpoint]:
        """Returns the endpoints of this source; none: it is not in its file any more."""
        return [item for item in self.items if item.source == text]

    def found(self, source: str, places: List[Place]) -> None:
        """Takes what a look-up has found. Addresses that were known before keep their order, and
        new ones follow."""
        def key(place: Place) -> object:
            return place.host, place.port, place.address

        now = {key(place): place for place in places}
        kept = [now.pop(key(old)) for old in self._places.get(source, []) if key(old) in now]
        new = list(now.values())
        merged = kept + (by_chance(new) if self._shuffle else new)
        self._places[source] = sorted(merged, key=lambda place: place.rank)
        self._fill()

    def find(self, endpoint: Endpoint, otherwise: int) -> int:
        """Returns the index of this endpoint; or else that of the first one of the same source; or
        else `otherwise`, or the last index if that is less."""
        first = None
        for at, item in enumerate(self.items):
            if item.same(endpoint):
                return at
            if first is None and item.source == endpoint.source:
                first = at
        return min(otherwise, len(self.items) - 1) if first is None else first
