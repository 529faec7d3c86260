"""What mixed_judge.py checks besides what tests/nodes/checker.py does: that losses are told in
time, and that permits have numbers that there are."""

from beliefs import MS, conflict
from judge_locks import story, told

# The at of an event is read when it is written, and the machine is busy.
LATE_NS = 50 * MS


def losses(run):
    """A loss is told before anybody else can believe in the key, unless the runner was paused."""
    for locks in run.keys.values():
        every = sorted((p for lock in locks for p in lock.pieces), key=lambda p: p.begin)
        for lock in locks:
            lost = next((op for op in lock.ops if op["op"] == "lost"), None)
            if lost is None or not lock.pieces or paused(run, lock, lost):
                continue
            last = lock.pieces[-1]
            for other in every:
                if last.end <= other.begin < lost["invoke"] - LATE_NS and conflict(last, other):
                    yield ("losses", "the loss of %s is told %d ms after the beginning of %r"
                           % (lock.name(), (lost["invoke"] - other.begin) / MS, other),
                           story(run, lock, other.lock))
                    break


def paused(run, lock, lost):
    """Returns whether the runner stood still while it would have had to notice the loss."""
    begin = lock.pieces[-1].end - (lock.asked or {}).get("lease_ms", 0) * MS
    return any(pause["runner"] == lock.asked["runner"] and pause["invoke"] < lost["invoke"]
               and begin < pause["return"] for pause in run.by_op["paused"])


def permits(run):
    for op in run.by_op["acquire"]:
        numbers = op.get("permits") or []
        if op.get("mode") == "permits" and (
                len(set(numbers)) != op["count"] or not set(numbers) <= set(range(op["of"]))):
            yield ("permits", "%s/%s asks for %d of %d permits and gets the numbers %s"
                   % (op["key"], op["lock_id"][:8], op["count"], op["of"], numbers), [told(op)])
