"""Decides which node a client talks to: it tries the endpoints in turn, and leaves a silent node
for another one, while the answers of the silent one still count."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, AsyncIterator, Callable, List, Optional, Tuple, Union

from .._env.errors import (ClosedError, PawlError, ProtocolError, TlsError, UnreachableError,
                           WaitTimeoutError)
from .._env.tasks import background
from .endpoint import Endpoint
from .endpoint_list import EndpointList, expand
from .link import Link, as_pawl_error
from .locate import Locator
from .look_up import look_up
from .moved import named_endpoints
from .msgpack import pack
from .patience import Patience
from .rounds import Rounds
from .silence import Silence
from .spare import LEAST, TIMES, Spare
from .tls_files import TlsFiles

PING_MSGID = 0
SILENCE_LEAST = 0.1
# How long the client stays at another endpoint before it returns to the first one. If it has to
# leave the first one again soon, it stays longer.
RETURN_FIRST, RETURN_LAST = 10.0, 640.0


class Failover:
    """`Calls` sets these functions:
    waiting: says whether something waits to be sent.
    on_message: is called with a message, and the link that it has come on.
    on_room: is called when the present connection has room for more.
    on_lost: is called when a connection is lost: what was sent over it is sent again or ends.
    on_switch: is called when the present connection is left, with whether what was sent over it is
    sent again. Returns how many requests are.
    on_hopeless: is called when no endpoint can be used, for a reason that does not pass by itself.
    may_return: says whether nothing that is under way needs the present connection.

    The client sets these functions:
    on_up: is called when another connection is the present one.
    on_left: is called when the present connection is not the present one any more.
    on_break: is called when a connection is about to be closed.
    needed: says whether a connection that was left must stay open.
    lease_share: says for how many seconds one step may take while locks are held.
    bound: says whether a lock needs a connection, even without a request.
    listening: says whether the node sends events without being asked."""

    def __init__(
        self,
        endpoints: EndpointList,
        tls: Optional[TlsFiles],
        server_name: Optional[str],
        connect_timeout: float,
        silence: float,
        prefer_first: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._rounds = Rounds(endpoints, prefer_first)
        self._locator = Locator(self._rounds)
        self._tls, self._server_name = tls, server_name
        self._connect_timeout, self._silence = connect_timeout, silence
        self.waiting: Callable[[], bool] = lambda: False
        self.on_message: Callable[[Link, Any], None] = lambda link, message: None
        self.on_room: Callable[[], None] = lambda: None
        self.on_lost: Callable[[Link, PawlError], None] = lambda link, error: None
        self.on_switch: Callable[[Link, bool], int] = lambda left, repeat: 0
        self.on_hopeless: Callable[[PawlError], None] = lambda error: None
        self.may_return: Callable[[], bool] = lambda: True
        self.on_up: Callable[[], None] = lambda: None
        self.on_left: Callable[[], None] = lambda: None
        self.on_break: Callable[[Link], None] = lambda link: None
        self.needed: Callable[[Link], bool] = lambda link: False
        self.lease_share: Callable[[], float] = lambda: float("inf")
        self.bound: Callable[[], bool] = lambda: False
        self.listening: Callable[[], bool] = lambda: False
        # The present connection.
        self.link: Optional[Link] = None
        self._patience = Patience()
        # Why the last connection, or the last try to connect, has failed.
        self.last_error: Optional[PawlError] = None
        self.closed = False
        # The connection that was left, and is still read.
        self._old: Optional[Link] = None
        # Why the present connection is gone.
        self._gone: asyncio.Future[PawlError] = self._loop.create_future()
        # The number of the latest connection.
        self._connections = 0
        self._spare = Spare(self._connect_to, self._on_spare)
        # An answer on the old connection before this time says that it was left too early.
        self._left_early_until = 0.0
        self._prefer_first = prefer_first
        # The spare connection is for the return to the first endpoint.
        self._returning = False
        self._return_pause, self._returned_at = RETURN_FIRST, 0.0
        self._return_timer: Optional[asyncio.TimerHandle] = None
        self._wanted = asyncio.Event()
        self._runner: Optional[asyncio.Task[None]] = None

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self.link.endpoint.text if self.link is not None else ""

    @property
    def count(self) -> int:
        """The number of endpoints, which look-ups change."""
        return self._rounds.count

    def connect(self) -> None:
        """Makes a connection if there is none, because something is to be sent."""
        if self._runner is None:
            self._runner = background(self._main())
        self._wanted.set()

    @property
    def hint(self) -> str:
        """Names the node that accepted the connection and never sent anything, and says what may be
        wrong with it. It is empty if there is no such node."""
        if self.link is None or self.link.talked:
            return ""
        return " from %s%s" % (self.link.endpoint.text, self.link.endpoint.silence_hint)

    @property
    def connection(self) -> int:
        """The number of the present connection; 0 if there is none."""
        return self.link.number if self.link is not None and self.link.up else 0

    @property
    def trouble(self) -> Optional[PawlError]:
        """Why there is no connection; None if there is one."""
        return None if self.connection else self.last_error

    def move_on(self, error: PawlError) -> None:
        """Leaves the present node for another one, because it is of no use."""
        if self.link is not None and self._rounds.count > 1:
            self.link.fail(error)

    # ---- connections ----

    async def _main(self) -> None:
        while not self.closed:
            if not self.waiting() and not self.bound():
                self._wanted.clear()
                await self._wanted.wait()
                continue
            self._rounds.read_again()
            self.last_error, talked = await self._visit(self._rounds.present)
            if talked:
                self._rounds.good()
            await self._go_on()

    async def _go_on(self) -> None:
        """Goes on to the next endpoint. After a round in which all have failed it pauses first."""
        error = self.last_error
        if not self._rounds.go_on(error):
            return
        # Waiting does not change certificates and access rules.
        if self._rounds.hopeless and error is not None:
            self.on_hopeless(error)
        await asyncio.sleep(self._rounds.pause(self.lease_share()))

    async def _connect(self, endpoint: Endpoint) -> Link:
        silence = Silence(self._patience)
        link = Link(endpoint, silence, self.on_message, self.on_room, self._on_heard,
                    self._on_down)
        silence.whole = self._whole
        silence.may_leave = lambda: link is self.link and self._rounds.count > 1
        silence.listening = lambda: link is self.link and self.listening()
        silence.ping = lambda: link.send(pack([0, PING_MSGID, "ping", []]))
        silence.quiet = self._on_quiet
        silence.overdue = self._on_overdue
        silence.lost = lambda: link.fail(WaitTimeoutError("the node does not answer"))
        if endpoint.path:
            await self._loop.create_unix_connection(lambda: link, endpoint.path)
            return link
        if endpoint.tls and self._tls is None:  # The file did not name it at first.
            raise TlsError("a tls:// endpoint needs a ca_file")
        name = (self._server_name or endpoint.host) if endpoint.tls else None
        tls = self._tls.context() if endpoint.tls and self._tls is not None else None
        await self._loop.create_connection(lambda: link, endpoint.address, endpoint.port, ssl=tls,
                                           server_hostname=name)
        return link

    async def _connect_to(self, endpoint: Endpoint) -> Link:
        """Connects with the endpoint for a spare connection."""
        return await self._connect(await self._locator.locate(endpoint, self._connect_timeout))

    async def _visit(self, endpoint: Endpoint) -> Tuple[PawlError, bool]:
        """Connects, and returns when that connection is gone, or the one of another node that it
        was left for. Returns the cause, and whether the node has ever sent anything."""
        limit = min(self._connect_timeout, self.lease_share())
        try:
            endpoint = await self._locator.locate(endpoint, limit)
        except UnreachableError as error:
            return self._unnamed(error), False
        try:
            link = await asyncio.wait_for(self._connect(endpoint), limit)
        except asyncio.TimeoutError:
            return self._named(endpoint, UnreachableError("connecting took too long")), False
        except (PawlError, OSError, ssl.SSLError) as error:
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
            last, self.link = self.link or link, None
            self._spare.drop()
            self._returning = False
            last.close()
        reason = self._why(last, gone)
        self.on_lost(last, reason)
        return reason, last.talked

    def _arrive(self, link: Link) -> None:
        """Makes this the present connection."""
        self._connections += 1
        self.link, link.number = link, self._connections
        self._rounds.use(link.endpoint)
        self._plan_return()
        if link.up:
            self.on_up()
        link.silence.reset()
        self.on_room()

    def _on_down(self, link: Link) -> None:
        if link is self.link:
            self.on_break(link)
            self.on_left()
            if not self._gone.done():
                self._gone.set_result(link.down.result())
        elif link is self._old:
            self._old = None
            self.on_break(link)
            self.on_lost(link, self._named(link.endpoint, link.down.result()))
            self.on_room()

    def _named(self, endpoint: Endpoint, error: PawlError, hint: str = "") -> PawlError:
        if isinstance(error, TlsError) and self._tls is not None:
            hint += self._tls.problem
        return self._unnamed(type(error)("%s: %s%s" % (endpoint.text, error.message, hint),
                                         error.details))

    def _unnamed(self, error: PawlError) -> PawlError:
        """Adds what is wrong with the files of endpoints."""
        if not self._rounds.problem:
            return error
        return type(error)(error.message + self._rounds.problem, error.details)

    # ---- other clusters ----

    def named(self, link: Optional[Link], said: Any) -> List[Endpoint]:
        """Returns the endpoints of another cluster that a node has named over this connection; none
        if they must not be asked."""
        over_tls = link is None or link.endpoint.tls
        return named_endpoints(said, over_tls, self._tls is not None)

    async def aside(self, named: List[Endpoint]) -> AsyncIterator[Union[Link, PawlError]]:
        """Connects with these endpoints, which are not those of this client, in turn. Yields each
        connection, which the caller closes, or why there is none."""
        for endpoint in named:
            limit = min(self._connect_timeout, self.lease_share())
            try:
                places = [endpoint] if endpoint.address else expand(
                    endpoint, await asyncio.wait_for(look_up(endpoint), limit))
            except asyncio.TimeoutError:
                yield self._named(endpoint, UnreachableError("looking up the name took too long"))
                continue
            except PawlError as error:
                yield self._named(endpoint, error)
                continue
            for place in places:
                try:
                    link = await asyncio.wait_for(self._connect(place), limit)
                except asyncio.TimeoutError:
                    yield self._named(place, UnreachableError("connecting took too long"))
                except (PawlError, OSError, ssl.SSLError) as error:
                    yield self._named(place, as_pawl_error(error))
                else:
                    yield link

    def why_gone(self, link: Link) -> PawlError:
        """Returns why a connection is gone."""
        return self._why(link, link.down.result())

    def _why(self, link: Link, error: PawlError) -> PawlError:
        silent = not link.talked and not isinstance(error, (ProtocolError, TlsError))
        return self._named(link.endpoint, error, link.endpoint.silence_hint if silent else "")

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
        if self._patience.allows and self.link is not None:
            old = self._old.endpoint if self._old is not None else None
            self._returning = False
            self._rounds.read_again()
            self._spare.dial(self._rounds.others(self.link.endpoint, old), self._spare_limit())

    def _on_quiet(self, answer_due: bool) -> None:
        if answer_due and self.link is not None and self._rounds.count > 1:
            self._dial_spare()

    def _on_overdue(self) -> None:
        if self._spare.link is None or not self._spare.link.up:
            self._dial_spare()
        elif self._patience.allows:
            self._switch(True)

    def _on_spare(self, spare: Link) -> None:
        if self.link is None or not self.link.up:
            self._spare.drop()
        elif self.link.silence.is_overdue:
            self._switch(True)
        elif self._returning and not self.may_return():
            self._spare.drop()
            self._return_later()
        elif self._returning:
            self._returned_at = self._loop.time()
            self._switch(False)

    def answered(self, link: Link, took: float) -> None:
        """Notes after how many seconds a request that does not wait was answered."""
        if link is self.link:
            self._patience.answered(took, self._loop.time())

    def _on_heard(self, link: Link) -> None:
        if link is self.link and not self._returning:
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
        left, old = self.link, self._old
        if old is not None:
            old.fail(WaitTimeoutError("the node does not answer"))
        self._returning = False
        spare = self._spare.take()
        if left is None or spare is None:
            return
        now = self._loop.time()
        self._left_early_until = now + self._patience.time(self._silence / 2) if repeat else 0.0
        self._old, self.link = left, None
        self.on_left()
        repeated = self.on_switch(left, repeat)
        if repeat:
            self._patience.switched(repeated, now)
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
        if self.link is None or not self._spare.idle or self.link.silence.pinged:
            self._return_later()
            return
        self._returning = True
        self._spare.dial([self._rounds.first], self._spare_limit(), self._return_later)

    # ---- the end ----

    async def close(self) -> None:
        """Closes all connections, and makes no more."""
        self.closed = True
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._spare.drop()
        self._locator.close()
        for link in (self.link, self._old):
            if link is not None:
                link.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
