"""The watchers: one at each node, which watches all keys. A watch that is resumed at the same node
goes on where it was."""

import asyncio

import clients
import locks
import rpc

SILENCE_S, PAUSE_S = 2.0, 0.5
TOLD = ("key", "owner", "token", "mode", "lock_id", "of")


class Watcher(clients.Client):
    """A client that watches all keys at one node. A chain is a watch without a break: it ends when
    the watcher begins a new watch instead of going on from a position."""

    def __init__(self, cluster, history, number, seed, node):
        super().__init__(cluster, history, number, seed)
        self.node, self.chain, self.position, self.count = node, 0, None, 0

    def on_event(self, at, event):
        if event.get("watch") == self.watch and not self.current.closed():
            self.position = event["position"]
            self.tell(at, event)
        elif self.watch is None:
            self.early.append((at, event))

    def tell(self, at, event):
        self.count += 1
        told = {name: event[name] for name in TOLD if event.get(name) is not None}
        self.history.moment("event", at, process=self.number, chain=self.chain, type=event["type"],
                            permits=event.get("slots"), **told)

    async def begin(self):
        """Begins to watch over a new connection. Returns whether that succeeded."""
        self.watch, self.early = None, []
        if self.current:
            self.current.close()
        self.current = await rpc.connect(self.cluster.net, self.host, self.node, self.on_event)
        if not self.current:
            return False
        asked = self.position if self.random.random() < 0.8 else None
        answer = await self.current.call("watch", locks.PATIENCE_S, prefix="", **{"from": asked})
        if not answer.ok:
            return False
        if asked is None:
            self.chain = self.number * 10000 + self.connected
        self.connected += 1
        self.write("watch", answer, chain=self.chain, resumed=asked is not None, node=self.node,
                   key=None)
        self.watch, self.position = (answer.data["watch"],
                                     answer.data["position"] if asked is None else self.position)
        for at, event in self.early:
            if event.get("watch") == self.watch:
                self.position = event["position"]
                self.tell(at, event)
        return True

    async def stay(self, stop, seconds):
        """Watches for this many seconds, until the run stops, or until the connection ends. A node
        that does not answer is left."""
        end = rpc.now() + seconds * 1e9
        while not stop.is_set() and rpc.now() < end and not self.current.closed():
            answer = await self.current.call("ping", SILENCE_S)
            if not answer.ok:
                return
            await asyncio.wait([self.current.broken], timeout=PAUSE_S)

    async def run(self, stop):
        while not stop.is_set():
            if not await self.begin():
                await asyncio.sleep(0.1)
                continue
            await self.stay(stop, self.random.choice([3, 30, 600]))
            if stop.is_set():  # All is calm, so all events have arrived.
                self.history.moment("watched", rpc.now(), process=self.number, chain=self.chain,
                                    node=self.node)
        if self.current:
            self.current.close()
