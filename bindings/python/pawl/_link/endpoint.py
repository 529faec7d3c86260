"""The endpoints of nodes, as they are written: "host:port", "tls://host:port", "name:port@address",
"unix:/path", "srv:name", "tls://srv:name" and "file:path"."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import stat
from typing import Any, List, Sequence, Tuple, Union

ENDPOINTS_MAX = 64
FILE_BYTES_MAX = 65536
Endpoints = Union[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Endpoint:
    text: str
    host: str = ""
    port: int = 0
    path: str = ""  # of a Unix socket, which has no host and port
    tls: bool = False
    srv: bool = False  # The host is the name of SRV records.
    address: str = ""  # of the host; empty: it must be looked up
    source: str = ""  # the text that has led to this endpoint

    @property
    def is_name(self) -> bool:
        """Whether what was written is a name that must be looked up."""
        return not self.path and not self.address

    def same(self, other: Endpoint) -> bool:
        """Whether both stand for the same address of the same source."""
        return ((self.source, self.host, self.port, self.address)
                == (other.source, other.host, other.port, other.address))

    @property
    def silence_hint(self) -> str:
        """The end of an error message about a node that accepted the connection and never sent
        anything."""
        if self.path or self.tls:
            return ""
        return ", which has said nothing at all; write tls://%s for a port with TLS" % self.text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def parse_one(text: str) -> Endpoint:
    """ValueError names what is wrong."""
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError("endpoint %r: the path of a Unix socket must begin with /" % text)
        return Endpoint(text, path=path, source=text)
    wrong = ValueError("endpoint %r is neither host:port, tls://host:port, unix:/path, srv:name "
                       "nor file:path" % text)
    rest, tls = text, False
    if "://" in text:
        scheme, _, rest = text.partition("://")
        if scheme != "tls":
            raise wrong
        tls = True
    if ";" in rest or "," in rest or " " in rest:
        raise ValueError("endpoint %r: several endpoints are a list, or separated by commas alone"
                         % text)
    if rest.startswith("srv:"):
        if rest == "srv:":
            raise ValueError("endpoint %r: the name of SRV records is empty" % text)
        return Endpoint(text, host=rest[len("srv:") :], tls=tls, srv=True, source=text)
    rest, at, address = rest.partition("@")
    if at and not _is_address(address):
        raise ValueError("endpoint %r: what follows @ must be an address" % text)
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("endpoint %r: write an IPv6 address in brackets, such as [::1]:7000"
                         % text)
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise wrong
    address = address or (host if _is_address(host) else "")
    return Endpoint(text, host=host, port=int(port), tls=tls, address=address, source=text)


def _add(found: List[Endpoint], text: str) -> None:
    """Appends the endpoint, unless it is there already."""
    if all(one.source != text for one in found):
        if len(found) == ENDPOINTS_MAX:
            raise ValueError("endpoints: at most %d are allowed" % ENDPOINTS_MAX)
        found.append(parse_one(text))


def _read(path: str) -> str:
    """Returns the text of a file of endpoints. A pipe does not make the caller wait."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as f:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("it is no regular file")
        data = f.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ValueError("it is longer than 64 KiB")
    return data.decode("utf-8")


def _add_file(found: List[Endpoint], path: str) -> None:
    where, some = "file of endpoints %s" % path, False
    try:
        for number, line in enumerate(_read(path).split("\n"), 1):
            where = "file of endpoints %s, line %d" % (path, number)
            for part in line.partition("#")[0].split(","):
                if part.strip().startswith("file:"):
                    raise ValueError("a file of endpoints names no other file")
                if part.strip():
                    some = True
                    _add(found, part.strip())
    except OSError as error:
        raise ValueError("%s: %s" % (where, error.strerror)) from error
    except UnicodeDecodeError:
        raise ValueError("%s: it is no text" % where) from None
    except ValueError as error:
        raise ValueError("%s: %s" % (where, error)) from None
    if not some:
        raise ValueError("file of endpoints %s: it has no endpoint" % path)


def _parts(endpoints: Endpoints) -> List[str]:
    parts = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    return [part.strip() for part in parts if part.strip()]


def parse(endpoints: Endpoints) -> List[Endpoint]:
    """Parses one string with commas, or a sequence of strings, and reads the files that they name.
    ValueError names the endpoint that is wrong."""
    found: List[Endpoint] = []
    parts = _parts(endpoints)
    if len(parts) > ENDPOINTS_MAX:
        raise ValueError("endpoints: at most %d are allowed" % ENDPOINTS_MAX)
    for part in parts:
        if part.startswith("file:"):
            _add_file(found, part[len("file:") :])
        else:
            _add(found, part)
    if not found:
        raise ValueError("endpoints: give at least one")
    return found


def stamps(endpoints: Endpoints) -> List[Tuple[Any, ...]]:
    """Returns what changes when one of the files changes. A file that is not there looks like one
    that is empty."""
    found: List[Tuple[Any, ...]] = []
    for part in _parts(endpoints):
        if part.startswith("file:"):
            try:
                now = os.stat(part[len("file:") :])
                found.append((now.st_ino, now.st_dev, now.st_size, now.st_mtime_ns))
            except OSError:
                found.append(())
    return found
