package fence

import (
	"encoding/binary"
	"slices"
)

// A record has everything that is known of one name: the length of the name (2 bytes), the same with
// its bits inverted (2), the highest exclusive token (8), the highest token (8), the name, and a
// checksum of all that (8); the low byte of each number comes first. The file is a header and then
// records. Only the last one may be incomplete.
const (
	header         = "pawl fence 1\n\x00\x00\x00"
	headBytes      = 20
	sumBytes       = 8
	recordBytesMax = headBytes + NameMax + sumBytes
	// The checksum is against accidents, not against people.
	sumKey0, sumKey1 = 0x7061776c20666e63, 1
)

type mark struct {
	exclusive, highest uint64
}

func appendRecord(b []byte, name string, m mark) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	b = binary.LittleEndian.AppendUint16(b, ^uint16(len(name)))
	b = binary.LittleEndian.AppendUint64(b, m.exclusive)
	b = binary.LittleEndian.AppendUint64(b, m.highest)
	b = append(b, name...)
	return binary.LittleEndian.AppendUint64(b, siphash(sumKey0, sumKey1, b[start:]))
}

// readRecord reads the record at the beginning of the data, and returns its size; 0: there is no
// whole record.
func readRecord(data []byte) (name string, m mark, size int) {
	if len(data) < headBytes {
		return "", mark{}, 0
	}
	n := binary.LittleEndian.Uint16(data)
	size = headBytes + int(n) + sumBytes
	if n > NameMax || binary.LittleEndian.Uint16(data[2:]) != ^n || size > len(data) {
		return "", mark{}, 0
	}
	body := data[:size-sumBytes]
	if binary.LittleEndian.Uint64(data[size-sumBytes:]) != siphash(sumKey0, sumKey1, body) {
		return "", mark{}, 0
	}
	m = mark{binary.LittleEndian.Uint64(data[4:]), binary.LittleEndian.Uint64(data[12:])}
	return string(body[headBytes:]), m, size
}

// torn returns whether this is a part of one record, which was never confirmed: no record begins in
// it.
func torn(rest []byte) bool {
	if len(rest) >= recordBytesMax {
		return false
	}
	for at := range rest {
		if _, _, size := readRecord(rest[at:]); size > 0 {
			return false
		}
	}
	return true
}

// whole returns a file that has only these marks.
func whole(marks map[string]mark) []byte {
	b := []byte(header)
	names := make([]string, 0, len(marks))
	for name := range marks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendRecord(b, name, marks[name])
	}
	return b
}
