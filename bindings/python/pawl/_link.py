"""One connection to one node."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Optional

from ._errors import PawlError, ProtocolError, TlsError, UnreachableError
from ._msgpack import Decoder, FormatError


def is_tls_problem(error: BaseException) -> bool:
    import ssl

    return isinstance(error, ssl.SSLError)


def as_pawl_error(error: Optional[BaseException]) -> PawlError:
    """What went wrong with a connection, in this package's words."""
    if isinstance(error, PawlError):
        return error
    if error is None:
        return UnreachableError("the node closed the connection")
    if is_tls_problem(error):
        return TlsError(str(getattr(error, "verify_message", "") or getattr(error, "reason", "") or error))
    return UnreachableError(str(error) or type(error).__name__)


class Link(asyncio.Protocol):
    """Messages in both directions until it goes down, which it does once."""

    def __init__(self, on_message: Callable[[Any], None], on_room: Callable[[], None], on_down: Callable[[Link], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_message, self._on_room, self._on_down = on_message, on_room, on_down
        self._decoder = Decoder()
        self._transport: Optional[asyncio.Transport] = None
        self.down: asyncio.Future[PawlError] = self._loop.create_future()
        self.talked = False  # a message has come: a node that only accepts connections does not count as one
        self.writable = True
        self.heard = self._loop.time()
        self.pinged_at: Optional[float] = None

    @property
    def up(self) -> bool:
        return self._transport is not None and not self.down.done()

    def send(self, data: bytes) -> None:
        if self.up and self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Ends it; what was written before is still sent."""
        self._end(UnreachableError("the connection is closed"))
        if self._transport is not None:
            self._transport.close()

    def fail(self, error: PawlError) -> None:
        """Ends it at once."""
        self._end(error)
        if self._transport is not None:
            self._transport.abort()

    def _end(self, error: PawlError) -> None:
        """Locks that end with the connection are not trusted any more before the node can hear of its end."""
        if not self.down.done():
            self.down.set_result(error)
            self._on_down(self)

    # ---- what asyncio calls ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.down.done():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        self.pinged_at = None
        try:
            for message in self._decoder.feed(data):
                if self.down.done():
                    return
                self._on_message(message)
        except FormatError as error:
            self.fail(ProtocolError("what the node says is not Pawl's protocol: %s" % error))

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._end(as_pawl_error(exc))

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._on_room()
