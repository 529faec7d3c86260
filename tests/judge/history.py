"""Writes and reads the history of a run: one JSON object in each line, as docs/testing.md
(Histories) describes it. Nothing here judges."""

import json

# The names of an answer's fields in a history.
ANSWERED = {"token": "token", "valid_ms": "valid_ms", "slots": "permits", "released": "released",
            "transferred": "transferred"}


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
    def __init__(self, path, **run):
        self.file, self.count, self.number = open(path, "w", encoding="utf-8"), {}, 0
        self.line(op="run", **run)

    def line(self, **fields):
        """Writes one line. Fields that are None are left out, except `return`, for which null means
        never."""
        written = {k: text(v) for k, v in fields.items() if v is not None or k == "return"}
        self.file.write(json.dumps(written) + "\n")
        name = written["op"] + ("_" + written["result"] if "result" in written else "")
        self.count[name] = self.count.get(name, 0) + 1

    def op(self, process, op, answer, **asked):
        """Writes a request and its answer."""
        self.number += 1
        told = ({ours: answer.data.get(theirs) for theirs, ours in ANSWERED.items()}
                if answer.ok else {})
        if not answer.ok and answer.data.get("message"):
            told["message"] = answer.data["message"]
        self.line(id=self.number, process=process, op=op, **asked, invoke=answer.invoke,
                  **{"return": answer.returned},
                  result=answer.result, **{k: v for k, v in told.items() if k not in asked})

    def moment(self, op, at, **fields):
        """Writes what happened at one time, such as a fault, a closed connection, or the beginning
        of a phase."""
        self.number += 1
        self.line(id=self.number, op=op, invoke=at, **{"return": at}, **fields)

    def close(self):
        self.file.close()


def load(path):
    """Reads a file. Returns a list of runs, each as (its first line, the other lines)."""
    runs = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            if entry["op"] == "run" or not runs:
                runs.append((entry if entry["op"] == "run" else {"op": "run"}, []))
            if entry["op"] != "run":
                runs[-1][1].append(entry)
    return runs
