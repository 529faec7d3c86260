package elections

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// An Outcome is what one election showed: for how long two candidates believed at once that they
// lead, and how long after the last renewal of the first leader the second one began.
type Outcome struct{ Both, Takeover time.Duration }

// CutOff runs an election of three candidates. Once the first leader has led for a while, its last
// renewal is answered late, and its network fails. The others see nothing of that. `lock` makes the
// lock of a candidate, which goes through the given path.
func CutOff(t Times, late time.Duration,
	lock func(name string, p *Path) (resourcelock.Interface, error)) (Outcome, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	start := func(name string, p *Path) (*Candidate, error) {
		l, err := lock(name, p)
		if err != nil {
			return nil, err
		}
		c, err := NewCandidate(l, t)
		if err == nil {
			running.Go(func() { c.Run(ctx) })
		}
		return c, err
	}
	fails := NewPath()
	first, err := start("first", fails)
	if err != nil {
		return Outcome{}, err
	}
	<-first.Leads()
	var others [2]*Candidate
	for i := range others {
		time.Sleep(rand.N(t.Retry))
		if others[i], err = start(fmt.Sprint("other-", i), NewPath()); err != nil {
			return Outcome{}, err
		}
	}
	time.Sleep(2*t.Retry + rand.N(4*t.Retry))
	fails.Fail(late)
	<-fails.Renewed()
	committed := time.Now()
	select {
	case <-others[0].Leads():
	case <-others[1].Leads():
	}
	takeover := time.Since(committed)
	time.Sleep(t.Lease + t.Renew) // until the first one has surely stopped
	terms := append(others[0].Terms(), others[1].Terms()...)
	_, _, both, _ := Overlap(append(terms, first.Terms()...))
	return Outcome{Both: both, Takeover: takeover}, nil
}

// A Tally adds up elections.
type Tally struct {
	Elections, Two   int
	both, takeover   time.Duration // the sums
	longest, slowest time.Duration
}

// Head is the line above the lines of a table.
const Head = "lease/renew/retry   late    two leaders           mean     longest   " +
	"taken over: mean, longest"

// Add counts one election.
func (s *Tally) Add(o Outcome) {
	s.Elections++
	if o.Both > 0 {
		s.Two++
	}
	s.both += o.Both
	s.longest = max(s.longest, o.Both)
	s.takeover += o.Takeover
	s.slowest = max(s.slowest, o.Takeover)
}

// Line returns the line of the table for elections with these times.
func (s *Tally) Line(t Times, late time.Duration) string {
	mean := time.Duration(0)
	if s.Two > 0 {
		mean = s.both / time.Duration(s.Two)
	}
	return fmt.Sprintf("%-18s  %.1f s  %4d of %d (%5.1f %%)  %5.2f s  %5.2f s   %5.2f s  %5.2f s",
		t, late.Seconds(), s.Two, s.Elections, 100*float64(s.Two)/float64(s.Elections),
		mean.Seconds(), s.longest.Seconds(),
		(s.takeover / time.Duration(s.Elections)).Seconds(), s.slowest.Seconds())
}
