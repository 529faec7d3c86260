"""A connection with another node, in case the present node is gone, or for the return to the first
endpoint."""

from __future__ import annotations

import asyncio
import ssl
from typing import Awaitable, Callable, Iterable, Optional

from .._env.errors import PawlError
from .._env.tasks import background
from .endpoint import Endpoint
from .link import Link

# The other node gets this many times as long to answer as the present one, but at least LEAST
# seconds.
TIMES = 4
LEAST = 0.05


class Spare:
    """connect: connects with that endpoint.
    ready: is called when the other node has answered a ping."""

    def __init__(self, connect: Callable[[Endpoint], Awaitable[Link]],
                 ready: Callable[[Link], None]) -> None:
        self._connect, self._on_ready = connect, ready
        self._task: Optional[asyncio.Task[None]] = None
        # The connection, once its node has answered a ping.
        self.link: Optional[Link] = None

    @property
    def idle(self) -> bool:
        return self._task is None and (self.link is None or not self.link.up)

    def dial(self, endpoints: Iterable[Endpoint], limit: float,
             failed: Callable[[], None] = lambda: None) -> None:
        """Tries these endpoints one after the other, each for `limit` seconds."""
        if self.idle:
            self._task = background(self._dial(list(endpoints), limit, failed))

    async def _dial(self, endpoints: Iterable[Endpoint], limit: float,
                    failed: Callable[[], None]) -> None:
        for endpoint in endpoints:
            try:
                link = await asyncio.wait_for(self._greet(endpoint), limit)
            except (PawlError, OSError, ssl.SSLError, asyncio.TimeoutError):
                continue
            self._task = None
            self.link = link
            self._on_ready(link)
            return
        self._task = None
        failed()

    async def _greet(self, endpoint: Endpoint) -> Link:
        link = await self._connect(endpoint)
        try:
            link.silence.send_ping()
            await asyncio.wait((link.down, link.pong), return_when=asyncio.FIRST_COMPLETED)
            if link.down.done():
                raise link.down.result()
        except BaseException:
            link.close()
            raise
        return link

    def take(self) -> Optional[Link]:
        """Hands the connection over to the caller, if it is ready and still up."""
        link, self.link = self.link, None
        return link if link is not None and link.up else None

    def drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.link is not None:
            self.link.close()
            self.link = None
