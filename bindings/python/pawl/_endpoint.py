"""The endpoints of nodes: "host:port", "tls://host:port" and "unix:/path"."""

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
    path: str = ""  # of a Unix socket, which has no host and port
    tls: bool = False

    @property
    def is_address(self) -> bool:
        """Whether the host is an address, and not a name that must be looked up."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def silence_hint(self) -> str:
        """The end of an error message about a node that accepted the connection and never sent
        anything."""
        if self.path or self.tls:
            return ""
        return ", which has said nothing at all; write tls://%s for a port with TLS" % self.text


def _parse_one(text: str) -> Endpoint:
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError("endpoint %r: the path of a Unix socket must begin with /" % text)
        return Endpoint(text, path=path)
    rest, tls = text, False
    if "://" in text:
        scheme, _, rest = text.partition("://")
        if scheme != "tls":
            raise ValueError("endpoint %r is neither host:port, tls://host:port nor unix:/path"
                             % text)
        tls = True
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("endpoint %r: write an IPv6 address in brackets, such as [::1]:7000"
                         % text)
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ValueError("endpoint %r is neither host:port, tls://host:port nor unix:/path" % text)
    return Endpoint(text, host=host, port=int(port), tls=tls)


def parse(endpoints: Endpoints) -> List[Endpoint]:
    """Parses one string with commas, or a sequence of strings. ValueError names the endpoint that
    is wrong."""
    parts = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    found = [_parse_one(part.strip()) for part in parts if part.strip()]
    if not found:
        raise ValueError("endpoints: give at least one")
    if len(found) > ENDPOINTS_MAX:
        raise ValueError("endpoints: at most %d are allowed" % ENDPOINTS_MAX)
    return found


async def addresses(endpoint: Endpoint, limit: float) -> List[Tuple[str, int]]:
    """Returns the host and port of each address that the node may have. UnreachableError: the name
    could not be looked up within `limit` seconds."""
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
