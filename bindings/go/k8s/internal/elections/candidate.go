package elections

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times are those of an elector, as controllers set them.
type Times struct {
	Lease, Renew, Retry time.Duration
	Releases            bool // ReleaseOnCancel
}

// String has the times as people write them: 15/10/2.
func (t Times) String() string {
	text := fmt.Sprintf("%g/%g/%g", t.Lease.Seconds(), t.Renew.Seconds(), t.Retry.Seconds())
	if t.Releases {
		text += " releases"
	}
	return text
}

// RequestTimeout is what client-go (NewFromKubeconfig) and controller-runtime set for each request.
func (t Times) RequestTimeout() time.Duration { return max(time.Second, t.Renew/2) }

// A Term is the time for which a candidate believed that it leads. To is zero while it does.
type Term struct {
	Who      string
	From, To time.Time
}

// A Candidate runs a real elector, and keeps the terms in which it believed that it leads.
type Candidate struct {
	name    string
	elector *leaderelection.LeaderElector
	leads   chan struct{} // closed when its first term begins

	mu    sync.Mutex
	terms []Term
}

// NewCandidate makes a candidate over a lock.
func NewCandidate(lock resourcelock.Interface, t Times) (*Candidate, error) {
	c := &Candidate{name: lock.Identity(), leads: make(chan struct{})}
	var err error
	c.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   t.Lease,
		RenewDeadline:   t.Renew,
		RetryPeriod:     t.Retry,
		ReleaseOnCancel: t.Releases,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { c.Started() },
			OnStoppedLeading: c.Stopped,
		},
	})
	return c, err
}

// Run runs the elector once, until it has lost its leadership or the context ends.
func (c *Candidate) Run(ctx context.Context) { c.elector.Run(ctx) }

// Started begins a term.
func (c *Candidate) Started() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terms = append(c.terms, Term{Who: c.name, From: time.Now()})
	if len(c.terms) == 1 {
		close(c.leads)
	}
}

// Stopped ends the present term, if there is one.
func (c *Candidate) Stopped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.terms); n > 0 && c.terms[n-1].To.IsZero() {
		c.terms[n-1].To = time.Now()
	}
}

// Leads is closed when the first term begins.
func (c *Candidate) Leads() <-chan struct{} { return c.leads }

// Leading says whether the candidate believes now that it leads.
func (c *Candidate) Leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.terms)
	return n > 0 && c.terms[n-1].To.IsZero()
}

// Terms returns all terms so far.
func (c *Candidate) Terms() []Term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.terms)
}

// Overlap returns two terms that were at the same time, and for how long; ok is false if there are
// none. A term without an end lasts until now.
func Overlap(terms []Term) (a, b Term, both time.Duration, ok bool) {
	terms = slices.Clone(terms)
	now := time.Now()
	for i := range terms {
		if terms[i].To.IsZero() {
			terms[i].To = now
		}
	}
	slices.SortFunc(terms, func(a, b Term) int { return a.From.Compare(b.From) })
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			if end := a.To; end.After(b.From) {
				if b.To.Before(end) {
					end = b.To
				}
				return a, b, end.Sub(b.From), true
			}
		}
	}
	return Term{}, Term{}, 0, false
}
