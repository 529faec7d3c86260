"""MessagePack-RPC as docs/client-protocol.md describes it, without any of Pawl's own code: bytes,
messages, and connections with true times.

A time is in ns (history.now). A request gets its time before it is sent, and an answer after it
has arrived. So a belief by these times is never longer than the client's own.
"""

import asyncio
import socket

import pawltest
from history import now

PORT = 7117
CONNECT_S = 1.0


class Answer:
    """The outcome of one request. `result` is "ok", the code of an error, or "unknown"; `data` is
    the map of the answer."""

    def __init__(self, invoke, returned, result, data):
        self.invoke, self.returned, self.result, self.data = invoke, returned, result, data

    @property
    def ok(self):
        return self.result == "ok"


class Connection(asyncio.Protocol):
    """One connection to a node. on_event gets (time, event) for each event of a watch."""

    def __init__(self, node, on_event=None):
        self.node, self.on_event = node, on_event
        self.input, self.waiting, self.msgid = b"", {}, 0
        self.transport, self.complaints = None, []
        self.broken = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        if not self.broken.done():
            self.broken.set_result(now())
        for invoke, future in self.waiting.values():
            if not future.done():
                future.set_result(Answer(invoke, None, "unknown", {}))
        self.waiting = {}

    def data_received(self, data):
        stamp, at = now(), 0
        self.input += data
        unpacker = pawltest.Unpacker(self.input)
        try:
            while True:
                self.take(unpacker.value(), stamp)
                at = unpacker.at
        except pawltest.More:
            self.input = self.input[at:]

    def take(self, message, stamp):
        if message[0] == 2:
            if self.on_event and message[1] == "event":
                for event in message[2]:
                    self.on_event(stamp, event)
            return
        kind, msgid, error, result = message
        invoke, future = self.waiting.pop(msgid, (0, None))
        if kind != 1 or future is None:
            self.complaints.append("an answer came without a request: %r" % (message,))
        elif not future.done():
            code = "ok" if error is None else error.get("code", "an error without a code")
            future.set_result(Answer(invoke, stamp, code, result if error is None else error))

    def closed(self):
        return self.broken.done() or self.transport is None or self.transport.is_closing()

    def send(self, method, params):
        """Sends the request at once, and returns a future of its answer."""
        self.msgid = (self.msgid + 1) % 2**32
        future = asyncio.get_running_loop().create_future()
        named = {k: v for k, v in params.items() if v is not None}
        data = pawltest.pack([0, self.msgid, method, [named]])
        invoke = now()
        if self.closed():
            future.set_result(Answer(invoke, None, "unknown", {}))
            return future
        self.waiting[self.msgid] = invoke, future
        self.transport.write(data)
        return future

    async def call(self, method, timeout, **params):
        """Returns the answer. It is "unknown" if none came in time, or if the connection broke."""
        future = self.send(method, params)
        invoke = now()
        try:
            # asyncio.wait_for of Python 3.11 may lose a cancellation that comes together with the
            # answer. A worker would then go on for ever, and nobody would hear why the run ended.
            async with asyncio.timeout(timeout):
                return await asyncio.shield(future)
        except TimeoutError:
            return future.result() if future.done() else Answer(invoke, None, "unknown", {})

    def close(self):
        """Closes the connection from this side, and returns the time in ns. Requests that are under
        way get no answer any more."""
        at = now()
        if self.transport:
            self.transport.close()
        return at


async def connect(net, host, node, on_event=None):
    """Connects from this host of the network to that node. Returns the connection, or None."""
    with net.inside(host):
        sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    connection, loop = Connection(node, on_event), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            await loop.sock_connect(sock, (net.address(node), PORT))
        await loop.create_connection(lambda: connection, sock=sock)
        return connection
    except (OSError, TimeoutError):
        sock.close()
        return None
