"""The endpoints that a node names because another cluster serves a request
(docs/client-protocol.md, Moved)."""

from __future__ import annotations

from typing import Any, List

from .endpoint import Endpoint, parse_one

NAMED_MAX = 16


def named_endpoints(said: Any, over_tls: bool, has_tls: bool) -> List[Endpoint]:
    """Returns the endpoints of the list that a node has sent; none if it must not be followed.
    over_tls: it came over TLS, so nobody is led to a port without. has_tls: the client has
    certificates."""
    if not isinstance(said, list) or not 1 <= len(said) <= NAMED_MAX:
        return []
    found: List[Endpoint] = []
    for one in said:
        if not isinstance(one, (str, bytes)):
            return []
        try:
            endpoint = parse_one(one.decode("utf-8") if isinstance(one, bytes) else one)
        except ValueError:  # It is no text, or no endpoint.
            return []
        # A node must not lead its clients to sockets, files and services of their own machine.
        if endpoint.path or endpoint.srv or (over_tls and not endpoint.tls):
            return []
        if endpoint.tls and not has_tls:
            return []
        found.append(endpoint)
    return found
