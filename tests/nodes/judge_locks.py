"""Judges what no two locks may do to each other: exclusion, tokens, and lock delays."""

import collections

import beliefs
from beliefs import MS, conflict, excludes


def story(run, *locks, most=40):
    """Returns the lines about these locks, with the faults around them, in the order of time."""
    ops = [op for lock in locks for op in lock.ops if op["op"] != "ended"
           or op["invoke"] < lock.deadline()]
    begin, end = (min(op["invoke"] for op in ops),
                  max(op.get("return") or op["invoke"] for op in ops))
    faults = [f for f in run.by_op["fault"] + run.by_op["phase"]
              if begin - 3000 * MS <= f["invoke"] <= end]
    return [told(op) for op in sorted(ops[:most] + faults[-most:], key=lambda op: op["invoke"])]


def told(op):
    rest = {k: v for k, v in op.items() if k not in ("invoke", "return", "op", "result", "id",
                                                     "process")}
    answered = (" .. %.6f" % (op["return"] / 1e9) if op.get("return")
                and op["return"] != op["invoke"] else "" if op.get("return") else " .. never")
    return "  %.6f%s  %s %s%s  %s" % (op["invoke"] / 1e9, answered,
                                      "client %s" % op["process"] if "process" in op else "-",
                                      op["op"],
                                      " = " + op["result"] if "result" in op else "",
                                      " ".join("%s=%s" % item for item in sorted(rest.items())))


# ---- exclusion ----

def exclusion(run):
    for locks in run.keys.values():
        active = []
        for piece in sorted((p for lock in locks for p in lock.pieces), key=lambda p: p.begin):
            active = [a for a in active if a.end > piece.begin]
            for other in active:
                if conflict(piece, other):
                    yield ("exclusion", "two hold %s at once: %r, and %r"
                           % (piece.lock.key, other, piece), story(run, other.lock, piece.lock))
            active.append(piece)


def continuity(run):
    """A client that is answered with the token that it had before is told that nobody else held the
    key in between, which must be true."""
    for locks in run.keys.values():
        every = sorted((p for lock in locks for p in lock.pieces), key=lambda p: p.begin)
        for lock in locks:
            for at, piece in enumerate(lock.pieces):
                before = max((p for p in lock.pieces[:at] if p.token == piece.token),
                             key=lambda p: p.end, default=piece)
                if before.end >= piece.begin:
                    continue
                between = beliefs.Piece(lock, before.end, piece.begin, before.mode, before.permits,
                                    piece.token, piece.op)
                for other in every:
                    if other.begin >= between.end:
                        break
                    if other.begin >= between.begin and conflict(between, other):
                        yield ("honest extension", "%s is answered with the token it had, but "
                                                   "another lock came in between: %r"
                               % (lock.name(), other),
                               story(run, lock, other.lock))
                        break


# ---- tokens ----

def classes(mode, of, permits):
    return [("permit", of, n) for n in permits] if mode == "permits" else [(mode,)]


class Highest:
    """For each class: the highest token, and the highest token of any other lock."""

    def __init__(self):
        self.of_class = {}

    def add(self, token, lock, mode, of, permits):
        for name in classes(mode, of, permits):
            two = [t for t in self.of_class.get(name, []) if t[1] is not lock or t[0] > token]
            if not any(t[1] is lock for t in two):
                two.append((token, lock))
            self.of_class[name] = sorted(two, key=lambda t: -t[0])[:2]

    def above(self, token, lock, mode, of, permits):
        """Returns (another lock, its token) that this lock excludes and whose token is not below
        this one; None if there is none."""
        for name, two in self.of_class.items():
            other = (("permits", name[1], frozenset([name[2]]))
                     if name[0] == "permit" else (name[0], None, frozenset()))
            for highest, owner in two:
                if owner is not lock and highest >= token and excludes(mode, of, permits, *other):
                    return owner, highest
        return None


def acquired(lock):
    for op in lock.ops:
        if op["op"] == "acquire" and op["result"] == "ok":
            yield op, lock.mode(op["return"]), lock.of(), frozenset(op.get("permits", ()))


def order_of_answers(run):
    """A lock that is answered before another one is asked for must have the smaller token, even if
    that other one is asked for again."""
    for locks in run.keys.values():
        moments = []
        for lock in locks:
            for op, mode, of, permits in acquired(lock):
                moments.append((op["invoke"], 0, op["id"], (op, lock, mode, of, permits)))
                moments.append((op["return"], 1, op["id"], (op, lock, mode, of, permits)))
        highest = Highest()
        for _, kind, _, (op, lock, mode, of, permits) in sorted(moments, key=lambda m: m[:3]):
            if kind == 1:
                highest.add(op["token"], lock, mode, of, permits)
                continue
            found = highest.above(op["token"], lock, mode, of, permits)
            if found:
                yield ("tokens", "%s is asked for after %s was answered with token %d, and gets %d"
                       % (lock.name(), found[0].name(), found[1], op["token"]),
                       story(run, found[0], lock))


def order_of_beliefs(run):
    for locks in run.keys.values():
        highest = Highest()
        for piece in sorted((p for lock in locks for p in lock.pieces), key=lambda p: p.begin):
            of = piece.lock.of()
            if not piece.token:  # The client does not know it.
                continue
            found = highest.above(piece.token, piece.lock, piece.mode, of, piece.permits)
            if found:
                yield ("tokens", "%r, after %s was believed with token %d"
                       % (piece, found[0].name(), found[1]), story(run, found[0], piece.lock))
            highest.add(piece.token, piece.lock, piece.mode, of, piece.permits)


def falling(run):
    """Of several tokens of its lock a client uses the highest, so it never goes back."""
    for lock in run.locks.values():
        highest = 0
        for op in (op for op in lock.ops if op["op"] == "believe"):
            if op.get("token", highest) < highest:
                yield ("tokens", "%s is believed with token %d after %d"
                       % (lock.name(), op["token"], highest), story(run, lock))
            highest = max(highest, op.get("token", 0))


def twice(run):
    for locks in run.keys.values():
        seen = collections.defaultdict(list)
        for lock in locks:
            for op, mode, of, permits in acquired(lock):
                for other, *terms in seen[op["token"]]:
                    if other is not lock and excludes(mode, of, permits, *terms):
                        yield ("tokens", "%s and %s were both answered with token %d"
                               % (other.name(), lock.name(), op["token"]), story(run, other, lock))
                seen[op["token"]].append((lock, mode, of, permits))


# ---- lock delay ----

def lock_delay(run):
    drift = run.first.get("drift_ppm", 20000) / 1e6
    for locks in run.keys.values():
        every = sorted((p for lock in locks for p in lock.pieces), key=lambda p: p.begin)
        for lock in locks:
            delay = (lock.asked or {}).get("lock_delay_ms", 0)
            ends = list(lock.ends())
            if not delay or not lock.pieces or any(op["op"] != "ended" for _, op in ends):
                continue
            last, end = lock.pieces[-1], min([lock.deadline(), *[at for at, _ in ends]])
            opened = end + delay * MS * (1 - drift)
            for other in every:
                if last.begin < other.begin < opened and conflict(last, other):
                    yield "lock delay", "%r, %d ms after the end of %r, which asked for %d" % (
                        other, (other.begin - end) / MS, last, delay), story(run, lock, other.lock)
                    break
