"""The client of Pawl, which grants leases and locks by the agreement of a quorum. This is the
blocking client; `pawl.aio` is the same for asyncio.

    with pawl.connect("127.0.0.1:7001,127.0.0.1:7002") as client:
        with client.lock("reports/daily", lease=30, wait=60) as lock:
            write_report(token=lock.token)
"""

from . import aio
from ._blocking.client import Client
from ._blocking.election import Election, Leaders, Leadership
from ._blocking.lock import Lock, LockSet
from ._blocking.watch import Watch
from ._election.election import YieldError
from ._election.observe import Leader
from ._env.arguments import EXCLUSIVE, SHARED
from ._env.errors import (
    BadRequestError, BusyError, ClosedError, DeadlockError, DeniedError, FullError, HeldError,
    IndeterminateError, LostError, MismatchError, MovedError, NoQuorumError, NotFoundError,
    PawlError, ProtocolError, QuotaError, RecoveringError, TlsError, TooLargeError, TooLongError,
    UnreachableError, UnsettledError, UnsureError, WaitTimeoutError,
)
from ._environment import options_from_env
from ._fence.fence_file import FenceError
from ._fence.fence_store import FenceStore, fence_check
from ._lock.lock import Asked
from ._lock.options import Want
from ._request.result import Entry, Explanation, Page, Report, Testimony, Waiter
from ._watch.event import Event

__version__ = "0.2.0"

connect = Client

__all__ = [
    "EXCLUSIVE",
    "SHARED",
    "Asked",
    "BadRequestError",
    "BusyError",
    "Client",
    "ClosedError",
    "DeadlockError",
    "DeniedError",
    "Election",
    "Entry",
    "Event",
    "Explanation",
    "FenceError",
    "FenceStore",
    "FullError",
    "HeldError",
    "IndeterminateError",
    "Leader",
    "Leaders",
    "Leadership",
    "Lock",
    "LockSet",
    "LostError",
    "MismatchError",
    "MovedError",
    "NoQuorumError",
    "NotFoundError",
    "Page",
    "PawlError",
    "ProtocolError",
    "QuotaError",
    "RecoveringError",
    "Report",
    "Testimony",
    "TlsError",
    "TooLargeError",
    "TooLongError",
    "UnreachableError",
    "UnsettledError",
    "UnsureError",
    "WaitTimeoutError",
    "Waiter",
    "Want",
    "Watch",
    "YieldError",
    "aio",
    "connect",
    "fence_check",
    "options_from_env",
]
