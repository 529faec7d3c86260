// Package fault has the errors of the client.
package fault

import (
	"fmt"
	"time"
)

// Error is what a node, or the client itself, says of a request that failed.
type Error struct {
	// Code is for programs: one of the codes of the client protocol, or `unreachable`, `tls`,
	// `protocol`, `closed`, `bad_argument`.
	Code string
	// Message is a sentence for people.
	Message string
	// Field is the parameter or limit at fault, if that is known.
	Field string
	// Key is the key that the error is about, for a request about several keys.
	Key string
	// Limit is the longest lease that the cluster allows, for `too_long`, and the shortest one,
	// for `bad_request`; otherwise 0.
	Limit time.Duration
	// RetryAfter is how long to wait before asking again, for `quota` and `full`; otherwise 0.
	RetryAfter time.Duration
	// Details has every field that the node sent. Byte strings are of type string, and whole
	// numbers are int64.
	Details map[string]any
}

// New returns an error of the client itself.
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message, with the code in front of it, and then the field and the limit.
func (e *Error) Error() string {
	text := "pawl: " + e.Code
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Field != "" {
		text += " (" + e.Field + ")"
	}
	switch {
	case e.Limit == 0:
		return text
	case e.Code == "too_long":
		return fmt.Sprintf("%s; at most %v", text, e.Limit)
	}
	return fmt.Sprintf("%s; at least %v", text, e.Limit)
}

// Is returns whether the target is an error with the same code, such as pawl.ErrHeld.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// FromWire returns the error that a node sent.
func FromWire(said any) *Error {
	m, ok := said.(map[string]any)
	code, _ := m["code"].(string)
	if !ok || code == "" {
		return New("protocol", "the node sent an error without a code")
	}
	e := &Error{Code: code, Details: m}
	e.Message, _ = m["message"].(string)
	e.Field, _ = m["field"].(string)
	e.Key, _ = m["key"].(string)
	e.Limit = ms(m["limit_ms"])
	e.RetryAfter = ms(m["retry_after_ms"])
	return e
}

func ms(value any) time.Duration {
	n, ok := value.(int64)
	if !ok || n < 0 || n > 1e12 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// Prefixed returns the error with a text in front of its message, and one after it.
func (e *Error) Prefixed(before, after string) *Error {
	next := *e
	next.Message = before + e.Message + after
	return &next
}
