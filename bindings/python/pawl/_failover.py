"""Decides which node a client talks to, and owns the requests that are under way there: it tries
the endpoints in turn, repeats requests, and notices silent nodes."""

from __future__ import annotations

import asyncio
import collections
import ssl
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import _clock
from ._call import UNSURE_AFTERWARDS, Answer, Call
from ._endpoint import Endpoint, addresses
from ._errors import (
    BusyError, ClosedError, NoQuorumError, PawlError, ProtocolError, RecoveringError, TooLargeError,
    UnreachableError, UnsureError,
    WaitTimeoutError, from_wire,
)
from ._link import Link, as_pawl_error
from ._msgpack import REQUEST_BYTES_MAX, FormatError, pack
from ._resting import Resting
from ._rounds import Rounds

SILENCE_LEAST = 0.1
CALLS_MAX = 65536
PING_MSGID = 0


class Failover:
    """The client sets these functions:
    on_event: is called with the event of a notification.
    on_up, on_break: are called when a connection is there, and when it is about to be closed.
    lease_share: says for how many seconds one step may take while locks are held.
    bound: says whether a lock needs a connection, even without a request.
    listening: says whether the node sends events without being asked."""

    def __init__(
        self,
        endpoints: List[Endpoint],
        tls: Optional[ssl.SSLContext],
        server_name: Optional[str],
        timeout: float,
        connect_timeout: float,
        silence: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._rounds, self._tls, self._server_name = Rounds(endpoints), tls, server_name
        self.timeout, self._connect_timeout, self._silence = timeout, connect_timeout, silence
        self.on_event: Callable[[Dict[str, Any]], None] = lambda event: None
        self.on_up: Callable[[], None] = lambda: None
        self.on_break: Callable[[Link], None] = lambda link: None
        self.lease_share: Callable[[], float] = lambda: float("inf")
        self.bound: Callable[[], bool] = lambda: False
        self.listening: Callable[[], bool] = lambda: False
        self._queue: Deque[Call] = collections.deque()
        self._flight: Dict[int, Call] = {}
        self._resting = Resting(self._loop, self._come_back)
        self._msgid = PING_MSGID
        self._link: Optional[Link] = None
        # The number of the latest connection.
        self._connections = 0
        self._wanted = asyncio.Event()
        self._runner: Optional[asyncio.Task[None]] = None
        self._pulse_timer: Optional[asyncio.TimerHandle] = None
        self._last_error: Optional[PawlError] = None
        self.closed = False

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self._rounds.present.text if self._link is not None else ""

    # ---- calls ----

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
        if self._runner is None:
            self._runner = self._loop.create_task(self._main())
        self._wanted.set()
        if self._link is not None:
            self._flush()

    def _drop(self, call: Call) -> None:
        if self._flight.get(call.msgid) is call:
            del self._flight[call.msgid]
        elif call in self._queue:
            self._queue.remove(call)
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
        elif call.before is not None:  # This says more than the silence of other nodes.
            error = call.before
        elif self._link is not None or self._last_error is None:
            error = WaitTimeoutError("no answer came in time%s" % self._hint())
        else:
            error = self._last_error
        self._end(call, None, error)

    def _hint(self) -> str:
        """Names the node that accepted the connection and never sent anything, and says what may be
        wrong with it."""
        if self._link is None or self._link.talked:
            return ""
        return " from %s%s" % (self._rounds.present.text, self._rounds.present.silence_hint)

    # ---- sending ----

    def _flush(self) -> None:
        link = self._link
        if link is None or not self._queue:
            return
        idle = not self._flight
        while self._queue and link.up and link.writable:
            call = self._queue.popleft()
            if call.connection not in (0, link.number):
                self._end(call, None, self._last_error or UnreachableError())
            else:
                self._send(link, call)
        if idle:
            # The node may be silent while nobody waits for an answer.
            link.heard = max(link.heard, self._loop.time())
        self._pulse()

    def _send(self, link: Link, call: Call) -> None:
        self._msgid = self._msgid % 0xFFFFFFFF + 1
        while self._msgid in self._flight:
            self._msgid = self._msgid % 0xFFFFFFFF + 1
        sent_at = _clock.now()
        try:
            data = pack([0, self._msgid, call.method, [call.body(sent_at, link.number)]])
        except FormatError as error:
            call.finish(None, ProtocolError("the request cannot be sent: %s" % error))
            return
        if len(data) > REQUEST_BYTES_MAX:
            call.finish(None,
                        TooLargeError("the request is larger than %d bytes" % REQUEST_BYTES_MAX))
            return
        call.msgid, call.sent_at = self._msgid, sent_at
        call.sends += 1
        self._flight[call.msgid] = call
        link.send(data)

    # ---- what comes ----

    def _on_message(self, message: Any) -> None:
        link = self._link
        if link is None:
            return
        if isinstance(message, list) and len(message) == 3 and message[0] == 2:
            link.talked = True
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
        # An error with this msgid is the node's last word about the connection. Only `busy` is an
        # answer to the ping itself.
        if msgid == PING_MSGID and refused is not None and refused.code != "busy":
            link.fail(refused)
            return
        link.talked = True
        call = self._flight.get(msgid)
        if call is None:
            return  # This answers a ping, or a call that is over.
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

    def _on_refusal(self, link: Link, call: Call, error: PawlError) -> None:
        """Handles an error that the node returned. A node without its memory, or without a quorum,
        refuses for itself and not for the cluster, so the call moves on to another node. A call
        that was refused for a quota is sent again later."""
        if self._resting.take(call, error):
            del self._flight[call.msgid]
            return
        useless = isinstance(error, (RecoveringError, NoQuorumError))
        if (not useless or call.internal or not call.repeatable
            or call.moves + 1 >= self._rounds.count):
            self._end(call, None, error, True)
            return
        if call.method == "acquire" and isinstance(error, NoQuorumError):
            # The lock_id is used up. If the caller chose it, only the caller can choose another.
            if not call.drawn:
                self._end(call, None, error, True)
                return
            self.release_all(call)
            call.draw_anew()
        call.before = error
        call.moves += 1
        link.fail(error)

    @property
    def connection(self) -> int:
        """The number of the present connection; 0 if there is none."""
        return self._link.number if self._link is not None and self._link.up else 0

    @property
    def trouble(self) -> Optional[PawlError]:
        """Why there is no connection; None if there is one."""
        return None if self.connection else self._last_error

    def move_on(self, error: PawlError) -> None:
        """Leaves the present node for another one, because it is of no use."""
        if self._link is not None and self._rounds.count > 1:
            self._link.fail(error)

    # ---- connections ----

    async def _main(self) -> None:
        while not self.closed:
            if not self._queue and not self.bound():
                self._wanted.clear()
                await self._wanted.wait()
                continue
            endpoint = self._rounds.present
            for address in await self._addresses(endpoint):
                error, talked = await self._visit(endpoint, address)
                self._last_error = error
                if talked:
                    self._rounds.good()
                    break  # The other addresses of the endpoint lead to the same node.
            await self._go_on()

    async def _go_on(self) -> None:
        """Goes on to the next endpoint. After a round in which all have failed it pauses first."""
        error = self._last_error
        if not self._rounds.go_on(error):
            return
        # Waiting does not change certificates and access rules.
        if self._rounds.hopeless and error is not None:
            for call in list(self._queue):
                self._end(call, None, error)
        await asyncio.sleep(self._rounds.pause(self.lease_share()))

    async def _addresses(self, endpoint: Endpoint) -> List[Tuple[str, int]]:
        try:
            return await addresses(endpoint, min(self._connect_timeout, self.lease_share()))
        except UnreachableError as error:
            self._last_error = error
            return []

    async def _connect(self, endpoint: Endpoint, address: Tuple[str, int]) -> Link:
        link = Link(self._on_message, self._flush, self._on_down)
        if endpoint.path:
            await self._loop.create_unix_connection(lambda: link, endpoint.path)
        else:
            name = (self._server_name or endpoint.host) if endpoint.tls else None
            await self._loop.create_connection(
                lambda: link, address[0], address[1], ssl=self._tls if endpoint.tls else None,
                server_hostname=name
            )
        return link

    async def _visit(self, endpoint: Endpoint, address: Tuple[str, int]) -> Tuple[PawlError, bool]:
        """Connects, and returns when the connection is gone. Returns the cause, and whether the
        node has ever sent anything."""
        limit = min(self._connect_timeout, self.lease_share())
        try:
            link = await asyncio.wait_for(self._connect(endpoint, address), limit)
        except asyncio.TimeoutError:
            return UnreachableError("%s: connecting took too long" % endpoint.text), False
        except (OSError, ssl.SSLError) as error:
            return self._named(endpoint, as_pawl_error(error)), False
        if self.closed:
            link.close()
            return ClosedError(), False
        self._connections += 1
        self._link, link.number = link, self._connections
        if link.up:
            self.on_up()
        self._flush()
        try:
            reason = self._named(endpoint, await asyncio.shield(link.down),
                                 "" if link.talked else endpoint.silence_hint)
        finally:
            self._link = None
            link.close()
        self._connection_lost(reason)
        return reason, link.talked

    def _on_down(self, link: Link) -> None:
        if link is self._link:
            self.on_break(link)

    def _named(self, endpoint: Endpoint, error: PawlError, hint: str = "") -> PawlError:
        return type(error)("%s: %s%s" % (endpoint.text, error.message, hint), error.details)

    def _connection_lost(self, error: PawlError) -> None:
        """Puts the calls that were under way in front of those that were not sent yet, in the order
        in which they were sent, so that the next node gets them in this order."""
        calls = list(self._flight.values())
        self._flight.clear()
        self._queue.extendleft(reversed([call for call in calls if call.repeatable]))
        for call in calls:
            if call.method in UNSURE_AFTERWARDS:
                self._end(call, None,
                          UnsureError("%s; the request may have taken effect" % error.message))
            elif not call.repeatable:
                self._end(call, None, error if call.connection else ClosedError(error.message))

    # ---- silence ----

    def _pulse(self) -> None:
        """Notices a silent node. While an answer or an event is awaited, the node is pinged after
        half of the time for which it may be silent; nodes answer pings at once."""
        if self._pulse_timer is not None:
            self._pulse_timer.cancel()
            self._pulse_timer = None
        link = self._link
        if link is None or not (self._flight or self.listening()):
            return
        limit = max(SILENCE_LEAST, min(self._silence, self.lease_share()))
        now = self._loop.time()
        if link.pinged_at is None and now - link.heard >= limit / 2:
            link.send(pack([0, PING_MSGID, "ping", []]))
            link.pinged_at = now
        elif link.pinged_at is not None and now - link.pinged_at >= limit / 2:
            link.fail(WaitTimeoutError("the node does not answer"))
            return
        since = link.heard if link.pinged_at is None else link.pinged_at
        self._pulse_timer = self._loop.call_later(max(0.001, since + limit / 2 - now), self._pulse)

    # ---- the end ----

    def end_acquires(self) -> None:
        """Ends the acquires that are under way with ClosedError. Their lock_ids are released in the
        background."""
        for call in [*self._flight.values(), *self._queue, *self._resting]:
            if call.method == "acquire":
                self._end(call, None, ClosedError())

    async def close(self) -> None:
        """Ends all calls that are under way with ClosedError. The lock_ids of acquires are released
        as far as that can be done without waiting."""
        if self.closed:
            return
        for call in [*self._flight.values(), *self._queue, *self._resting]:
            self._end(call, None, ClosedError())
        self._flush()  # the releases of acquires
        self.closed = True
        for call in [*self._flight.values(), *self._queue, *self._resting]:
            call.finish(None, ClosedError())
        if self._pulse_timer is not None:
            self._pulse_timer.cancel()
        if self._link is not None:
            self._link.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
