// Package silence finds out whether a silent node is gone. A node answers pings at once, even while
// requests wait in its queues or its quorum is slow. The package keeps no time of its own: its
// owner hands in the present moment, and rings when it is asked to.
package silence

import (
	"time"

	"example.org/pawl/internal/patience"
)

// An alarm that rings later than this, and later than a quarter of its time, says that this process
// stood still, and not the node.
const lateLeast = 2500 * time.Microsecond

// Rules is what the owner of a connection says about it.
type Rules interface {
	// Whole says how long the node may be silent before the connection is given up.
	Whole(owed bool) time.Duration
	// MayLeave says whether the client may leave the node before that.
	MayLeave() bool
	// Listening says whether the node sends events without being asked.
	Listening() bool
}

// Step is what has to be done when the alarm has rung.
type Step int

// The steps.
const (
	Nothing Step = iota
	// Ping: send a ping.
	Ping
	// PingDue: send a ping, and an answer is due: make a spare connection.
	PingDue
	// Overdue: the ping was not answered in time; leave the node.
	Overdue
	// Lost: the node was silent for too long.
	Lost
)

// Watch watches one connection.
type Watch struct {
	rules    Rules
	patience *patience.Patience
	// How many requests are under way, and how many of them may wait at the node for others.
	Flights, Waits int
	// Owed: the node owes an answer, to a request, to a ping, or to a request that has given up.
	Owed bool
	// A ping was sent, and nothing has arrived since.
	Pinged bool
	// PongDue: no answer to any ping has arrived since the last ping was sent.
	PongDue bool
	// IsOverdue: the last ping was not answered in time.
	IsOverdue bool
	// Since when the node is silent. quietSince is later if this process stood still.
	silentSince, quietSince, pingAt time.Time
	// The node has read everything that was sent before readUntil, because it has answered a ping
	// that was sent then.
	waitSentAt, readUntil time.Time
	// When the alarm rings, and when it was set; zero: it is not set.
	at, setAt time.Time
}

// New watches a connection that was just made.
func New(rules Rules, p *patience.Patience, now time.Time) *Watch {
	return &Watch{rules: rules, patience: p, silentSince: now, quietSince: now, pingAt: now,
		readUntil: now.Add(-1)}
}

// Sent notes a request.
func (w *Watch) Sent(waits bool, now time.Time) {
	w.Flights++
	if waits {
		w.Waits++
		w.waitSentAt = now
	}
	if !w.Owed {
		w.Owed = true
		w.silentSince, w.quietSince = now, now
	}
}

// Ended notes that a request was answered, or has given up.
func (w *Watch) Ended(waits bool) {
	w.Flights--
	if waits {
		w.Waits--
	}
}

// PingSent notes that a ping was sent.
func (w *Watch) PingSent(now time.Time) {
	w.pingAt = now
	w.Owed, w.Pinged, w.PongDue = true, true, true
}

// Heard notes that bytes have arrived. Call Settle when they have been handled.
func (w *Watch) Heard(now time.Time) {
	w.silentSince, w.quietSince = now, now
	w.Pinged, w.IsOverdue = false, false
}

// Ponged notes the answer to a ping.
func (w *Watch) Ponged() {
	w.PongDue = false
	w.readUntil = w.pingAt
}

// Settle finds out what the node still owes.
func (w *Watch) Settle() {
	unread := w.Waits > 0 && w.waitSentAt.After(w.readUntil)
	w.Owed = w.Flights > w.Waits || unread || w.Pinged
}

// Alarm returns when Ring is to be called, and whether it is to be called at all. An alarm that
// rings early does no harm, so one that is set is moved only to an earlier time.
func (w *Watch) Alarm(now time.Time) (time.Time, bool) {
	if !w.Owed && w.Flights == 0 && !w.rules.Listening() {
		w.at = time.Time{}
		return w.at, false
	}
	at := w.next()
	if w.at.IsZero() || at.Before(w.at) {
		w.at, w.setAt = at, now
	}
	return w.at, true
}

// Ring handles the alarm. Ask for the next Alarm afterwards.
func (w *Watch) Ring(now time.Time) Step {
	if w.at.IsZero() || now.Before(w.at) {
		return Nothing
	}
	late, span := now.Sub(w.at), w.at.Sub(w.setAt)
	w.at = time.Time{}
	switch {
	case late > lateLeast && late > span/4:
		w.patience.Late(late)
		w.quietSince = now
		if w.Pinged {
			w.pingAt = now
		}
	case w.Pinged:
		return w.unanswered(now)
	case !now.Before(w.quietSince.Add(w.quietLimit())):
		if w.Flights > w.Waits {
			return PingDue
		}
		return Ping
	}
	return Nothing
}

func (w *Watch) unanswered(now time.Time) Step {
	switch {
	case !now.Before(w.lostAt()):
		return Lost
	case w.rules.MayLeave() && !w.IsOverdue && !now.Before(w.pingAt.Add(w.pingLimit())):
		w.IsOverdue = true
		return Overdue
	}
	return Nothing
}

func (w *Watch) whole() time.Duration { return w.rules.Whole(w.Owed || w.Flights > 0) }

func (w *Watch) pingLimit() time.Duration { return w.patience.Time(w.whole() / 2) }

// quietLimit returns how long the node may be silent before it is pinged. A request that waits is
// treated like any other until the node has shown, by its answer to a ping, that it has read it.
func (w *Watch) quietLimit() time.Duration {
	switch {
	case w.rules.MayLeave() && w.Owed:
		return w.pingLimit()
	case w.rules.MayLeave() && w.Flights > 0:
		return w.whole() / 8
	}
	return w.whole() / 2
}

func (w *Watch) lostAt() time.Time {
	whole := w.whole()
	at := w.silentSince.Add(whole)
	if other := w.pingAt.Add(whole / 2); other.After(at) {
		return other
	}
	return at
}

func (w *Watch) next() time.Time {
	if !w.Pinged {
		return w.quietSince.Add(w.quietLimit())
	}
	lost := w.lostAt()
	if w.rules.MayLeave() && !w.IsOverdue {
		if at := w.pingAt.Add(w.pingLimit()); at.Before(lost) {
			return at
		}
	}
	return lost
}
