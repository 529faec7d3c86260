//go:build !linux

package clock

import "time"

var began = time.Now()

// Outside Linux there is Go's monotonic clock, and the wall clock, which goes on while the machine
// is suspended. The one that says less counts, so a wall clock that is set can only shorten trust
// if it is set forward. If it is set back, the monotonic clock still counts.
func now() Instant {
	t := time.Now()
	return Instant{Boot: t.Round(0).UnixNano(), Mono: int64(t.Sub(began))}
}
