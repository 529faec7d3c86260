"""Turns what a rule says into the bytes of an answer."""

import json
import os

import messages
from matching import plain

# Fields that are bins in answers.
BYTES = {"key", "owner", "value", "value_seq", "position", "label", "host", "identity", "by", "to"}
POSITION = b"position of node"
VALUE_SEQ = b"value_seq number one"


def value_of(said, name=""):
    """Returns the value that a case writes in JSON."""
    if isinstance(said, dict) and len(said) == 1:
        (word, inner), = said.items()
        if word in ("$hex", "hex"):
            return bytes.fromhex(inner)
        if word == "$bin":
            return inner.encode()
        if word == "$str":
            return messages.Str(inner.encode())
        if word == "$times":
            return inner[0] * inner[1]
        if word.startswith("$"):
            return messages.Number.of(word[1:], inner)
    if isinstance(said, dict):
        return {key: value_of(one, key) for key, one in said.items()}
    if isinstance(said, list):
        return [value_of(one, name) for one in said]
    return said.encode() if isinstance(said, str) and name in BYTES else said


def _mode(asked):
    if "permits" not in asked:
        return {"mode": asked.get("mode", "exclusive")}
    return {"mode": "permits", "permits": asked["permits"], "of": asked["of"],
            "slots": list(range(asked["permits"]))}


def _valid(lease_ms):
    """Returns what is left of a lease after a drift of 1 %."""
    return lease_ms - lease_ms // 100 if isinstance(lease_ms, int) else 0


def _granted(node, asked, override):
    """Returns a grant of one lock."""
    lock = {"lock_id": asked.get("lock_id") or os.urandom(16).hex(), **_mode(asked)}
    lock["token"] = max(asked.get("token", 1), node.conversation.tokens.get(
        json.dumps(asked.get("key")), 1))
    lock.update(override)
    return lock


def _acquired(node, params, said):
    counts = {"quorum": 2, "votes": 3, "acks": 3}
    valid = {"valid_ms": _valid(params.get("lease_ms")), "waited_ms": 0}
    if "locks" not in params:
        return {**_granted(node, params, {}), **valid, **counts, **said}
    own = said.pop("locks", {})
    locks = [{"key": asked.get("key"), **_granted(node, asked, own.get(asked.get("key"), {}))}
             for asked in params["locks"]]
    return {"locks": locks, **valid, **said}


def _extended(node, params, said):
    def one(asked, override):
        lock = _granted(node, asked, {})
        if "slots" in asked:
            lock.update(mode="permits", slots=asked["slots"])
        elif "mode" in lock:
            del lock["mode"]
        lock.update(valid_ms=_valid(asked.get("lease_ms")), quorum=2, acks=3)
        lock.update(override)
        return ({"lock_id": lock["lock_id"], "error": _error(lock["error"])} if "error" in lock
                else lock)

    own = said.pop("locks", {})
    return {"locks": [one(asked, {**said, **own.get(asked.get("key"), {})})
                      for asked in params["locks"]]}


def _alone(result):
    """Returns the answer to an extend of one lock that does not have the form of a list."""
    (lock,) = result["locks"]
    del lock["lock_id"]
    return lock


def _default(node, request, said):
    """Returns what a node that serves the request answers."""
    params, said = request.params, dict(said)
    if request.method == "acquire":
        return _acquired(node, params, said)
    if request.method == "extend":
        return _extended(node, params, said)
    free = {"held": False, "node": node.name, "role": "master", "age_ms": None}
    plainly = {
        "ping": {"version": "9.9", "node": node.name},
        "release": {"released": True},
        "update": {"value_seq": VALUE_SEQ},
        "transfer": {"transferred": True},
        "downgrade": {"mode": "shared"},
        "ask_release": {"reached": 1},
        "get": free,
        "wait": free,
        "explain": {**free, "masters": [], "deadlocks": []},
        "list": {"keys": [], "more": False, "node": node.name, "role": "master", "age_ms": None},
        "waiters": {"waiters": [], "more": False},
        "watch": {"watch": request.connection.watch, "position": POSITION,
                  **(free if "key" in params else {})},
    }
    return {**plainly.get(request.method, {}), **said}


def _number(asked):
    """Returns the number under which a lock is extended (docs/client-protocol.md, shorten)."""
    return asked.get("order", asked.get("bond", 0))


def note_shortening(talk, request):
    """Notes that the holder has given up its trust in all that is later than the lease it names."""
    for one in request.params.get("locks", []) if request.method == "extend" else []:
        if one.get("shorten") and isinstance(one.get("lease_ms"), int):
            key = json.dumps(one.get("key"))
            end = request.at + one["lease_ms"] * 1000
            talk.bounds[key] = min(talk.bounds.get(key, end), end)
            talk.shortened[one.get("lock_id")] = _number(one)


def _note_refusal(talk, request, error):
    """A node of release 0.2.0 refuses to shorten: then nothing was done."""
    if error["code"] == "bad_request":
        for one in request.params.get("locks", []):
            talk.shortened.pop(one.get("lock_id"), None)


def _note_grant(node, request, result):
    """Notes until when the client may trust what it has got: counted from the moment at which the
    request came, which is no earlier than that at which it was sent. Once a lock was shortened, no
    answer to an earlier request counts."""
    talk, params = node.conversation, request.params
    if request.method not in ("acquire", "extend") or not isinstance(result, dict):
        return
    asked = params.get("locks", [params])
    items = result.get("locks", [result])
    for one, item in zip(asked, items if isinstance(items, list) else []):
        valid = item.get("valid_ms", result.get("valid_ms")) if isinstance(item, dict) else None
        if ("key" not in one or not isinstance(valid, int)
                or _number(one) < talk.shortened.get(one.get("lock_id"), 0)):
            continue
        key = json.dumps(one["key"])
        talk.bounds[key] = max(talk.bounds.get(key, 0), request.at + valid * 1000)
        if isinstance(item.get("token"), int):
            talk.tokens[key] = int(item["token"])


def _error(said):
    error = {"code": said} if isinstance(said, str) else dict(said)
    error.setdefault("message", "the case says so")
    return value_of(error)


def message(node, request, action):
    """Returns the message of an action that is one message."""
    (word, said), = action.items()
    said = node.fill(said)
    if word in ("grant", "result"):
        result = value_of(_default(node, request, said) if word == "grant" else said)
        _note_grant(node, request, result)
        if request.single and word == "grant":
            result = _alone(result)
            if "error" in result:
                return [1, request.msgid, result["error"], None]
        return [1, request.msgid, None, result]
    if word == "error":
        error = _error(said)
        _note_refusal(node.conversation, request, error)
        return [1, request.msgid, error, None]
    if word == "event":
        event = {"watch": request.connection.watch, "position": POSITION, **said}
        return [2, "event", [value_of(event)]]
    if word == "notify":
        return [2, *value_of(said)]
    if word == "message":
        return value_of(said)
    raise ValueError("an answer has the unknown word %r" % word)


def frame(node, request, action):
    """Returns the bytes of an action, and what they are in words."""
    for word in ("half", "twice", "wide", "other_msgid"):
        if word not in action:
            continue
        if word == "other_msgid":
            said = message(node, request, action[word])
            said[1] = action.get("msgid", 0xFFFFFFF1)
            return messages.pack(said), json.dumps(plain(said))
        if word == "wide":
            said = message(node, request, action[word])
            return messages.pack(said, wide=True), "(wide) " + json.dumps(plain(said))
        data, text = frame(node, request, action[word])
        if word == "half":
            return data[:len(data) // 2], "(half of it) " + text
        return data + data, "(twice) " + text
    if "garbage" in action:
        return action["garbage"].encode(), "garbage: %r" % action["garbage"]
    said = message(node, request, action)
    return messages.pack(said), json.dumps(plain(said))
