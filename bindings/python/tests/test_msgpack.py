"""Tests what the codec packs, what it understands, and what it refuses before it uses memory."""

import random
import struct
import unittest

from pawl._link.msgpack import DEPTH_MAX, Decoder, FormatError, pack, unpack

EDGES = [0, 1, 31, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1,
         2**64 - 1]


class Packing(unittest.TestCase):
    def test_what_is_packed_comes_back_the_same(self):
        values = [None, True, False, "", "a", "ä" * 40, b"", b"\x00\xff" * 200, b"x" * 70000, [],
                  [1, [2, [b"3"]]], {}, {"a": {"b": [None]}}]
        values += EDGES + [-n for n in EDGES if n <= 2**63] + ["x" * 70000, list(range(20)),
                                                               {str(n): n for n in range(70000)}]
        for value in values:
            self.assertEqual(unpack(pack(value)), value)

    def test_numbers_take_as_few_bytes_as_possible(self):
        for number, size in ((0, 1), (127, 1), (128, 2), (256, 3), (65536, 5), (2**32, 9), (-1, 1),
                             (-32, 1), (-33, 2), (-129, 3), (-32769, 5)):
            self.assertEqual(len(pack(number)), size, number)

    def test_any_width_is_understood(self):
        for tag, form in ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"), (0xD0, ">b"),
                          (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q")):
            self.assertEqual(unpack(bytes([tag]) + struct.pack(form, 5)), 5)
        for head in (b"\xa2", b"\xd9\x02", b"\xda\x00\x02", b"\xdb\x00\x00\x00\x02"):
            self.assertEqual(unpack(head + b"hi"), "hi")
        for head in (b"\x92", b"\xdc\x00\x02", b"\xdd\x00\x00\x00\x02"):
            self.assertEqual(unpack(head + b"\x01\x02"), [1, 2])
        for head in (b"\x81", b"\xde\x00\x01", b"\xdf\x00\x00\x00\x01"):
            self.assertEqual(unpack(head + b"\xa1k\x01"), {"k": 1})

    def test_text_that_is_not_utf_8_keeps_its_bytes(self):
        text = unpack(b"\xa2\xff\xfe")
        self.assertEqual(pack(text), b"\xa2\xff\xfe")

    def test_values_that_the_protocol_does_not_have_are_not_sent(self):
        for value in (2**64, -(2**63) - 1, 1.5, object(), {1, 2}):
            with self.assertRaises(FormatError):
                pack(value)
        endless: list = []
        endless.append(endless)
        with self.assertRaises(FormatError):
            pack(endless)


class Decoding(unittest.TestCase):
    def test_pieces_of_any_size_give_the_same_messages(self):
        messages = [[1, 7, None, {"keys": [{"key": b"a" * 300, "held": True}] * 20}],
                    [2, "event", [{"watch": 1}]], [1, 8, {"code": "held"}, None]]
        stream = b"".join(map(pack, messages))
        for step in (1, 2, 3, 7, 100, len(stream)):
            decoder = Decoder()
            found = [m for i in range(0, len(stream), step)
                     for m in decoder.feed(stream[i : i + step])]
            self.assertEqual(found, messages, step)
            self.assertEqual(decoder.pending, 0)

    def test_a_large_message_in_small_pieces_costs_no_more_than_its_length(self):
        message = [1, 1, None, {"keys": [b"k" * 20] * 30000}]
        stream, decoder, found = pack(message), Decoder(), []
        # Scanning the whole message for each piece would take minutes.
        for i in range(0, len(stream), 500):
            found += decoder.feed(stream[i : i + 500])
        self.assertEqual(found, [message])

    def test_what_comes_before_garbage_is_handed_out_first(self):
        decoder, found = Decoder(), []
        with self.assertRaises(FormatError):
            for message in decoder.feed(pack([1, 2]) + b"\xc1"):
                found.append(message)
        self.assertEqual(found, [[1, 2]])

    def test_garbage_is_refused_or_waits_for_more_but_never_fails_otherwise(self):
        draw = random.Random(7)
        for _ in range(3000):
            data = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 60)))
            try:
                list(Decoder().feed(data))
            except FormatError:
                pass

    def test_changed_messages_are_refused_or_understood_but_never_fail_otherwise(self):
        draw, good = (random.Random(8),
                      pack([1, 7, None, {"keys": [{"key": b"a", "held": True, "slots": [1, 2]}]}]))
        for _ in range(3000):
            data = bytearray(good)
            for _ in range(draw.randrange(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            try:
                list(Decoder().feed(bytes(data)))
            except FormatError:
                pass

    def test_sizes_beyond_the_limits_are_refused_when_they_are_announced(self):
        for data in (b"\xdb\xff\xff\xff\xff", b"\xc6\x01\x00\x00\x01", b"\xdd\xff\xff\xff\xff",
                     b"\xdf\x00\x10\x00\x00", b"\x91" * (DEPTH_MAX + 1)):
            with self.assertRaises(FormatError):
                list(Decoder().feed(data))
        with self.assertRaises(FormatError):
            list(Decoder(bytes_max=1000).feed(pack([b"x" * 400] * 3)[:-1]))
        with self.assertRaises(FormatError):
            list(Decoder(objects_max=100).feed(pack([[1] * 50] * 2)))

    def test_messages_below_the_limits_add_up_to_any_length(self):
        decoder = Decoder(bytes_max=1000, objects_max=100)
        for _ in range(50):
            self.assertEqual(len(list(decoder.feed(pack([b"x" * 100] * 5) * 3))), 3)

    def test_extension_types_and_the_unused_tag_are_garbage(self):
        for tag in (0xC1, 0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8):
            with self.assertRaises(FormatError):
                list(Decoder().feed(bytes([tag, 0, 0, 0, 0, 0, 0, 0])))

    def test_a_map_whose_key_is_a_list_is_garbage(self):
        with self.assertRaises(FormatError):
            unpack(b"\x81\x90\x01")


if __name__ == "__main__":
    unittest.main()
