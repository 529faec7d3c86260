"""Finds from the lines of one run what clients believed (docs/testing/histories.md). This module
knows nothing of how Pawl works."""

import collections

NEVER = 2**63
MS = 1000000
ENDED = ("lost", "not_found")


class Piece:
    """A part of a belief: from begin to end a client believes that it holds the lock with this
    mode, these permits and this token. The pieces of one belief follow each other without a
    break."""

    def __init__(self, lock, begin, end, mode, permits, token, op):
        self.lock, self.begin, self.end, self.op = lock, begin, end, op
        self.mode, self.permits, self.token = mode, permits, token

    def __repr__(self):
        return "%s %s (token %s) from %.6f to %.6f" % (self.mode, self.lock.name(), self.token,
                                                       self.begin / 1e9, self.end / 1e9)


class Lock:
    """One lock_id of a key, and all requests about it."""

    def __init__(self, key, lock_id):
        self.key, self.lock_id, self.ops, self.pieces = key, lock_id, [], []
        # The first acquire, and the time from which on the lock is shared.
        self.asked, self.lowered = None, NEVER
        self.tokens = set()

    def name(self):
        return "%s/%s" % (self.key, self.lock_id[:8])

    def mode(self, at=NEVER):
        """Returns the mode at this time. A lock is shared from the moment at which its downgrade is
        asked for."""
        lowered = self.lowered < NEVER and self.lowered <= at
        return "shared" if lowered else (self.asked or {}).get("mode", "exclusive")

    def of(self):
        return (self.asked or {}).get("of")

    def ends(self):
        """Yields (invoke, op) for all that ends the lock for good, whoever asks."""
        for op in self.ops:
            forced = op["op"] == "break" and op.get("now")
            if (op["op"] in ("release", "transfer") and op["result"] != "not_found" or forced
                or op["op"] == "ended"):
                yield op["invoke"], op

    def deadline(self, before=NEVER):
        """Returns until when the lock lasts by the believed answers that came before this time."""
        return max([until(op) for op in self.ops if (op["op"] == "believe" or op.get("believed"))
                    and op["return"] < before], default=0)


def until(op):
    if op["op"] == "believe":
        return op["until"]
    return op["invoke"] + int(op["valid_ms"] * MS / op.get("rate", 1.0))


def excludes(one_mode, one_of, one_permits, mode, of, permits):
    """Returns whether two locks exclude each other (docs/protocol.md, section 10)."""
    if one_mode == "shared" and mode == "shared":
        return False
    if one_mode == "permits" and mode == "permits" and one_of == of:
        return bool(one_permits & permits)
    return True


def conflict(one, other):
    return (one.lock is not other.lock and excludes(one.mode, one.lock.of(), one.permits,
                                                    other.mode, other.lock.of(), other.permits))


# ---- the lines ----

def flatten(lines):
    """Yields the lines. A request for several keys becomes one line for each key."""
    for line in lines:
        for member in line.get("members", ()):
            yield {**{k: v for k, v in line.items() if k != "members"}, "op": "acquire",
                   "together": True, **member}
        if "members" not in line:
            yield line


class Run:
    def __init__(self, first, lines):
        self.first, self.lines = first, sorted(flatten(lines), key=lambda e: e["invoke"])
        self.locks, self.by_op = {}, collections.defaultdict(list)
        # The quorum reads that show a value, by the key and the lock_id.
        self.reads = collections.defaultdict(list)
        for line in self.lines:
            self.by_op[line["op"]].append(line)
            if line["op"] == "get" and line.get("shown") is not None:
                self.reads[line["key"], line.get("lock_id")].append(line)
            if "lock_id" in line and line["op"] not in ("get", "event"):
                self.lock(line["key"], line["lock_id"]).ops.append(line)
        for lock in self.locks.values():
            lock.asked = next((op for op in lock.ops if op["op"] == "acquire"), None)
            lock.lowered = next((op["invoke"] for op in lock.ops if op["op"] == "downgrade"), NEVER)
        self.hang_up()
        for lock in self.locks.values():
            lock.tokens = {op["token"] for op in lock.ops
                           if op.get("token") and op.get("result", "ok") == "ok"}
            for process in {op.get("process") for op in lock.ops}:
                lock.pieces += pieces(lock, process)
            lock.pieces.sort(key=lambda p: p.begin)
        self.calms = list(self.calm_times())
        self.keys = collections.defaultdict(list)
        for lock in self.locks.values():
            self.keys[lock.key].append(lock)

    def lock(self, key, lock_id):
        return self.locks.setdefault((key, lock_id), Lock(key, lock_id))

    def hang_up(self):
        """Ends the locks that a closed connection ends: those that are bound to it, and those whose
        binding to a later connection was not answered."""
        bound = collections.defaultdict(list)
        for lock in self.locks.values():
            for process in {op["process"] for op in lock.ops if op.get("binding")}:
                bound[process].append(lock)
        for close in self.by_op["close"]:
            for lock in bound[close["process"]]:
                answered = [op["binding"] for op in lock.ops if op.get("binding")
                            and op["result"] == "ok" and op["return"] <= close["invoke"]]
                asked = [op["binding"] for op in lock.ops if op.get("binding")
                         and op["invoke"] <= close["invoke"]]
                if (asked and max(answered, default=0) <= close["connection"]
                    and min(asked) <= close["connection"]):
                    lock.ops.append({**close, "op": "ended", "result": "ok"})
        for lock in self.locks.values():
            lock.ops.sort(key=lambda op: op["invoke"])

    def calm(self, op):
        """Returns whether the whole operation lies in a time without faults."""
        return any(begin <= op["invoke"] and (op["return"] or NEVER) <= end
                   for begin, end in self.calms)

    def calm_times(self):
        begin = None
        for phase in self.by_op["phase"]:
            if phase["what"] == "calm":
                begin = phase["invoke"]
            elif begin is not None:
                yield begin, phase["invoke"]
                begin = None
        if begin is not None:
            yield begin, NEVER


# ---- beliefs ----

def turns(lock, process):
    """Yields (time, rank, op) for all that begins, prolongs or ends the belief of this process. By
    its rank, what ends the belief comes first."""
    for op in lock.ops:
        mine = op.get("process") == process
        if mine and (op["op"] == "believe" or op["op"] in ("acquire", "extend")
                     and op.get("believed") and op["result"] == "ok"):
            yield op["return"], 1, op
        if op["op"] in ("release", "transfer", "ended") or op["op"] == "break" and op.get("now"):
            yield op["invoke"], 0, op
        if mine and op["op"] in ("extend", "downgrade") and op["result"] in ENDED:
            yield op["return"], 0, op
        if mine and op["op"] == "forget":
            yield op["invoke"], 0, op
        if op["op"] == "downgrade":
            yield op["invoke"], 1, op
        if op["op"] == "transfer" and op["result"] == "not_found":
            yield op["return"], 1, op


def pieces(lock, process):
    out, end, token, permits, taken, named = [], 0, 0, frozenset(), None, 0
    at_of = sorted(turns(lock, process), key=lambda t: t[:2])
    for at, rank, op in at_of:
        if out and out[-1].end > at:
            out[-1].end = at
        if rank == 0:
            taken = end if op["op"] == "transfer" else None
            end = min(end, at)
            continue
        if op["op"] == "transfer":
            end = max(end, taken or 0)
        elif op["op"] != "downgrade":
            if at >= end:
                permits = frozenset()
            moved, named = (op.get("binding") or 0) > named, max(op.get("binding") or 0, named)
            # docs/client-protocol.md, release_on_disconnect: under the next session binding only
            # what is answered under it counts.
            end = until(op) if moved else max(end, until(op))
            token = max(token, op.get("token", 0))
            permits |= frozenset(op.get("permits", ()))
        if at < end:
            out.append(Piece(lock, at, end, lock.mode(at), permits, token, op))
    return [p for p in out if p.begin < p.end]


def whole(lock):
    """Returns the beliefs in one lock as [begin, end], with their pieces put together."""
    spans = []
    for piece in lock.pieces:
        if spans and piece.begin <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], piece.end)
        else:
            spans.append([piece.begin, piece.end])
    return spans
