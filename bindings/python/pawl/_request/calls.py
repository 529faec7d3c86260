"""Owns the requests that are under way: those that wait to be sent, and those that were sent, with
the connection of each. It evaluates the answers, and repeats requests."""

from __future__ import annotations

import asyncio
import collections
import random
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence

from .._env import clock
from .._env.errors import (
    BadRequestError, BusyError, ClosedError, NoQuorumError, PawlError, ProtocolError,
    RecoveringError, TooLargeError, UnreachableError, UnsureError, WaitTimeoutError, from_wire,
)
from .._link.failover import PING_MSGID, Failover
from .._link.link import Link
from .._link.msgpack import REQUEST_BYTES_MAX, FormatError, pack
from .call import TAKES_AWAY, UNSURE_AFTERWARDS, Answer, Call
from .follow import Followed
from .rest import Resting

CALLS_MAX = 65536
# A call that may wait pauses for about so many seconds after every node has refused it.
ROUND_PAUSE = 0.5


class _Flight(NamedTuple):
    """A call that was sent once and is not answered yet. A call that is sent again, because its
    node was left, has two flights."""

    call: Call
    link: Link
    sent_at: clock.Instant


class Calls:
    """The client sets these functions:
    on_event: is called with the event of a notification.
    on_taken_away: is called with a call that takes something from a holder, before it is sent."""

    def __init__(self, failover: Failover, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.failover, self.timeout = failover, timeout
        failover.waiting = lambda: bool(self._queue)
        failover.on_message, failover.on_room = self._on_message, self._flush
        failover.on_lost, failover.on_switch = self._connection_lost, self._link_left
        failover.on_hopeless, failover.may_return = self._end_queued, self._may_return
        self.on_event: Callable[[Dict[str, Any]], None] = lambda event: None
        self.on_taken_away: Callable[[Call], None] = lambda call: None
        self._queue: Deque[Call] = collections.deque()
        self._flight: Dict[int, _Flight] = {}
        self._resting = Resting(self._loop, self._come_back)
        self._followed = Followed(failover, self._send, self._land_aside, self._end_lost,
                                  lambda call, error, said: self._end(call, None, error, said))
        # The releases that are under way, whoever waits for them.
        self._releases: Dict[asyncio.Future[Any], None] = {}
        # A first request with the msgid 1 would look to OpenSSL like the begin of an old SSL, so
        # that a port with TLS would wait for more instead of closing the connection.
        self._msgid = 1
        # Nothing but releases is started any more; then nothing at all.
        self.closing = self.closed = False
        # The traceparent of all requests that have none of their own.
        self.trace: Optional[str] = None

    async def run(self, call: Call, timeout: Optional[float] = None,
                  moved: Optional[PawlError] = None) -> Answer:
        """Starts the call and waits for its outcome. If the outcome of an acquire stays unknown,
        its lock_ids are released in the background. moved: a node has said already where to ask."""
        self.start(call, timeout, moved)
        return await self.wait(call)

    async def wait(self, call: Call) -> Answer:
        """Waits for the outcome of a call that was started. If this is canceled, so is the call."""
        try:
            return await call.future
        except asyncio.CancelledError:
            self._forget(call)
            raise

    def let_go(self, key: bytes, lock_id: str, lease: float,
               close_ms: int = 0) -> asyncio.Future[Answer]:
        """Begins to release a lock whose lease is that many seconds long, and keeps the key closed
        for so many milliseconds. Nothing that happens to the caller stops that: it goes on until it
        succeeds, all nodes refuse it, or the lease has run out. Closing the client waits for it for
        a moment."""
        call = Call("release", {"key": key, "lock_id": lock_id,
                                **({"close_ms": close_ms} if close_ms else {})})
        self.go_on(call.future)
        try:
            self.start(call, max(lease, self.timeout))
        except PawlError as error:
            call.finish(None, error)
        return call.future

    def go_on(self, release: asyncio.Future[Any]) -> None:
        """Lets a release go on, whoever waits for it."""
        self._releases[release] = None
        release.add_done_callback(self._released)

    def _released(self, release: asyncio.Future[Any]) -> None:
        self._releases.pop(release, None)
        if not release.cancelled():
            release.exception()  # Nobody has to look at it.

    async def outcomes(self, parting: Sequence[asyncio.Future[Any]]) -> List[Any]:
        """Waits for what goes on even if this is canceled. Raises the first error."""
        if parting:
            await asyncio.wait(parting, timeout=self.timeout)
        if not all(one.done() for one in parting):
            raise self._late()
        return [one.result() for one in parting]

    def start(self, call: Call, timeout: Optional[float] = None,
              moved: Optional[PawlError] = None) -> None:
        if self.closed or (self.closing and call.method != "release"):
            raise ClosedError()
        most = CALLS_MAX * (2 if call.internal or call.method == "release" else 1)
        if len(self._queue) + len(self._flight) + len(self._resting) + len(self._followed) >= most:
            raise BusyError("too many requests are in progress")
        if call.method in TAKES_AWAY:
            self.on_taken_away(call)
        limit = self.timeout if timeout is None else timeout
        wait = clock.left(call.wait_end, clock.now()) / clock.SECOND
        call.timer = self._loop.call_later(wait + limit, self._on_deadline, call)
        if moved is not None:
            if not self._followed.take(call, self.failover.link, moved):
                self._end(call, None, moved, True)
            return
        if call.internal:
            self._queue.appendleft(call)
        else:
            self._queue.append(call)
        self._kick()

    def _come_back(self, call: Call) -> None:
        self._queue.append(call)
        self._kick()

    def _kick(self) -> None:
        self.failover.connect()
        self._flush()

    def _land(self, msgid: int) -> None:
        """Forgets the flight with this msgid, if there is one."""
        flight = self._flight.pop(msgid, None)
        if flight is not None:
            flight.link.silence.ended(flight.call.waits)

    def _drop(self, call: Call) -> None:
        if call.msgid in self._flight and self._flight[call.msgid].call is call:
            self._land(call.msgid)
        elif call in self._queue:
            self._queue.remove(call)
        self._land(call.before)
        self._resting.drop(call)
        self._followed.drop(call)

    def _forget(self, call: Call) -> None:
        self._drop(call)
        if call.in_doubt(None, False):
            self.release_all(call)
        if call.timer is not None:
            call.timer.cancel()

    def _end(self, call: Call, answer: Optional[Answer], error: Optional[PawlError],
             answered: bool = False) -> None:
        self._drop(call)
        if error is not None and call.in_doubt(error, answered):
            self.release_all(call)
        call.finish(answer, error)

    def release_all(self, call: Call) -> None:
        """Releases what an acquire may have taken, in the background. The outcome is ignored: at
        worst the lease runs out by itself."""
        lease_ms = call.params.get("lease_ms")
        for key, lock_id in call.ids():
            self.let_go(key, lock_id, lease_ms / 1000 if isinstance(lease_ms, int) else 0.0)

    async def settle_releases(self, seconds: float) -> None:
        """Waits for the releases that are under way, for at most this long."""
        if self._releases:
            await asyncio.wait(list(self._releases), timeout=seconds)

    def _late(self) -> PawlError:
        if self.failover.link is not None or self.failover.last_error is None:
            return WaitTimeoutError("no answer came in time%s" % self.failover.hint)
        return self.failover.last_error

    def _on_deadline(self, call: Call) -> None:
        if call.method in UNSURE_AFTERWARDS and call.sends > 0:
            error: PawlError = UnsureError("no answer came in time; the request may still take "
                                           "effect")
        else:  # A refusal says more than the silence of other nodes.
            error = call.refusal or self._late()
        self._end(call, None, error)

    # ---- sending ----

    def _flush(self) -> None:
        link = self.failover.link
        if link is None or not self._queue:
            return
        while self._queue and link.up and link.writable:
            call = self._queue.popleft()
            if call.connection not in (0, link.number):
                self._end(call, None, self.failover.last_error or UnreachableError())
            else:
                self._send(link, call)

    def _send(self, link: Link, call: Call) -> None:
        self._msgid = self._msgid % 0xFFFFFFFF + 1
        while self._msgid in self._flight:
            self._msgid = self._msgid % 0xFFFFFFFF + 1
        sent_at = clock.now()
        try:
            body = call.body(sent_at, link.number)
            if self.trace and link.knows_trace:
                body = {"trace": self.trace, **body}
            data = pack([0, self._msgid, call.method, [body]])
        except FormatError as error:
            call.finish(None, ProtocolError("the request cannot be sent: %s" % error))
            return
        if len(data) > REQUEST_BYTES_MAX:
            call.finish(None,
                        TooLargeError("the request is larger than %d bytes" % REQUEST_BYTES_MAX))
            return
        call.msgid, call.sent_at = self._msgid, sent_at
        call.sends += 1
        self._flight[call.msgid] = _Flight(call, link, sent_at)
        link.send(data)
        link.silence.sent(call.waits)

    # ---- what comes ----

    def _on_message(self, link: Link, message: Any) -> None:
        if isinstance(message, list) and len(message) == 3 and message[0] == 2:
            link.talked = True
            # The numbers of watches are those of the present node.
            if link is self.failover.link:
                self._on_notification(message)
        elif (isinstance(message, list) and len(message) == 4 and message[0] == 1
              and isinstance(message[1], int)):
            self._on_response(link, message[1], message[2], message[3])
        else:
            link.fail(ProtocolError("the answer does not follow Pawl's protocol: is this the "
                                    "client port of a Pawl node?"))

    def _on_notification(self, message: List[Any]) -> None:
        params = message[2]
        if (message[1] == "event" and isinstance(params, list) and params
            and isinstance(params[0], dict)):
            self.on_event(params[0])

    def _on_response(self, link: Link, msgid: int, error: Any, result: Any) -> None:
        refused = None if error is None else from_wire(error)
        if msgid == PING_MSGID:
            # An error with this msgid is the node's last word about the connection. Only `busy` is
            # an answer to the ping itself.
            if refused is not None and refused.code != "busy":
                link.fail(refused)
                return
            link.silence.ponged()
            if not link.pong.done():
                link.pong.set_result(None)
        link.talked = True
        flight = self._flight.get(msgid)
        if flight is None or flight.link is not link:
            return  # This answers a ping, or a call that is over.
        call = flight.call
        if msgid == call.before and (refused is not None or call.binds
                                     or not isinstance(result, (dict, type(None)))):
            # The node that was left refuses, and the next one may do better. Or it has granted a
            # lock that must end with the present connection, and not with the one that was left.
            self._land(msgid)
            return
        call.sent_at = flight.sent_at
        if not call.waits:
            took = (clock.now().boot - flight.sent_at.boot) / clock.SECOND
            self.failover.answered(link, took)
        if refused is not None:
            self._on_refusal(link, call, refused)
        elif not isinstance(result, dict) and result is not None:
            self._end(call, None, ProtocolError("the result is not a map"), True)
        else:
            found = result or {}
            try:
                if call.on_answer is not None:
                    call.on_answer(found)
            except PawlError as problem:
                self._end(call, None, problem, True)
            else:
                self._end(call, Answer(found, call.sent_at, link.number), None)

    def _leave_out(self, link: Link, call: Call, error: PawlError) -> bool:
        """A node of release 0.1 does not know the parameters `party` and `trace`. Takes the one
        that was refused out of the call. Returns whether it did; the refusal had no effect."""
        if not isinstance(error, BadRequestError):
            return False
        if error.field == "trace" and self.trace and call.untraced != link.number:
            link.knows_trace, call.untraced = False, link.number
            return True
        if error.field != "party" or "party" not in call.params:
            return False
        call.params = {k: v for k, v in call.params.items() if k != "party"}
        return True

    def _on_refusal(self, link: Link, call: Call, error: PawlError) -> None:
        """Handles an error that the node returned. A node without its memory, or without a quorum,
        refuses for itself and not for the cluster, so the call moves on to another node. It asks
        each node once, or for as long as it may wait, with a pause after each round. A call that
        was refused for a quota is sent again later."""
        if call.moved:
            self._on_refusal_aside(link, call, error)
            return
        if self._followed.take(call, link, error):
            self._land(call.msgid)
            self._land(call.before)
            return
        if self._resting.take(call, error):
            self._land(call.msgid)
            return
        if self._leave_out(link, call, error):
            call.sends -= 1
            self._land(call.msgid)
            self._queue.appendleft(call)
            self._kick()
            return
        useless = isinstance(error, (RecoveringError, NoQuorumError))
        if (not useless or call.internal or not call.repeatable
            or (call.moves + 1 >= self.failover.count and not call.may_still_wait)):
            self._end(call, None, error, True)
            return
        if call.method == "acquire" and isinstance(error, NoQuorumError):
            # The lock_id is used up. If the caller chose it, only the caller can choose another.
            if not call.drawn:
                self._end(call, None, error, True)
                return
            # An answer on the connection that was left would be about the previous lock_ids.
            self._land(call.before)
            self.release_all(call)
            call.draw_anew()
        call.refusal = error
        call.moves += 1
        if call.moves % self.failover.count == 0:
            self._land(call.msgid)
            self._resting.rest(call, random.uniform(0.5, 1.5) * ROUND_PAUSE)
            if link is self.failover.link and self.failover.count > 1:
                link.fail(error)
        elif link is self.failover.link:
            link.fail(error)
        else:  # The client has left that node already.
            self._land(call.msgid)
            self._queue.appendleft(call)
            self._kick()

    def _on_refusal_aside(self, link: Link, call: Call, error: PawlError) -> None:
        """Handles an error that a node of another cluster returned."""
        if isinstance(error, RecoveringError):
            call.sends -= 1
            self._land(call.msgid)
            link.fail(error)  # The next one of the endpoints that were named is asked.
        else:
            self._end(call, None, error, True)

    def _land_aside(self, call: Call) -> bool:
        under_way = call.msgid in self._flight and self._flight[call.msgid].call is call
        if under_way:
            self._land(call.msgid)
        return under_way

    # ---- the end of a connection, and of all ----

    def _under_way(self, link: Link) -> List[Call]:
        """Returns the calls that were last sent over this connection, in the order of sending."""
        return [flight.call for msgid, flight in self._flight.items()
                if flight.link is link and msgid == flight.call.msgid]

    def _connection_lost(self, link: Link, error: PawlError) -> None:
        """Puts the calls that were under way in front of those that were not sent yet, in the order
        in which they were sent, so that the next node gets them in this order."""
        calls = self._under_way(link)
        for msgid in [m for m, flight in self._flight.items() if flight.link is link]:
            self._land(msgid)
        self._queue.extendleft(reversed([call for call in calls if call.repeatable]))
        for call in calls:
            if not call.repeatable:
                self._end_lost(call, error)

    def _link_left(self, link: Link, repeat: bool) -> int:
        """The node is left while its answers still count. repeat: it is silent, so what may be
        repeated is sent again. Returns how many calls are."""
        calls = self._under_way(link)
        # The number of a watch belongs to the connection, so an answer would be of no use.
        again = [call for call in calls if repeat and call.repeatable or call.method == "watch"]
        for call in again:
            self._land(call.before)
            call.before, call.msgid = call.msgid, 0
            if call.method == "watch":
                self._land(call.before)
                call.before = 0
        self._queue.extendleft(reversed(again))
        for call in calls:
            if call.connection:
                self._end_lost(call, UnreachableError("its node was left"))
        return len(again)

    def _may_return(self) -> bool:
        return not any(flight.call.binds for flight in self._flight.values())

    def _end_queued(self, error: PawlError) -> None:
        for call in list(self._queue):
            self._end(call, None, error)

    def _end_lost(self, call: Call, error: PawlError) -> None:
        if call.method in UNSURE_AFTERWARDS:
            self._end(call, None,
                      UnsureError("%s; the request may have taken effect" % error.message))
        else:
            self._end(call, None, error if call.connection else ClosedError(error.message))

    async def close(self) -> None:
        """Ends all calls that are under way with ClosedError. The lock_ids of acquires are released
        as far as that can be done without waiting."""
        if self.closed:
            return
        for call in self._all():
            self._end(call, None, ClosedError())
        self._flush()  # the releases of acquires
        self.closing = self.closed = True
        for call in self._all():
            call.finish(None, ClosedError())
        await self.failover.close()

    def end_acquires(self) -> None:
        """Ends the acquires that are under way with ClosedError. Their lock_ids are released in the
        background."""
        for call in self._all():
            if call.method == "acquire":
                self._end(call, None, ClosedError())

    def _all(self) -> List[Call]:
        return [*dict.fromkeys(flight.call for flight in self._flight.values()), *self._queue,
                *self._resting, *self._followed]
