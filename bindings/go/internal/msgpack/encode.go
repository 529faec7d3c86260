// Package msgpack reads and writes the part of MessagePack that Pawl's protocol uses.
package msgpack

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Pair is a field of a map.
type Pair struct {
	Name  string
	Value any
}

// Map is a map whose fields are written in this order.
type Map []Pair

// Get returns the value of the field; nil: there is none.
func (m Map) Get(name string) any {
	for _, p := range m {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// With returns a copy in which the field has that value.
func (m Map) With(name string, value any) Map {
	next := make(Map, 0, len(m)+1)
	found := false
	for _, p := range m {
		if p.Name == name {
			p.Value, found = value, true
		}
		next = append(next, p)
	}
	if !found {
		next = append(next, Pair{name, value})
	}
	return next
}

// Without returns a copy that lacks the field.
func (m Map) Without(name string) Map {
	next := make(Map, 0, len(m))
	for _, p := range m {
		if p.Name != name {
			next = append(next, p)
		}
	}
	return next
}

// Append appends the value to the buffer: nil, a bool, an integer, a string (as str, or as bin if
// it is not UTF-8), []byte (as bin), a Map, a map[string]any, or a slice of such values.
func Append(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, 0xc0), nil
	case bool:
		if v {
			return append(b, 0xc3), nil
		}
		return append(b, 0xc2), nil
	case int:
		return appendInt(b, int64(v)), nil
	case int32:
		return appendInt(b, int64(v)), nil
	case int64:
		return appendInt(b, v), nil
	case uint32:
		return appendUint(b, uint64(v)), nil
	case uint64:
		return appendUint(b, v), nil
	case string:
		if !utf8.ValidString(v) {
			return appendBin(b, v), nil
		}
		return appendStr(b, v), nil
	case []byte:
		return appendBin(b, string(v)), nil
	case Map:
		b = appendSize(b, len(v), 0x80, 0xde)
		for _, p := range v {
			var err error
			if b, err = Append(appendStr(b, p.Name), p.Value); err != nil {
				return nil, err
			}
		}
		return b, nil
	case map[string]any:
		b = appendSize(b, len(v), 0x80, 0xde)
		for name, one := range v {
			var err error
			if b, err = Append(appendStr(b, name), one); err != nil {
				return nil, err
			}
		}
		return b, nil
	case []any:
		return appendList(b, v)
	case []Map:
		return appendList(b, v)
	case []int:
		return appendList(b, v)
	case []string:
		return appendList(b, v)
	}
	return nil, fmt.Errorf("a value of type %T cannot be sent", value)
}

func appendList[T any](b []byte, list []T) ([]byte, error) {
	b = appendSize(b, len(list), 0x90, 0xdc)
	for _, one := range list {
		var err error
		if b, err = Append(b, one); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// appendSize begins a list or map: short is the form for up to 15, long the one for 16 bits.
func appendSize(b []byte, n int, short, long byte) []byte {
	switch {
	case n < 16:
		return append(b, short|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, long), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, long+1), uint32(n))
}

func appendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
}

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 128:
		return append(b, byte(v))
	case v < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendStr(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 256:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBin(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 256:
		b = append(b, 0xc4, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xc5), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, s...)
}
