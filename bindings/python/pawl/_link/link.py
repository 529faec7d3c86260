"""One connection to one node."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any, Callable, Optional, Set

from .._env.errors import PawlError, ProtocolError, TlsError, UnreachableError
from .endpoint import Endpoint
from .msgpack import Decoder, FormatError
from .silence import Silence
from .tls_text import tls_text

_ENDS = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
# The first byte that a port with TLS sends to a client that does not speak TLS.
TLS_ALERT = b"\x15"
# The file descriptors of all connections.
_ours: Set[int] = set()


def _part_in_child() -> None:
    """Closes the connections in a forked child, which would hide from the nodes that its parent has
    died. The descriptors themselves stay in use, for /dev/null, because objects that the child has
    inherited close them some day."""
    if _ours:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in _ours:
            os.dup2(nothing, number, inheritable=False)
        os.close(nothing)


os.register_at_fork(after_in_child=_part_in_child)


class Descriptor:
    """Keeps a connection open that is not read or written any more."""

    def __init__(self, number: int) -> None:
        self._number = os.dup(number)
        _ours.add(self._number)

    def close(self) -> None:
        _ours.discard(self._number)
        os.close(self._number)


def is_tls_problem(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError)


def as_pawl_error(error: Optional[BaseException]) -> PawlError:
    """Returns what went wrong with a connection as an error of this package."""
    if isinstance(error, PawlError):
        return error
    if error is None:
        return UnreachableError("the node closed the connection")
    if is_tls_problem(error):
        return TlsError(tls_text(error))
    return UnreachableError(str(error) or type(error).__name__)


class Link(asyncio.Protocol):
    """A link carries messages in both directions until it goes down, which it does once: the other
    side ends it (in order, or by a reset), the network breaks it, or this side gives it up."""

    def __init__(self, endpoint: Endpoint, silence: Silence,
                 on_message: Callable[[Link, Any], None], on_room: Callable[[], None],
                 on_heard: Callable[[Link], None], on_down: Callable[[Link], None]) -> None:
        # The number of this connection among those that its client has used, counted from 1.
        self.number = 0
        self.endpoint, self.silence = endpoint, silence
        self.ended = self.broken = False
        self._loop = asyncio.get_running_loop()
        self._on_message, self._on_room = on_message, on_room
        self._on_heard, self._on_down = on_heard, on_down
        self._decoder = Decoder()
        self._transport: Optional[asyncio.Transport] = None
        # The number of its file descriptor.
        self._number = -1
        self.down: asyncio.Future[PawlError] = self._loop.create_future()
        # A message has arrived. Until then this may not be a node of Pawl.
        self.talked = False
        # A node of release 0.1 does not know the parameter `trace`.
        self.knows_trace = True
        self._tls = self._heard_any = False
        self.writable = True
        # Done once a ping has been answered.
        self.pong: asyncio.Future[None] = self._loop.create_future()

    @property
    def up(self) -> bool:
        return self._transport is not None and not self.down.done()

    def send(self, data: bytes) -> None:
        if self.up and self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Ends the link; what was written before is still sent."""
        self._end(UnreachableError("the connection is closed"))
        if self._transport is not None and not self._loop.is_closed():
            self._transport.close()

    def fail(self, error: PawlError) -> None:
        """Ends the link at once."""
        self._end(error)
        if self._transport is not None and not self._loop.is_closed():
            self._transport.abort()

    def leave_open(self) -> Optional[Descriptor]:
        """Returns a descriptor that keeps the connection open for the other side after this link
        has ended. None: it is closed already."""
        try:
            return Descriptor(self._number) if self._number in _ours else None
        except OSError:
            return None

    def _end(self, error: PawlError) -> None:
        """Tells the client of the end before the node can notice it, so that the locks that depend
        on the connection are handled first."""
        if not self.down.done():
            self.down.set_result(error)
            self.silence.close()
            self._on_down(self)

    # ---- what asyncio calls ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = transport.get_extra_info("socket").fileno()
        self._tls = transport.get_extra_info("ssl_object") is not None
        _ours.add(self._number)
        if self.down.done():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.silence.heard()
        if not self._heard_any and not self._tls and data[:1] == TLS_ALERT:
            self.fail(TlsError("this is a port with TLS: write tls:// before the host"))
            return
        self._heard_any = True
        try:
            for message in self._decoder.feed(data):
                if self.down.done():
                    return
                self._on_message(self, message)
        except FormatError as error:
            self.fail(ProtocolError("the answer does not follow Pawl's protocol: %s" % error))
        if not self.down.done():
            self.silence.settle()
            self._on_heard(self)

    def eof_received(self) -> None:
        self._ended_by(None)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._ended_by(exc)
        _ours.discard(self._number)

    def _ended_by(self, error: Optional[Exception]) -> None:
        if not self.down.done():
            self.ended = error is None or isinstance(error, _ENDS)
            self.broken = not self.ended
            self._end(as_pawl_error(error))

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._on_room()
