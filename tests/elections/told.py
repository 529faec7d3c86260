"""Turns what candidates wrote down (candidate.c) into a history, which the checker of tests/nodes
judges: a leadership is a belief in the lock that the election is."""

import json
import os


class Lines:
    """The lines of one process. `name` is the candidate's, `number` that of the process among all,
    and `killed` the time just before it was killed, if it was."""

    def __init__(self, name, number, killed=None):
        self.name, self.number, self.killed, self.out = name, number, killed, []
        # For each election: its present term as [begin, end, token, lock_id], and the last token.
        self.terms, self.tokens = {}, {}
        self.watches = False

    def add(self, op, at, **fields):
        self.out.append({"id": self.number * 10**6 + len(self.out), "op": op, "invoke": at,
                         "return": at, "process": self.number, **fields})

    def complain(self, at, text):
        self.add("complaint", at, text="%s %s" % (self.name, text))

    def end(self, election, at=None):
        """The term ends: when it says so, or at its deadline."""
        begin, end, token, lock = self.terms.pop(election)
        end = min(end if at is None else at, self.killed or end)
        self.add("believe", begin, until=end, token=token, key=election, lock_id=lock,
                 owner=self.name)

    def lead(self, kind, at, election, token, lock, until):
        """Of a term that goes on the end is later. Under another token or lock_id it is a belief of
        its own."""
        term = self.terms.get(election)
        if kind == "L" and term:
            self.complain(at, "leads %s anew and never stepped down" % election)
        elif kind == "L" and token <= self.tokens.get(election, 0):
            self.complain(at, "leads %s again with a token that does not grow" % election)
        elif kind == "A" and not term:
            return self.complain(at, "acts as the leader of %s and does not lead" % election)
        self.tokens[election] = token
        if term and kind == "A" and term[2:] == [token, lock]:
            term[1] = until
            return None
        if term:
            self.end(election, at if kind == "A" else None)
        self.terms[election] = [at, until, token, lock]
        return None

    def watched(self, at, kind, key, token, lock, owner):
        if not self.watches:
            self.watches = True
            self.add("watch", at, chain=self.number, node="process %d" % self.number, result="ok")
        told = {"key": key, "token": token, "lock_id": lock, "owner": owner, "mode": "exclusive"}
        if kind not in ("current", "asked"):
            self.add("event", at, chain=self.number, type=kind, **(told if key != "-" else {}))

    def read(self, words):
        kind, at, rest = words[0], int(words[1]), words[2:]
        if kind in "LA":
            self.lead(kind, at, rest[0], int(rest[1]), rest[2], int(rest[3]))
        elif kind == "E" and rest[0] in self.terms:
            self.end(rest[0], int(rest[1]))
        elif kind == "E":
            self.complain(at, "ends a term of %s and does not lead" % rest[0])
        elif kind == "P" and rest[0] in self.terms:
            self.add("step_down" if rest[1] != "0" else "resign", at, key=rest[0])
        elif kind == "O":
            self.add("observed", at, key=rest[0], token=int(rest[1]), owner=rest[2])
        elif kind == "W":
            self.watched(at, rest[0], rest[1], int(rest[2]), *rest[3:5])
        elif kind == "F":
            self.complain(at, "failed for good: " + " ".join(rest))

    def close(self):
        for election in list(self.terms):
            self.end(election)
        if self.killed is not None:  # It cannot tell any more what it had not heard of.
            self.add("fault", self.killed, what="kill", node="process %d" % self.number)


def history(lines, name, number, killed=None):
    """Returns the history of one process. A line that was cut off does not count."""
    told = Lines(name, number, killed)
    for line in lines:
        words = line.split()
        if line.endswith("\n") and words:
            told.read(words)
    told.close()
    return told.out


def write(path, out, name, number, killed=None):
    """Writes to `out` the history of the candidate that wrote the file at `path`, if there is
    one."""
    lines = []
    if os.path.exists(path):
        with open(path) as f:
            lines = history(f, name, number, killed)
    with open(out, "w") as f:
        f.write("".join(json.dumps(line) + "\n" for line in lines))


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
