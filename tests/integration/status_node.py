"""Nodes that answer status and changes as a test wants, on a Unix socket."""

import os
import socket
import threading

from pawltest import PATIENCE, More, Unpacker, pack


def peer(node, role="master", **more):
    facts = dict(node=node, address=node + ".example:7118", role=role, linked=True,
                 voting=role == "master", self=False,
                 round_trip_us=250)
    facts.update(more)
    return facts


def status(node="a", epoch=4, **more):
    """Returns the status of a node, where a, b and c are the masters and d is a replica."""
    peers = [peer("a"), peer("b"), peer("c"),
             peer("d", "replica", follows=True, position=97, lag=3)]
    for p in peers:
        if p["node"] == node:
            p.update(self=True, linked=False)
    facts = dict(node=node, role="master", version="9.9", cluster="prod", state="voting",
                 waits_for="", left_ms=0, epoch=epoch,
                 settled=True, complete=True, quorum=2, voting=3, held=7, promises=0, waiters=1,
                 memory_bytes=1 << 20,
                 uptime_ms=61000, max_lease_ms=60000, request_timeout_ms=1000,
                 promise_timeout_ms=2000, clock_drift_ppm=5000,
                 masters=["a", "b", "c"], replicas=["d"], peers=peers)
    facts.update(more)
    return facts


def done(epoch=5, **more):
    return dict(dict(epoch=epoch, settled=True, complete=True, missing=[]), **more)


class Fails(Exception):
    """The node answers with this error."""

    def __init__(self, code, message, **more):
        super().__init__(code)
        self.error = dict(code=code, message=message, **more)


class Later(Exception):
    """The node does not answer until StatusNode.answer is called."""


class StatusNode:
    """A node that answers status with `self.status`, and changes with what `change(method,
    params)` returns or raises."""

    def __init__(self, folder, name):
        self.name, self.path = name, os.path.join(folder, name)
        self.endpoint = "unix:" + self.path
        self.status, self.change = status(name), lambda method, params: done()
        self.asked, self.held, self.connections, self.lock = [], [], [], threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.statuses = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        while True:
            try:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
                while True:
                    unpacker = Unpacker(data)
                    try:
                        message = unpacker.value()
                    except More:
                        break
                    data = data[unpacker.at:]
                    self._take(connection, *message[1:])
            except OSError:
                return

    def _take(self, connection, msgid, method, params):
        if method == "ping":
            self._send(connection, msgid, None, dict(version="9.9", node=self.name))
            return
        with self.lock:
            if method == "status":
                self.statuses += 1
                answer = self.status
            else:
                self.asked.append((method, params[0]))
            self.changed.notify_all()
        if method == "status":
            self._send(connection, msgid, None, answer)
            return
        try:
            self._send(connection, msgid, None, self.change(method, params[0]))
        except Fails as failure:
            self._send(connection, msgid, failure.error, None)
        except Later:
            with self.lock:
                self.held.append((connection, msgid))
                self.changed.notify_all()

    @staticmethod
    def _send(connection, msgid, error, result):
        connection.sendall(pack([1, msgid, error, result]))

    def wait(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE)

    def wait_seen(self):
        """Waits until a status that is asked for from now on has been answered, and the next one is
        asked for."""
        with self.lock:
            before = self.statuses
        self.wait(lambda: self.statuses >= before + 2)

    def wait_held(self):
        self.wait(lambda: self.held)

    def answer(self, result):
        with self.lock:
            connection, msgid = self.held.pop()
        self._send(connection, msgid, None, result)

    def die(self):
        self.listener.close()
        os.unlink(self.path)
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                connection.close()
            self.connections.clear()


def later(method, params):
    raise Later
