package msgpack

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The limits of one message.
const (
	BytesMax   = 16 << 20
	ObjectsMax = 1 << 20
	depthMax   = 32
)

// ErrFormat is the error of bytes that are no message of the protocol.
var ErrFormat = errors.New("this is no MessagePack within the limits of the protocol")

// Reader reads messages from a connection. What it returns is nil, bool, int64, uint64 (only above
// 2^63 - 1), float64, string (for str and for bin), []any, or map[string]any.
type Reader struct {
	r              *bufio.Reader
	bytes, objects int
}

// NewReader returns a reader of the stream.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10)}
}

// Next reads the next message. ErrFormat: it is none; any other error is that of the stream.
func (r *Reader) Next() (any, error) {
	r.bytes, r.objects = 0, 0
	return r.value(0)
}

func (r *Reader) value(depth int) (any, error) {
	r.objects++
	if depth > depthMax || r.objects > ObjectsMax {
		return nil, ErrFormat
	}
	kind, err := r.r.ReadByte()
	if err != nil {
		return nil, err
	}
	r.bytes++
	switch {
	case kind < 0x80:
		return int64(kind), nil
	case kind < 0x90:
		return r.mapOf(int(kind&0x0f), depth)
	case kind < 0xa0:
		return r.listOf(int(kind&0x0f), depth)
	case kind < 0xc0:
		return r.text(uint64(kind & 0x1f))
	case kind >= 0xe0:
		return int64(int8(kind)), nil
	}
	switch kind {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return kind == 0xc3, nil
	case 0xc4, 0xd9:
		return r.sized(1, r.text)
	case 0xc5, 0xda:
		return r.sized(2, r.text)
	case 0xc6, 0xdb:
		return r.sized(4, r.text)
	case 0xc7, 0xc8, 0xc9:
		return r.sized(1<<(kind-0xc7), r.extension)
	case 0xca, 0xcb:
		return r.float(kind)
	case 0xcc, 0xcd, 0xce, 0xcf:
		return r.sized(1<<(kind-0xcc), unsigned)
	case 0xd0, 0xd1, 0xd2, 0xd3:
		return r.signed(kind)
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return r.extension(1 << (kind - 0xd4))
	case 0xdc, 0xdd:
		return r.sized(2<<(kind-0xdc), func(n uint64) (any, error) { return r.listOf(int(n), depth) })
	case 0xde, 0xdf:
		return r.sized(2<<(kind-0xde), func(n uint64) (any, error) { return r.mapOf(int(n), depth) })
	}
	return nil, ErrFormat
}

func unsigned(n uint64) (any, error) {
	if n > math.MaxInt64 {
		return n, nil
	}
	return int64(n), nil
}

// sized reads a number of so many bytes, and what it is the size of.
func (r *Reader) sized(bytes int, rest func(uint64) (any, error)) (any, error) {
	n, err := r.number(bytes)
	if err != nil {
		return nil, err
	}
	return rest(n)
}

func (r *Reader) number(bytes int) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r.r, b[8-bytes:]); err != nil {
		return 0, err
	}
	r.bytes += bytes
	return binary.BigEndian.Uint64(b[:]), nil
}

func (r *Reader) signed(kind byte) (any, error) {
	bits := 8 << (kind - 0xd0)
	n, err := r.number(bits / 8)
	if err != nil {
		return nil, err
	}
	return int64(n<<(64-bits)) >> (64 - bits), nil
}

func (r *Reader) float(kind byte) (any, error) {
	if kind == 0xca {
		n, err := r.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	}
	n, err := r.number(8)
	return math.Float64frombits(n), err
}

func (r *Reader) text(n uint64) (any, error) {
	if n > BytesMax || r.bytes+int(n) > BytesMax {
		return nil, ErrFormat
	}
	r.bytes += int(n)
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		return nil, err
	}
	return string(b), nil
}

// extension skips a value of a type that the protocol does not use.
func (r *Reader) extension(n uint64) (any, error) {
	_, err := r.text(n + 1)
	return nil, err
}

func (r *Reader) listOf(n, depth int) (any, error) {
	if n > ObjectsMax-r.objects {
		return nil, ErrFormat
	}
	list := make([]any, 0, min(n, 1024))
	for range n {
		one, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (r *Reader) mapOf(n, depth int) (any, error) {
	if n > (ObjectsMax-r.objects)/2 {
		return nil, ErrFormat
	}
	m := make(map[string]any, min(n, 64))
	for range n {
		name, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if text, ok := name.(string); ok {
			m[text] = value
		} else {
			m[fmt.Sprint(name)] = value
		}
	}
	return m, nil
}
