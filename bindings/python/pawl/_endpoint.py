"""Where nodes are: "host:port", "tls://host:port", "unix:/path"."""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import socket
from typing import List, Sequence, Tuple, Union

from ._errors import UnreachableError

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
        return ", which has said nothing at all; write tls://%s for a port with TLS" % self.text


def _parse_one(text: str) -> Endpoint:
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError("%r: the path of a Unix socket must begin with /" % text)
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
        raise ValueError("%r: an IPv6 address needs brackets" % text)
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ValueError("%r: neither host:port, tls://host:port nor unix:/path" % text)
    return Endpoint(text, host=host, port=int(port), tls=tls)


def parse(endpoints: Endpoints) -> List[Endpoint]:
    """One string with commas, or a sequence of strings. ValueError names what is wrong."""
    parts = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    found = [_parse_one(part.strip()) for part in parts if part.strip()]
    if not found:
        raise ValueError("no endpoint is given")
    if len(found) > ENDPOINTS_MAX:
        raise ValueError("at most %d endpoints are allowed" % ENDPOINTS_MAX)
    return found


async def addresses(endpoint: Endpoint, limit: float) -> List[Tuple[str, int]]:
    """Host and port of each address that the node may have; a name is looked up within so many
    seconds, or UnreachableError."""
    if endpoint.path:
        return [("", 0)]
    if endpoint.is_address:
        return [(endpoint.host, endpoint.port)]
    looking = asyncio.get_running_loop().getaddrinfo(endpoint.host, endpoint.port,
                                                     type=socket.SOCK_STREAM)
    try:
        found = await asyncio.wait_for(looking, limit)
    except asyncio.TimeoutError:
        raise UnreachableError("%s: looking up the name took too long" % endpoint.text) from None
    except OSError as error:
        raise UnreachableError("%s: %s" % (endpoint.text, error)) from error
    return [(str(item[4][0]), int(item[4][1])) for item in found]
