// Package clock reads the two clocks by which a lock is trusted. One counts the time in which the
// machine is suspended, the other one is not slewed. A deadline is over as soon as either says so.
package clock

import "time"

// Instant is one moment by both clocks, in nanoseconds since an origin of each clock's own.
type Instant struct {
	Boot, Mono int64
}

// Clock gives the present moment.
type Clock interface {
	Now() Instant
}

// Plus returns the moment that is d later by both clocks.
func (i Instant) Plus(d time.Duration) Instant {
	return Instant{Boot: i.Boot + int64(d), Mono: i.Mono + int64(d)}
}

// Left returns how long it is from now until the deadline by the clock that says less; 0 once
// either clock has passed it.
func Left(deadline, now Instant) time.Duration {
	left := min(deadline.Boot-now.Boot, deadline.Mono-now.Mono)
	return time.Duration(max(left, 0))
}

// System is the clock of this machine.
type System struct{}

// Now reads both clocks.
func (System) Now() Instant { return now() }
