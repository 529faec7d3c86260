"""Judges what watchers and observers are told: events come in order for each key, and they are
complete, or an overflow says that events may have been missed."""

import collections

from beliefs import NEVER, excludes
from judge_locks import story, told

GONE = ("released", "expired", "lost")
BEGUN = ("present", "acquired")
# How far the events of a replica may be behind what was read there, in ns: as long as its process
# may be stopped.
LAG = 10 * 10**9


class Chain:
    """The events of a watch without a break."""

    def __init__(self, run, watch, events):
        self.run, self.name, self.watch = run, watch["chain"], watch
        self.events = sorted(events, key=lambda e: e["id"])
        self.settled = next((w["invoke"] for w in run.by_op["watched"]
                             if w["chain"] == self.name), None)
        self.missed = [(at, e.get("key")) for at, e in enumerate(self.events)
                       if e["type"] == "overflow"]
        # For each key: [(place, event)]. And the locks whose beginning was told.
        self.by_key, self.told = collections.defaultdict(list), set()
        for at, event in enumerate(self.events):
            if "key" in event and event["type"] not in ("asked", "overflow"):
                self.by_key[event["key"]].append((at, event))
                if event["type"] in BEGUN:
                    self.told.add((event["key"], event["lock_id"]))
        self.highest = {key: max(e.get("token", 0) for _, e in events)
                        for key, events in self.by_key.items()}

    def missed_between(self, key, low, high):
        """Returns whether events of the key may have been missed between these places."""
        return any(low < at < high and of in (None, key) for at, of in self.missed)

    def about(self, *places):
        """Returns the events around these places as lines."""
        low, high = max(0, min(places) - 3), min(len(self.events), max(places) + 4)
        return [told(self.watch)] + [told(e) for e in self.events[low:high][:30]]


def exclusion_of(event):
    return event.get("mode", "exclusive"), event.get("of"), frozenset(event.get("permits", ()))


def chains(run):
    events = collections.defaultdict(list)
    for event in run.by_op["event"]:
        events[event["chain"]].append(event)
    seen = set()
    for watch in run.by_op["watch"]:
        if watch["result"] == "ok" and watch["chain"] not in seen:
            seen.add(watch["chain"])
            yield Chain(run, watch, events[watch["chain"]])


def told_once_more(present, event):
    """Returns whether the event is older than the state that was read when the watch began, or
    after an overflow. A read at a replica may show what the next events tell."""
    return event["type"] == "acquired" and any(
        other["type"] == "present" and event["token"] < other["token"]
        and event["invoke"] < other["invoke"] + LAG
        and excludes(*exclusion_of(other), *exclusion_of(event))
        for _, other in present.values())


def in_order(run):
    """A lock may be told only after the end of all locks that it excludes, and with a greater
    token."""
    for chain in chains(run):
        for key, events in chain.by_key.items():
            present, highest, before = {}, None, -1
            for at, event in events:
                if chain.missed_between(key, before, at):
                    present, highest = {}, None
                before = at
                if event["type"] in GONE:
                    present.pop(event["lock_id"], None)
                elif event["type"] in BEGUN and not told_once_more(present, event):
                    for lock_id, (place, other) in present.items():
                        if (event["type"] == "acquired" and lock_id != event["lock_id"]
                                and excludes(*exclusion_of(other), *exclusion_of(event))):
                            yield ("watches", "%s is told at node %s before the end of %s" % (
                                event["lock_id"][:8], chain.watch["node"], lock_id[:8]),
                                   chain.about(place, at))
                    if (highest and event["lock_id"] != highest[1]["lock_id"]
                            and event["token"] <= highest[1]["token"]
                            and excludes(*exclusion_of(highest[1]), *exclusion_of(event))):
                        yield ("watches", "%s with token %d is told of key %s after token %d" % (
                            event["lock_id"][:8], event["token"], key, highest[1]["token"]),
                               chain.about(highest[0], at))
                    present[event["lock_id"]] = at, event
                    if (event.get("mode") == "exclusive"
                        and (not highest or event["token"] > highest[1]["token"])):
                        highest = at, event
                elif event["type"] == "downgraded" and event["lock_id"] in present:
                    present[event["lock_id"]] = at, event


def complete(run):
    """A lock that was acquired during the watch must be told, or soon an overflow."""
    begun = [(lock, first) for lock, first in ((k, beginning(k)) for k in run.locks.values())
             if first]
    for chain in chains(run):
        for lock, first in begun:
            if first["invoke"] < chain.watch["return"] or (lock.key, lock.lock_id) in chain.told:
                continue
            if chain.settled is None and chain.highest.get(lock.key, 0) <= max(lock.tokens):
                continue  # The event may still come.
            events = chain.by_key.get(lock.key, [])
            low, high = place(chain, lock, events, first)
            end = healed(run, first["return"])
            until = min(ended(run, chain, first["return"]), left(run, chain))
            if high is not None and until > end and not any(
                    at > low and of in (None, lock.key) and chain.events[at]["invoke"] < end
                    for at, of in chain.missed):
                yield ("watches", "%s came and went with token %d, but the watch at node %s did "
                                  "not tell it" % (
                    lock.name(), first["token"], chain.watch["node"]),
                       story(run, lock) + chain.about(max(low, 0),
                                                      min(high, len(chain.events) - 1)))


def beginning(lock):
    """Returns what began the lock: its acquire, if that was answered well the first time, or the
    first belief."""
    first = next((op for op in lock.ops if op["op"] == "believe"
                  or op["op"] == "acquire" and op["result"] == "ok"), None)
    return first if lock.pieces and lock.asked in (first, None) else None


def ended(run, chain, at):
    """Returns when the node was ended next. After that it cannot tell any more what it had not
    heard until then because of a link that was cut."""
    node = chain.watch["node"]
    return min([f["invoke"] for f in run.by_op["fault"] if f["invoke"] > at and (
        f.get("restarted") == node or (f.get("node") == node
                                       and f["what"] in ("kill", "planned_stop")))],
               default=NEVER + 1)


def left(run, chain):
    """Returns when this watcher began a new watch. Later events go to that watch, which begins with
    the present state."""
    begun = chain.watch["invoke"]
    return min([w["invoke"] for w in run.by_op["watch"]
                if w.get("process") == chain.watch.get("process") and w["chain"] != chain.name and
        w["invoke"] > begun], default=NEVER + 1)


def healed(run, at):
    """Returns until when missed events must be reported: when the links that were cut are back,
    which is by the end of the next calm."""
    return min([end for begin, end in run.calms if begin > at], default=NEVER)


def place(chain, lock, events, acquired):
    """Returns (low, high), the places between which the lock should have been told; high is None if
    the event may still come."""
    end = len(chain.events) if chain.settled and chain.settled > (acquired["return"] or 0) else None
    low = max([at for at, e in enumerate(chain.events) if e["invoke"] < acquired["invoke"]],
              default=-1)
    if lock.mode() != "exclusive":  # Tokens of locks that are held together have no order.
        return low, end
    low = max([low, *[at for at, e in events if e["token"] < acquired["token"]
                      and e["invoke"] < acquired["return"]]])
    later = [at for at, e in events if e["token"] > max(lock.tokens)
             and e.get("mode") == "exclusive" and e["type"] == "acquired" and at > low]
    return low, later[0] if later else end


def leaders(run):
    """Nobody may be shown an older leader after a newer one, and all must be shown the same leader
    with a token with which somebody led. Two candidates may draw the same token, of which at most
    one is granted; a node shows what it has accepted itself."""
    owners = {(b["key"], b["token"]): b["owner"] for b in run.by_op["believe"] if "owner" in b}
    highest = collections.Counter()
    for seen in run.by_op["observed"]:
        key, token, owner = seen["key"], seen["token"], seen["owner"]
        before = highest[seen["process"], key]
        if token and token < before:
            yield ("leaders", "%s: %s was shown the leader of token %d after that of %d"
                   % (key, seen["process"], token, before), [told(seen)])
        if token and owners.get((key, token), owner) != owner:
            yield ("leaders", "%s: %s was shown %s with token %d, which is %s's"
                   % (key, seen["process"], owner, token, owners[key, token]), [told(seen)])
        highest[seen["process"], key] = max(before, token)
