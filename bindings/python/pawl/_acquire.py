"""The options of a lock, and the request that acquires it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import socket
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional

from . import _clock
from ._call import Answer, Call
from ._errors import (
    BadRequestError, BusyError, IndeterminateError, LostError, NoQuorumError, QuotaError,
    RecoveringError, TooLongError, UnreachableError,
)
from ._types import EXCLUSIVE, Bytes, check_text, check_whole, mode_params, to_bytes, to_ms

if TYPE_CHECKING:
    from ._client import Client

# The longest wait of the protocol: many years.
WAIT_FOREVER_MS = 10**12
# The lease if none is given, in seconds.
LEASE = 30.0
PASSING = (NoQuorumError, RecoveringError, UnreachableError, BusyError, IndeterminateError,
           QuotaError)
PAUSE_FIRST, PAUSE_LAST = 0.1, 5.0


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a lock; see Client.lock."""

    lease: Optional[float] = None
    wait: Optional[float] = 0.0
    owner: Optional[Bytes] = None
    value: Bytes = b""
    mode: str = EXCLUSIVE
    permits: int = 0
    of: int = 0
    priority: int = 0
    lock_delay: float = 0.0
    release_on_disconnect: bool = False
    label: Optional[str] = None
    warn: Optional[float] = None
    renew: bool = True
    # For whom the lock is, when nodes look for deadlocks: 16 bytes. None: for the client.
    party: Optional[bytes] = None
    # Goes on waiting while no node can be reached, or while too few masters vote.
    patient: bool = False
    # Others are shown that the key is an election.
    election: bool = False

    def __post_init__(self) -> None:
        """Refuses impossible options before any node is asked."""
        _ = self.lease_ms, self.warn_ms, to_bytes(self.value, "value")
        to_ms(self.lock_delay, "lock_delay")
        check_whole(self.priority, "priority")
        mode_params(self.mode, self.permits, self.of)
        if self.wait is not None:
            to_ms(self.wait, "wait")
        if self.owner is not None:
            to_bytes(self.owner, "owner")
        if self.label is not None:
            check_text(self.label, "label")

    @property
    def lease_ms(self) -> int:
        lease = to_ms(LEASE if self.lease is None else self.lease, "lease")
        if lease < 1:
            raise ValueError("lease: it must be at least a millisecond")
        return lease

    @property
    def warn_ms(self) -> int:
        if self.warn is None:
            return self.lease_ms // 6
        warn = to_ms(self.warn, "warn")
        if warn > self.lease_ms // 2:
            raise ValueError("warn: it must be at most half of the lease")
        return warn

    def within(self, most_ms: Optional[int]) -> Options:
        """Returns these options with a lease that the cluster allows, if the lease was left open.
        What it allows covers the lock delay, too."""
        if self.lease is not None or most_ms is None:
            return self
        delay_ms = to_ms(self.lock_delay, "lock_delay")
        lease_ms = min(self.lease_ms, most_ms - delay_ms if most_ms > delay_ms else most_ms)
        warn = None if self.warn is None else min(self.warn, lease_ms // 2 / 1000)
        return dataclasses.replace(self, lease=lease_ms / 1000, warn=warn)

    def params(self, client: Client) -> Dict[str, Any]:
        """Returns the parameters of an acquire, except for the keys and their modes."""
        said: Dict[str, Any] = {"lease_ms": self.lease_ms, "host": socket.gethostname()[:64],
                                "pid": os.getpid()}
        said["party"] = self.party or client._party
        said["owner"] = to_bytes(client.owner if self.owner is None else self.owner)
        label = client.label if self.label is None else self.label
        more = {
            "value": to_bytes(self.value),
            "priority": self.priority,
            "lock_delay_ms": to_ms(self.lock_delay, "lock_delay"),
            "release_on_disconnect": self.release_on_disconnect,
            "label": label,
            "election": self.election,
        }
        said.update({name: what for name, what in more.items() if what})
        return said


class Grant(NamedTuple):
    """What a node has granted."""

    result: Dict[str, Any]
    deadline: _clock.Instant
    # The lock_id of each key.
    ids: Dict[bytes, str]
    # The number of the connection on which the answer came.
    connection: int
    # The options, with the lease that was asked for in the end.
    options: Options

    @property
    def waited_ms(self) -> int:
        waited = self.result.get("waited_ms")
        return waited if isinstance(waited, int) else 0


async def acquire(client: Client, options: Options, which: Dict[str, Any]) -> Grant:
    """Acquires. If the lease was left open, and the default is longer than the cluster allows, it
    asks again with a lease that is allowed."""
    used = options.within(client._lease_most)
    try:
        return await _acquire(client, used, which)
    except BadRequestError as error:
        if error.field != "election":
            raise
        # The node is of a release that cannot mark a lock as an election.
        return await acquire(client, dataclasses.replace(options, election=False), which)
    except TooLongError as error:
        limit = error.details.get("limit_ms")
        shorter = options.within(limit if isinstance(limit, int) and limit > 0 else None)
        if shorter.lease_ms >= used.lease_ms:
            raise
        client._lease_most = limit
    return await _acquire(client, shorter, which)


async def _acquire(client: Client, options: Options, which: Dict[str, Any]) -> Grant:
    """Makes the request, which is one for the whole wait: a waiter that asks again goes to the end
    of the queue. A patient one asks again where it could not even wait."""
    params = dict(options.params(client), **which)
    end = (None
           if options.wait is None else _clock.now().plus(to_ms(options.wait, "wait") * _clock.MS))
    pause = PAUSE_FIRST
    while True:
        ms_left = (WAIT_FOREVER_MS if end is None
                   else _clock.left(end, _clock.now()) // _clock.MS)
        try:
            return await _acquire_once(client, options, params, ms_left)
        except PASSING:
            if not options.patient or ms_left <= pause * 1000:
                raise
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, PAUSE_LAST)


def _deadline_of(answer: Answer) -> _clock.Instant:
    valid_ms = answer.result.get("valid_ms")
    return answer.sent_at.plus((valid_ms if isinstance(valid_ms, int) else 0) * _clock.MS)


async def _acquire_once(client: Client, options: Options, params: Dict[str, Any],
                        wait_ms: int) -> Grant:
    failover = client._failover
    call = Call("acquire", params, "wait_ms", wait_ms)
    call.drawn = True
    call.draw_anew()
    answer = await failover.run(call)
    deadline = _deadline_of(answer)
    waited_ms = answer.result.get("waited_ms")
    if (isinstance(waited_ms, int) and waited_ms > options.lease_ms
        and _clock.distrusted(deadline, _clock.now())):
        # After a wait of a hundred leases the drift of the clocks over it is longer than the lease
        # (docs/protocol.md, What the holder may count on). The same lock_ids are asked for again.
        call = Call("acquire", call.params, "wait_ms", wait_ms)
        answer = await failover.run(call)
        deadline = _deadline_of(answer)
    if options.release_on_disconnect and answer.connection != failover.connection:
        failover.release_all(call)
        raise UnreachableError("the connection that the lock ends with was gone when the answer "
                               "came")
    if _clock.distrusted(deadline, _clock.now()):
        failover.release_all(call)
        raise LostError("the answer arrived after the lease had expired")
    return Grant(answer.result, deadline, dict(call.ids()), answer.connection, options)
