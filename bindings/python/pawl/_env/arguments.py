"""What programs pass, and how it is checked before any node is asked."""

from __future__ import annotations

import numbers
import re
from typing import Any, Union

Bytes = Union[str, bytes]

EXCLUSIVE, SHARED, PERMITS = "exclusive", "shared", "permits"


def to_bytes(data: Bytes, what: str = "a name or value") -> bytes:
    """Encodes text as UTF-8. A name that was decoded from bytes which are not UTF-8 gets those
    bytes again."""
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    # bytes(5) would make five zero bytes.
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("%s: expected str or bytes, not %s" % (what, type(data).__name__))
    return bytes(data)


def to_text(data: Bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def to_ms(seconds: float, what: str) -> int:
    if not isinstance(seconds, numbers.Number) or isinstance(seconds, (bool, complex)):
        raise TypeError("%s: expected seconds, not %s" % (what, type(seconds).__name__))
    if not 0 <= seconds <= 10**9:  # This also refuses NaN.
        raise ValueError("%s: %r is not a duration in seconds (from 0 to 10^9)" % (what, seconds))
    return round(seconds * 1000)


def check_whole(number: int, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError("%s: expected a whole number, not %r" % (what, number))
    return number


def check_text(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError("%s: expected str, not %s" % (what, type(text).__name__))
    return text


def valid_trace(text: str) -> bool:
    """Returns whether the text is a traceparent of W3C Trace Context."""
    found = re.fullmatch("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", text)
    return found is not None and found[1] != "ff" and found[2].strip("0") != "" \
        and found[3].strip("0") != ""


def check_trace(text: str) -> str:
    if not valid_trace(check_text(text, "trace")):
        raise ValueError("trace: expected a traceparent, such as "
                         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    return text


def check_callback(function: Any, what: str) -> None:
    if function is not None and not callable(function):
        raise TypeError("%s: expected a function, not %s" % (what, type(function).__name__))
