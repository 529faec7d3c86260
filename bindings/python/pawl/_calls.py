"""Owns the requests that are under way: those that wait to be sent, and those that were sent, with
the connection of each. It evaluates the answers, and repeats requests."""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional

from . import _clock
from ._call import UNSURE_AFTERWARDS, Answer, Call
from ._errors import (
    BadRequestError, BusyError, ClosedError, NoQuorumError, PawlError, ProtocolError,
    RecoveringError, TooLargeError, UnreachableError, UnsureError, WaitTimeoutError, from_wire,
)
from ._link import Link
from ._msgpack import REQUEST_BYTES_MAX, FormatError, pack
from ._patience import Patience
from ._resting import Resting

CALLS_MAX = 65536
PING_MSGID = 0


class _Flight(NamedTuple):
    """A call that was sent once and is not answered yet. A call that is sent again, because its
    node was left, has two flights."""

    call: Call
    link: Link
    sent_at: _clock.Instant


class Calls:
    """Failover derives from this class, and keeps the present connection, `_link`.
    on_event: the client sets this function; it is called with the event of a notification."""

    def __init__(self, timeout: float, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.timeout = timeout
        # The number of endpoints.
        self._count = count
        self.on_event: Callable[[Dict[str, Any]], None] = lambda event: None
        self._queue: Deque[Call] = collections.deque()
        self._flight: Dict[int, _Flight] = {}
        self._resting = Resting(self._loop, self._come_back)
        # A first request with the msgid 1 would look to OpenSSL like the begin of an old SSL, so
        # that a port with TLS would wait for more instead of closing the connection.
        self._msgid = 1
        self._link: Optional[Link] = None
        self._patience = Patience()
        self._last_error: Optional[PawlError] = None
        self.closed = False
        # The traceparent of all requests that have none of their own.
        self.trace: Optional[str] = None

    def _connection_wanted(self) -> None:
        """Makes a connection if there is none, because something is to be sent."""
        raise NotImplementedError

    def _hint(self) -> str:
        """Names a node that accepted the connection and never sent anything, and says what may be
        wrong with it. Returns an empty text if there is no such node."""
        raise NotImplementedError

    async def run(self, call: Call, timeout: Optional[float] = None) -> Answer:
        """Starts the call and waits for its outcome. If the outcome of an acquire stays unknown,
        its lock_ids are released in the background."""
        self.start(call, timeout)
        try:
            return await call.future
        except asyncio.CancelledError:
            self._forget(call)
            raise

    def start(self, call: Call, timeout: Optional[float] = None) -> None:
        if self.closed:
            raise ClosedError()
        most = CALLS_MAX * (2 if call.internal else 1)
        if len(self._queue) + len(self._flight) + len(self._resting) >= most:
            raise BusyError("too many requests are in progress")
        limit = self.timeout if timeout is None else timeout
        wait = _clock.left(call.wait_end, _clock.now()) / _clock.SECOND
        call.timer = self._loop.call_later(wait + limit, self._on_deadline, call)
        if call.internal:
            self._queue.appendleft(call)
        else:
            self._queue.append(call)
        self._kick()

    def _come_back(self, call: Call) -> None:
        self._queue.append(call)
        self._kick()

    def _kick(self) -> None:
        self._connection_wanted()
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
        for key, lock_id in call.ids():
            self.release_quietly(key, lock_id)

    def release_quietly(self, key: bytes, lock_id: str) -> None:
        """Releases a lock in the background. The outcome is ignored: at worst the lease runs out by
        itself."""
        if self.closed:
            return
        release = Call("release", {"key": key, "lock_id": lock_id})
        release.internal = True
        release.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.start(release)

    def _on_deadline(self, call: Call) -> None:
        if call.method in UNSURE_AFTERWARDS and call.sends > 0:
            error: PawlError = UnsureError("no answer came in time; the request may still take "
                                           "effect")
        elif call.refusal is not None:  # This says more than the silence of other nodes.
            error = call.refusal
        elif self._link is not None or self._last_error is None:
            error = WaitTimeoutError("no answer came in time%s" % self._hint())
        else:
            error = self._last_error
        self._end(call, None, error)

    # ---- sending ----

    def _flush(self) -> None:
        link = self._link
        if link is None or not self._queue:
            return
        while self._queue and link.up and link.writable:
            call = self._queue.popleft()
            if call.connection not in (0, link.number):
                self._end(call, None, self._last_error or UnreachableError())
            else:
                self._send(link, call)

    def _send(self, link: Link, call: Call) -> None:
        self._msgid = self._msgid % 0xFFFFFFFF + 1
        while self._msgid in self._flight:
            self._msgid = self._msgid % 0xFFFFFFFF + 1
        sent_at = _clock.now()
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
            if link is self._link:
                self._on_notification(message)
        elif (isinstance(message, list) and len(message) == 4 and message[0] == 1
              and isinstance(message[1], int)):
            self._on_response(link, message[1], message[2], message[3])
        else:
            link.fail(ProtocolError("the answer does not follow Pawl's protocol"))

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
        if link is self._link and not call.waits:
            took = (_clock.now().boot - flight.sent_at.boot) / _clock.SECOND
            self._patience.answered(took, self._loop.time())
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
        refuses for itself and not for the cluster, so the call moves on to another node. A call
        that was refused for a quota is sent again later."""
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
            or call.moves + 1 >= self._count):
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
        if link is self._link:
            link.fail(error)
        else:  # The client has left that node already.
            self._land(call.msgid)
            self._queue.appendleft(call)
            self._kick()

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

    def _end_lost(self, call: Call, error: PawlError) -> None:
        if call.method in UNSURE_AFTERWARDS:
            self._end(call, None,
                      UnsureError("%s; the request may have taken effect" % error.message))
        else:
            self._end(call, None, error if call.connection else ClosedError(error.message))

    def end_acquires(self) -> None:
        """Ends the acquires that are under way with ClosedError. Their lock_ids are released in the
        background."""
        for call in self._all():
            if call.method == "acquire":
                self._end(call, None, ClosedError())

    def _all(self) -> List[Call]:
        return [*dict.fromkeys(flight.call for flight in self._flight.values()), *self._queue,
                *self._resting]
