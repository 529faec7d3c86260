"""MessagePack-RPC as docs/client-protocol.md describes it, without any of Pawl's own code: bytes,
messages, and connections with true times.

A time is CLOCK_MONOTONIC in ns. A request gets its time before it is sent, and an answer after it
has arrived. So a belief by these times is never longer than the client's own.
"""

import asyncio
import socket
import struct
import time

PORT = 7117
CONNECT_S = 1.0


def now():
    return time.monotonic_ns()


# ---- bytes ----

def packed_head(size, small, forms):
    """Packs the head of an object with this size. `forms` has rows of (largest size, tag, struct
    format)."""
    if small and size <= small[0]:
        return bytes([small[1] | size])
    for most, tag, form in forms:
        if size <= most:
            return bytes([tag]) + struct.pack(form, size)
    raise ValueError(size)


def pack_number(n):
    if 0 <= n < 128:
        return bytes([n])
    if -32 <= n < 0:
        return bytes([n + 256])
    for low, high, tag, form in ((0, 0xff, 0xcc, ">B"), (0, 0xffff, 0xcd, ">H"),
                                 (0, 0xffffffff, 0xce, ">I"), (0, 2**64 - 1, 0xcf, ">Q"),
                                 (-2**7, 0, 0xd0, ">b"), (-2**15, 0, 0xd1, ">h"),
                                 (-2**31, 0, 0xd2, ">i"), (-2**63, 0, 0xd3, ">q")):
        if low <= n <= high:
            return bytes([tag]) + struct.pack(form, n)
    raise ValueError(n)


def pack(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return pack_number(value)
    if isinstance(value, bytes):
        return packed_head(len(value), None, ((0xff, 0xc4, ">B"), (0xffff, 0xc5, ">H"),
                                              (2**32 - 1, 0xc6, ">I"))) + value
    if isinstance(value, str):
        data = value.encode()
        return packed_head(len(data), (31, 0xa0), ((0xff, 0xd9, ">B"), (0xffff, 0xda, ">H"),
                                                   (2**32 - 1, 0xdb, ">I"))) + data
    if isinstance(value, (list, tuple)):
        return packed_head(len(value), (15, 0x90), ((0xffff, 0xdc, ">H"),
                                                    (2**32 - 1, 0xdd,
                                                     ">I"))) + b"".join(map(pack, value))
    head = packed_head(len(value), (15, 0x80), ((0xffff, 0xde, ">H"), (2**32 - 1, 0xdf, ">I")))
    return head + b"".join(pack(k) + pack(v) for k, v in value.items())


class Incomplete(Exception):
    """The message is not whole yet."""


NUMBERS = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b",
           0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}
SIZES = {0xc4: ">B", 0xc5: ">H", 0xc6: ">I", 0xd9: ">B", 0xda: ">H", 0xdb: ">I", 0xdc: ">H",
         0xdd: ">I", 0xde: ">H", 0xdf: ">I"}


def unpack(data, at):
    """Returns the value at this place, and the place after it."""
    if at >= len(data):
        raise Incomplete
    tag = data[at]
    at += 1
    if tag < 0x80 or tag >= 0xe0:
        return (tag if tag < 0x80 else tag - 256), at
    if tag in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[tag], at
    form = NUMBERS.get(tag) or SIZES.get(tag)
    number = tag & (0x0f if tag < 0xa0 else 0x1f)
    if form:
        if at + struct.calcsize(form) > len(data):
            raise Incomplete
        number, at = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    elif tag >= 0xc0:
        raise ValueError("%#x is not a tag of MessagePack" % tag)
    if tag in NUMBERS:
        return number, at
    if tag < 0x90 or tag >= 0xde:
        pairs = {}
        for _ in range(number):
            key, at = unpack(data, at)
            pairs[key], at = unpack(data, at)
        return pairs, at
    if tag < 0xa0 or tag >= 0xdc:
        items = []
        for _ in range(number):
            item, at = unpack(data, at)
            items.append(item)
        return items, at
    if at + number > len(data):
        raise Incomplete
    piece = bytes(data[at:at + number])
    return (piece if 0xc4 <= tag <= 0xc6 else piece.decode()), at + number


# ---- connections ----

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
        self.input, self.waiting, self.msgid = bytearray(), {}, 0
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
        at, stamp = 0, now()
        self.input += data
        try:
            while at < len(self.input):
                message, at = unpack(self.input, at)
                self.take(message, stamp)
        except Incomplete:
            pass
        del self.input[:at]

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
        data = pack([0, self.msgid, method, [{k: v for k, v in params.items() if v is not None}]])
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
    return await reach(sock, (net.address(node), PORT), Connection(node, on_event))


async def connect_here(path, node):
    """Connects on the node's own machine, through its Unix socket. Returns the connection, or
    None."""
    return await reach(socket.socket(socket.AF_UNIX), path, Connection(node))


async def reach(sock, address, connection):
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            await loop.sock_connect(sock, address)
        if sock.family == socket.AF_UNIX:
            await loop.create_unix_connection(lambda: connection, sock=sock)
        else:
            await loop.create_connection(lambda: connection, sock=sock)
        return connection
    except (OSError, TimeoutError):
        sock.close()
        return None
