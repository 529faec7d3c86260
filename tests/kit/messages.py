"""MessagePack for the kit: a codec of its own, so that no client is proved with its own code. It
can write each value wider than it needs to be, which the format allows."""

import struct


class More(Exception):
    """The message is not complete yet."""


class Malformed(Exception):
    """This is no MessagePack, or not of the kind that the protocol uses."""


class Number(int):
    """A number that is written in the form `kind`, such as u64 or i32."""

    kind = ""

    @classmethod
    def of(cls, kind, value):
        number = cls(value)
        number.kind = kind
        return number


class Str(bytes):
    """Text that is written as a str though it was read, or is compared, as bytes."""


NUMBERS = {"u8": (0xCC, ">B"), "u16": (0xCD, ">H"), "u32": (0xCE, ">I"), "u64": (0xCF, ">Q"),
           "i8": (0xD0, ">b"), "i16": (0xD1, ">h"), "i32": (0xD2, ">i"), "i64": (0xD3, ">q")}
READ = {code: form for code, form in NUMBERS.values()}
# The codes with lengths of 8, 16 and 32 bits (None: there is no such code), and the short form with
# its number of bits.
LENGTHS = {"bin": (0xC4, 0xC5, 0xC6, None), "str": (0xD9, 0xDA, 0xDB, (0xA0, 5)),
           "list": (None, 0xDC, 0xDD, (0x90, 4)), "map": (None, 0xDE, 0xDF, (0x80, 4))}


def _length(kind, count, wide):
    code8, code16, code32, short = LENGTHS[kind]
    if wide:
        return struct.pack(">BI", code32, count)
    if short and count < 1 << short[1]:
        return bytes([short[0] | count])
    if code8 and count < 1 << 8:
        return bytes([code8, count])
    if count < 1 << 16:
        return struct.pack(">BH", code16, count)
    return struct.pack(">BI", code32, count)


def _number(value, wide):
    kind = getattr(value, "kind", "")
    if not kind and wide:
        kind = "u64" if value >= 0 else "i64"
    if not kind and -32 <= value < 128:
        return struct.pack(">b", value) if value < 0 else bytes([value])
    if not kind:
        order = ("u8", "u16", "u32", "u64") if value >= 0 else ("i8", "i16", "i32", "i64")
        bits = value.bit_length() if value >= 0 else (-value - 1).bit_length() + 1
        kind = next(name for name in order if bits <= int(name[1:]))
    code, form = NUMBERS[kind]
    return bytes([code]) + struct.pack(form, value)


def pack(value, wide=False):
    """Returns the value as MessagePack. wide: in the longest form there is."""
    if value is None:
        return b"\xc0"
    if value is True or value is False:
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _number(value, wide)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, Str):
        return _length("str", len(value), wide) + value
    if isinstance(value, str):
        data = value.encode()
        return _length("str", len(data), wide) + data
    if isinstance(value, (bytes, bytearray)):
        return _length("bin", len(value), wide) + bytes(value)
    if isinstance(value, (list, tuple)):
        return _length("list", len(value), wide) + b"".join(pack(one, wide) for one in value)
    if isinstance(value, dict):
        return _length("map", len(value), wide) + b"".join(
            pack(key, wide) + pack(one, wide) for key, one in value.items())
    raise TypeError("no MessagePack for %r" % (value,))


class Reader:
    """Reads values from the bytes of one connection."""

    def __init__(self):
        self._data, self._at = b"", 0

    def feed(self, data):
        """Takes more bytes, and returns the values that are complete now."""
        self._data += data
        found = []
        while self._data:
            self._at = 0
            try:
                value = self._value(0)
            except More:
                break
            found.append(value)
            self._data = self._data[self._at:]
        return found

    def _take(self, count):
        if self._at + count > len(self._data):
            raise More
        self._at += count
        return self._data[self._at - count:self._at]

    def _unpack(self, form):
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _value(self, depth):
        if depth > 16:
            raise Malformed("it is nested too deep")
        code = self._take(1)[0]
        if code < 0x80:
            return code
        if code >= 0xE0:
            return code - 256
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if code in READ:
            return self._unpack(READ[code])
        if code in (0xCA, 0xCB):
            return self._unpack(">f" if code == 0xCA else ">d")
        for kind, (code8, code16, code32, short) in LENGTHS.items():
            if short and code & ~((1 << short[1]) - 1) & 0xFF == short[0]:
                return self._several(kind, code & ((1 << short[1]) - 1), depth)
            for known, form in ((code8, ">B"), (code16, ">H"), (code32, ">I")):
                if known == code:
                    return self._several(kind, self._unpack(form), depth)
        raise Malformed("the byte 0x%02x begins no value of this protocol" % code)

    def _several(self, kind, count, depth):
        if kind == "bin":
            return self._take(count)
        if kind == "str":
            text = self._take(count)
            try:
                return text.decode()
            except UnicodeDecodeError:
                return text
        if kind == "list":
            return [self._value(depth + 1) for _ in range(count)]
        found = {}
        for _ in range(count):
            key = self._value(depth + 1)
            if not isinstance(key, str):
                raise Malformed("a key of a map is not a str: %r" % (key,))
            found[key] = self._value(depth + 1)
        return found
