"""SipHash-2-4 (Aumasson and Bernstein, 2012) with a 64-bit result, the checksum in token files."""

from __future__ import annotations

from struct import unpack_from
from typing import Tuple

_ALL = 0xFFFFFFFFFFFFFFFF
_State = Tuple[int, int, int, int]


def _rounds(a: int, b: int, c: int, d: int, count: int) -> _State:
    for _ in range(count):
        a = a + b & _ALL
        c = c + d & _ALL
        b = (b << 13 & _ALL | b >> 51) ^ a
        d = (d << 16 & _ALL | d >> 48) ^ c
        a = a << 32 & _ALL | a >> 32
        c = c + b & _ALL
        a = a + d & _ALL
        b = (b << 17 & _ALL | b >> 47) ^ c
        d = (d << 21 & _ALL | d >> 43) ^ a
        c = c << 32 & _ALL | c >> 32
    return a, b, c, d


def siphash(key: Tuple[int, int], data: bytes) -> int:
    a, b = key[0] ^ 0x736F6D6570736575, key[1] ^ 0x646F72616E646F6D
    c, d = key[0] ^ 0x6C7967656E657261, key[1] ^ 0x7465646279746573
    whole, size = len(data) // 8, len(data)
    last = int.from_bytes(data[whole * 8 :], "little") | (size & 0xFF) << 56
    for word in (*unpack_from("<%dQ" % whole, data), last):
        a, b, c, d = _rounds(a, b, c, d ^ word, 2)
        a ^= word
    a, b, c, d = _rounds(a, b, c ^ 0xFF, d, 4)
    return a ^ b ^ c ^ d
