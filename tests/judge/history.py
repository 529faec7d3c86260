"""The history of a run, one JSON object a line, as docs/testing.md (Histories) describes it.
Nothing here judges."""

import json

# What an answer's fields are called in a history.
ANSWERED = {"token": "token", "valid_ms": "valid_ms", "slots": "permits", "released": "released",
            "transferred": "transferred"}


def text(value):
    """Byte strings as text; what is no UTF-8 as hex digits."""
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
        """Writes one line; what is None is left out, but for return, which then says: never."""
        kept = {k: text(v) for k, v in fields.items() if v is not None or k == "return"}
        self.file.write(json.dumps(kept) + "\n")
        name = kept["op"] + ("_" + kept["result"] if "result" in kept else "")
        self.count[name] = self.count.get(name, 0) + 1

    def op(self, process, op, answer, **asked):
        """A request and what came of it."""
        self.number += 1
        told = ({ours: answer.data.get(theirs) for theirs, ours in ANSWERED.items()}
                if answer.ok else {})
        if not answer.ok and answer.data.get("message"):
            told["message"] = answer.data["message"]
        self.line(id=self.number, process=process, op=op, **asked, invoke=answer.invoke,
                  **{"return": answer.returned},
                  result=answer.result, **{k: v for k, v in told.items() if k not in asked})

    def moment(self, op, at, **fields):
        """What happened at one time: a fault, a closed connection, the beginning of a phase."""
        self.number += 1
        self.line(id=self.number, op=op, invoke=at, **{"return": at}, **fields)

    def close(self):
        self.file.close()


def load(path):
    """The lines of a file: a list of runs, each (its first line, the other lines)."""
    runs = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            if entry["op"] == "run" or not runs:
                runs.append((entry if entry["op"] == "run" else {"op": "run"}, []))
            if entry["op"] != "run":
                runs[-1][1].append(entry)
    return runs
