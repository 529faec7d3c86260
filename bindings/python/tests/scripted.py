"""Scripts that play nodes for a real client."""

import asyncio
import unittest

import pawl.aio
from pawl._link.msgpack import Decoder, pack

GRANT = {"lock_id": "0" * 32, "token": 5, "valid_ms": 9900, "waited_ms": 0, "mode": "exclusive"}


class Script:
    """A node. `answers` maps each method to a function of the parameters, which returns the result,
    a Refuse, or one of the constants; `answer_late` answers what has got LATER. `asked` has all
    requests so far, and `ended` the number of connections that the client has used for requests and
    has ended. (It ends spare connections, over which it sends nothing but pings, whenever it
    likes.) at_end: is called when it has ended one of them."""

    SILENT, HANG_UP, GARBAGE, LATER = "silent", "hang up", "garbage", "later"

    def __init__(self, **answers):
        self.answers = dict({"ping": lambda p: {"node": "script", "version": "0"},
                             "release": lambda p: {"released": True}}, **answers)
        self.asked, self.writers, self.ended = [], [], 0
        self.late = []
        self.at_end = lambda: None

    async def start(self, case):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        case.addAsyncCleanup(self.stop, server)
        self.endpoint = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        return self.endpoint

    async def stop(self, server):
        server.close()
        for writer in self.writers:
            writer.close()

    async def serve(self, reader, writer):
        self.writers.append(writer)
        decoder, used = Decoder(), False
        try:
            while data := await reader.read(65536):
                for _, msgid, method, params in decoder.feed(data):
                    params = params[0] if params else {}
                    self.asked.append((method, params))
                    used = used or method != "ping"
                    self.answer(writer, msgid, self.answers[method](params))
        except ConnectionError:
            pass  # The client has closed it before it had read the last answer.
        if used:
            self.ended += 1
            self.at_end()

    def answer(self, writer, msgid, said):
        if said == self.HANG_UP:
            writer.close()
        elif said == self.GARBAGE:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n")
        elif isinstance(said, Refuse):
            writer.write(pack([1, 0 if said.last_word else msgid,
                               dict(said.more, code=said.code, message="no"), None]))
        elif said == self.LATER:
            self.late.append((writer, msgid))
        elif said != self.SILENT:
            writer.write(pack([1, msgid, None, said]))

    def answer_late(self, said):
        """Answers the first request that was to be answered later."""
        self.answer(*self.late.pop(0), said)

    def of(self, method):
        return [params for asked, params in self.asked if asked == method]


class Refuse:
    def __init__(self, code, last_word=False, **more):
        self.code, self.last_word, self.more = code, last_word, more


class ScriptedCase(unittest.IsolatedAsyncioTestCase):
    async def client(self, *scripts, **options):
        endpoints = [await script.start(self) for script in scripts]
        # The tests know which node is asked first.
        options = dict({"timeout": 5, "prefer_first": True}, **options)
        client = pawl.aio.connect(endpoints, **options)
        self.addAsyncCleanup(client.close)
        return client

    async def until(self, condition):
        async def turn():
            while not condition():
                await asyncio.sleep(0.002)

        await asyncio.wait_for(turn(), 10)
