"""Checks that an answer looks as docs/client-protocol.md says: its fields, their types, and whether
they agree with each other."""

NUMBER, TRUTH, BYTES, LIST = int, bool, bytes, list
FIELDS = {
    "acquire": {"lock_id": BYTES, "token": NUMBER, "mode": BYTES, "valid_ms": NUMBER,
                "quorum": NUMBER, "votes": NUMBER, "acks": NUMBER,
                "waited_ms": NUMBER},
    "acquire_all": {"locks": LIST, "valid_ms": NUMBER, "waited_ms": NUMBER},
    "extend": {"valid_ms": NUMBER, "token": NUMBER, "quorum": NUMBER, "acks": NUMBER},
    "update": {"value_seq": BYTES},
    "release": {"released": TRUTH},
    "downgrade": {"mode": BYTES},
    "transfer": {"transferred": TRUTH},
    "get": {"held": TRUTH, "node": BYTES, "role": BYTES},
}


def is_a(value, kind):
    if kind is NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, (bytes, str) if kind is BYTES else kind)


def permits_of(kind, got):
    """The answer for a semaphore must have as many different permit numbers as were asked for, all
    below `of`. Returns what is wrong, or None."""
    slots = got.get("slots")
    if kind.mode != "permits":
        return None
    if (not isinstance(slots, list) or len(set(slots)) != len(slots) or len(slots) < kind.count
        or any(not 0 <= s < kind.of for s in slots)):
        return "%d permits of %d are answered as %r" % (kind.count, kind.of, slots)
    return None


def fault(answer, method, lock, lease_ms):
    """Returns what is wrong with an answer, in words, or None."""
    if answer.result == "unknown":
        return None
    if not answer.ok:
        return (None if isinstance(answer.data.get("message"), (bytes, str))
                else "an error without a message: %r" % answer.data)
    for name, kind in FIELDS.get(method, {}).items():
        if not is_a(answer.data.get(name), kind):
            return "%s is answered with %s = %r" % (method, name, answer.data.get(name))
    if answer.data.get("valid_ms", 0) > lease_ms + answer.data.get("waited_ms", 0):
        return "%s is answered with valid_ms %d for a lease of %d ms" % (
            method, answer.data["valid_ms"], lease_ms)
    if "acks" in FIELDS.get(method, ()) and answer.data["acks"] < answer.data["quorum"]:
        return "%s is answered with %d acks for a quorum of %d" % (method, answer.data["acks"],
                                                                   answer.data["quorum"])
    return permits_of(lock.kind, answer.data) if method == "acquire" else None
