"""Decides which node a client talks to: it tries the endpoints in turn, and leaves a silent node
for another one, while the answers of the silent one still count."""

from __future__ import annotations

import asyncio
import ssl
from typing import Callable, List, Optional, Tuple

from ._calls import PING_MSGID, Calls
from ._endpoint import Endpoint, addresses
from ._errors import ClosedError, PawlError, UnreachableError, WaitTimeoutError
from ._link import Link, as_pawl_error
from ._msgpack import pack
from ._rounds import Rounds
from ._silence import Silence
from ._spare import LEAST, TIMES, Spare
from ._tasks import background

SILENCE_LEAST = 0.1
# How long the client stays at another endpoint before it returns to the first one. If it has to
# leave the first one again soon, it stays longer.
RETURN_FIRST, RETURN_LAST = 10.0, 640.0


class Failover(Calls):
    """The client sets these functions:
    on_up: is called when another connection is the present one.
    on_left: is called when the present connection is not the present one any more.
    on_break: is called when a connection is about to be closed.
    needed: says whether a connection that was left must stay open.
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
        prefer_first: bool,
    ) -> None:
        super().__init__(timeout, len(endpoints))
        self._rounds = Rounds(endpoints, prefer_first)
        self._tls, self._server_name = tls, server_name
        self._connect_timeout, self._silence = connect_timeout, silence
        self.on_up: Callable[[], None] = lambda: None
        self.on_left: Callable[[], None] = lambda: None
        self.on_break: Callable[[Link], None] = lambda link: None
        self.needed: Callable[[Link], bool] = lambda link: False
        self.lease_share: Callable[[], float] = lambda: float("inf")
        self.bound: Callable[[], bool] = lambda: False
        self.listening: Callable[[], bool] = lambda: False
        # The connection that was left, and is still read.
        self._old: Optional[Link] = None
        # Why the present connection is gone.
        self._gone: asyncio.Future[PawlError] = self._loop.create_future()
        # The number of the latest connection.
        self._connections = 0
        self._spare = Spare(self._connect_to, self._on_spare)
        # An answer on the old connection before this time says that it was left too early.
        self._left_early_until = 0.0
        self._prefer_first = prefer_first and len(endpoints) > 1
        # The spare connection is for the return to the first endpoint.
        self._returning = False
        self._return_pause, self._returned_at = RETURN_FIRST, 0.0
        self._return_timer: Optional[asyncio.TimerHandle] = None
        self._wanted = asyncio.Event()
        self._runner: Optional[asyncio.Task[None]] = None

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self._rounds.present.text if self._link is not None else ""

    def _connection_wanted(self) -> None:
        if self._runner is None:
            self._runner = background(self._main())
        self._wanted.set()

    def _hint(self) -> str:
        """Names the node that accepted the connection and never sent anything, and says what may be
        wrong with it."""
        if self._link is None or self._link.talked:
            return ""
        return " from %s%s" % (self._rounds.present.text, self._rounds.present.silence_hint)

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

    async def _connect(self, at: int, address: Tuple[str, int]) -> Link:
        endpoint = self._rounds.endpoint(at)
        silence = Silence(self._patience)
        link = Link(at, silence, self._on_message, self._flush, self._on_heard, self._on_down)
        silence.whole = self._whole
        silence.may_leave = lambda: link is self._link and self._rounds.count > 1
        silence.listening = lambda: link is self._link and self.listening()
        silence.ping = lambda: link.send(pack([0, PING_MSGID, "ping", []]))
        silence.quiet = self._on_quiet
        silence.overdue = self._on_overdue
        silence.lost = lambda: link.fail(WaitTimeoutError("the node does not answer"))
        if endpoint.path:
            await self._loop.create_unix_connection(lambda: link, endpoint.path)
        else:
            name = (self._server_name or endpoint.host) if endpoint.tls else None
            await self._loop.create_connection(
                lambda: link, address[0], address[1], ssl=self._tls if endpoint.tls else None,
                server_hostname=name
            )
        return link

    async def _connect_to(self, at: int) -> Link:
        """Connects with the endpoint of that number for a spare connection: tries its addresses in
        turn."""
        last: BaseException = UnreachableError()
        for address in await addresses(self._rounds.endpoint(at), self._connect_timeout):
            try:
                return await self._connect(at, address)
            except (OSError, ssl.SSLError) as error:
                last = error
        raise last

    async def _visit(self, endpoint: Endpoint, address: Tuple[str, int]) -> Tuple[PawlError, bool]:
        """Connects, and returns when that connection is gone, or the one of another node that it
        was left for. Returns the cause, and whether the node has ever sent anything."""
        limit = min(self._connect_timeout, self.lease_share())
        try:
            link = await asyncio.wait_for(self._connect(self._rounds.at, address), limit)
        except asyncio.TimeoutError:
            return UnreachableError("%s: connecting took too long" % endpoint.text), False
        except (OSError, ssl.SSLError) as error:
            return self._named(endpoint, as_pawl_error(error)), False
        if self.closed:
            link.close()
            return ClosedError(), False
        self._gone = self._loop.create_future()
        self._arrive(link)
        if not link.up and not self._gone.done():
            self._gone.set_result(link.down.result())
        try:
            gone = await self._gone
        finally:
            last, self._link = self._link or link, None
            self._spare.drop()
            self._returning = False
            last.close()
        endpoint = self._rounds.endpoint(last.endpoint)
        reason = self._named(endpoint, gone, "" if last.talked else endpoint.silence_hint)
        self._connection_lost(last, reason)
        return reason, last.talked

    def _arrive(self, link: Link) -> None:
        """Makes this the present connection."""
        self._connections += 1
        self._link, link.number = link, self._connections
        self._rounds.at = link.endpoint
        self._plan_return()
        if link.up:
            self.on_up()
        link.silence.reset()
        self._flush()

    def _on_down(self, link: Link) -> None:
        if link is self._link:
            self.on_break(link)
            self.on_left()
            if not self._gone.done():
                self._gone.set_result(link.down.result())
        elif link is self._old:
            self._old = None
            self.on_break(link)
            endpoint = self._rounds.endpoint(link.endpoint)
            self._connection_lost(link, self._named(endpoint, link.down.result()))
            self._flush()

    def _named(self, endpoint: Endpoint, error: PawlError, hint: str = "") -> PawlError:
        return type(error)("%s: %s%s" % (endpoint.text, error.message, hint), error.details)

    # ---- a silent node ----

    def _whole(self, owed: bool) -> float:
        """Returns for how many seconds a node may be silent before the connection is given up. If
        only events are awaited, the limit is longer, so that idle watchers do not send ping after
        ping."""
        if not owed:
            return self._silence * 4
        return max(SILENCE_LEAST, min(self._silence, self.lease_share()))

    def _spare_limit(self) -> float:
        limit = min(self._connect_timeout, self.lease_share())
        return min(limit, max(LEAST, TIMES * self._patience.time(limit)))

    def _dial_spare(self) -> None:
        if self._patience.allows:
            old = self._old.endpoint if self._old is not None else None
            self._returning = False
            self._spare.dial(self._rounds.others(old), self._spare_limit())

    def _on_quiet(self, answer_due: bool) -> None:
        if answer_due and self._link is not None and self._rounds.count > 1:
            self._dial_spare()

    def _on_overdue(self) -> None:
        if self._spare.link is None or not self._spare.link.up:
            self._dial_spare()
        elif self._patience.allows:
            self._switch(True)

    def _on_spare(self, spare: Link) -> None:
        if self._link is None or not self._link.up:
            self._spare.drop()
        elif self._link.silence.is_overdue:
            self._switch(True)
        elif self._returning and any(flight.call.binds for flight in self._flight.values()):
            self._spare.drop()
            self._return_later()
        elif self._returning:
            self._returned_at = self._loop.time()
            self._switch(False)

    def _on_heard(self, link: Link) -> None:
        if link is self._link and not self._returning:
            self._spare.drop()
        elif link is self._old:
            now = self._loop.time()
            if now < self._left_early_until:
                self._patience.too_short(now)
            self._left_early_until = 0.0
            self.settle()

    def _switch(self, repeat: bool) -> None:
        """Leaves the present connection for the spare one. repeat: the node is silent, and the
        calls that may be repeated are sent again; otherwise they stay there."""
        left, old = self._link, self._old
        if old is not None:
            old.fail(WaitTimeoutError("the node does not answer"))
        self._returning = False
        spare = self._spare.take()
        if left is None or spare is None:
            return
        now = self._loop.time()
        self._left_early_until = now + self._patience.time(self._silence / 2) if repeat else 0.0
        self._old, self._link = left, None
        self.on_left()
        calls = self._under_way(left)
        again = [call for call in calls if repeat and call.repeatable]
        for call in again:
            self._land(call.before)
            call.before, call.msgid = call.msgid, 0
        self._queue.extendleft(reversed(again))
        if repeat:
            self._patience.switched(len(again), now)
        for call in calls:
            if call.connection:
                self._end_lost(call, UnreachableError("its node was left"))
        self._arrive(spare)
        left.silence.reset()
        self.settle()

    def settle(self) -> None:
        """Closes the connection that was left once nothing depends on it any more."""
        old = self._old
        if (old is not None and not old.silence.flights and not old.silence.owed
            and not old.silence.pong_due and not self.needed(old)):
            self._old = None
            old.close()

    def _plan_return(self) -> None:
        if self._return_timer is not None:
            self._return_timer.cancel()
            self._return_timer = None
        if self._prefer_first and self._rounds.at != 0:
            soon = (self._returned_at
                    and self._loop.time() - self._returned_at < 8 * self._return_pause)
            self._return_pause = (min(RETURN_LAST, 2 * self._return_pause) if soon
                                  else RETURN_FIRST)
            self._return_later()

    def _return_later(self) -> None:
        self._returning = False
        self._return_timer = self._loop.call_later(self._return_pause, self._return)

    def _return(self) -> None:
        self._return_timer = None
        if self.closed or self._rounds.at == 0:
            return
        if self._link is None or not self._spare.idle or self._link.silence.pinged:
            self._return_later()
            return
        self._returning = True
        self._spare.dial([0], self._spare_limit(), self._return_later)

    # ---- the end ----

    async def close(self) -> None:
        """Ends all calls that are under way with ClosedError. The lock_ids of acquires are released
        as far as that can be done without waiting."""
        if self.closed:
            return
        for call in self._all():
            self._end(call, None, ClosedError())
        self._flush()  # the releases of acquires
        self.closed = True
        for call in self._all():
            call.finish(None, ClosedError())
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._spare.drop()
        for link in (self._link, self._old):
            if link is not None:
                link.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
