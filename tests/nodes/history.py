"""Writes and reads the history of a run: one JSON object in each line, as docs/testing/histories.md
describes it. Nothing here judges."""

import json
import threading
import time

# The names of an answer's fields in a history.
ANSWERED = {"token": "token", "valid_ms": "valid_ms", "slots": "permits", "released": "released",
            "transferred": "transferred"}


def now():
    """Returns the true time in ns. All processes of a run are on one machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def text(value):
    """Turns byte strings into text; those that are not UTF-8 become hex digits."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, dict):
        return {text(k): text(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [text(v) for v in value]
    return value


class History:
    """Any thread may write to it."""

    def __init__(self, path, **run):
        self.file, self.number, self.lock = open(path, "w", encoding="utf-8"), 0, threading.Lock()
        self.line(op="run", **run)

    def line(self, **fields):
        """Writes one line. Fields that are None are left out, except `return`, for which null means
        never."""
        written = {k: text(v) for k, v in fields.items() if v is not None or k == "return"}
        with self.lock:
            self.number += 1
            if not self.file.closed:  # An operator may be answered after the run.
                self.file.write(json.dumps({"id": self.number, **written}) + "\n")

    def op(self, process, op, answer, **asked):
        """Writes a request and its answer."""
        told = ({ours: answer.data.get(theirs) for theirs, ours in ANSWERED.items()}
                if answer.ok else {})
        if not answer.ok and answer.data.get("message"):
            told["message"] = answer.data["message"]
        self.line(process=process, op=op, **asked, invoke=answer.invoke,
                  **{"return": answer.returned},
                  result=answer.result, **{k: v for k, v in told.items() if k not in asked})

    def moment(self, op, at, **fields):
        """Writes what happened at one time, such as a fault, a closed connection, or the beginning
        of a phase."""
        self.line(op=op, invoke=at, **{"return": at}, **fields)

    def close(self):
        self.file.close()


def load(*paths):
    """Reads the files of some runs, or of one run whose processes have a file each. Returns a list
    of runs, each as (its first line, the other lines). What a process writes when it is answered
    completes the line with the same id. A line that was cut off is the last one."""
    runs = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            known = {}
            for line in file:
                if not line.endswith("\n"):
                    break
                entry = json.loads(line)
                if entry.get("op") == "run" or not runs:
                    known = {}
                    runs.append((entry if entry["op"] == "run" else {"op": "run"}, []))
                if entry.get("op") == "run":
                    continue
                if entry.get("id") in known:
                    known[entry["id"]].update(entry)
                else:
                    runs[-1][1].append(known.setdefault(entry.get("id"), entry))
    return runs
