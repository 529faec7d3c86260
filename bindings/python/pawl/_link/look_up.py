"""Looks names up: the addresses of hosts, and SRV records. It runs in the threads of the loop's
default executor, so that the loop goes on."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import random
import socket
import time
from typing import Any, List

from .._env.errors import UnreachableError
from .endpoint import Endpoint

# The most addresses of one name; others are not used.
PLACES_MAX = 32
# For how many seconds name servers may take for SRV records; and after how many seconds no further
# host of the records is looked up.
SRV_SECONDS, HOSTS_SECONDS = 4.0, 10.0


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a name leads to. Those of a lower rank come first; among those of the same rank chance
    decides, in proportion to the weight."""

    host: str
    port: int
    address: str
    family: int
    rank: int = 0
    weight: int = 1


def check_srv() -> Any:
    """Returns the module that reads SRV records. ValueError: it is not installed."""
    try:
        return importlib.import_module("dns.resolver")
    except ImportError:
        raise ValueError("srv: endpoints need the package dnspython, which is not installed "
                         "(pip install 'pawl[srv]'; Debian: python3-dnspython)") from None


def _addresses(host: str, port: int, rank: int = 0, weight: int = 1) -> List[Place]:
    """The families keep the order of getaddrinfo, which knows how well they can be reached."""
    found: List[Place] = []
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        rank += bool(found) and found[-1].family != family
        found.append(Place(host, port, str(address[0]), family, rank, weight))
    return found


def _services(name: str) -> List[Place]:
    resolver = check_srv()
    answer = resolver.resolve(name, "SRV", lifetime=SRV_SECONDS)
    records = sorted(answer, key=lambda record: int(record.priority))
    found: List[Place] = []
    end = time.monotonic() + HOSTS_SECONDS
    trouble = "the SRV records of the name offer no host"
    for record in records[:PLACES_MAX]:
        target = record.target.to_text(omit_final_dot=True)
        if target in ("", ".", "@"):
            continue  # The service is not offered.
        if time.monotonic() > end:
            break
        try:
            found += _addresses(target, record.port, 2 * record.priority, record.weight)
        except OSError as error:
            trouble = "%s: the host name cannot be resolved (%s)" % (target, error.strerror)
    if not found:
        raise UnreachableError(trouble)
    return found


def _look_up(endpoint: Endpoint) -> List[Place]:
    try:
        found = (_services(endpoint.host) if endpoint.srv
                 else _addresses(endpoint.host, endpoint.port))
    except (OSError, UnicodeError) as error:
        raise UnreachableError("the host name cannot be resolved (%s)"
                               % (getattr(error, "strerror", None) or error)) from error
    except UnreachableError:
        raise
    except Exception as error:  # The errors of dnspython have a base class of their own.
        raise UnreachableError("the SRV records cannot be looked up (%s)" % error) from error
    return found[:PLACES_MAX]


async def look_up(endpoint: Endpoint) -> List[Place]:
    """Returns where the name leads to, at least one place. UnreachableError: nowhere."""
    return await asyncio.get_running_loop().run_in_executor(None, _look_up, endpoint)


def by_chance(places: List[Place]) -> List[Place]:
    """Returns the places in an order of chance, in proportion to their weights. A weight of 0 has a
    small chance as well."""
    left, found = list(places), []
    while left:
        found.append(random.choices(left, [256 * place.weight + 1 for place in left])[0])
        left.remove(found[-1])
    return found
