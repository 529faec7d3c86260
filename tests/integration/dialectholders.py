"""Clients of Redis and memcached that hold locks and wait for others: crews as in holders.py. They
go on at the next node after an error of their connection, or of the node, as docs/redis.md says."""

import select
import threading
import time

from holders import LEASE, Crew
from pawltest import PATIENCE
from pymemcache.exceptions import MemcacheServerError
from rediscluster import redis

# What tells such a client that the node did not do what it asked for; another one may.
TROUBLE = (redis.exceptions.RedisError, MemcacheServerError, OSError)
# What no node will do, as the texts of both protocols begin.
FINAL = ("NOPERM", "denied", "too_long")


def final(error):
    words = str(error).lstrip("b'\"")  # pymemcache gives bytes.
    return words.startswith(FINAL) or isinstance(error, redis.exceptions.NoPermissionError)


class Rotating:
    """A client of a dialect that asks the next node when one fails, or refuses for itself alone."""

    def __init__(self, connect, nodes, node):
        self.connect, self.nodes, self.node, self.client = connect, nodes, node, None

    def ask(self, question, end):
        """Returns what a node answers to question(client)."""
        while True:
            try:
                if self.client is None:
                    self.client = self.connect(self.node)
                return question(self.client)
            except TROUBLE as error:
                if final(error) or time.monotonic() > end:
                    raise
            self.close()
            self.node = (self.node + 1) % self.nodes
            time.sleep(0.05)

    def close(self):
        if self.client:
            self.client.close()
        self.client = None


class Dialect(Crew):
    """Takes keys, and renews them until it releases them, or their time is over by its clock."""
    modes = ("exclusive",)
    # How long its locks are held after the last good answer.
    length = LEASE

    def __init__(self, name, tls, node=0):
        super().__init__(name, tls)
        # Until when it believes that it has each lock; and when, and why, it stopped believing.
        self.value, self.until, self.lost = name.encode(), {}, {}
        self.holder, self.reader = (Rotating(self.connect, len(tls.dialects), node)
                                    for _ in range(2))
        self.ended = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)

    def ask(self, question, client=None, end=None):
        return (client or self.holder).ask(question, end or time.monotonic() + PATIENCE)

    def take(self, count):
        for key, _ in self.keys(count):
            begin = time.monotonic()
            assert self.ask(lambda client, key=key: self.take_one(client, key)), key
            self.until[key] = begin + self.length
        self.tokens = {key: 0 for key in self.until}
        self.tokens = self.now()
        assert all(self.tokens.values()), self.tokens
        self.keeper.start()

    def keep(self):
        while not self.ended.wait(self.length / 5):
            for key, until in list(self.until.items()):
                begin = time.monotonic()
                try:
                    assert self.ask(lambda client, key=key: self.renew(client, key), end=until), key
                    self.until[key] = begin + self.length
                except (*TROUBLE, AssertionError) as error:
                    self.lost[key] = min(time.monotonic(), until), repr(error)
                    del self.until[key]

    def told(self):
        return dict(self.lost)

    def now(self):
        return {key: self.ask(lambda client, key=key: self.token(client, key), self.reader)
                for key in self.tokens}

    def release(self):
        self.ended.set()
        self.keeper.join(PATIENCE)
        for key in self.tokens:
            assert self.ask(lambda client, key=key: self.release_one(client, key)), key

    def end(self):
        self.ended.set()
        if self.keeper.is_alive():
            self.keeper.join(PATIENCE)
        for thread, _ in self.waits:
            thread.join(PATIENCE)
        self.holder.close()
        self.reader.close()


class Redis(Dialect):
    def __init__(self, tls, name="redis", node=0):
        super().__init__(name, tls, node)

    def connect(self, node):
        return self.tls.redis(node)

    def take_one(self, client, key):
        return client.set(key, self.value, nx=True, px=int(self.length * 1000))

    def socket(self, client):
        return client.connection_pool._available_connections[0]._sock

    def token(self, client, key):
        return client.execute_command("PAWL.TOKEN", key, self.value)

    def renew(self, client, key):
        return client.execute_command("SET", key, self.value, "IFEQ", self.value, "PX",
                                      int(self.length * 1000))

    def release_one(self, client, key):
        return client.execute_command("DELIFEQ", key, self.value)

    def wait(self, key):
        """Waits with PAWL.WAIT, and asks again elsewhere when its node stops."""
        outcome = []

        def connect(node):
            client = self.tls.redis(node)
            client.connection_pool.connection_kwargs["socket_timeout"] = 60
            return client

        def wait():
            client, end = Rotating(connect, 2, 0), time.monotonic() + 60
            try:
                while not client.ask(lambda at: at.execute_command(
                        "PAWL.WAIT", key, "waiter", int(LEASE * 1000), 50000), end):
                    pass
                outcome.append(client.ask(
                    lambda at: at.execute_command("DELIFEQ", key, "waiter"), end))
            except BaseException as error:  # granted() raises it.
                outcome.append(error)
            client.close()
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.waits.append((thread, outcome))

    def granted(self):
        for thread, outcome in self.waits:
            thread.join(PATIENCE)
            assert outcome == [1], (self.name, outcome)


class Memcache(Dialect):
    def __init__(self, tls, name="memcached", node=0):
        super().__init__(name, tls, node)

    def connect(self, node):
        return self.tls.memcached(node)

    def take_one(self, client, key):
        return client.add(key, self.value, expire=int(self.length), noreply=False)

    def socket(self, client):
        return client.sock

    def token(self, client, key):
        value, token = client.gets(key)
        return int(token) if value == self.value else None

    def renew(self, client, key):
        return client.touch(key, expire=int(self.length), noreply=False)

    def release_one(self, client, key):
        return client.delete(key, noreply=False)


class Kept:
    """Locks without an end, each of a connection of its own. Their node extends them, and closes
    the connection of one that is lost."""

    def take(self, count):
        self.clients = {}
        for key, _ in self.keys(count):
            client = self.clients[key] = self.connect(self.holder.node)
            assert self.take_one(client, key), key
        self.tokens = {key: 0 for key in self.clients}
        self.tokens = self.now()
        self.keeper.start()

    def keep(self):
        sockets = {self.socket(client): key for key, client in self.clients.items()}
        while sockets and not self.ended.is_set():
            for each in select.select(list(sockets), [], [], 0.05)[0]:
                self.lost[sockets.pop(each)] = time.monotonic(), "its connection was closed"

    def end(self):
        super().end()
        for client in self.clients.values():
            client.close()


class RedisKept(Kept, Redis):
    def __init__(self, tls, node=0):
        super().__init__(tls, "redis-kept", node)

    def take_one(self, client, key):
        return client.set(key, self.value, nx=True)


class MemcacheKept(Kept, Memcache):
    def __init__(self, tls, node=0):
        super().__init__(tls, "memcached-kept", node)

    def take_one(self, client, key):
        return client.add(key, self.value, expire=0, noreply=False)
