package pawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// lockFor acquires a lock and closes its client with the test.
func lockFor(t *testing.T, c *Client, options ...LockOption) *Lock {
	t.Helper()
	l, err := c.Lock(t.Context(), "k", options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestValidityCountsFromTheSendingOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			time.Sleep(400 * time.Millisecond)
			return f.serve(a)
		})
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(10*time.Second))
		if valid := l.Valid(); valid != 9900*time.Millisecond-400*time.Millisecond {
			t.Errorf("valid for %v", valid)
		}
	})
}

func TestALockIsRenewedAtAThirdOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		start := time.Now()
		l := lockFor(t, c, Lease(9*time.Second))
		time.Sleep(time.Minute)
		extensions := f.requests("extend")
		if len(extensions) < 19 || len(extensions) > 22 {
			t.Errorf("%d extensions in a minute", len(extensions))
		}
		if first := extensions[0].at.Sub(start); first < 2800*time.Millisecond || first > 3100*time.Millisecond {
			t.Errorf("the first extension came after %v", first)
		}
		if l.Valid() < 5*time.Second || l.Err() != nil {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
	})
}

func TestAllLocksOfAClientAreRenewedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		for _, key := range []string{"a", "b", "c", "d"} {
			if _, err := c.Lock(t.Context(), key, Lease(9*time.Second)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		if n := len(f.requests("extend")); n > 12 {
			t.Errorf("%d requests", n)
		}
		extensions := f.requests("extend")
		if n := len(extensions[len(extensions)-1].locks()); n != 4 {
			t.Errorf("the last request extends %d locks", n)
		}
	})
}

func TestAHolderIsWarnedASixthOfTheLeaseBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(6*time.Second))
		f.serveBy(func(asked) (result, refusal map[string]any) {
			return nil, map[string]any{"code": "no_quorum", "message": "too few"}
		})
		start := time.Now()
		<-l.Done()
		var lost *LostError
		if !errors.As(context.Cause(l.Context()), &lost) || lost.Code() != "no_quorum" || !errors.Is(lost, ErrLost) || !errors.Is(lost, ErrNoQuorum) {
			t.Errorf("%v", context.Cause(l.Context()))
		}
		if lost.Left < 990*time.Millisecond || lost.Left > time.Second {
			t.Errorf("%v were left", lost.Left)
		}
		if passed := time.Since(start); passed < 4900*time.Millisecond || passed > 5*time.Second {
			t.Errorf("warned after %v", passed)
		}
		if !errors.Is(l.Err(), ErrLost) {
			t.Errorf("%v", l.Err())
		}
		// What was extended too late brings nothing back.
		f.serveBy(f.serve)
		time.Sleep(2 * time.Second)
		if l.Valid() != 0 {
			t.Errorf("valid for %v after the loss", l.Valid())
		}
	})
}

func TestASuspendEndsTheTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(10*time.Second))
		f.clock.suspend(20 * time.Second)
		if l.Valid() != 0 {
			t.Errorf("valid for %v after a suspend that was longer than the lease", l.Valid())
		}
		f.clock.suspend(-20 * time.Second)
		if l.Valid() != 0 || !errors.Is(l.Err(), ErrLost) {
			t.Error("once 0, it has to stay 0")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-l.Done():
		default:
			t.Error("the loss was not told within a second")
		}
	})
}

func TestAnAnswerAfterTheDeadlineBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithSilence(time.Minute))
		defer c.Abandon()
		l := lockFor(t, c, Lease(3*time.Second), Warn(0))
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if a.method == "ping" {
				return f.serve(a)
			}
			time.Sleep(2500 * time.Millisecond)
			return f.serve(a)
		})
		time.Sleep(5 * time.Second)
		if l.Valid() != 0 || l.Err() == nil {
			t.Errorf("valid for %v: %v", l.Valid(), l.Err())
		}
	})
}

func TestALockOutlivesANodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		defer c.Abandon()
		l := lockFor(t, c, Lease(3*time.Second))
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if a.node == "10.0.0.1:1" {
				return nil, nil
			}
			return f.serve(a)
		})
		time.Sleep(5 * time.Second)
		if l.Err() != nil || l.Valid() < time.Second {
			t.Errorf("%v %v", l.Valid(), l.Err())
		}
		c.engine.Lock()
		node := c.engine.Node()
		c.engine.Unlock()
		if node != "10.0.0.2:1" {
			t.Errorf("the client is at %s", node)
		}
	})
}

func TestABoundLockIsBoundToTheNextConnectionFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		defer c.Abandon()
		l := lockFor(t, c, Lease(10*time.Second), ReleaseOnDisconnect())
		if bond := f.requests("acquire")[0].params["bond"]; bond != int64(1) {
			t.Errorf("acquired under bond %v", bond)
		}
		f.mu.Lock()
		f.dead["10.0.0.1:1"] = true
		f.conns[0].Close()
		f.mu.Unlock()
		time.Sleep(time.Second)
		extensions := f.requests("extend")
		if len(extensions) == 0 || extensions[0].node != "10.0.0.2:1" || extensions[0].locks()[0]["bond"] != int64(2) || extensions[0].params["deadline_kept"] != false {
			t.Fatalf("%+v", extensions)
		}
		if l.Err() != nil {
			t.Error(l.Err())
		}
	})
}

func TestAGrantOfWhichTheWaitHasLeftNothingIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			result, _ = f.serve(a)
			if len(f.requests("acquire")) == 1 {
				result["valid_ms"], result["waited_ms"] = 0, 3000000
			}
			return result, nil
		})
		c := f.client()
		defer c.Abandon()
		lockFor(t, c, Lease(10*time.Second), Wait(Forever))
		got := f.requests("acquire")
		if len(got) != 2 || got[0].params["lock_id"] != got[1].params["lock_id"] {
			t.Errorf("%+v", got)
		}
	})
}

func TestABoundLockIsExtendedOnceThereIsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, Lease(10*time.Second), ReleaseOnDisconnect())
		f.mu.Lock()
		f.dead["10.0.0.1:7117"] = true
		f.conns[0].Close()
		f.mu.Unlock()
		synctest.Wait()
		time.AfterFunc(300*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.dead, "10.0.0.1:7117")
		})
		if err := l.Extend(t.Context(), 0); err != nil {
			t.Error(err)
		}
		for _, one := range f.requests("extend") {
			if bond := one.locks()[0]["bond"]; bond != nil && bond != int64(2) {
				t.Errorf("extended under bond %v", bond)
			}
		}
	})
}

func TestALockThatWasGivenUpDoesNotHoldUpTheEndOfItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		l := lockFor(t, c, Lease(12*time.Second), ReleaseOnDisconnect())
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if a.method == "ping" && a.node == "10.0.0.2:1" {
				return f.serve(a)
			}
			return nil, nil
		})
		<-l.Done()
		start := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if passed := time.Since(start); passed > 6*time.Second {
			t.Errorf("closing takes %v", passed)
		}
		if l.Valid() != 0 {
			t.Error("a lock is trusted although the connection that it ends with is closed")
		}
	})
}
