"""Turns histories of the simulator (docs/testing/histories.md) into audit files, as if one node
had written all lines, in true time. So `pawl audit check --one-machine` judges simulated
clusters."""

import datetime
import hashlib
import json
import os
import subprocess


# How a run begins.
RUN = '{"op":"run",'


class Lines:
    """The audit file of one run."""

    def __init__(self):
        self.at, self.bound = [], {}
        self.add(-10**9, "open", format=1, boot=1, what="all", drift_ppm=10000)

    def add(self, at, action, **more):
        self.at.append((at, len(self.at), {"action": action, **more}))

    def write(self, path):
        begin = datetime.datetime(2026, 1, 1)
        with open(path, "w") as f:
            for seq, (at, _, line) in enumerate(sorted(self.at, key=lambda a: a[:2]), 1):
                ts = begin + datetime.timedelta(microseconds=at // 1000 + 10**7)
                f.write(json.dumps({"ts": ts.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "seq": seq,
                                    "node": "all", "epoch": 1,
                                    "mono_us": at // 1000 + 10**7, **line}) + "\n")

    def lock(self, lock_id):
        return hashlib.sha256(bytes.fromhex(lock_id)).hexdigest()[:32]

    def granted(self, op, lock):
        """An acquire or an extend that was answered ok."""
        if "binding" in op:
            self.bound.setdefault((op["process"], op["binding"]), set()).add(
                (lock["key"], lock["lock_id"]))
        mode = ({"mode": "permits", "of": lock["of"], "slots": lock.get("permits", [])}
                if "of" in lock else {"mode": lock.get("mode", "exclusive")})
        if op["op"] == "extend" and "permits" in op:
            mode = {"mode": "permits", "slots": op["permits"]}
        elif op["op"] == "extend":
            mode = {}
        # A file has microseconds: a span is not longer than it was.
        self.add(op["return"] + 1000, "extend" if op["op"] == "extend" else "acquire", **mode,
                 key=lock["key"], lock=self.lock(lock["lock_id"]),
                 owner="process %s" % op["process"], token=lock.get("token", op.get("token")),
                 valid_ms=op["valid_ms"], took_us=(op["return"] - op["invoke"]) // 1000 + 1,
                 result="ok")

    def ended(self, at, key, lock_id, action="release", **more):
        self.add(at, action, key=key, lock=self.lock(lock_id), result="ok", **more)

    def take(self, op):
        what, ok = op["op"], op.get("result") == "ok"
        if what in ("acquire", "extend") and ok:
            self.granted(op, op)
        elif what == "acquire_all" and ok:
            for member in op["members"]:
                self.granted(op, member)
        elif what in ("release", "forget", "transfer"):
            self.ended(op["invoke"], op["key"], op["lock_id"])
        elif what == "downgrade":
            self.ended(op["invoke"], op["key"], op["lock_id"], "downgrade")
        elif what == "break" and op.get("now"):
            self.add(op["invoke"], "break", key=op["key"], now=True, result="asked")
        elif what == "close":
            for key, lock_id in self.bound.get((op["process"], op["connection"]), ()):
                self.ended(op["invoke"], key, lock_id, "lost", cause="taken")


def check(pawl, folder, lines):
    """Returns what pawl audit check says of the lines, as an object."""
    path = os.path.join(folder, "audit.log")
    lines.write(path)
    done = subprocess.run([pawl, "audit", "check", path, "--one-machine", "--copied-within", "0s",
                           "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def runs(path):
    """Returns for each run of a history its seed, whether tokens may jump in it, and its lines."""
    found = []
    with open(path) as f:
        for text in f:
            # A violation may have cut a line short, in front of the next run.
            text = text[max(text.rfind(RUN), 0):]
            try:
                op = json.loads(text)
            except ValueError:
                continue
            if op["op"] == "run":
                found.append((op["seed"], op["jumps"], []))
            else:
                found[-1][2].append(op)
    made = []
    for seed, jumps, ops in found:
        lines = Lines()
        # What was answered under a connection is known before that is closed.
        for op in sorted(ops, key=lambda op: op["op"] == "close"):
            lines.take(op)
        made.append((seed, jumps, lines))
    return made
