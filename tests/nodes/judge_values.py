"""Judges values. Under one lock_id the acquire writes the first value, and updates are
compare-and-set. Some order that agrees with their times must explain all answers (a search like
Wing and Gong's). A quorum read must show a value that was there."""

from beliefs import NEVER, whole
from judge_locks import story, told

STEPS_MAX = 200000


class Undecided(Exception):
    """There are too many orders to try them all."""


class Write:
    """An operation on a value. If `surely` is true, it took effect between invoke and done;
    otherwise at some time after invoke, or never."""

    def __init__(self, op, surely):
        self.op, self.surely = op, surely
        self.invoke, self.done = op["invoke"], op["return"] if surely else NEVER

    def apply(self, value):
        """Returns the value after the operation; None if this value does not explain the answer."""
        op = self.op
        if op["op"] == "acquire":
            return op["value"]
        if op["op"] == "get":
            return value if value == op["shown"] else None
        if op["result"] == "mismatch":
            differs = op.get("by") == "value_seq" or value != op.get("expect")
            return value if value == op.get("shown") and differs else None
        return op["value"] if op.get("by") is None or value == op["expect"] else None


def writes(lock):
    """Yields the writes of one lock. A repeated acquire of a held lock changes no value; if the
    lock was lost, the acquire may begin with a new value. So it may where the client itself went on
    from one node to another, and the first one is late (`again`)."""
    for op in lock.ops:
        if op["op"] == "update":
            yield Write(op, op["result"] in ("ok", "mismatch"))
        elif op["op"] == "acquire" and "value" in op:
            if op is lock.asked:
                yield Write(op, op["result"] == "ok")
            if op.get("again") or op is not lock.asked and not any(
                    begin <= op["invoke"] and (op["return"] or NEVER) <= end
                    for begin, end in whole(lock)):
                yield Write(op, False)


def reads(lock, shown, todo):
    """Yields the reads that some order of the writes must explain, too: those within a belief that
    was there when they began, while no write was under way or in doubt."""
    spans = whole(lock)
    for op in shown:
        if (op["result"] == "ok" and op.get("consistency") == "quorum"
            and op["return"] <= lock.deadline(op["invoke"])
            and any(begin <= op["invoke"] and op["return"] <= end for begin, end in spans)
            and all(w.done < op["invoke"] or w.invoke > op["invoke"] for w in todo)):
            yield Write(op, True)


def explained(todo):
    """Returns whether some order explains all answers. The search is depth first, and remembers
    what it has tried."""
    seen, steps = set(), 0
    stack = [(frozenset(range(len(todo))), "")]
    while stack:
        left, value = stack.pop()
        if not any(todo[i].surely for i in left):
            return True
        steps += 1
        if steps > STEPS_MAX:
            raise Undecided
        first = min(todo[i].done for i in left)
        for i in left:
            after = todo[i].apply(value) if todo[i].invoke <= first else None
            if after is not None and (left - {i}, after) not in seen:
                seen.add((left - {i}, after))
                stack.append((left - {i}, after))
    return False


def values(run):
    for lock in run.locks.values():
        todo = list(writes(lock))
        if len([w for w in todo if w.op["op"] == "update"]) == 0:
            continue
        todo += list(reads(lock, run.reads[lock.key, lock.lock_id], todo))
        try:
            if not explained(todo):
                yield ("values", "no order of the updates of %s explains what was answered"
                       % lock.name(), story(run, lock))
        except Undecided:
            run.by_op["undecided"].append({"op": "undecided"})


def shown(run):
    """A read must show a value that was written under this lock_id, neither before the write was
    requested nor after a later write had ended."""
    for read in run.by_op["get"]:
        lock = run.locks.get((read["key"], read.get("lock_id")))
        if (read["result"] != "ok" or read.get("consistency") != "quorum" or not lock
            or read.get("shown") is None):
            continue
        todo = [w for w in writes(lock) if w.op["result"] != "mismatch"]
        mine = [w for w in todo if w.op["value"] == read["shown"]]
        if not any(w.invoke < read["return"] for w in mine):
            yield ("values", "a read of %s shows %s, which nobody had written"
                   % (lock.name(), read["shown"]), [told(read)] + story(run, lock))
        elif all(w.surely and over(w, todo, read) for w in mine):
            yield ("values", "a read of %s shows %s, which was overwritten before"
                   % (lock.name(), read["shown"]), [told(read)] + story(run, lock))


def over(write, todo, read):
    """Returns whether another write began after this one had ended, and ended before the read
    began."""
    return any(w.surely and w.invoke > write.done and w.done < read["invoke"] for w in todo)
