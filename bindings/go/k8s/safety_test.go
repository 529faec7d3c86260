package pawlk8s

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.org/pawl/k8s/internal/elections"
	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

var runs = flag.Int("pawlk8s.runs", 20, "elections for each line of the tables")

func init() { klog.SetLogger(logr.Discard()) }

const second = time.Second

// An elector with these times is what most controllers have, and what Kyverno has; then both with
// ReleaseOnCancel.
var usual = []elections.Times{
	{Lease: 15 * second, Renew: 10 * second, Retry: 2 * second},
	{Lease: 12 * second, Renew: 10 * second, Retry: 2 * second},
	{Lease: 15 * second, Renew: 10 * second, Retry: 2 * second, Releases: true},
}

func configOf(t elections.Times) Config {
	return Config{LeaseDuration: t.Lease, RenewDeadline: t.Renew, RetryPeriod: t.Retry}
}

// member makes the lock of a candidate in the cell.
func member(c *cell, name string, p *elections.Path, config Config) (*Lock, error) {
	r := &remote{cell: c, path: p, owner: name}
	l, err := newLock(r, "k8s/default/controller", name, config)
	if err == nil {
		r.lease = l.lease
	}
	return l, err
}

// play runs elections in which the leader's last answer is late, and its network fails then.
// `alter` may take rules out of each lock.
func play(t *testing.T, times elections.Times, late time.Duration,
	alter func(*Lock)) elections.Tally {
	t.Helper()
	var sum elections.Tally
	for range *runs {
		synctest.Test(t, func(t *testing.T) {
			c := &cell{}
			got, err := elections.CutOff(times, late, func(name string, p *elections.Path) (
				resourcelock.Interface, error) {
				l, err := member(c, name, p, configOf(times))
				if err == nil && alter != nil {
					alter(l)
					l.service.(*remote).lease = l.lease
				}
				return l, err
			})
			if err != nil {
				t.Fatal(err)
			}
			sum.Add(got)
			settle()
		})
	}
	return sum
}

// settle waits until the latest leases are over: nothing runs after that.
func settle() { time.Sleep(time.Minute) }

var delays = []time.Duration{0, 1 * second, 2 * second, 3 * second, 3500 * time.Millisecond,
	4 * second, 4900 * time.Millisecond, 6 * second, 9 * second}

// The real elector with a Lock never has two leaders, however late answers are.
func TestNeverTwoLeadersHoweverLateAnswersAre(t *testing.T) {
	fmt.Println(elections.Head)
	for _, times := range usual {
		for _, late := range delays {
			sum := play(t, times, late, nil)
			fmt.Println(sum.Line(times, late))
			if sum.Two > 0 {
				t.Errorf("%v, %v late: two leaders", times, late)
			}
		}
	}
}

// It is the rule about what must be left that makes it safe, not the length of the lease: with a
// lease that is no longer than that of a Lease object there are never two leaders either.
func TestNeverTwoLeadersWithAShortLease(t *testing.T) {
	for _, late := range delays {
		sum := play(t, usual[0], late, func(l *Lock) { l.lease = 15 * second })
		if sum.Two > 0 {
			t.Errorf("%v late: two leaders in %d of %d elections", late, sum.Two, sum.Elections)
		}
	}
}

// Without the rule there are two leaders: the tests above can fail.
func TestTwoLeadersWithoutTheRule(t *testing.T) {
	for late, two := range map[time.Duration]bool{
		2 * second: false, 3500 * time.Millisecond: true, 4900 * time.Millisecond: true} {
		sum := play(t, usual[0], late, func(l *Lock) { l.lease, l.needed = 15*second, 0 })
		if (sum.Two > 0) != two {
			t.Errorf("%v late: two leaders in %d of %d elections", late, sum.Two, sum.Elections)
		}
	}
}

// Answers are late at random, and candidates are cut off at random and come back. Each candidate
// starts its elector again when it has stopped.
func TestNeverTwoLeadersInARandomNetwork(t *testing.T) {
	terms := 0
	for range *runs {
		synctest.Test(t, func(t *testing.T) {
			times := usual[rand.N(len(usual))]
			c, all := &cell{}, []elections.Term{}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			var running sync.WaitGroup
			var mu sync.Mutex
			for i := range 3 {
				p := elections.NewPath()
				l, err := member(c, fmt.Sprint("candidate-", i), p, configOf(times))
				if err != nil {
					t.Fatal(err)
				}
				running.Go(func() { disturb(ctx, p) })
				running.Go(func() {
					got, err := runAgain(ctx, l, times)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, got...)
				})
			}
			running.Wait()
			settle()
			terms += len(all)
			if a, b, both, two := elections.Overlap(all); two {
				t.Errorf("%v: two leaders for %v: %v and %v", times, both, a, b)
			}
		})
	}
	if terms < 4*(*runs) {
		t.Errorf("only %d terms in %d elections: nothing was tried", terms, *runs)
	}
}

// disturb makes answers late and cuts the network off, and heals it, until the context ends.
func disturb(ctx context.Context, p *elections.Path) {
	for {
		switch rand.N(3) {
		case 0:
			p.Slow(0)
		case 1:
			p.Slow(rand.N(5 * second))
		case 2:
			p.Fail(rand.N(5 * second))
		}
		if !pause(ctx, rand.N(30*second)) {
			return
		}
		p.Cut(false)
		if !pause(ctx, rand.N(20*second)) {
			return
		}
	}
}

// runAgain runs an elector as often as it stops, and returns its terms.
func runAgain(ctx context.Context, l *Lock, times elections.Times) ([]elections.Term, error) {
	var terms []elections.Term
	for ctx.Err() == nil {
		c, err := elections.NewCandidate(l, times)
		if err != nil {
			return terms, err
		}
		if rand.N(2) == 0 {
			c.Run(ctx)
		} else {
			c.Run(l.Guard(ctx))
		}
		terms = append(terms, c.Terms()...)
		pause(ctx, second)
	}
	return terms, nil
}
