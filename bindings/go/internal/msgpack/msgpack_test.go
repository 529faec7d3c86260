package msgpack

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for _, value := range []any{
		nil, true, false, int64(0), int64(127), int64(128), int64(65536), int64(1) << 62, int64(-1),
		int64(-33), int64(-1) << 63, uint64(1) << 63, "", "text", string(make([]byte, 40)),
		string(make([]byte, 300)), string(make([]byte, 70000)), "\xff\x00",
		[]any{int64(1), "two"}, map[string]any{"a": []any{}, "b": map[string]any{"c": nil}},
	} {
		data, err := Append(nil, value)
		if err != nil {
			t.Fatalf("%v: %v", value, err)
		}
		got, err := NewReader(bytes.NewReader(data)).Next()
		if err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%#v was read as %#v (%v)", value, got, err)
		}
	}
}

func TestEachWidthOfANumberIsRead(t *testing.T) {
	for _, one := range []struct {
		data string
		want any
	}{
		{"\xcc\x07", int64(7)}, {"\xcd\x00\x07", int64(7)}, {"\xce\x00\x00\x00\x07", int64(7)},
		{"\xcf\x00\x00\x00\x00\x00\x00\x00\x07", int64(7)}, {"\xd0\xff", int64(-1)},
		{"\xd1\xff\xfe", int64(-2)}, {"\xd2\xff\xff\xff\xfd", int64(-3)},
		{"\xd3\xff\xff\xff\xff\xff\xff\xff\xfc", int64(-4)}, {"\xd9\x01x", "x"}, {"\xc4\x01x", "x"},
		{"\xdb\x00\x00\x00\x01x", "x"}, {"\xdd\x00\x00\x00\x01\x07", []any{int64(7)}},
		{"\xdf\x00\x00\x00\x01\xa1k\x07", map[string]any{"k": int64(7)}}, {"\xd4\x01\x02", nil},
		{"\xca\x3f\x80\x00\x00", float64(1)},
	} {
		got, err := NewReader(bytes.NewReader([]byte(one.data))).Next()
		if err != nil || !reflect.DeepEqual(got, one.want) {
			t.Errorf("%q was read as %#v (%v)", one.data, got, err)
		}
	}
}

func TestMoreThanTheLimitsIsRefusedBeforeItArrives(t *testing.T) {
	for _, data := range []string{"\xc1", "\xc6\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff",
		"\xdf\xff\xff\xff\xff", string(bytes.Repeat([]byte{0x91}, 100))} {
		if _, err := NewReader(bytes.NewReader([]byte(data))).Next(); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", data[:min(len(data), 9)], err)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("\x94\x01\x01\xc0\x81\xa1a\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := NewReader(bytes.NewReader(data)).Next()
		if err == nil && value != nil {
			if _, err := Append(nil, value); err != nil && !hasFloat(value) {
				t.Fatal(err)
			}
		} else if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	})
}

func hasFloat(value any) bool {
	switch v := value.(type) {
	case float64:
		return true
	case []any:
		for _, one := range v {
			if hasFloat(one) {
				return true
			}
		}
	case map[string]any:
		for _, one := range v {
			if hasFloat(one) {
				return true
			}
		}
	}
	return false
}
