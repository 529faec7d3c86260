"""The request that acquires a lock."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from typing import Any, Dict, NamedTuple

from .._env import clock
from .._env.arguments import to_ms
from .._env.errors import (
    BadRequestError, BusyError, IndeterminateError, LostError, NoQuorumError, QuotaError,
    RecoveringError, TooLongError, UnreachableError,
)
from .._request.call import Answer, Call
from .holder import Holder
from .options import Options

# The longest wait of the protocol: many years.
WAIT_FOREVER_MS = 10**12
PASSING = (NoQuorumError, RecoveringError, UnreachableError, BusyError, IndeterminateError,
           QuotaError)
PAUSE_FIRST, PAUSE_LAST = 0.1, 5.0


class Grant(NamedTuple):
    """What a node has granted."""

    result: Dict[str, Any]
    deadline: clock.Instant
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


async def acquire(client: Holder, options: Options, which: Dict[str, Any]) -> Grant:
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


async def _acquire(client: Holder, options: Options, which: Dict[str, Any]) -> Grant:
    """Makes the request, which is one for the whole wait: a waiter that asks again goes to the end
    of the queue. A patient one asks again where it could not even wait."""
    params = dict(options.params(client), **which)
    end = (None
           if options.wait is None else clock.now().plus(to_ms(options.wait, "wait") * clock.MS))
    pause = PAUSE_FIRST
    while True:
        ms_left = (WAIT_FOREVER_MS if end is None
                   else clock.left(end, clock.now()) // clock.MS)
        try:
            return await _acquire_once(client, options, params, ms_left)
        except PASSING:
            if not options.patient or ms_left <= pause * 1000:
                raise
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, PAUSE_LAST)


def _deadline_of(answer: Answer) -> clock.Instant:
    valid_ms = answer.result.get("valid_ms")
    return answer.sent_at.plus((valid_ms if isinstance(valid_ms, int) else 0) * clock.MS)


async def _acquire_once(client: Holder, options: Options, params: Dict[str, Any],
                        wait_ms: int) -> Grant:
    calls = client._calls
    call = Call("acquire", params, "wait_ms", wait_ms)
    call.drawn = True
    call.draw_anew()
    answer = await calls.run(call)
    deadline = _deadline_of(answer)
    waited_ms = answer.result.get("waited_ms")
    if (isinstance(waited_ms, int) and waited_ms > options.lease_ms
        and clock.distrusted(deadline, clock.now())):
        # After a wait of a hundred leases the drift of the clocks over it is longer than the lease
        # (docs/protocol.md, What the holder may count on). The same lock_ids are asked for again.
        call = Call("acquire", call.params, "wait_ms", wait_ms)
        call.sends = 1  # The first request has taken the lock: without an answer it is released.
        answer = await calls.run(call)
        deadline = _deadline_of(answer)
    if options.release_on_disconnect and answer.connection != calls.failover.connection:
        calls.release_all(call)
        raise UnreachableError("the connection that the lock ends with was gone when the answer "
                               "came")
    if clock.distrusted(deadline, clock.now()):
        calls.release_all(call)
        raise LostError("the answer arrived after the lease had expired")
    return Grant(answer.result, deadline, dict(call.ids()), answer.connection, options)
