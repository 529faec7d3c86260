"""Holders whose locks are at the edge (redis_holders.py): they believe as long as a node allows at
most, hand their locks on by their values, change these, and go on where they should not.

All beliefs here are exact: a lease begins after its request was sent, and lasts for the length and
the slack by every clock; PAWL.VALID leaves the slack out. So a belief from the sending on that adds
the slack is over before the lease, and what runs late in this program only shortens it.
"""

import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("nodes", "integration")]

import cluster  # noqa: E402
import clients  # noqa: E402
import pawltest  # noqa: E402
import redis  # noqa: E402
from history import now  # noqa: E402

LENGTH_MS = (300, 2500)
# What the nodes allow, less the slack of 1 s.
LONGEST_MS = 3800
# A lock without an end has at least this much left while its node says that it has no end.
ENDLESS_MS = clients.MAX_LEASE_MS // 2
# How long a rival tries to take a key, and how long it waits for one that is handed on, in seconds.
TRY_S, HEAR_S, POLL_S = 2.0, 0.5, 0.01
# How often a holder asks for the end of what it may have left without an end.
CLEAN_TRIES = 20


class Board:
    """Values of locks whose holders have left them to whoever puts its own value in their place
    first. All who wait hear of each."""

    def __init__(self):
        self.heard, self.number, self.last = threading.Condition(), 0, None

    def leave(self, key, value):
        with self.heard:
            self.number, self.last = self.number + 1, (key, value)
            self.heard.notify_all()

    def hear(self, seconds):
        with self.heard:
            number = self.number
            self.heard.wait_for(lambda: self.number != number, seconds)
            return self.last if self.number != number else None


class Rival:
    """A holder by commands of its own. `holder` (redis_holders.Holder) connects, counts and
    draws."""

    def __init__(self, holder, board):
        self.holder, self.board, self.random = holder, board, holder.random
        self.slack = int(holder.patience * 1e9)

    def say(self, *words):
        """Returns (the answer, when the command was sent, in ns)."""
        sent = now()
        return self.holder.client.execute_command(*words), sent

    def value(self):
        return "%x" % self.random.getrandbits(64)

    def length(self):
        return self.random.randint(*LENGTH_MS)

    def believe(self, key, value, sent, ms, endless=False):
        begin = now()
        end = sent + ms * 1000000 + (0 if endless else self.slack)
        return {"key": key, "value": value, "who": self.holder.number, "begin": begin, "end": end,
                "exact": True, "endless": endless, "acts": []}

    def one(self):
        belief = self.inherit() if self.random.random() < 0.5 else self.take()
        if not belief:
            return self.holder.out.count("refused")
        try:
            self.hold(belief)
        finally:
            if belief["endless"]:
                self.over(belief)
            self.holder.out.count("acquired")
            self.holder.out.belief(**belief)
            if belief["endless"]:
                self.clean(belief["key"], belief["value"])

    # ---- taking ----

    def inherit(self):
        """Takes what somebody has left, if nobody else comes first."""
        heard = self.board.hear(self.random.uniform(0, HEAR_S))
        return self.change(*heard, "inherited") if heard else None

    def change(self, key, old, what):
        value, length = self.value(), self.length()
        said, sent = self.say("SET", key, value, "IFEQ", old, "PX", length)
        if said:
            self.holder.out.count(what)
            return {**self.believe(key, value, sent, length), "from": old}
        return None

    def take(self):
        key, value, length = self.holder.key(), self.value(), self.length()
        dice, end = self.random.random(), time.monotonic() + self.random.uniform(0, TRY_S)
        if dice < 0.15:
            return self.take_endless(key, value)
        while not self.holder.stop.is_set():
            said, sent = self.say("PAWL.WAIT", key, value, length,
                                  int(self.holder.patience * 500)) if dice < 0.4 \
                else self.say("SET", key, value, "NX", "PX", length)
            if said:
                return self.believe(key, value, sent, length)
            if time.monotonic() > end:
                break
            self.holder.stop.wait(POLL_S)
        return None

    def take_endless(self, key, value):
        try:
            said, sent = self.say("SET", key, value, "NX")
        except (redis.exceptions.RedisError, OSError):
            self.clean(key, value)
            raise
        return self.believe(key, value, sent, ENDLESS_MS, True) if said else None

    # ---- holding ----

    def hold(self, belief):
        for _ in range(self.random.randrange(4)):
            self.holder.stop.wait(self.random.uniform(0, self.holder.left(belief)) / 2)
            if not self.holder.left(belief):
                break
            act = self.random.choice((self.renew, self.replace, self.valid, self.valid, self.token))
            self.do(self.check if belief["endless"] else act, belief)
        self.do(self.random.choice((self.release, self.release, self.leave, self.end)), belief)

    @staticmethod
    def do(act, belief):
        """Notes what is done, for the story of an overlap."""
        belief["acts"].append((act.__name__, now()))
        act(belief)
        belief["acts"].append((belief["end"], now()))

    def over(self, belief):
        belief["end"] = min(belief["end"], now())

    def renew(self, belief, length=None):
        length = length or self.length()
        said, sent = self.say("SET", belief["key"], belief["value"], "XX", "PX", length)
        if not said:
            self.holder.out.count("lost")
            return self.over(belief)
        self.holder.out.count("extended")
        belief["end"] = max(belief["end"], sent + length * 1000000 + self.slack)

    def replace(self, belief):
        """Puts another value in the place of its own. If that is not answered, the lock has one of
        the two."""
        later = self.change(belief["key"], belief["value"], "changed")
        if later:
            belief.update(value=later["value"], end=max(belief["end"], later["end"]))
        else:
            self.over(belief)

    def valid(self, belief):
        """Believes PAWL.VALID, above all after a renewal that was not answered well: it may have
        reached some of the masters. Then another node may know more."""
        try:
            if self.random.random() < 0.8:
                self.renew(belief, LONGEST_MS)
            left, sent = self.say("PAWL.VALID", belief["key"], belief["value"])
        except (redis.exceptions.RedisError, OSError):
            self.holder.out.count("failed before VALID")
            left, sent = self.ask_others(belief)
        if left > 0:
            self.holder.out.count("believed VALID")
            belief["end"] = sent + left * 1000000 + self.slack
            self.holder.stop.wait(self.holder.left(belief))
        else:
            self.over(belief)

    def ask_others(self, belief):
        while self.holder.left(belief):
            self.holder.stop.wait(POLL_S)
            self.holder.connect()
            try:
                return self.say("PAWL.VALID", belief["key"], belief["value"])
            except (redis.exceptions.RedisError, OSError):
                pass
        return 0, 0

    def token(self, belief):
        """Asks for the token of a lock that it has taken itself: with another value it is still the
        same lock."""
        if "from" in belief:
            return
        said, _ = self.say("PAWL.TOKEN", belief["key"], belief["value"])
        if said:
            belief.setdefault("token", said)

    def check(self, belief):
        """A lock without an end is believed for as long as its node says that it has none."""
        left, sent = self.say("PAWL.VALID", belief["key"], belief["value"])
        if left == -1:
            self.holder.out.count("without an end")
            belief["end"] = max(belief["end"], sent + ENDLESS_MS * 1000000)
        elif left <= 0:
            self.over(belief)

    # ---- letting go ----

    def release(self, belief):
        self.over(belief)
        self.say("DELIFEQ", belief["key"], belief["value"])
        self.holder.out.count("released")

    def end(self, belief):
        self.holder.stop.wait(self.holder.left(belief))
        self.holder.out.count("left to end")

    def leave(self, belief):
        """Leaves the lock to others, and perhaps wants it back, or deletes it, or comes late."""
        if belief["endless"]:
            return self.release(belief)
        key, value = belief["key"], belief["value"]
        self.over(belief)
        self.board.leave(key, value)
        dice = self.random.random()
        if dice < 0.3:
            self.say("DELIFEQ", key, value)
        elif dice < 0.6:
            length = self.length()
            try:
                said, sent = self.say("SET", key, self.value(), "XX", "PX", length)
            except redis.exceptions.NoPermissionError:
                return self.holder.out.count("came late")
            if said:
                again = self.believe(key, "", sent, length)
                self.holder.out.belief(**again)
        return None

    def clean(self, key, value):
        """Ends what may be there without an end."""
        for _ in range(CLEAN_TRIES):
            try:
                self.say("DELIFEQ", key, value)
                return
            except (redis.exceptions.RedisError, OSError):
                self.holder.stop.wait(POLL_S * 20)
                self.holder.connect()


class Native:
    """A holder by the client protocol, on the same keys. Its few lock_ids are used again and again,
    on other keys too, until the outcome of a release is not known."""

    def __init__(self, holder, board):
        self.holder, self.board, self.random = holder, board, holder.random
        self.lock_ids, self.client = [pawltest.lock_id() for _ in range(3)], None

    def call(self, method, **params):
        if not self.client:
            host = self.random.choice(self.holder.addresses).rsplit(":", 1)[0]
            self.client = pawltest.Client("%s:%d" % (host, cluster.CLIENT_PORT),
                                          timeout=self.holder.patience)
        sent = now()
        return self.client.call(method, **params), sent

    def one(self):
        n, key, value = (self.random.randrange(len(self.lock_ids)), self.holder.key(),
                         "%x" % self.random.getrandbits(64))
        try:
            self.hold(n, key, value)
        except pawltest.Refused as e:
            self.holder.out.count("native " + e.code)
            if e.code not in ("held", "timeout"):
                self.lock_ids[n] = pawltest.lock_id()
            self.holder.stop.wait(self.random.uniform(0, 0.1))
        except (pawltest.Closed, OSError) as e:
            self.holder.out.count("native " + type(e).__name__)
            self.lock_ids[n] = pawltest.lock_id()
            if self.client:
                self.client.close()
            self.client = None
            self.holder.stop.wait(self.random.uniform(0, 0.2))

    def hold(self, n, key, value):
        more = {"key": key, "lock_id": self.lock_ids[n]}
        got, sent = self.call("acquire", lease_ms=self.random.randint(*LENGTH_MS) + 1000,
                              wait_ms=int(self.random.uniform(0, self.holder.patience * 500)),
                              value=value, **more)
        belief = {"key": key, "who": self.holder.number, "begin": now(),
                  "end": sent + int(got["valid_ms"] * 1e6), "exact": True, "token": got["token"],
                  "lock_id": self.lock_ids[n]}
        try:
            self.holder.stop.wait(self.random.uniform(0, self.holder.left(belief)))
            if self.random.random() < 0.3:
                got, sent = self.call("extend", lease_ms=self.random.randint(*LENGTH_MS) + 1000,
                                      **more)
                belief["end"] = max(belief["end"], sent + int(got["valid_ms"] * 1e6))
            self.let_go(n, belief, value, more)
        finally:
            self.holder.out.count("acquired natively")
            self.holder.out.belief(**belief)

    def let_go(self, n, belief, value, more):
        dice = self.random.random()
        if dice < 0.3:
            return self.holder.stop.wait(self.holder.left(belief))
        belief["end"] = min(belief["end"], now())
        if dice < 0.6:
            # Whoever hears of the value may have the lock from now on, under the same lock_id.
            self.lock_ids[n] = pawltest.lock_id()
            self.board.leave(belief["key"], value)
            if dice < 0.4:
                return None
        return self.call("release", **more, **({"expect": value} if dice < 0.8 else {}))
