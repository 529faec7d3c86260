"""Holders for mixed_judge.py: each takes locks by a runner, holds them for a while, and writes down
what the runner says. A process of a runner serves several holders."""

import os
import random
import signal
import threading
import time

from history import now
from driven import Ended, Refused, Runner

HOSTS = ["k1", "k2", "k3"]
PROCESSES = 12
# A runner that does not run tells losses late, so they go before other work on the machine.
AT_ONCE = ["nice", "-n", "-15"]
LEASES_MS, WAIT_MS = (700, 3000), 4000
# A set of two of these keys is taken together, too.
EXCLUSIVE, SHARED = ["x0", "x1", "x2", "x3"], ["s0", "s1", "s2"]
PERMITS, OF = ["p0", "p1"], 3
ELECTIONS = ["e0", "e1"]
US, MS = 1000, 1000000


class Slot:
    """The place of a process of a runner: when it is killed, another one takes its place."""

    def __init__(self, number, language, command, cluster, folder, log):
        self.number, self.language, self.command = number, language, command
        self.cluster, self.log = cluster, log
        self.path = os.path.join(folder, "runner-%d-%s.log" % (number, language))
        self.paused_at = None
        self.start()

    def start(self):
        endpoints = [n.endpoint for n in self.cluster.nodes.values()]
        prefix = self.cluster.net.command(HOSTS[self.number % len(HOSTS)],
                                          ["setpriv", "--pdeathsig", "KILL", "--", *AT_ONCE])
        with open(self.path, "a", encoding="utf-8") as errors:
            runner = Runner(self.command, {"PAWL_ENDPOINTS": ",".join(endpoints)}, prefix,
                            stderr=errors)
        runner.killed_at = None
        self.runner = runner
        self.level = self.runner.do("hello")["level"]

    # ---- what the nemesis does with it ----

    def stop(self):
        if self.paused_at is None:
            self.paused_at = now()
            self.runner.signal(signal.SIGSTOP)

    def go_on(self):
        if self.paused_at is not None:
            self.log.line(op="paused", invoke=self.paused_at, **{"return": now()},
                          runner=self.number)
            self.paused_at = None
            self.runner.signal(signal.SIGCONT)

    def replace(self):
        self.look()
        self.go_on()
        self.runner.killed_at = now()
        self.runner.kill()
        self.start()

    def look(self):
        """A runner that has ended by itself is a fault, and another one takes its place."""
        status = self.runner.process.poll()
        if status is not None and self.runner.killed_at is None:
            self.complain("the runner of %s has ended by itself with status %d: see %s"
                          % (self.language, status, self.path))
            self.runner.killed_at = now()
            self.start()

    def complain(self, text):
        self.log.moment("complaint", now(), text=text, runner=self.number)

    def end(self):
        self.go_on()
        self.look()
        status = self.runner.end()
        if status:
            self.complain("the runner of %s has ended with status %d: see %s"
                          % (self.language, status, self.path))


class Crowd:
    """All processes and their holders, as the nemesis sees them. Use it in a with statement."""

    def __init__(self, runners, count, cluster, folder, log, seed):
        self.over, self.workers = threading.Event(), []
        try:
            for n in range(min(PROCESSES, count)):
                self.workers.append(Slot(n, *runners[n % len(runners)], cluster, folder, log))
            self.holders = [Holder(n, self.workers[n % len(self.workers)], log, seed, self.over)
                            for n in range(count)]
        except BaseException:
            self.kill()
            raise

    def __enter__(self):
        for holder in self.holders:
            holder.start()
        return self

    def replace(self, number):
        self.workers[number].replace()

    def look_after(self, _):
        for slot in self.workers:
            slot.look()

    def go_on(self):
        for slot in self.workers:
            slot.go_on()

    def counts(self):
        total = {}
        for holder in self.holders:
            for what, number in list(holder.counts.items()):
                total[what] = total.get(what, 0) + number
        return total

    def holding(self):
        return sum(holder.holding for holder in self.holders)

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.over.set()
                for holder in self.holders:
                    holder.join()
                for slot in self.workers:
                    slot.end()
        finally:
            self.over.set()
            self.kill()

    def kill(self):
        for slot in self.workers:
            slot.runner.killed_at = slot.runner.killed_at or now()
            slot.runner.kill()


class Lock:
    """One acquisition of a holder, which may be of several keys. `parts` say which key and lock_id,
    and `has` which token and permits each of them has. `until` is the end of the belief."""

    def __init__(self, name, shown):
        self.name, self.parts, self.has, self.shown, self.until = name, [], [], shown, 0


class Holder(threading.Thread):
    def __init__(self, number, slot, log, seed, over):
        super().__init__(daemon=True)
        self.number, self.slot, self.log, self.over = number, slot, log, over
        self.random = random.Random("holder %d %d" % (seed, number))
        self.owner, self.taken, self.holding, self.counts = "h%d" % number, 0, False, {}
        self.ways = [self.exclusive] * 3
        if slot.level >= 2:
            self.ways += [self.shared, self.shared, self.permits, self.permits, self.several]
        if slot.level >= 3:
            self.ways += [self.election]

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def run(self):
        runner = None
        while not self.over.is_set():
            try:
                if runner is not self.slot.runner:
                    runner = self.slot.runner
                    self.connect(runner)
                self.one(runner)
            except Ended as e:
                if self.at_fault(runner):
                    self.slot.complain("%s: %s" % (self.slot.language, e))
                self.over.wait(0.1)
            except Refused as e:
                self.count(e.code)
                self.refused(e)
            except Exception as e:  # The judge must hear of it, whatever it is.
                self.slot.complain("holder %d: %r" % (self.number, e))
                raise

    def refused(self, error):
        """Notes an error that no runner may give to these commands."""
        if error.code in ("bad_argument", "bad_request", "unknown_command", "crash", "mismatch"):
            self.slot.complain("%s refuses: %s" % (self.slot.language, error))
        self.over.wait(self.random.uniform(0, 0.2))

    def at_fault(self, runner):
        """Returns whether the runner is silent although it runs. If it has ended, the nemesis is
        about to find that."""
        return (runner is self.slot.runner and runner.killed_at is None
                and runner.process.poll() is None)

    def connect(self, runner):
        endpoints = [n.endpoint for n in self.slot.cluster.nodes.values()]
        self.random.shuffle(endpoints)
        runner.do("connect", client=self.owner, endpoints=endpoints)

    # ---- ways to take something ----

    def exclusive(self):
        return "lock", {"key": self.random.choice(EXCLUSIVE)}, {}

    def shared(self):
        if self.random.random() < 0.3:
            return "lock", {"key": self.random.choice(SHARED)}, {}
        return "lock", {"key": self.random.choice(SHARED), "mode": "shared"}, {"mode": "shared"}

    def permits(self):
        permits = self.random.choice([1, 1, 2])
        return ("lock", {"key": self.random.choice(PERMITS), "permits": permits, "of": OF},
                {"mode": "permits", "of": OF, "count": permits})

    def several(self):
        return "locks", {"keys": self.random.sample(EXCLUSIVE, 2)}, {}

    def election(self):
        return "campaign", {"name": self.random.choice(ELECTIONS), "candidate": self.owner}, {}

    def one(self, runner):
        do, asked, shown = self.random.choice(self.ways)()
        self.taken += 1
        name = "%s-%d" % (self.owner, self.taken)
        lease_ms, wait_ms = self.random.randint(*LEASES_MS), self.random.choice([0, WAIT_MS])
        if do != "campaign":
            asked["owner"] = self.owner
        if self.random.random() < 0.3:
            asked["priority"] = self.random.randint(-2, 2)
        if self.random.random() < 0.3:
            asked["release_on_disconnect"] = True
        begin = now()
        ok = runner.do(do, client=self.owner, lease_ms=lease_ms, wait_ms=wait_ms, **asked,
                       **{"as": name})
        key = asked.get("key") or asked.get("name")
        tokens = ok.get("tokens") or {key: ok["token"]}
        lock = Lock(name, shown)
        for key, token in tokens.items():
            lock_id = ok.get("lock_id") or "%s/%s" % (name, key)
            lock.parts.append({"key": key, "lock_id": lock_id})
            has = {"token": int(token), "permits": ok.get("slots")}
            lock.has.append(has)
            self.write(lock.parts[-1], "acquire", begin, ok["at"] * US, result="ok",
                       lease_ms=lease_ms, runner=self.slot.number, language=self.slot.language,
                       **has, **shown)
        self.count("acquired")
        self.holding = True
        try:
            self.hold(runner, lock, lease_ms)
        except Ended:
            for part in lock.parts:
                at = runner.killed_at or now()
                self.write(part, "forget", at, at)
            raise
        finally:
            self.holding = False

    def write(self, part, op, invoke, returned, **more):
        self.log.line(op=op, process=self.number, **part, invoke=invoke, **{"return": returned},
                      **more)

    # ---- holding ----

    def hold(self, runner, lock, lease_ms):
        end = time.monotonic() + self.random.choice([0.05, 0.5, lease_ms / 1000, 4.0])
        acts = [lambda *_: None] * 12
        if len(lock.parts) == 1:
            acts.append(self.token)
            acts += [self.extend, self.gate] if lock.parts[0]["key"] not in ELECTIONS else []
            acts += [self.downgrade] if self.may_downgrade(lock) else []
        while self.believe(runner, lock) and time.monotonic() < end and not self.over.is_set():
            if runner.seen_event(event="lost", lock=lock.name):
                break
            self.random.choice(acts)(runner, lock)
            self.over.wait(self.random.uniform(0.03, 0.15))
        if self.told(runner, lock):
            self.count("lost")
            # Some believe until the end, and do not let go.
            while self.random.random() < 0.9 and self.believe(runner, lock):
                self.over.wait(0.05)
        self.let_go(runner, lock)

    def believe(self, runner, lock):
        """Asks for how long the lock is valid. Returns whether it is."""
        said = runner.do("valid", lock=lock.name)
        until = said["at"] * US + said["valid_ms"] * MS
        if said["valid_ms"] and until > lock.until + MS:
            lock.until = until
            for part, has in zip(lock.parts, lock.has):
                self.write(part, "believe", said["at"] * US, said["at"] * US, until=until, **has)
        return said["valid_ms"] > 0

    def told(self, runner, lock):
        """Returns whether the loss of the lock was told. If the lock is not valid, it must be."""
        valid = runner.do("valid", lock=lock.name)["valid_ms"] > 0
        if valid and not runner.seen_event(event="lost", lock=lock.name):
            return False
        try:
            lost = runner.event(event="lost", lock=lock.name)
        except AssertionError:
            self.slot.complain("%s: the loss of %s was never told"
                               % (self.slot.language, lock.name))
            return True
        for part in lock.parts[:1]:
            self.write(part, "lost", lost["at"] * US, lost["at"] * US, code=lost["code"])
        return True

    def act(self, runner, lock, do, **asked):
        """Gives a command that changes the lock, and writes it down before its effect can begin.
        Returns the answer; None if it is an error."""
        begin, returned, result, ok = now(), None, "unknown", None
        try:
            ok = runner.do(do, lock=lock.name, **asked)
            result, returned = "ok", ok["at"] * US
        except Refused as e:
            self.count("%s_%s" % (do, e.code))
            result, returned = e.code, now()
            if e.code in ("bad_argument", "unknown_command", "crash"):
                self.refused(e)
        finally:
            # `released` is not written down: it is false if the client has asked twice.
            for part in lock.parts:
                self.write(part, do, begin, returned, result=result)
        return ok

    def extend(self, runner, lock):
        try:
            runner.do("extend", lock=lock.name)
            self.count("extended")
        except Refused as e:
            self.count("extend_" + e.code)

    def token(self, runner, lock):
        said, has = runner.do("token", lock=lock.name), lock.has[0]
        has["token"] = int(said["token"])
        if lock.until > said["at"] * US:
            self.write(lock.parts[0], "believe", said["at"] * US, said["at"] * US,
                       until=lock.until, **has)

    def gate(self, runner, lock):
        if self.slot.level >= 4:
            said = runner.do("gate", lock=lock.name, margin_ms=50)
            self.count("let_through" if said["accepted"] else "not_let_through")

    @staticmethod
    def may_downgrade(lock):
        return not lock.shown and lock.parts[0]["key"] in SHARED

    def downgrade(self, runner, lock):
        lock.shown = {"mode": "shared"}
        if self.act(runner, lock, "downgrade"):
            self.count("downgraded")

    def waiter(self, runner, lock):
        """Returns the name of somebody who waits for the lock, or waited a moment ago."""
        try:
            owners = runner.do("waiters", client=self.owner, key=lock.parts[0]["key"])["owners"]
        except Refused:
            owners = []
        return self.random.choice(owners or [self.owner])

    def let_go(self, runner, lock):
        """Releases it, or hands it to somebody who may be waiting."""
        if len(lock.parts) == 1 and self.slot.level >= 2 and self.random.random() < 0.15:
            if self.act(runner, lock, "transfer", to=self.waiter(runner, lock)):
                self.count("transferred")
                return
            self.believe(runner, lock)
        if self.act(runner, lock, "release"):
            self.count("released")
