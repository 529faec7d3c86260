"""Judges answers: what is held or released is never forgotten, reads tell the truth, and in calm
everything is answered as it should be."""

from beliefs import ENDED, MS, NEVER, whole
from judge_locks import story, told

# The results of requests that docs/client-protocol.md knows.
RESULTS = {"ok", "unknown", "held", "no_quorum", "mismatch", "unsettled", "too_long", "bad_request",
           "too_large", "full", "timeout", "lost", "unsure", "not_found", "recovering", "denied",
           "busy", "indeterminate"}
# The answers that are allowed in calm, while every node is there. A lock that is believed must be
# extended and updated.
CALM = {"acquire": {"ok", "held", "timeout"}, "extend": {"ok"}, "update": {"ok", "mismatch"},
        "release": {"ok"}, "get": {"ok"},
        "downgrade": {"ok"}, "transfer": {"ok", "not_found"}, "explain": {"ok"}, "list": {"ok"},
        "waiters": {"ok"}, "watch": {"ok"}}
# An answer that came this long before the deadline was not under way when the deadline passed.
SURELY = 200 * MS


def complaints(run):
    for line in run.by_op["complaint"]:
        yield "protocol", line["text"], [told(line)]


def results(run):
    for line in run.lines:
        if line.get("result", "ok") not in RESULTS:
            yield ("protocol", "an error that the protocol does not know: %r" % line["result"],
                   [told(line)])


def forgotten(run):
    """While somebody may believe in a lock that nobody has ended, no answer may say that it is
    gone."""
    for lock in run.locks.values():
        ends = sorted(at for at, _ in lock.ends())
        for op in lock.ops:
            gone = op["result"] in ENDED and op["op"] in ("extend", "update", "downgrade") or \
                op["op"] in ("release", "transfer") and op["result"] == "ok" and \
                not op.get("released", op.get("transferred", True)) \
                if "result" in op else False
            if not gone:
                continue
            earlier = [at for at in ends if at < (op["return"]
                                                  if op["op"] not in ("release", "transfer")
                                                  else op["invoke"])]
            if not earlier and op["return"] + SURELY < lock.deadline(op["invoke"]):
                yield "forgotten", "%s is answered %s of %s, %d ms before the end of its lease" % (
                    op["op"], op["result"] if op["result"] != "ok" else "that it was not held",
                    lock.name(),
                    (lock.deadline(op["invoke"]) - op["return"]) / MS), story(run, lock)


def reads(run):
    """A belief that was there when the read began, and lasts until its end without what came
    meanwhile, rests on masters that have its record all the time. In calm an extension counts, too:
    it may move the lock to other masters only while not all of them can be reached."""
    held = {key: [(belief, lock) for lock in locks for belief in whole(lock)]
            for key, locks in run.keys.items()}
    for op in run.by_op["get"]:
        if op["result"] != "ok" or op.get("consistency") != "quorum" or not op["return"]:
            continue
        if not op["held"]:
            for (begin, end), lock in held.get(op["key"], ()):
                if (begin <= op["invoke"] and op["return"] <= end
                    and (op["return"] <= lock.deadline(op["invoke"]) or run.calm(op))):
                    yield ("quorum read", "a read says that %s is free while %s is believed"
                           % (op["key"], lock.name()), [told(op)] + story(run, lock))
        for shown in op.get("holders", ()):
            lock = run.locks.get((op["key"], shown))
            if lock and released(lock, op):
                yield ("quorum read", "a read says that %s is held by %s, which was released before"
                       % (op["key"], lock.name()), [told(op)] + story(run, lock))


def released(lock, read):
    done = [op for op in lock.ops if op["op"] == "release" and op["result"] == "ok"
            and op["return"] < read["invoke"]]
    return (done and not any(op["op"] in ("acquire", "extend")
                             and (op["return"] or NEVER) > done[0]["invoke"] for op in lock.ops))


def calm(run):
    for op in (op for op in run.lines if op["op"] in CALM and ("must" in op or run.calm(op))):
        allowed = CALM[op["op"]]
        if "must" in op:
            allowed = set(op["must"])
        elif (op["op"] == "acquire" and op.get("together")
              or op["op"] in ("extend", "update", "downgrade") and not sure(run, op)):
            continue
        if op["result"] not in allowed:
            yield ("calm", "%s is answered %s although nothing is wrong" % (op["op"], op["result"]),
                   around(run, op))
        elif ("within_ms" in op and op["return"] - op["invoke"] > op["within_ms"] * MS
              and not stalled(run, op)):
            yield ("calm", "%s takes %d ms, not %d" % (op["op"], (op["return"] - op["invoke"]) / MS,
                                                       op["within_ms"]), around(run, op))


def stalled(run, op):
    """Returns whether the machine itself stood still meanwhile."""
    return any(stall["invoke"] < op["return"] and stall["until"] > op["invoke"]
               for stall in run.by_op["stall"])


def sure(run, op):
    """Returns whether the lock was believed from before the request until long after it, and
    nobody was ending it."""
    lock = run.locks[op["key"], op["lock_id"]]
    return any(begin <= op["invoke"] and op["return"] + SURELY <= end
               for begin, end in whole(lock)) and \
        not any(at < op["return"] for at, _ in lock.ends())


def around(run, op):
    lock = run.locks.get((op.get("key"), op.get("lock_id")))
    others = [other for other in run.keys.get(op.get("key"), ()) if other is not lock
              and any((o.get("return") or NEVER) > op["invoke"] - 5000 * MS
                      and o["invoke"] < op["return"] for o in other.ops)]
    return [told(op)] + (story(run, *([lock] if lock else []), *others[-4:])
                         if lock or others else [])


# ---- the order of waiting ----

def waiting(run):
    """In calm, a waiter that was in the queue before another one asked must be served first, unless
    the other has a higher priority. If the waiter was seen in an answer with the queue, one case is
    enough for a violation. If it only had time to arrive ("queued"), it must happen repeatedly."""
    late, pairs = [], 0
    for locks in run.keys.values():
        asked = {lock.lock_id: lock for lock in locks if lock.asked and lock.asked["result"] == "ok"
                 and lock.asked.get("wait_ms")
                 and lock.mode() == "exclusive" and run.calm(lock.asked)}
        seen = [(w["return"], w["queue"], True) for w in run.by_op["waiters"] if w["result"] == "ok"
                and w.get("key") == locks[0].key and "queue" in w]
        seen += [(q["invoke"], [q["waiter"]], False) for q in run.by_op["queued"]
                 if q["key"] == locks[0].key]
        for at, queue, certain in seen:
            for name in queue:
                one = asked.get(name)
                for other in asked.values() if one else ():
                    if (other is one or other.asked["invoke"] < at
                        or other.asked.get("priority", 0) > one.asked.get("priority", 0)
                        or named(run, other)):
                        continue
                    pairs += 1
                    if other.asked["token"] < one.asked["token"]:
                        verdict = ("order of waiting",
                                   "%s asked after %s was in the queue, and is served first"
                                   % (other.name(), one.name()),
                                   story(run, one, other))
                        if certain:
                            yield verdict
                        else:
                            late.append(verdict)
    if len(late) >= 2 and len(late) > pairs / 50:
        yield from late


def named(run, lock):
    """Returns whether a holder may have named this waiter as its successor."""
    return any(op["op"] == "transfer" and op["result"] != "not_found"
               for other in run.keys[lock.key] for op in other.ops)


def happened(run):
    """Counts the lines of each operation and result, and the beliefs."""
    counts = {}
    for op, lines in run.by_op.items():
        for line in lines:
            name = op + ("_" + line["result"] if "result" in line else "")
            counts[name] = counts.get(name, 0) + 1
    counts["beliefs"] = sum(len(whole(lock)) for lock in run.locks.values())
    return counts
