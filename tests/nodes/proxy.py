#!/usr/bin/env python3
"""proxy.py LISTEN_PORT TO_PORT SEED: stands before a node's peer port, in the node's namespace,
and makes the network bad.

It obeys lines of JSON on stdin: {"delay_ms": [low, high], "rate": bytes a second (0: no limit),
"break": probability}. Every piece that passes is held up by a time of its own, in order within a
connection and not between connections. With "break" a piece may be cut in two, and only its first
half arrives before both ends are reset. It prints "ready", and ends when stdin does.
"""

import asyncio
import json
import random
import signal
import sys

PIECE = 16384
# The number of pieces that are held up before the sender has to wait.
PIECES_HELD = 64


class Trouble:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.delay, self.rate, self.chance = (0.0, 0.0), 0, 0.0

    def obey(self, line):
        asked = json.loads(line)
        low, high = asked.get("delay_ms", [0, 0])
        self.delay, self.rate, self.chance = (low / 1e3, high / 1e3), asked.get("rate",
            0), asked.get("break", 0.0)


class Pair:
    """A connection through the proxy: two streams, and each way a queue of pieces with the time
    at which they may go on."""

    def __init__(self, trouble, streams):
        self.trouble, self.streams = trouble, streams

    async def take(self, reader, queue):
        loop, due = asyncio.get_running_loop(), 0.0
        while True:
            piece = await reader.read(PIECE)
            due = max(due, loop.time() + self.trouble.random.uniform(*self.trouble.delay))
            if self.trouble.rate:
                due += len(piece) / self.trouble.rate
            await queue.put((due, piece))
            if not piece:
                return

    async def give(self, queue, writer):
        loop = asyncio.get_running_loop()
        while True:
            due, piece = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not piece:
                raise ConnectionResetError
            broken = self.trouble.random.random() < self.trouble.chance
            writer.write(piece[:len(piece) // 2] if broken else piece)
            await writer.drain()
            if broken:
                raise ConnectionResetError

    async def run(self):
        (r1, w1), (r2, w2) = self.streams
        there, back = asyncio.Queue(PIECES_HELD), asyncio.Queue(PIECES_HELD)
        tasks = [asyncio.ensure_future(c) for c in (
            self.take(r1, there), self.give(there, w2), self.take(r2, back), self.give(back, w1))]
        try:
            await asyncio.gather(*tasks)
        except OSError:
            pass
        finally:
            for t in tasks:
                t.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for w in (w1, w2):
                w.transport.abort()


async def main():
    listen_port, to_port, seed = map(int, sys.argv[1:])
    trouble, pairs = Trouble(seed), set()

    async def accepted(reader, writer):
        try:
            far = await asyncio.open_connection("127.0.0.1", to_port)
        except OSError:
            writer.transport.abort()
            return
        await Pair(trouble, ((reader, writer), far)).run()

    def begin(reader, writer):
        task = asyncio.ensure_future(accepted(reader, writer))
        pairs.add(task)
        task.add_done_callback(pairs.discard)

    server = await asyncio.start_server(begin, "0.0.0.0", listen_port)
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin),
                                                       sys.stdin)
    print("ready", flush=True)
    while True:
        line = await stdin.readline()
        if not line:
            break
        trouble.obey(line)
    server.close()
    for task in list(pairs):
        task.cancel()
    await asyncio.gather(*pairs, return_exceptions=True)


# The parent process ends this one.
signal.signal(signal.SIGINT, signal.SIG_IGN)
asyncio.run(main())
