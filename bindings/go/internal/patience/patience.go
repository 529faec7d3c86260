// Package patience decides how long a node may be silent before the client asks whether it is
// still there, and whether the client may leave it for that. It decides alone: the time is handed
// in (docs/decisions/0027-probe-then-switch.md).
package patience

import "time"

const (
	// The shortest time; ordinary pauses of a busy machine are shorter.
	least = 6 * time.Millisecond
	// A node may be silent for this many times as long as its slowest recent answer has taken.
	slowestTimes = 4
	// The slowest answer before there has been any.
	slowestFirst = 25 * time.Millisecond
	// With each answer the slowest one fades by this fraction.
	slowestFades = 32
	// A longer pause of this process, such as a suspend, says nothing about the next one.
	lateMost     = 100 * time.Millisecond
	doublingsMax = 20
	// Answers halve the time again, but no more often than this.
	halvedAfter = time.Second
	// The budget for requests that are sent again, in tenths of a request.
	budgetFull, budgetOfRequest, budgetLeast = 100, 10, 50
)

// Patience is what a client has learned about the speed of answers.
type Patience struct {
	// The slowest recent answer: a maximum that fades with each answer.
	slowest   time.Duration
	answered  bool
	doublings int
	doubledAt time.Time
	budget    int
}

// New returns the patience of a client that has had no answer yet.
func New() *Patience {
	return &Patience{slowest: slowestFirst, budget: budgetFull}
}

// Answered notes an answer to a request that does not wait.
func (p *Patience) Answered(took time.Duration, now time.Time) {
	faded := p.slowest - p.slowest/slowestFades
	if p.answered {
		took = max(took, faded)
	}
	p.slowest, p.answered = took, true
	p.budget = min(p.budget+1, budgetFull)
	if p.doublings > 0 && now.Sub(p.doubledAt) >= halvedAfter {
		p.doublings--
		p.doubledAt = now
	}
}

// Late notes that this process stood still. It is likely to do so again, and must not take that
// for the silence of a node.
func (p *Patience) Late(late time.Duration) {
	p.slowest = max(p.slowest, min(late, lateMost))
}

// Switched notes that a silent node was left, and how many requests are sent again.
func (p *Patience) Switched(repeated int, now time.Time) {
	p.budget = max(0, p.budget-repeated*budgetOfRequest)
	p.TooShort(now)
}

// TooShort notes that the node which was left has answered nevertheless, soon after that.
func (p *Patience) TooShort(now time.Time) {
	p.doublings = min(p.doublings+1, doublingsMax)
	p.doubledAt = now
}

// Time returns how long a node may be silent before it is pinged, and then how long it may take to
// answer the ping.
func (p *Patience) Time(longest time.Duration) time.Duration {
	return min(longest, max(least, slowestTimes*p.slowest)<<p.doublings)
}

// Allows returns whether enough of the budget is left to leave a node before the whole silence is
// over.
func (p *Patience) Allows() bool { return p.budget >= budgetLeast }
