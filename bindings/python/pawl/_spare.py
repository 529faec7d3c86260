"""A connection with another node, for when the present one turns out to be gone, or for the return
to the first endpoint."""

from __future__ import annotations

import asyncio
import ssl
from typing import Awaitable, Callable, Iterable, Optional

from ._errors import PawlError
from ._link import Link

TIMES = 4  # the time that the present node is given
LEAST = 0.05


class Spare:
    """connect: a connection with that endpoint. ready: the node has answered a ping."""

    def __init__(self, connect: Callable[[int], Awaitable[Link]],
                 ready: Callable[[Link], None]) -> None:
        self._connect, self._on_ready = connect, ready
        self._task: Optional[asyncio.Task[None]] = None
        self.link: Optional[Link] = None  # that is ready

    @property
    def idle(self) -> bool:
        return self._task is None and self.link is None

    def dial(self, endpoints: Iterable[int], limit: float,
             failed: Callable[[], None] = lambda: None) -> None:
        """Tries these, one after the other, each for so long."""
        if self.idle:
            self._task = asyncio.get_running_loop().create_task(
                self._dial(list(endpoints), limit, failed))

    async def _dial(self, endpoints: Iterable[int], limit: float,
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

    async def _greet(self, endpoint: int) -> Link:
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
        """The connection that is ready, which is the caller's from now on."""
        link, self.link = self.link, None
        return link if link is not None and link.up else None

    def drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.link is not None:
            self.link.close()
            self.link = None
