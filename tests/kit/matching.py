"""What a case wants, compared with what came."""

WORDS = {
    "any": "true: the field is there, whatever it is",
    "absent": "true: the field is not there, or is null",
    "min": "at least this number; a token, which is a string of digits, counts as a number",
    "max": "at most this number",
    "not": "anything that does not match this",
    "in": "one of the items of this list; null: it may be missing",
    "size": "a list, map or text with so many items, or with a number of them that matches this",
    "each": "a list whose items all match this",
    "some": "a list of which at least one item matches this",
}


def plain(value):
    """Returns the value as JSON can tell it: bytes as text, or as {"hex": ...} if they are none."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return {"hex": bytes(value).hex()}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def is_matcher(wanted):
    return isinstance(wanted, dict) and bool(wanted) and set(wanted) <= set(WORDS)


def _number(value):
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _by_words(wanted, came, there):
    for word, value in wanted.items():
        if word == "absent":
            if (not there or came is None) != value:
                return "it is %s" % ("there: %r" % (came,) if value else "not there")
        elif not there and not (word == "in" and None in value):
            return "it is not there"
        elif word in ("min", "max"):
            number = _number(came)
            if number is None or (number < value if word == "min" else number > value):
                return "%r is not %s %s" % (came, "at least" if word == "min" else "at most", value)
        elif word == "not" and not differs(value, came):
            return "it is %r" % (came,)
        elif word == "in" and all(differs(one, came) for one in value):
            return "%r is none of %r" % (came, value)
        elif word == "size":
            why = differs(value, len(came) if isinstance(came, (list, dict, str)) else None)
            if why:
                return "its size: " + why
        elif word in ("each", "some"):
            found = ([differs(value, one) for one in came] if isinstance(came, list)
                     else ["%r is no list" % (came,)])
            if any(found) if word == "each" else all(found):
                return next((why for why in found if why), "the list is empty")
    return ""


def differs(wanted, came, there=True):
    """Returns in words how what came differs from what is wanted; an empty text if it does not.
    A map is matched field by field, and may have more fields."""
    if is_matcher(wanted):
        return _by_words(wanted, came, there)
    if not there:
        return "it is not there"
    if isinstance(wanted, dict) and isinstance(came, dict):
        for name, value in wanted.items():
            why = differs(value, came.get(name), name in came)
            if why:
                return "%s: %s" % (name, why)
        return ""
    if isinstance(wanted, list) and isinstance(came, list) and len(wanted) == len(came):
        for at, (one, other) in enumerate(zip(wanted, came)):
            why = differs(one, other)
            if why:
                return "item %d: %s" % (at, why)
        return ""
    if type(wanted) is bool or type(came) is bool:
        return "" if wanted is came else "%r is not %r" % (came, wanted)
    return "" if wanted == came else "%r is not %r" % (came, wanted)
