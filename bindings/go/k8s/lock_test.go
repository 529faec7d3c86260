package pawlk8s

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

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
