"""Judges what candidates wrote down (candidate.c): whether two ever led at once, whether tokens
grew, and whether all observers saw every change in order. All candidates ran on one machine, so its
clock is true time for all of them."""

import collections
import os


class Term:
    """One leadership: from `begin`, when the leader knew that it led, to `end`, until which it
    acted as the leader."""

    def __init__(self, who, words):
        self.who, self.begin, self.first = who, int(words[1]), int(words[3])
        self.locks, self.closed, self.cause = [], False, None
        self.tell(words)

    def tell(self, words):
        self.last, self.end = int(words[3]), int(words[5])
        if words[4] not in self.locks:
            self.locks.append(words[4])

    def __repr__(self):
        return "%s with token %d%s from %.6f to %.6f s%s" % (
            self.who, self.first, "" if self.first == self.last else " to %d" % self.last,
            self.begin / 1e9, self.end / 1e9,
            "" if self.closed else ", open")


class History:
    """What one process wrote. `killed` is the time just before it was killed, if it was."""

    def __init__(self, who, lines, killed=None):
        self.who, self.killed = who, killed
        # For each election: its terms, and its observed leaders as (time, token, owner).
        self.terms = collections.defaultdict(list)
        self.observed = collections.defaultdict(list)
        # Each event is (time, type, key, token, lock_id, owner).
        self.events = []
        self.wrong, self.failed = [], []
        for line in lines:
            words = line.split()
            if line.endswith("\n") and words:
                self.read(words)
        for terms in self.terms.values():
            for term in terms:
                if killed is not None and not term.closed:
                    term.end = min(term.end, killed)

    def read(self, words):
        kind, terms = words[0], self.terms[words[2]] if words[0] in "LAPE" else None
        current = terms[-1] if terms and not terms[-1].closed else None
        if kind == "L":
            if current:
                self.wrong.append("%s leads %s anew and never stepped down" % (self.who, words[2]))
            terms.append(Term(self.who, words))
        elif kind == "A" and current:
            current.tell(words)
        elif kind == "P" and current:
            current.cause = int(words[3])
        elif kind == "E" and current:
            current.end, current.closed = int(words[3]), True
        elif kind in "AE":
            self.wrong.append("%s writes %s and does not lead" % (self.who, " ".join(words)))
        elif kind == "O":
            self.observed[words[2]].append((int(words[1]), int(words[3]), words[4]))
        elif kind == "W":
            self.events.append((int(words[1]), words[2], words[3], int(words[4]), words[5],
                                words[6]))
        elif kind == "F":
            self.failed.append(" ".join(words))


class Tail:
    """Reads the lines that a file gets from now on. A line may be seen in parts; it counts once it
    is whole."""

    def __init__(self, path):
        self.file, self.part = open(path), ""
        self.file.seek(0, os.SEEK_END)

    def lines(self):
        *whole, self.part = (self.part + self.file.read()).split("\n")
        return whole

    def close(self):
        self.file.close()


class Verdict:
    def __init__(self, histories):
        self.histories, self.wrong, self.counts = histories, [], collections.Counter()
        # The owner by (election, token), as the leader itself said.
        self.owners = {}
        for h in histories:
            self.wrong += h.wrong
            self.wrong += ["%s failed: %s" % (h.who, f) for f in h.failed]
        self.elections = sorted({e for h in histories for e in h.terms})
        self.terms = {e: sorted((t for h in histories for t in h.terms[e]), key=lambda t: t.begin)
                      for e in self.elections}
        for election, terms in self.terms.items():
            self.judge_terms(election, terms)
        for h in histories:
            for election, seen in h.observed.items():
                self.judge_observed(h, election, seen)
            self.judge_events(h)

    def judge_terms(self, election, terms):
        """Checks in true time that two never led at once, and that later leaders had greater
        tokens."""
        latest = None
        for term in terms:
            self.counts["leaderships"] += 1
            self.counts["stepped_down"] += bool(term.cause)
            self.owners[election, term.first] = self.owners[election, term.last] = term.who
            if latest and term.begin < latest.end:
                self.wrong.append("%s: two led at once: %r, and %r" % (election, latest, term))
            if latest and term.first <= latest.last:
                self.wrong.append("%s: the token does not grow: %r, then %r"
                                  % (election, latest, term))
            if latest:
                self.counts["longest_without_ms"] = max(self.counts["longest_without_ms"],
                                                        (term.begin - latest.end) // 1000000)
            latest = term if not latest or term.end > latest.end else latest

    def judge_observed(self, history, election, seen):
        """Checks that nobody was shown an older leader after a newer one, and that all were shown
        the same leader with a token with which somebody led. Two candidates may draw the same
        token, of which at most one is granted. A node shows what it has accepted itself."""
        highest = 0
        for _, token, owner in seen:
            self.counts["observed"] += 1
            if token and token < highest:
                self.wrong.append("%s: %s was shown the leader of token %d after that of %d"
                                  % (election, history.who, token, highest))
            if token and self.owners.get((election, token), owner) != owner:
                self.wrong.append("%s: %s was shown %s with token %d, which is %s's" % (
                    election, history.who, owner, token, self.owners[election, token]))
            highest = max(highest, token)

    def judge_events(self, history):
        """Checks that from one overflow to the next the end of each leadership is told before the
        next one, and never an older one after a newer one. A leadership may be told again if a node
        took it for expired because no extension reached that node, or if it was already part of the
        present state (which may have the greater token of a second try by then). A later overflow
        makes up for what a node could not hear of."""
        seen = collections.defaultdict(list)
        for event in history.events:
            if event[1] == "overflow":
                self.counts["overflows"] += 1
                for key, part in seen.items():
                    self.judge_part(history, key, part, True)
                seen.clear()
            elif event[1] not in ("current", "asked"):
                self.counts["events"] += 1
                seen[event[2]].append(event)
        for key, part in seen.items():
            self.judge_part(history, key, part, history.killed is not None)

    def judge_part(self, history, key, part, excused):
        holder, highest, locks = None, 0, set()
        for _, kind, _, token, lock, owner in part:
            where = "%s: %s was told %s of %s with token %d" % (
                key, history.who, kind, owner, token)
            if kind in ("present", "acquired"):
                if holder and holder != lock and kind == "acquired":
                    self.wrong.append("%s, but not the end of %s" % (where, holder))
                again = kind == "acquired" and holder == lock
                if token < highest and not again or token == highest and lock not in locks:
                    self.wrong.append("%s after token %d" % (where, highest))
                holder, highest = lock, max(highest, token)
                locks.add(lock)
            elif kind == "updated":
                locks.add(lock)
            elif holder == lock:
                holder = None
        tokens = [event[3] for event in part if event[1] in ("present", "acquired")]
        if tokens and key in self.terms:
            self.judge_complete(history, key, locks, (min(tokens), max(tokens)), excused)

    def judge_complete(self, history, key, locks, tokens, excused):
        """Checks that every term between these tokens was told. `excused` means that an overflow
        reported missed events, or that the process ended before it could."""
        for term in self.terms[key]:
            if tokens[0] < term.first and term.last < tokens[1]:
                self.counts["watched"] += 1
                if not locks.intersection(term.locks):
                    self.counts["watched_unseen"] += 1
                    if not excused:
                        self.wrong.append("%s: %s was told neither of %r nor of missed events"
                                          % (key, history.who, term))


def load(path, who, killed=None):
    try:
        with open(path) as f:
            return History(who, f.readlines(), killed)
    except FileNotFoundError:
        return History(who, [], killed)
