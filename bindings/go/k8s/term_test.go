package pawlk8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/pawl/k8s/internal/elections"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

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
