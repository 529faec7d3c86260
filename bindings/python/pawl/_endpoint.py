"""Where nodes are: "host:port", "tls://host:port", "unix:/path"."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import List, Sequence, Union

ENDPOINTS_MAX = 32
Endpoints = Union[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Endpoint:
    text: str
    host: str = ""
    port: int = 0
    path: str = ""  # of a Unix socket; then host and port mean nothing
    tls: bool = False

    @property
    def is_address(self) -> bool:
        """The host is no name that is to be looked up."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def unheard(self) -> str:
        """To be said of a node that is connected with and has not said a word."""
        if self.path or self.tls:
            return ""
        return ", which has said nothing at all; a port that wants TLS is named tls://%s" % self.text


def _parse_one(text: str) -> Endpoint:
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError("%r: a Unix socket's path begins with /" % text)
        return Endpoint(text, path=path)
    rest, tls = text, False
    if "://" in text:
        scheme, _, rest = text.partition("://")
        if scheme != "tls":
            raise ValueError("%r: neither host:port, tls://host:port nor unix:/path" % text)
        tls = True
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("%r: an IPv6 address stands in brackets" % text)
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ValueError("%r: neither host:port, tls://host:port nor unix:/path" % text)
    return Endpoint(text, host=host, port=int(port), tls=tls)


def parse(endpoints: Endpoints) -> List[Endpoint]:
    """One string with commas, or a sequence of strings. ValueError names what is wrong."""
    parts = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    found = [_parse_one(part.strip()) for part in parts if part.strip()]
    if not found:
        raise ValueError("no endpoint is named")
    if len(found) > ENDPOINTS_MAX:
        raise ValueError("more than %d endpoints" % ENDPOINTS_MAX)
    return found
