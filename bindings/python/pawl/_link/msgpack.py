"""MessagePack as far as Pawl needs it: there are no extension types, and every message has limits
that are checked before memory is used."""

from __future__ import annotations

import struct
from typing import Any, Iterator, List, Optional, Tuple

# The limits of a response and of a request (docs/client-protocol.md, Limits).
MESSAGE_BYTES_MAX = 16 << 20
REQUEST_BYTES_MAX = 4 << 20
OBJECTS_MAX = 1 << 20
# No response is nested as deep as this.
DEPTH_MAX = 16


class FormatError(ValueError):
    """The bytes are not MessagePack, or they exceed a limit."""


# ---- packing ----


def _pack_int(out: bytearray, value: int) -> None:
    if 0 <= value < 0x80 or -0x20 <= value < 0:
        out.append(value & 0xFF)
    elif value >= 0:
        for tag, form, limit in ((0xCC, ">BB", 1 << 8), (0xCD, ">BH", 1 << 16),
                                 (0xCE, ">BI", 1 << 32), (0xCF, ">BQ", 1 << 64)):
            if value < limit:
                out += struct.pack(form, tag, value)
                return
        raise FormatError("the number does not fit in 64 bits")
    else:
        for tag, form, limit in ((0xD0, ">Bb", 1 << 7), (0xD1, ">Bh", 1 << 15),
                                 (0xD2, ">Bi", 1 << 31), (0xD3, ">Bq", 1 << 63)):
            if value >= -limit:
                out += struct.pack(form, tag, value)
                return
        raise FormatError("the number does not fit in 64 bits")


def _pack_size(out: bytearray, size: int, fixed: int, fixed_max: int,
               tags: Tuple[int, int, int]) -> None:
    """Packs the head of an object that has a size. A tag of 0 means that this width does not
    exist."""
    if size <= fixed_max:
        out.append(fixed | size)
    elif size < 1 << 8 and tags[0]:
        out += struct.pack(">BB", tags[0], size)
    elif size < 1 << 16:
        out += struct.pack(">BH", tags[1], size)
    elif size < 1 << 32:
        out += struct.pack(">BI", tags[2], size)
    else:
        raise FormatError("too large")


def _pack_into(out: bytearray, value: Any, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise FormatError("nested too deep")
    if value is None:
        out.append(0xC0)
    elif isinstance(value, bool):
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, int):
        _pack_int(out, value)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        _pack_size(out, len(data), 0xA0, 31, (0xD9, 0xDA, 0xDB))
        out += data
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _pack_size(out, len(value), 0, -1, (0xC4, 0xC5, 0xC6))
        out += value
    elif isinstance(value, (list, tuple)):
        _pack_size(out, len(value), 0x90, 15, (0, 0xDC, 0xDD))
        for item in value:
            _pack_into(out, item, depth + 1)
    elif isinstance(value, dict):
        _pack_size(out, len(value), 0x80, 15, (0, 0xDE, 0xDF))
        for key, item in value.items():
            _pack_into(out, key, depth + 1)
            _pack_into(out, item, depth + 1)
    else:
        raise FormatError("a %s cannot be sent" % type(value).__name__)


def pack(value: Any) -> bytes:
    """Packs a value: None, a bool, int, str or bytes, or a list or dict of such values."""
    out = bytearray()
    _pack_into(out, value, 1)
    return bytes(out)


# ---- unpacking ----

# The form of the number that follows each tag, and the kind of the object.
_NUMBERS = {
    0xCA: struct.Struct(">f"), 0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"), 0xCD: struct.Struct(">H"), 0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"), 0xD1: struct.Struct(">h"), 0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}  # fmt: skip
_U8, _U16, _U32 = struct.Struct(">B"), struct.Struct(">H"), struct.Struct(">I")
_SIZED = {
    0xC4: ("bin", _U8), 0xC5: ("bin", _U16), 0xC6: ("bin", _U32),
    0xD9: ("str", _U8), 0xDA: ("str", _U16), 0xDB: ("str", _U32),
    0xDC: ("array", _U16), 0xDD: ("array", _U32),
    0xDE: ("map", _U16), 0xDF: ("map", _U32),
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _head(data: bytearray, at: int) -> Optional[Tuple[str, Any, int]]:
    """Reads the head of the object at `at`. Returns its kind, its number or size, and where the
    head ends; None if the head is not whole yet."""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return "int", tag, at
    if tag >= 0xE0:
        return "int", tag - 0x100, at
    if tag < 0x90:
        return "map", tag & 15, at
    if tag < 0xA0:
        return "array", tag & 15, at
    if tag < 0xC0:
        return "str", tag & 31, at
    if tag in _CONSTANTS:
        return "int", _CONSTANTS[tag], at
    number = _NUMBERS.get(tag)
    if number is not None:
        if len(data) < at + number.size:
            return None
        return "int", number.unpack_from(data, at)[0], at + number.size
    sized = _SIZED.get(tag)
    if sized is None:
        raise FormatError("0x%02x is not a tag that Pawl uses" % tag)
    kind, form = sized
    if len(data) < at + form.size:
        return None
    return kind, form.unpack_from(data, at)[0], at + form.size


class _Reader:
    """Builds the objects of a message that has arrived as a whole."""

    def __init__(self, data: bytearray, at: int = 0) -> None:
        self.data, self.at = data, at

    def value(self) -> Any:
        head = _head(self.data, self.at)
        assert head is not None
        kind, what, self.at = head
        if kind == "int":
            return what
        if kind == "array":
            return [self.value() for _ in range(what)]
        if kind == "map":
            return self.pairs(what)
        begin = self.at
        self.at += what
        data = bytes(self.data[begin : self.at])
        return data if kind == "bin" else data.decode("utf-8", "surrogateescape")

    def pairs(self, count: int) -> Any:
        result = {}
        for _ in range(count):
            key = self.value()
            if isinstance(key, (list, dict)):
                raise FormatError("the key of a map is a list or a map")
            result[key] = self.value()
        return result


class Decoder:
    """Decodes a stream of messages: bytes go in as they arrive, and whole messages come out. The
    decoder remembers how far it has scanned a message that is not whole yet, so it scans no byte
    twice, however small the pieces are."""

    def __init__(self, bytes_max: int = MESSAGE_BYTES_MAX, objects_max: int = OBJECTS_MAX) -> None:
        self._bytes_max, self._objects_max = bytes_max, objects_max
        self._data = bytearray()
        self._at = 0
        self._restart()

    def _restart(self) -> None:
        self._begin = self._at
        # How many objects the message has announced so far.
        self._objects = 1
        # How many objects are still to come at each depth.
        self._open: List[int] = [1]

    def _scan(self) -> bool:
        """Scans on to the end of the message. False: the message is not whole yet."""
        data, level = self._data, self._open
        while level:
            if level[-1] == 0:
                level.pop()
                continue
            if self._at - self._begin >= self._bytes_max:
                raise FormatError("a message is larger than %d bytes" % self._bytes_max)
            head = _head(data, self._at) if self._at < len(data) else None
            if head is None:
                return False
            kind, what, at = head
            if kind in ("str", "bin"):
                if at + what - self._begin > self._bytes_max:
                    raise FormatError("a message is larger than %d bytes" % self._bytes_max)
                if at + what > len(data):
                    return False
                at += what
            self._at = at
            level[-1] -= 1
            if kind in ("array", "map"):
                self._enter(what if kind == "array" else 2 * what)
        return True

    def _enter(self, count: int) -> None:
        self._objects += count
        if self._objects > self._objects_max:
            raise FormatError("a message has more than %d objects" % self._objects_max)
        if len(self._open) > DEPTH_MAX:
            raise FormatError("a message is nested too deep")
        self._open.append(count)

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yields the messages that are whole now. FormatError comes after the whole messages before
        it, and the stream is of no use any more."""
        self._data += data
        begin = 0
        try:
            while self._at < len(self._data) and self._scan():
                message = _Reader(self._data, begin).value()
                begin = self._at
                self._restart()
                yield message
        finally:
            del self._data[:begin]
            self._at -= begin
            self._begin -= begin

    @property
    def pending(self) -> int:
        """How many bytes have arrived of a message that is not whole yet."""
        return len(self._data)


def unpack(data: bytes) -> Any:
    """Unpacks bytes that are exactly one value."""
    decoder = Decoder()
    messages = list(decoder.feed(data))
    if len(messages) != 1 or decoder.pending:
        raise FormatError("the bytes are not exactly one value")
    return messages[0]
