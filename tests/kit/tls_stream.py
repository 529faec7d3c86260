"""TLS over the streams of asyncio, whose own TLS sends no alert to a client that it refuses."""

import ssl


class TlsStream:
    """Reads and writes as the two streams do that it is made of."""

    def __init__(self, reader, writer, context):
        self._reader, self._writer = reader, writer
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self.transport = writer.transport
        self.get_extra_info, self.is_closing = writer.get_extra_info, writer.is_closing

    async def begin(self):
        """Makes the handshake. Raises ssl.SSLError after the client has been told why not, or
        ConnectionError."""
        await self._do(self._tls.do_handshake)

    async def read(self, size):
        try:
            return await self._do(lambda: self._tls.read(size))
        except ssl.SSLZeroReturnError:
            return b""

    async def _do(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self._flush()
                data = await self._reader.read(65536)
                if not data:
                    raise ConnectionResetError("it ends in the middle of TLS") from None
                self._in.write(data)
            finally:
                self._flush()

    def write(self, data):
        self._tls.write(data)
        self._flush()

    def close(self):
        try:
            self._tls.unwrap()  # This says that it is the end. The client need not answer.
        except ssl.SSLError:
            pass
        self._flush()
        self._writer.close()

    def _flush(self):
        if self._out.pending and not self._writer.is_closing():
            self._writer.write(self._out.read())
