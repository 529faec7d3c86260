package fence

import (
	"encoding/binary"
	"math/bits"
)

// siphash is SipHash-2-4 with a result of 64 bits, the checksum of records.
func siphash(k0, k1 uint64, data []byte) uint64 {
	a, b := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	c, d := k0^0x6c7967656e657261, k1^0x7465646279746573
	rounds := func(count int) {
		for range count {
			a += b
			c += d
			b = bits.RotateLeft64(b, 13) ^ a
			d = bits.RotateLeft64(d, 16) ^ c
			a = bits.RotateLeft64(a, 32) + d
			c += b
			b = bits.RotateLeft64(b, 17) ^ c
			d = bits.RotateLeft64(d, 21) ^ a
			c = bits.RotateLeft64(c, 32)
		}
	}
	last := uint64(len(data)) << 56
	for ; len(data) >= 8; data = data[8:] {
		word := binary.LittleEndian.Uint64(data)
		d ^= word
		rounds(2)
		a ^= word
	}
	for i, one := range data {
		last |= uint64(one) << (8 * i)
	}
	d ^= last
	rounds(2)
	a ^= last
	c ^= 0xff
	rounds(4)
	return a ^ b ^ c ^ d
}
