package pawlk8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.org/pawl/k8s/internal/elections"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestNewRefusesWhatCannotBeSafe(t *testing.T) {
	for _, one := range []struct {
		name, identity string
		config         Config
		says           string
	}{
		{"", "a", Config{}, "name"},
		{strings.Repeat("n", 513), "a", Config{}, "name"},
		{"n", strings.Repeat("i", 257), Config{}, "identity"},
		{"n", "a", Config{RetryPeriod: -1}, "RetryPeriod"},
		{"n", "a", Config{RenewDeadline: 2 * second}, "RenewDeadline"},
		{"n", "a", Config{LeaseDuration: 10 * second}, "LeaseDuration"},
		{"n", "a", Config{LeaseDuration: second / 2, RenewDeadline: second / 3,
			RetryPeriod: second / 10}, "LeaseDuration"},
		{"n", "a", Config{Margin: -1}, "Margin"},
	} {
		_, err := newLock(nil, one.name, one.identity, one.config)
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%.10q %.10q %+v: %v", one.name, one.identity, one.config, err)
		}
	}
}

func TestTheLeaseIsLongEnough(t *testing.T) {
	for _, one := range []struct {
		config Config
		lease  time.Duration
	}{
		{Config{}, 17500 * time.Millisecond},
		{Config{LeaseDuration: 60 * second}, 60 * second},
		{Config{LeaseDuration: 3 * second, RenewDeadline: 2 * second, RetryPeriod: second / 2},
			3600 * time.Millisecond},
	} {
		l, err := newLock(nil, "n", "", one.config)
		if err != nil || l.Lease() != one.lease {
			t.Errorf("%+v: %v, %v", one.config, l.Lease(), err)
		}
	}
}

func TestCandidatesWithoutAnIdentityHaveDifferentOnes(t *testing.T) {
	a, _ := newLock(nil, "n", "", Config{})
	b, _ := newLock(nil, "n", "", Config{})
	if a.Identity() == "" || a.Identity() == b.Identity() {
		t.Errorf("%q and %q", a.Identity(), b.Identity())
	}
}

// A crew is candidates of one cell, each with a path of its own.
type crew struct {
	t     *testing.T
	cell  *cell
	paths map[string]*elections.Path
	locks map[string]*Lock
}

func crewOf(t *testing.T, names ...string) *crew {
	c := &crew{t, &cell{}, map[string]*elections.Path{}, map[string]*Lock{}}
	for _, name := range names {
		c.paths[name] = elections.NewPath()
		l, err := member(c.cell, name, c.paths[name], Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.locks[name] = l
	}
	return c
}

// record is what the elector of a candidate writes.
func record(l *Lock) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: l.identity, LeaseDurationSeconds: 15}
}

// lead makes a candidate the leader.
func (c *crew) lead(name string) *Lock {
	c.t.Helper()
	l := c.locks[name]
	ctx := context.Background()
	got, _, err := l.Get(ctx)
	next := record(l)
	if apierrors.IsNotFound(err) {
		err = l.Create(ctx, next)
	} else if err == nil {
		next.LeaderTransitions = got.LeaderTransitions + 1
		err = l.Update(ctx, next)
	}
	if err != nil {
		c.t.Fatal(name, err)
	}
	return l
}

// renewing returns a context as the elector has when it renews.
func renewing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 10*second)
}

// run starts the elector of a candidate.
func (c *crew) run(ctx context.Context, name string, times elections.Times) (
	candidate *elections.Candidate, stopped <-chan struct{}) {
	c.t.Helper()
	candidate, err := elections.NewCandidate(c.locks[name], times)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		candidate.Run(ctx)
	}()
	return candidate, done
}

func bubble(t *testing.T, test func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		test(t)
		settle()
	})
}

func TestNobodyLeadsIsNotFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		if _, _, err := c.locks["a"].Get(context.Background()); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	})
}

func TestARecordOfAnotherLeaderDiffersEachTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		c.lead("a")
		b := c.locks["b"]
		b.config.QueueWait = -1
		one, raw, err := b.Get(context.Background())
		if err != nil || one.HolderIdentity != "a" || one.LeaseDurationSeconds < 15 {
			t.Fatal(one, err)
		}
		_, again, err := b.Get(context.Background())
		if err != nil || bytes.Equal(raw, again) {
			t.Fatal(err, "the same bytes twice")
		}
	})
}

func TestTheElectorLearnsAtOnceWhoLeads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		c.lead("a")
		from := time.Now()
		got, _, err := c.locks["b"].Get(context.Background())
		if err != nil || got.HolderIdentity != "a" || time.Since(from) > second {
			t.Fatal(got, err, time.Since(from))
		}
	})
}

func TestACandidateIsConflictedWhileAnotherOneLeads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		c.lead("a")
		b := c.locks["b"]
		if err := b.Create(context.Background(), record(b)); !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		if _, ok := b.Token(); ok {
			t.Fatal("a token without a term")
		}
	})
}

func TestTheNextOneLeadsMillisecondsAfterARelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b", "c")
		times := usual[2]
		ctxA, endA := context.WithCancel(context.Background())
		rest, end := context.WithCancel(context.Background())
		a, stoppedA := c.run(ctxA, "a", times)
		<-a.Leads()
		b, stoppedB := c.run(rest, "b", times)
		time.Sleep(10 * second) // b stands in the queue, and c comes after it
		third, stoppedC := c.run(rest, "c", times)
		for c.cell.waiting() < 2 {
			time.Sleep(second / 10)
		}
		from := time.Now()
		endA()
		<-b.Leads()
		if took := time.Since(from); took > 50*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if third.Leading() {
			t.Error("the last one in the queue leads")
		}
		end()
		<-stoppedA
		<-stoppedB
		<-stoppedC
	})
}

func TestTransitionsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b", "c")
		b, third := c.locks["b"], c.locks["c"]
		for n, name := range []string{"a", "b", "a", "c"} {
			l := c.lead(name)
			var stored resourcelock.LeaderElectionRecord
			if err := json.Unmarshal(c.cell.value, &stored); err != nil {
				t.Fatal(err)
			}
			if stored.LeaderTransitions != n || stored.HolderIdentity != name {
				t.Errorf("leader %d: %+v", n, stored)
			}
			for _, other := range []*Lock{c.locks["a"], b, third} { // they look who leads
				if other != l {
					if _, _, err := other.Get(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := l.Update(context.Background(), resourcelock.LeaderElectionRecord{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAGrantIsGivenBackIfTheElectorDoesNotTakeIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		if _, _, err := c.locks["a"].Get(context.Background()); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if c.cell.holder() != "a" {
			t.Fatal("it was not granted")
		}
		time.Sleep(1100 * time.Millisecond)
		if c.cell.holder() != "" {
			t.Fatal("it was kept")
		}
		c.lead("b")
	})
}

func TestAnElectorThatHasEndedDoesNotKeepTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.lead("a")
		time.Sleep(a.Lease() + second)
		if c.cell.holder() != "" {
			t.Fatal("it was kept")
		}
	})
}

func TestALostLockEndsTheElectorAtOnceUnderGuard(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			c := crewOf(t, "a", "b")
			ctx := context.Background()
			if guarded {
				ctx = c.locks["a"].Guard(ctx)
			}
			a, stopped := c.run(ctx, "a", usual[2])
			<-a.Leads()
			b := c.locks["b"]
			if _, _, err := b.Get(context.Background()); err != nil {
				t.Fatal(err)
			}
			c.cell.breakLock()
			from := time.Now()
			if err := b.Create(context.Background(), record(b)); err != nil {
				t.Fatal(err)
			}
			go func() { // b renews
				for range 20 {
					ctx, cancel := renewing()
					_ = b.Update(ctx, record(b))
					cancel()
					time.Sleep(second)
				}
			}()
			<-stopped
			// The elector learns of it at its next renewal. By itself it goes on for RenewDeadline.
			took, most := time.Since(from), 13*second
			if guarded {
				most = 3 * second
			}
			if took > most || !guarded && took < 9*second {
				t.Errorf("guarded %v: the elector stopped after %v", guarded, took)
			}
			if guarded && !errors.Is(context.Cause(ctx), ErrLost) {
				t.Error(context.Cause(ctx))
			}
			if c.cell.holder() != "b" {
				t.Errorf("%q leads", c.cell.holder())
			}
			time.Sleep(20 * second)
		})
	}
}

// An elector with ReleaseOnCancel asks who leads, and releases, before it tells that it stops.
// Neither may take time while it is cut off, and nothing is released while the work may go on.
func TestALeaderThatIsCutOffStopsInTimeAndReleasesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a, stopped := c.run(context.Background(), "a", usual[2])
		<-a.Leads()
		time.Sleep(5 * second)
		c.paths["a"].Fail(0)
		<-c.paths["a"].Renewed()
		from := time.Now()
		<-stopped
		if took := time.Since(from); took > 12100*time.Millisecond {
			t.Errorf("it stopped after %v", took)
		}
		c.paths["a"].Cut(false)
		time.Sleep(4 * second)
		if c.cell.holder() != "a" {
			t.Error("it was released before its lease was over")
		}
	})
}

func TestAnAnswerThatCameTooLateIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.lead("a")
		a.lease = 15 * second
		a.service.(*remote).lease = a.lease
		c.paths["a"].Fail(3 * second)
		ctx, cancel := renewing()
		defer cancel()
		err := a.Update(ctx, record(a))
		if err == nil || !strings.Contains(err.Error(), "too late") {
			t.Fatal(err)
		}
		c.paths["a"].Cut(false)
		if err := a.Update(ctx, record(a)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOtherTimesThanTheElectorsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.locks["a"]
		other := record(a)
		other.LeaseDurationSeconds = 30
		err := a.Create(context.Background(), other)
		if err == nil || !strings.Contains(err.Error(), "LeaseDuration of 30 s") {
			t.Fatal(err)
		}
		c.lead("a")
		ctx, cancel := context.WithTimeout(context.Background(), 11*second)
		defer cancel()
		err = a.Update(ctx, record(a))
		if err == nil || !strings.Contains(err.Error(), "RenewDeadline") {
			t.Fatal(err)
		}
	})
}

func TestAnotherProcessWithTheSameIdentityIsNotTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		c.lead("a")
		twin, err := member(c.cell, "a", elections.NewPath(), Config{QueueWait: -1})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := twin.Get(context.Background())
		if err != nil || got.HolderIdentity == "a" {
			t.Fatal(got, err)
		}
		if err := twin.Update(context.Background(), record(twin)); !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	})
}

func TestALeaderThatWritesNoRecordIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.locks["a"]
		a.config.QueueWait = -1
		for _, owner := range []string{"host:7", ""} {
			c.cell.mu.Lock()
			c.cell.grant(owner, []byte("at host"), time.Minute)
			c.cell.mu.Unlock()
			got, _, err := a.Get(context.Background())
			if err != nil || got.HolderIdentity == "" || !strings.HasPrefix(got.HolderIdentity, owner) {
				t.Fatal(got, err)
			}
		}
	})
}

func TestAFailureOfPawlIsToldAsItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		c.cell.unsettled = fmt.Errorf("no quorum")
		_, _, err := c.locks["a"].Get(context.Background())
		if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "no quorum") {
			t.Fatal(err)
		}
	})
}

func TestTheTokenGrowsFromLeaderToLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		var tokens []uint64
		for _, name := range []string{"a", "b", "a"} {
			l := c.lead(name)
			token, ok := l.Token()
			if !ok {
				t.Fatal("no token")
			}
			tokens = append(tokens, token)
			if err := l.Update(context.Background(), resourcelock.LeaderElectionRecord{}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != 3 {
			t.Error(tokens)
		}
	})
}

func TestACandidateThatWaitsLearnsOfANewLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		c.lead("a")
		b := c.locks["b"]
		if _, _, err := b.Get(context.Background()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(5 * second) // b waits in the queue, and another one is served first
			c.cell.mu.Lock()
			defer c.cell.mu.Unlock()
			c.cell.grant("c", nil, time.Minute)
		}()
		from := time.Now()
		got, _, err := b.Get(context.Background())
		if err != nil || got.HolderIdentity != "c" || time.Since(from) > 8*second {
			t.Fatal(got, err, time.Since(from))
		}
	})
}

func TestASlowNetworkDoesNotCostTheGrantThatTheElectorComesFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.locks["a"]
		if _, _, err := a.Get(context.Background()); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		c.paths["a"].Late(1500 * time.Millisecond)
		if err := a.Create(context.Background(), record(a)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestALeaderWhoseAnswersAreTooLateReleasesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := crewOf(t, "a")
		a := c.lead("a")
		a.lease = 15 * second
		a.service.(*remote).lease = a.lease
		c.paths["a"].Late(3 * second)
		ctx, cancel := renewing()
		defer cancel()
		if err := a.Update(ctx, record(a)); err == nil {
			t.Fatal("it leads")
		}
		if err := a.Update(ctx, resourcelock.LeaderElectionRecord{}); err == nil {
			t.Fatal("it was released")
		}
		if c.cell.holder() != "a" {
			t.Fatal("nobody holds it")
		}
	})
}
