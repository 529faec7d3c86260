package pawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func shortens(a asked) bool {
	return a.method == "extend" && a.locks()[0]["shorten"] == true
}

// hangUp ends the last connection, and lets nobody connect with its node any more.
func (f *fakeNodes) hangUp(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead[address] = true
	f.conns[len(f.conns)-1].Close()
}

func TestAHolderTrustsTheShorterLeaseBeforeAnyNodeIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second))
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if !shortens(a) {
				return f.serve(a)
			}
			if valid := l.Valid(); valid > 2*time.Second || valid < 1500*time.Millisecond {
				t.Errorf("the node is asked while the lock is trusted for %v", valid)
			}
			return nil, map[string]any{"code": "no_quorum", "message": "too few"}
		})
		if err := l.Shorten(t.Context(), 2*time.Second); !errors.Is(err, ErrNoQuorum) {
			t.Errorf("%v", err)
		}
		first := f.requests("extend")[0]
		if one := first.locks()[0]; one["order"] != int64(1) || one["lease_ms"] != int64(2000) ||
			one["bond"] != nil || first.params["deadline_kept"] != true {
			t.Errorf("%+v", first.params)
		}
		// The lease may have become shorter, so it is renewed as such.
		time.Sleep(10 * time.Second)
		for _, one := range f.requests("extend")[1:] {
			if said := one.locks()[0]; said["order"] != int64(1) || said["lease_ms"] != int64(2000) || said["shorten"] != nil {
				t.Errorf("renewed with %+v", said)
			}
		}
		if l.Err() != nil || l.Valid() > 2*time.Second {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
	})
}

func TestNoAnswerToAnEarlierRequestUndoesAShortening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithSilence(time.Minute))
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second))
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if shortens(a) {
				return nil, nil
			}
			if a.method == "extend" {
				time.Sleep(100 * time.Millisecond)
			}
			return f.serve(a)
		})
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context(), 0) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := l.Shorten(ctx, 3*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := <-extended; err != nil {
			t.Error(err)
		}
		if valid := l.Valid(); valid > 3*time.Second {
			t.Fatalf("an extension that was asked for before makes it %v", valid)
		}
		<-l.Done()
		if left := l.Valid(); left > time.Second {
			t.Errorf("%v were left when the loss was told", left)
		}
	})
}

func TestEachShorteningHasAGreaterOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second), Warn(10*time.Second))
		for _, lease := range []time.Duration{20 * time.Second, 5 * time.Second} {
			if err := l.Shorten(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
		}
		if valid := l.Valid(); valid != 4950*time.Millisecond {
			t.Errorf("valid for %v", valid)
		}
		if err := l.Extend(t.Context(), 40*time.Second); err != nil {
			t.Fatal(err)
		}
		if valid := l.Valid(); valid != 39600*time.Millisecond {
			t.Errorf("valid for %v after an extension", valid)
		}
		for i, order := range []int64{1, 2, 2} {
			if said := f.requests("extend")[i].locks()[0]; said["order"] != order {
				t.Errorf("request %d: %+v", i, said)
			}
		}
		if err := l.Shorten(t.Context(), time.Minute); !errors.Is(err, ErrBadArgument) {
			t.Errorf("a longer lease: %v", err)
		}
		if err := l.Shorten(t.Context(), 0); !errors.Is(err, ErrBadArgument) {
			t.Errorf("no lease: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Shorten(t.Context(), time.Second); !errors.Is(err, ErrLost) {
			t.Errorf("after the release: %v", err)
		}
	})
}

func TestALockThatNoNodeCanShortenStaysHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second))
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if a.method == "extend" && a.locks()[0]["order"] != nil {
				return nil, map[string]any{"code": "bad_request", "field": "order", "message": "unknown parameter"}
			}
			return f.serve(a)
		})
		if err := l.Shorten(t.Context(), 3*time.Second); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%v", err)
		}
		time.Sleep(10 * time.Second)
		if l.Err() != nil || l.Valid() < time.Second {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
	})
}

func TestAShortenedLockIsBoundUnderGreaterBonds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second), ReleaseOnDisconnect())
		if err := l.Shorten(t.Context(), 6*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		f.hangUp("10.0.0.1:1")
		time.Sleep(3 * time.Second)
		var bonds []int64
		for _, one := range f.requests("extend") {
			said := one.locks()[0]
			bond, _ := said["bond"].(int64)
			if said["order"] != nil || one.params["deadline_kept"] != true {
				t.Errorf("%+v", one.params)
			}
			if one.node == "10.0.0.2:1" != (bond == 3) {
				t.Errorf("bond %d at %s", bond, one.node)
			}
			bonds = append(bonds, bond)
		}
		if len(bonds) < 3 || bonds[0] != 2 || bonds[1] != 2 || bonds[len(bonds)-1] != 3 {
			t.Errorf("the bonds are %v", bonds)
		}
		if l.Err() != nil || l.Valid() < 3*time.Second {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
	})
}

func TestTheFirstAnswerUnderTheBondOfAShorteningCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(30*time.Second), ReleaseOnDisconnect())
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			result, refusal = f.serve(a)
			if shortens(a) {
				result["locks"].([]any)[0].(map[string]any)["valid_ms"] = 2000
			}
			return result, refusal
		})
		if err := l.Shorten(t.Context(), 6*time.Second); err != nil {
			t.Fatal(err)
		}
		if valid := l.Valid(); valid != 2*time.Second {
			t.Errorf("valid for %v", valid)
		}
	})
}

func TestAnAbandonedLockIsNeitherRenewedNorReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		l := lockFor(t, c, Lease(3*time.Second))
		l.Abandon()
		if l.Valid() != 0 || !errors.Is(l.Err(), ErrLost) || l.Context().Err() == nil {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
		time.Sleep(time.Minute)
		if n := len(f.requests("extend")) + len(f.requests("release")); n != 0 {
			t.Errorf("%d requests", n)
		}
		if err := l.Release(t.Context()); err != nil || len(f.requests("release")) != 1 {
			t.Errorf("the release after all: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAClientIsDoneWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeNodes(t).client()
		select {
		case <-c.Done():
			t.Error("it is done before it is closed")
		default:
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-c.Done()
	})
}
