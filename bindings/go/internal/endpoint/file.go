package endpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const fileBytesMax = 64 << 10

// parse reads what was written, and the files that it names.
func parse(parts []string) ([]Endpoint, error) {
	var found []Endpoint
	for _, part := range parts {
		part = strings.TrimSpace(part)
		var err error
		if path, ok := strings.CutPrefix(part, "file:"); ok {
			found, err = addFile(found, path)
		} else if part != "" {
			found, err = add(found, part)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, errors.New("endpoints: give at least one")
	}
	return found, nil
}

func add(found []Endpoint, text string) ([]Endpoint, error) {
	for _, one := range found {
		if one.Source == text {
			return found, nil
		}
	}
	if len(found) == Max {
		return nil, fmt.Errorf("endpoints: at most %d are allowed", Max)
	}
	e, err := ParseOne(text)
	return append(found, e), err
}

func readFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > fileBytesMax:
		return "", errors.New("it is longer than 64 KiB")
	case !utf8.Valid(data):
		return "", errors.New("it is no text")
	}
	return string(data), nil
}

func addFile(found []Endpoint, path string) ([]Endpoint, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("file of endpoints %s: %w", path, err)
	}
	some := false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.SplitSeq(line, ",") {
			part = strings.TrimSpace(part)
			if part == "" {
				continue
			}
			if strings.HasPrefix(part, "file:") {
				err = errors.New("a file of endpoints names no other file")
			} else {
				found, err = add(found, part)
			}
			if err != nil {
				return nil, fmt.Errorf("file of endpoints %s, line %d: %w", path, i+1, err)
			}
			some = true
		}
	}
	if !some {
		return nil, fmt.Errorf("file of endpoints %s: it has no endpoint", path)
	}
	return found, nil
}

// stamp is what changes when a file changes. A file that is not there looks like one that is empty.
type stamp struct {
	info os.FileInfo
	size int64
	when time.Time
}

func (s stamp) same(o stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.size == o.size && s.when.Equal(o.when)
}

func stamps(parts []string) []stamp {
	var found []stamp
	for _, part := range parts {
		if path, ok := strings.CutPrefix(strings.TrimSpace(part), "file:"); ok {
			var s stamp
			if info, err := os.Stat(path); err == nil {
				s = stamp{info, info.Size(), info.ModTime()}
			}
			found = append(found, s)
		}
	}
	return found
}
