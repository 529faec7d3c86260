"""Clients on the conductor's own network and in its own time. They acquire keys, extend, update,
read, release, vanish, and repeat at another node what was not answered. What they do is drawn from
the seed, and what they ask and believe is written to the history."""

import random

import pawltest
from network import MS, Stream

KEYS = ["one", "two"]
PATIENCE_MS = 600
LEASES_MS = (250, 500, 1000)


class Answer:
    """The outcome of one request. `result` is "ok", the code of an error, or "unknown"."""

    def __init__(self, invoke, returned, result, data):
        self.invoke, self.returned, self.result, self.data = invoke, returned, result, data
        self.ok = result == "ok"


class Lock:
    def __init__(self, key, lock_id, lease_ms):
        self.key, self.lock_id, self.lease_ms = key, lock_id, lease_ms
        self.until, self.over = 0, False
        # The value that the acquire writes.
        self.first = lock_id[:6]

    def told(self):
        return {"key": self.key, "lock_id": self.lock_id}


class Client:
    """`ports` are those at which nodes listen for clients. The program of a client is a generator:
    it yields the time at which it goes on, or goes on earlier when something has arrived."""

    def __init__(self, conductor, history, ports, number, seed):
        self.conductor, self.history, self.ports, self.number = conductor, history, ports, number
        self.random = random.Random("client %d %s" % (number, seed))
        self.stream, self.node, self.input, self.answers, self.msgid = None, None, b"", {}, 0
        self.program, self.turn, self.awake, self.done = None, 0, False, False
        # What is wrong if the program does not come to its end.
        self.lasts = ""
        # The request that has no line in the history yet: (method, parameters, invoke).
        self.under_way = None

    # ---- going on ----

    def begin(self, program):
        self.program = program
        self.go_on()

    def go_on(self):
        self.turn += 1
        self.awake = False
        turn = self.turn
        try:
            when = next(self.program)
        except StopIteration:
            self.done = True
            return
        self.conductor.at(when, lambda: self.go_on() if self.turn == turn else None)

    def wake(self):
        if not self.awake:
            self.awake, turn = True, self.turn
            self.conductor.at(self.now(), lambda: self.go_on() if self.turn == turn else None)

    def now(self):
        return self.conductor.time

    def until(self, deadline, condition=lambda: False):
        while not condition() and self.now() < deadline:
            yield deadline

    def sleep(self, ms):
        yield from self.until(self.now() + int(ms * MS))

    # ---- requests ----

    def connect(self, node=None):
        """Connects to this node, or to another one than before."""
        if self.stream:
            self.stream.wake = None
            self.stream.closed()
        others = [n for n in sorted(self.ports) if n != self.node]
        self.node, self.input, self.answers = node or self.random.choice(others), b"", {}
        self.stream = Stream(self.conductor.network, "clients")
        self.stream.wake = self.wake
        self.conductor.network.connect(self.stream, self.ports[self.node])
        yield from self.until(self.now() + 300 * MS, lambda: self.stream.state != "connecting")

    def usable(self):
        return self.stream and self.stream.state == "open" and not self.stream.ended

    def receive(self):
        _, _, data = self.stream.read(1 << 20)
        self.input += data
        while True:
            unpacker = pawltest.Unpacker(self.input)
            try:
                kind, msgid, error, result = unpacker.value()
            except pawltest.More:
                return
            self.input = self.input[unpacker.at:]
            assert kind == 1
            self.answers[msgid] = self.now(), error, result

    def answered(self):
        self.receive()
        return self.msgid in self.answers or not self.usable()

    def call(self, method, patience_ms, **params):
        while not self.usable():
            yield from self.connect()
            if not self.usable():
                yield from self.sleep(20)
        self.msgid += 1
        invoke = self.now()
        named = {k: v for k, v in params.items() if v is not None}
        self.under_way = method, params, invoke
        self.stream.write(pawltest.pack([0, self.msgid, method, [named]]))
        yield from self.until(invoke + patience_ms * MS, self.answered)
        returned, error, result = self.answers.pop(self.msgid, (None, None, None))
        # A moment passes before the client does anything else, so that the history has an order.
        yield from self.until(self.now() + self.random.randrange(1000, 50000))
        if returned is None:
            return Answer(invoke, None, "unknown", {})
        code = "ok" if error is None else error["code"]
        return Answer(invoke, returned, code, result if error is None else error)

    def write(self, op, lock, answer, **fields):
        self.under_way = None
        self.history.op(self.number, op, answer, **lock.told(), node=self.node, **fields)

    def write_rest(self):
        """Writes the request that is under way when the run ends."""
        if self.under_way:
            op, params, invoke = self.under_way
            self.history.op(self.number, op, Answer(invoke, None, "unknown", {}), **params)

    # ---- locks ----

    @staticmethod
    def believes(lock, answer, before=None):
        """Whether the client counts on the lock because of this answer. The deadline of before has
        not passed, if there is one."""
        if not answer.ok or lock.over or before is not None and answer.returned >= before:
            return False
        until = answer.invoke + answer.data["valid_ms"] * MS
        if answer.returned >= until:
            return False
        lock.until = max(lock.until, until)
        return True

    def acquire(self, lock, wait_ms):
        answer = yield from self.call("acquire", PATIENCE_MS + wait_ms, **lock.told(),
                                      lease_ms=lock.lease_ms, wait_ms=wait_ms,
                                      owner="client %d" % self.number, value=lock.first)
        believed = self.believes(lock, answer) if answer.ok else None
        self.write("acquire", lock, answer, believed=believed, lease_ms=lock.lease_ms,
                   wait_ms=wait_ms, value=lock.first)
        return answer

    def extend(self, lock):
        before = lock.until
        answer = yield from self.call("extend", PATIENCE_MS, **lock.told(), lease_ms=lock.lease_ms,
                                      deadline_kept=True)
        believed = self.believes(lock, answer, before) if answer.ok else None
        self.write("extend", lock, answer, believed=believed, lease_ms=lock.lease_ms,
                   deadline_kept=True)
        lock.over |= answer.result in ("lost", "not_found")
        return answer

    def update(self, lock):
        value = "%06x" % self.random.getrandbits(24)
        answer = yield from self.call("update", PATIENCE_MS, **lock.told(), value=value)
        self.write("update", lock, answer, value=value)
        lock.over |= answer.result in ("lost", "not_found")
        return answer

    def release(self, lock):
        lock.over = True
        answer = yield from self.call("release", PATIENCE_MS, **lock.told())
        self.write("release", lock, answer)
        return answer

    def forget(self, lock):
        if not lock.over:
            self.history.moment("forget", self.now(), process=self.number, **lock.told())
        lock.over = True

    def get(self, key):
        answer = yield from self.call("get", PATIENCE_MS, key=key, consistency="quorum")
        held = answer.data.get("held") if answer.ok else None
        holder = answer.data if held and len(answer.data.get("holders", [0])) == 1 else {}
        self.under_way = None
        self.history.op(self.number, "get", answer, key=key, consistency="quorum", held=held,
                        lock_id=holder.get("lock_id"), shown=holder.get("value"), node=self.node,
                        holder_token=holder.get("token"))

    # ---- what a client does ----

    def live(self, until):
        yield from self.sleep(self.random.randrange(50))
        while self.now() < until:
            lock = Lock(self.random.choice(KEYS), "%032x" % self.random.getrandbits(128),
                        self.random.choice(LEASES_MS))
            answer = yield from self.acquire(lock, self.random.choice((0, 0, 300, 1000)))
            while answer.result == "unknown" and self.random.random() < 0.7:
                yield from self.connect()
                answer = yield from self.acquire(lock, 0)
            if answer.ok:
                yield from self.hold(lock)
            else:
                self.forget(lock)
                yield from self.sleep(self.random.randrange(100))
            if self.random.random() < 0.2:
                yield from self.get(self.random.choice(KEYS))

    def hold(self, lock):
        for _ in range(self.random.randrange(4)):
            yield from self.sleep(self.random.randrange(lock.lease_ms // 2))
            answer = yield from (self.extend if self.random.random() < 0.7 else self.update)(lock)
            if answer.result == "unknown":
                yield from self.connect()
        if self.random.random() < 0.8:
            answer = yield from self.release(lock)
            if answer.result == "unknown":
                yield from self.connect()
                yield from self.release(lock)
        elif self.random.random() < 0.5:
            self.forget(lock)

    def acquire_every_key(self):
        """Acquires each key and releases it, however often it has to try."""
        for key in KEYS:
            result = None
            while result != "ok":
                lock = Lock(key, "%032x" % self.random.getrandbits(128), LEASES_MS[0])
                result = (yield from self.acquire(lock, 400)).result
                yield from self.release(lock)

    # ---- the set ----

    def operate(self, times, done):
        """At each of the times (ms) it changes the timing, which is a decree and a new epoch; calls
        done() if that is answered well."""
        for at in times:
            yield from self.until(at * MS)
            answer = yield from self.call("cluster_set_timing", PATIENCE_MS,
                                          promise_timeout_ms=self.random.randrange(400, 500))
            self.under_way = None
            if answer.ok:
                done()

    def observe(self, until, told):
        """Asks each node for its status, again and again, and calls told(status). Ends after
        `until`, when all of them vote and agree."""
        agreed = False
        while self.now() < until or not agreed:
            seen = []
            for node in sorted(self.ports):
                yield from self.connect(node)
                if self.usable():
                    answer = yield from self.call("status", PATIENCE_MS)
                    self.under_way = None
                    seen += [answer.data] if answer.ok else []
            for status in seen:
                told(status)
            agreed = (len({s["node"] for s in seen}) == len(self.ports)
                      and all(s["state"] == "voting" for s in seen)
                      and len({(s["epoch"], s["config_hash"]) for s in seen}) == 1)
            yield from self.sleep(100)
