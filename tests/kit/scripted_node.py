#!/usr/bin/env python3
"""scripted_node.py CASE.json: plays the nodes of a case on ports of 127.0.0.1, prints the variables
for a client, and then each message, until it is interrupted. So a client can be watched by hand.

The classes here are what kit.py plays its cases with. A node answers by rules; `kit.py --explain`
prints what rules can say."""

import asyncio
import json
import os
import socket
import ssl
import struct
import sys
import time

import answers
import certificates
import messages
from matching import differs, plain
from tls_stream import TlsStream

# What a node answers though no rule says so. Every other request needs a rule.
BY_ITSELF = ("ping", "release", "unwatch")
RULE_FIELDS = {"on", "where", "want", "same", "differs", "like", "since", "answer", "after_ms",
               "times"}
IDS = ("lock_id", "party")


class BadCase(Exception):
    """The case itself is wrong."""


def now_us():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def readable(value, name=""):
    """Returns the parameters of a request as a case names them."""
    if name in IDS and isinstance(value, bytes):
        return value.hex()
    if name in IDS and isinstance(value, str):
        return value.lower()
    if isinstance(value, dict):
        return {key: readable(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [readable(one) for one in value]
    return plain(value)


LOCK_FIELDS = ("key", "lock_id", "lease_ms", "token", "slots", "bond", "order", "shorten")


class Request:
    """A request. An extend always has the list `locks` here, in whichever form it came."""

    def __init__(self, node, connection, msgid, method, params):
        self.node, self.connection, self.msgid, self.method = node, connection, msgid, method
        self.params, self.at = readable(params), now_us()
        self.single = method == "extend" and "locks" not in params
        if self.single:
            self.params["locks"] = [{name: self.params.pop(name) for name in LOCK_FIELDS
                                     if name in self.params}]
        self.taken = False

    def field(self, path):
        """Returns the parameter with that name, or at a path such as locks.0.lock_id."""
        value = self.params
        for part in path.split("."):
            if isinstance(value, list) and part.isdecimal():
                value = value[int(part)] if int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value


class Conversation:
    """What has been said in one case, between all nodes and the client, and what was wrong."""

    def __init__(self, show=None):
        self.began, self.lines, self.requests, self.problems = now_us(), [], [], []
        self._show = show
        self._changed = asyncio.Event()
        # Until when a holder may trust its lock, and the last token, by key; and under which number
        # a lock was shortened last, by lock_id.
        self.bounds, self.tokens, self.shortened = {}, {}, {}

    def note(self, who, text):
        line = "%9.1f ms  %-8s %s" % ((now_us() - self.began) / 1000, who, text)
        self.lines.append(line)
        if self._show:
            self._show(line)
        self.changed()

    def problem(self, text):
        self.problems.append(text)
        self.changed()

    def changed(self):
        self._changed.set()

    async def wait_change(self, seconds):
        """Waits until something has happened, for at most that long."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), max(seconds, 0))
        except asyncio.TimeoutError:
            pass

    def last(self, method, before=None):
        """Returns the last request with that method, of any node, before that request."""
        for request in reversed(self.requests):
            if request.method == method and (before is None or request is not before):
                return request
        return None


class Rule:
    def __init__(self, node, said):
        unknown = set(said) - RULE_FIELDS
        if unknown or "on" not in said:
            raise BadCase("node %s: a rule %s: %s" % (
                node, "has unknown fields %s" % sorted(unknown) if unknown else "has no `on`",
                json.dumps(said)))
        self.said = said
        self.on = [said["on"]] if isinstance(said["on"], str) else said["on"]
        times = said.get("times", 1)
        self.left, self.must = (None, False) if times == "any" else (times, True)

    def takes(self, request):
        return (self.left != 0 and request.method in self.on
                and not differs(self.said.get("where", {}), request.params))

    def use(self):
        if self.left is not None:
            self.left -= 1

    def check(self, request, earlier, other):
        """Returns what is wrong with the request. earlier: the previous one with this method.
        other: returns the last one with another method."""
        why = differs(self.said.get("want", {}), request.params)
        if why:
            return why
        for word in ("same", "differs"):
            for field in self.said.get(word, []):
                before, now = earlier and earlier.field(field), request.field(field)
                if before is None or (before == now) != (word == "same"):
                    return "%s is %r, and was %r in the previous %s" % (field, now, before,
                                                                        request.method)
        for field, source in self.said.get("like", {}).items():
            method, _, path = source.partition(".")
            before, now = other(method), request.field(field)
            if (before and before.field(path)) != now:
                return "%s is %r, and %s of the last %s was %r" % (
                    field, now, path, method, before and before.field(path))
        since = self.said.get("since")
        if since:
            before = other(since["request"])
            ms = (request.at - before.at) / 1000 if before else None
            why = differs(since["ms"], ms)
            if why:
                return "the time since the last %s, in ms: %s" % (since["request"], why)
        return ""


class Connection:
    def __init__(self, node, number, reader, writer):
        self.node, self.number, self.reader, self.writer = node, number, reader, writer
        self.messages = messages.Reader()
        self.watch = 0
        # The last request on this connection.
        self.last = None
        self.ended = False

    def write(self, data):
        if not self.ended and not self.writer.is_closing():
            self.writer.write(data)

    def close(self, reset=False):
        self.ended = True
        if reset:
            sock = self.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        else:
            self.writer.close()


class Node:
    """A node that is played. `said` are its rules, or "refused" for a port where nobody listens.
    `tls` is one of certificates.NODES, or None for a node without TLS."""

    def __init__(self, name, said, conversation, tls=None):
        self.name, self.conversation, self.tls = name, conversation, tls
        # Replaces names of nodes by their endpoints.
        self.fill = lambda value: value
        self.refused = said == "refused"
        if not self.refused and not isinstance(said, list):
            raise BadCase("node %s: neither a list of rules nor \"refused\"" % name)
        self.rules = [] if self.refused else [Rule(name, rule) for rule in said]
        self.connections, self.hangs, self._server, self._count = [], False, None, 0
        self._watches = 0
        # What has come while the node hangs, and what ends the wait of answers that had begun.
        self._unread, self._resumed = [], asyncio.Event()
        self._context = certificates.context(tls) if tls and tls != "plain" else None
        self._tasks = set()
        self._bound = socket.socket()
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._bound.bind(("127.0.0.1", 0))
        self.port = self._bound.getsockname()[1]
        self.endpoint = "%s127.0.0.1:%d" % ("tls://" if tls else "", self.port)

    async def start(self):
        if self.refused or self._server:
            return
        # The port is bound from the beginning, so that nobody else gets it.
        self._server = await asyncio.start_server(self._serve, sock=self._bound, backlog=64)
        self.note("listens at %s" % self.endpoint)

    async def stop(self):
        """Ends as a killed node does: its connections are closed, and new ones are refused."""
        self.cut()
        if self._server:
            self._server.close()
            self._server = None
            self._bound = socket.socket()
            self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._bound.bind(("127.0.0.1", self.port))

    async def end(self):
        await self.stop()
        self._bound.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, reset=False):
        for connection in self.connections:
            if not connection.ended:
                connection.close(reset)

    async def play(self, what):
        if what == "hang":
            self.hangs = True
        elif what == "resume":
            self.hangs = False
            self._resumed.set()
            self._resumed = asyncio.Event()
            unread, self._unread = self._unread, []
            for request in unread:
                self._take(request)
        elif what == "stop":
            await self.stop()
        elif what == "start":
            await self.start()
        elif what in ("cut", "reset"):
            self.cut(what == "reset")
        else:
            raise BadCase("node %s: it cannot play %r" % (self.name, what))
        self.note("is made to " + what)

    def note(self, text, connection=None):
        who = self.name + ("#%d" % connection.number if connection else "")
        self.conversation.note(who, text)

    def unused(self):
        return [rule for rule in self.rules if rule.must and rule.left]

    # ---- a connection ----

    async def _serve(self, reader, writer):
        self._count += 1
        if self._context:
            reader = writer = TlsStream(reader, writer, self._context)
        connection = Connection(self, self._count, reader, writer)
        self.connections.append(connection)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.note("accepts a connection", connection)
        self._tasks.add(asyncio.current_task())
        try:
            if self._context:
                await reader.begin()
            elif self.tls:
                await self._read_tls(connection)
            self._take(Request(self, connection, 0, "connect", {}))
            await self._read(connection)
        except (ConnectionError, ssl.SSLError, messages.Malformed) as error:
            self.note("the connection ends: %s" % (error or type(error).__name__), connection)
            if isinstance(error, messages.Malformed):
                self.conversation.problem("the client has sent what is not the protocol: %s"
                                          % error)
        finally:
            self._tasks.discard(asyncio.current_task())
            if not connection.ended:
                connection.ended = True
                writer.close()

    async def _read_tls(self, connection):
        """Reads how the client begins TLS, which this node does not understand."""
        data = await connection.reader.read(65536)
        if data[:1] != b"\x16":
            self.conversation.problem("the client should begin TLS, and sends %r" % data[:32])
        self.note("the client begins TLS", connection)

    async def _read(self, connection):
        while data := await connection.reader.read(65536):
            if self.tls == "plain":
                continue
            for message in connection.messages.feed(data):
                self._message(connection, message)
        if not connection.ended:
            self.note("the client closes the connection", connection)

    def _message(self, connection, message):
        if (not isinstance(message, list) or len(message) != 4 or message[0] != 0
            or not isinstance(message[1], int) or not 0 <= message[1] < 1 << 32
            or not isinstance(message[2], str) or not isinstance(message[3], list)
            or len(message[3]) > 1 or any(not isinstance(one, dict) for one in message[3])):
            self.conversation.problem("the client has sent what is no request: %r" % (message,))
            return
        params = message[3][0] if message[3] else {}
        request = Request(self, connection, message[1], message[2], params)
        connection.last = request
        self.note("<- %s %s" % (request.method, json.dumps(request.params)), connection)
        self.conversation.requests.append(request)
        answers.note_shortening(self.conversation, request)
        if self.hangs:
            self._unread.append(request)
        else:
            self._take(request)

    def _take(self, request):
        """Answers the request by the first rule that takes it."""
        talk = self.conversation
        rule = next((rule for rule in self.rules if rule.takes(request)), None)
        if rule is None and request.method != "connect" and request.method not in BY_ITSELF:
            talk.problem("node %s has no rule (any more) for this request: %s %s" % (
                self.name, request.method, json.dumps(request.params)))
            self._begin(request, {"error": {"code": "bad_request", "message": "no rule"}}, 0)
        elif rule is None and request.method != "connect":
            self._begin(request, {"grant": {}}, 0)
        elif rule is not None:
            rule.use()
            wrong = rule.check(request, talk.last(request.method, request),
                               lambda method: talk.last(method, request))
            if wrong:
                talk.problem("node %s got a request that the case does not want, %s: %s\n"
                             "    by the rule %s" % (self.name, request.method, wrong,
                                                     json.dumps(rule.said)))
            self._begin(request, rule.said.get("answer", {"grant": {}}),
                        rule.said.get("after_ms", 0))

    def _begin(self, request, answer, after_ms):
        task = asyncio.ensure_future(self._answer(request, answer, after_ms))
        self._tasks.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task):
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            self.conversation.problem("the case, node %s: %r" % (self.name, task.exception()))

    async def _answer(self, request, answer, after_ms=0):
        if after_ms:
            await asyncio.sleep(after_ms / 1000)
        for action in answer if isinstance(answer, list) else [answer]:
            while self.hangs:
                await self._resumed.wait()
            await self._act(request, action)

    async def _act(self, request, action):
        connection = request.connection
        (word, said), = action.items()
        if word == "silence":
            return
        if word == "hang":
            self.hangs = True
            self.note("hangs from now on", connection)
        elif word == "pause_ms":
            await asyncio.sleep(said / 1000)
        elif word in ("close", "reset"):
            self.note("closes the connection" if word == "close" else "resets the connection",
                      connection)
            connection.close(word == "reset")
        elif word == "bytewise":
            for byte in self._frame(request, said):
                connection.write(bytes([byte]))
                await asyncio.sleep(0.0005)
        elif word == "last_word":
            connection.write(self._frame(request, {"other_msgid": {"error": said}, "msgid": 0}))
            connection.close()
        else:
            connection.write(self._frame(request, action))

    def _frame(self, request, action):
        """Returns the bytes of an answer, and notes them."""
        if "watch" in request.method and not request.connection.watch:
            self._watches += 1
            request.connection.watch = self._watches
        data, text = answers.frame(self, request, action)
        self.note("-> " + text, request.connection)
        return data

    def send(self, action):
        """Sends a notification over the connection that was used last for a watch, or else for any
        request. Returns False if there is none."""
        up = [one for one in self.connections if not one.ended and one.last]
        up = [one for one in up if one.watch] or up
        if not up:
            return False
        self._begin(up[-1].last, action, 0)
        return True


async def _show(path):
    with open(path, encoding="utf-8") as f:
        case = json.load(f)
    talk = Conversation(show=lambda line: print(line, flush=True))
    nodes = make_nodes(case, talk)
    for node in nodes.values():
        await node.start()
    for name, value in environment(case, nodes).items():
        print("%s=%s" % (name, value), flush=True)
    shown = 0
    while True:
        for problem in talk.problems[shown:]:
            print("PROBLEM: " + problem, flush=True)
        shown = len(talk.problems)
        await talk.wait_change(1)


def filler(names):
    """Returns a function that puts what these names stand for in the place of ${NAME}."""
    def fill(value):
        if isinstance(value, str):
            for name, text in names.items():
                value = value.replace("${%s}" % name, text)
        elif isinstance(value, list):
            value = [fill(one) for one in value]
        elif isinstance(value, dict):
            value = {key: fill(one) for key, one in value.items()}
        return value
    return fill


def environment(case, nodes):
    """Returns the variables for the client of a case."""
    endpoints = ",".join(node.endpoint for node in nodes.values()) or "127.0.0.1:1"
    return {"PAWL_ENDPOINTS": endpoints,
            **(certificates.environment(case.get("client", {})) if "tls" in case else {})}


def make_nodes(case, talk):
    """Returns the nodes of a case by name."""
    tls = case.get("tls", {})
    nodes = {name: Node(name, said, talk, tls.get(name)) for name, said in case["nodes"].items()}
    for node in nodes.values():
        node.fill = filler({name: one.endpoint for name, one in nodes.items()})
    return nodes


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.exists(sys.argv[1]):
        sys.exit(__doc__)
    try:
        asyncio.run(_show(sys.argv[1]))
    except KeyboardInterrupt:
        pass
