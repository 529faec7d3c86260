"""redis_holders.py SEED COUNT KEYS PATIENCE WHOSE ADDRESS...: holders of locks, by redis-py.

Each of COUNT threads takes one of KEYS keys at one of the addresses by redis.Redis.lock, holds it
for a while, perhaps extends it, and releases it or lets it end. It waits for an answer for PATIENCE
milliseconds (`socket_timeout`). What a thread believes is written to stdout, one JSON object in a
line, with true times: a belief begins when the answer has arrived, and ends after the timeout of
the lock, or when its release is about to be sent. The program ends when its stdin ends, and then
writes what it has counted. Some holders, and those whose extension failed, ask PAWL.VALID and
believe what it says. WHOSE is `redis` or `pawl`: at nodes of Pawl, four of five holders are others
(redis_rivals.py).
"""

import collections
import json
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes"))

from history import now  # noqa: E402
from redis_beliefs import line_of  # noqa: E402

# The package of Debian's Python; the Python that runs this may be another one.
sys.path.append("/usr/lib/python3/dist-packages")
import redis  # noqa: E402

TIMEOUT_S, BLOCKING_S, SLEEP_S = (0.3, 3.0), 2.0, 0.03
TOKENS_OF = 4  # One in so many holders asks for its fencing token.


class Output:
    def __init__(self):
        self.lock, self.counts, self.number = threading.Lock(), collections.Counter(), 0

    def belief(self, **belief):
        with self.lock:
            self.number += 1
            sys.stdout.write(json.dumps(line_of(belief, self.number)) + "\n")

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


class Holder:
    def __init__(self, number, seed, keys, patience, addresses, out, stop):
        self.number, self.keys, self.patience = number, keys, patience
        self.addresses, self.out, self.stop = addresses, out, stop
        self.random, self.client = random.Random("holder %d %d" % (seed, number)), None

    def connect(self):
        if self.client:
            self.client.close()
        host, port = self.random.choice(self.addresses).rsplit(":", 1)
        self.client = redis.Redis(host, int(port), socket_timeout=self.patience,
                                  socket_connect_timeout=self.patience)

    def key(self):
        return "held/%d" % self.random.randrange(self.keys)

    def run(self, one):
        """`one` takes a lock once and holds it. Errors come here."""
        self.connect()
        while not self.stop.is_set():
            try:
                one()
            except redis.exceptions.LockNotOwnedError:
                self.out.count("lost")
            except (redis.exceptions.RedisError, OSError) as e:
                word = str(e).split(" ", 1)[0]
                self.out.count(word if word.isupper() else type(e).__name__)
                self.connect()
                self.stop.wait(self.random.uniform(0, 0.2))
        self.client.close()

    def one(self):
        key, timeout = self.key(), self.random.uniform(*TIMEOUT_S)
        lock = self.client.lock(key, timeout=timeout, sleep=SLEEP_S, blocking_timeout=BLOCKING_S)
        if not lock.acquire():
            return self.out.count("refused")
        begin = now()
        belief = {"key": key, "who": self.number, "begin": begin, "end": begin + int(timeout * 1e9)}
        try:
            self.hold(lock, belief)
        finally:
            self.out.count("acquired")
            self.out.belief(**belief)

    def hold(self, lock, belief):
        if self.random.randrange(TOKENS_OF) == 0:
            self.ask_token(lock, belief)
        if self.random.randrange(TOKENS_OF) == 0:
            self.ask_valid(lock, belief)
        self.stop.wait(self.random.uniform(0, self.left(belief)))
        if self.random.random() < 0.3:
            self.extend(lock, belief)
            self.stop.wait(self.random.uniform(0, self.left(belief)))
        if self.random.random() < 0.8:
            belief["end"] = min(belief["end"], now())
            lock.release()
            self.out.count("released")
        else:
            self.stop.wait(self.left(belief))
            self.out.count("left to end")

    @staticmethod
    def left(belief):
        return max(0, belief["end"] - now()) / 1e9

    def ask_token(self, lock, belief):
        try:
            token = self.client.execute_command("PAWL.TOKEN", belief["key"], lock.local.token)
        except redis.exceptions.ResponseError:
            token = None  # The original server does not know the command.
        if token:
            belief["token"] = token

    def ask_valid(self, lock, belief):
        """Believes what PAWL.VALID says, and holds the lock for so long."""
        try:
            valid = self.client.execute_command("PAWL.VALID", belief["key"], lock.local.token)
        except redis.exceptions.RedisError:
            return
        if valid > 0:
            belief["end"] = now() + valid * 1000000
            self.out.count("believed VALID")
            self.stop.wait(self.left(belief))

    def extend(self, lock, belief):
        """If no answer comes, the belief ends as PAWL.VALID says, or when it would have without
        this."""
        timeout = self.random.uniform(*TIMEOUT_S)
        try:
            lock.extend(timeout, replace_ttl=True)
        except redis.exceptions.LockNotOwnedError:
            belief["end"] = min(belief["end"], now())
            raise
        except (redis.exceptions.RedisError, OSError):
            self.connect()
            self.ask_valid(lock, belief)
            raise
        belief["end"] = now() + int(timeout * 1e9)
        self.out.count("extended")


def main():
    seed, count, keys, patience_ms = map(int, sys.argv[1:5])
    out, stop = Output(), threading.Event()
    offset = 1000 * seed
    holders = [Holder(offset + n, seed, keys, patience_ms / 1000, sys.argv[6:], out, stop)
               for n in range(count)]
    ways = [lambda holder: holder.one]
    if sys.argv[5] == "pawl":
        import redis_rivals
        board = redis_rivals.Board()
        ways += [lambda holder: redis_rivals.Rival(holder, board).one] * 3
        ways += [lambda holder: redis_rivals.Native(holder, board).one]
    threads = [threading.Thread(target=h.run, args=(ways[n % len(ways)](h),))
               for n, h in enumerate(holders)]
    for t in threads:
        t.start()
    sys.stdin.read()
    stop.set()
    for t in threads:
        t.join()
    print(json.dumps({"op": "counts", "invoke": 0, "counts": out.counts}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
