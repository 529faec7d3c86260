package concurrency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.org/pawl"
	concurrency "example.org/pawl/adapters/etcd"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func session(t *testing.T, c *pawl.Client, opts ...concurrency.SessionOption) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v and not %v", err, want)
	}
}

func over(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it is not over")
	}
}

func awaitWaiter(t *testing.T, c *pawl.Client, key string) {
	t.Helper()
	for {
		waiters, _, err := c.Waiters(t.Context(), key)
		must(t, err)
		if len(waiters) > 0 {
			return
		}
		time.Sleep(time.Millisecond) // A waiter makes no event.
	}
}

func breakKey(t *testing.T, c *pawl.Client, key string) {
	t.Helper()
	_, err := c.Call(t.Context(), "break", map[string]any{"key": key, "now": true})
	must(t, err)
}

func TestASecondSessionGetsTheMutexAfterTheFirst(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	m1 := concurrency.NewMutex(session(t, c), "/my-lock/")
	m2 := concurrency.NewMutex(session(t, c), "/my-lock/")
	must(t, m1.Lock(t.Context()))
	wants(t, m2.TryLock(t.Context()), concurrency.ErrLocked)
	if m2.IsOwner() || m2.Key() != "" || m2.Header() != nil {
		t.Error("a mutex that was refused says that it has the lock")
	}
	if !m1.IsOwner() || m1.Key() != "/my-lock/" {
		t.Errorf("the owner says %v, %q", m1.IsOwner(), m1.Key())
	}
	first := m1.Header().Revision
	locked := make(chan error)
	go func() { locked <- m2.Lock(context.Background()) }()
	awaitWaiter(t, c, "/my-lock/")
	must(t, m1.Unlock(t.Context()))
	must(t, <-locked)
	if second := m2.Header().GetRevision(); second <= first {
		t.Errorf("the revision is %d after %d", second, first)
	}
	must(t, m2.Unlock(t.Context()))
}

func TestWhatIsNotLockedIsNotUnlocked(t *testing.T) {
	leak.Check(t)
	m := concurrency.NewMutex(session(t, pawltest.Start(t).Client(t)), "/my-lock/")
	wants(t, m.Unlock(t.Context()), concurrency.ErrLockReleased)
	must(t, m.Lock(t.Context()))
	must(t, m.Unlock(t.Context()))
	wants(t, m.Unlock(t.Context()), concurrency.ErrLockReleased)
}

func TestAWaitEndsWithItsSession(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	m1 := concurrency.NewMutex(session(t, c), "/my-lock/")
	s2 := session(t, c)
	must(t, m1.Lock(t.Context()))
	locked := make(chan error)
	go func() { locked <- concurrency.NewMutex(s2, "/my-lock/").Lock(context.Background()) }()
	awaitWaiter(t, c, "/my-lock/")
	must(t, s2.Close())
	wants(t, <-locked, concurrency.ErrSessionExpired)
	must(t, m1.Unlock(t.Context()))
	wants(t, concurrency.NewMutex(s2, "/my-lock/").TryLock(t.Context()), concurrency.ErrSessionExpired)
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	m1, m2 := concurrency.NewMutex(session(t, c), "k"), concurrency.NewMutex(session(t, c), "k")
	must(t, m1.Lock(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	locked := make(chan error)
	go func() { locked <- m2.Lock(ctx) }()
	awaitWaiter(t, c, "k")
	cancel()
	wants(t, <-locked, context.Canceled)
	must(t, m1.Unlock(t.Context()))
	must(t, m2.Lock(t.Context()))
}

func TestASessionHoldsAKeyOnce(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s := session(t, c)
	one, other := concurrency.NewMutex(s, "k"), concurrency.NewMutex(s, "k")
	must(t, one.Lock(t.Context()))
	must(t, other.Lock(t.Context()))
	if one.Header().Revision != other.Header().Revision {
		t.Error("the second mutex has another lock")
	}
	must(t, one.Unlock(t.Context()))
	if other.IsOwner() {
		t.Error("the lock was released, and the other mutex still trusts it")
	}
	must(t, other.Unlock(t.Context()))
	must(t, concurrency.NewMutex(session(t, c), "k").TryLock(t.Context()))
}

func TestTheTTLIsTheLeaseOfTheLocks(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	m := concurrency.NewMutex(session(t, c, concurrency.WithTTL(40), concurrency.WithTTL(-1)), "k")
	must(t, m.Lock(t.Context()))
	entry, err := c.Get(t.Context(), "k", pawl.Quorum())
	must(t, err)
	if left := entry.Holder.Remaining; left < 35*time.Second || left > 42*time.Second {
		t.Errorf("%v of 40 s are left", left)
	}
}

func TestALossEndsTheSessionAndAllThatItHolds(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s := session(t, c, concurrency.WithTTL(1))
	lost, kept := concurrency.NewMutex(s, "lost"), concurrency.NewMutex(s, "kept")
	must(t, lost.Lock(t.Context()))
	must(t, kept.Lock(t.Context()))
	breakKey(t, c, "lost")
	over(t, s.Done())
	var cause *pawl.LostError
	if !errors.As(context.Cause(s.Ctx()), &cause) || cause.Key != "lost" {
		t.Errorf("the cause is %v", context.Cause(s.Ctx()))
	}
	if lost.IsOwner() || kept.IsOwner() {
		t.Error("a session that is over is trusted")
	}
	wants(t, lost.Lock(t.Context()), concurrency.ErrSessionExpired)
	// The other lock becomes free a little later, without the help of the program.
	must(t, concurrency.NewMutex(session(t, c), "kept").Lock(t.Context()))
	err := lost.Unlock(t.Context())
	wants(t, err, concurrency.ErrSessionExpired)
	wants(t, err, pawl.ErrLost)
}

func TestDoneIsClosedBeforeTheLeaseIsOver(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c := server.Client(t, pawl.WithTimeout(100*time.Millisecond))
	s := session(t, c, concurrency.WithTTL(3))
	m := concurrency.NewMutex(s, "k")
	must(t, m.Lock(t.Context()))
	server.Kill()
	over(t, s.Done())
	var cause *pawl.LostError
	if !errors.As(context.Cause(s.Ctx()), &cause) || cause.Left <= 0 {
		t.Errorf("%v, with %v left", context.Cause(s.Ctx()), cause.Left)
	}
}

func TestAnOrphanedSessionKeepsItsKeysForTheTTL(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s := session(t, c, concurrency.WithTTL(1))
	m := concurrency.NewMutex(s, "k")
	must(t, m.Lock(t.Context()))
	child, cancel := context.WithCancel(s.Ctx())
	defer cancel()
	begin := time.Now()
	s.Orphan()
	over(t, s.Done())
	over(t, child.Done())
	for { // Nothing renews it, so the key is free in time even if this process goes on for long.
		entry, err := c.Get(t.Context(), "k")
		must(t, err)
		if !entry.Held {
			break
		}
		if time.Since(begin) > 5*time.Second {
			t.Fatal("the key is still held")
		}
		time.Sleep(time.Millisecond)
	}
	if m.IsOwner() {
		t.Error("a session that is over is trusted")
	}
	must(t, concurrency.NewMutex(session(t, c), "k").Lock(t.Context()))
	if kept := time.Since(begin); kept < 900*time.Millisecond {
		t.Errorf("the key was free after %v", kept)
	}
}

func TestASessionEndsWithItsContext(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := session(t, c, concurrency.WithContext(ctx))
	must(t, concurrency.NewMutex(s, "k").Lock(t.Context()))
	cancel()
	over(t, s.Done())
	must(t, s.Close()) // which does not wait for the TTL
	must(t, concurrency.NewMutex(session(t, c), "k").TryLock(t.Context()))
}

func TestTheEndOfTheClientEndsItsSessions(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s, idle := session(t, c), session(t, c)
	must(t, concurrency.NewMutex(s, "k").Lock(t.Context()))
	must(t, c.Close())
	over(t, s.Done())
	over(t, idle.Done())
}

func TestNoSessionWithoutANode(t *testing.T) {
	leak.Check(t)
	c, err := pawl.New(pawl.WithEndpoints("127.0.0.1:1"), pawl.WithTimeout(100*time.Millisecond))
	must(t, err)
	defer c.Close()
	_, err = concurrency.NewSession(c)
	wants(t, err, pawl.ErrUnreachable)
}

func TestALockerOfTwoSessionsExcludes(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	counter, done := 0, make(chan bool)
	for range 2 {
		go func() {
			l := concurrency.NewLocker(session(t, c), "k")
			for range 20 {
				l.Lock()
				counter++
				l.Unlock()
			}
			done <- true
		}()
	}
	<-done
	<-done
	if counter != 40 {
		t.Errorf("counted to %d", counter)
	}
	defer func() {
		if recover() == nil {
			t.Error("the unlock of what is not locked did not panic")
		}
	}()
	concurrency.NewLocker(session(t, c), "k").Unlock()
}

func TestACandidateLeadsAfterTheLeaderResigns(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	e1 := concurrency.NewElection(session(t, c), "/my-election")
	e2 := concurrency.NewElection(session(t, c), "/my-election")
	_, err := e1.Leader(t.Context())
	wants(t, err, concurrency.ErrElectionNoLeader)
	wants(t, e1.Proclaim(t.Context(), "x"), concurrency.ErrElectionNotLeader)
	must(t, e1.Resign(t.Context()))
	observed := e2.Observe(t.Context())
	must(t, e1.Campaign(t.Context(), "e1"))
	r := <-observed
	if string(r.Kvs[0].Value) != "e1" || string(r.Kvs[0].Key) != e1.Key() ||
		r.Kvs[0].CreateRevision != e1.Rev() || r.Header.Revision != e1.Rev() || e1.Rev() <= 0 {
		t.Errorf("%+v %+v is observed, and not %q %d", r.Header, r.Kvs[0], e1.Key(), e1.Rev())
	}
	led := make(chan error)
	go func() { led <- e2.Campaign(context.Background(), "e2") }()
	awaitWaiter(t, c, "/my-election")
	must(t, e1.Proclaim(t.Context(), "e1 again"))
	if r = <-observed; string(r.Kvs[0].Value) != "e1 again" {
		t.Errorf("%q is observed", r.Kvs[0].Value)
	}
	r, err = e2.Leader(t.Context())
	must(t, err)
	if string(r.Kvs[0].Value) != "e1 again" || string(r.Kvs[0].Key) != e1.Key() {
		t.Errorf("the leader is %+v", r.Kvs[0])
	}
	must(t, e1.Resign(t.Context()))
	must(t, <-led)
	if e1.Key() != "" || e1.Rev() != 0 {
		t.Error("a leader that has resigned says that it leads")
	}
	if r = <-observed; string(r.Kvs[0].Value) != "e2" || string(r.Kvs[0].Key) != e2.Key() {
		t.Errorf("%+v is observed", r.Kvs[0])
	}
	wants(t, e1.Proclaim(t.Context(), "x"), concurrency.ErrElectionNotLeader)
}

func TestACampaignOfALeaderProclaims(t *testing.T) {
	leak.Check(t)
	s := session(t, pawltest.Start(t).Client(t))
	e := concurrency.NewElection(s, "e")
	must(t, e.Campaign(t.Context(), "one"))
	rev := e.Rev()
	must(t, concurrency.NewElection(s, "e").Campaign(t.Context(), "two"))
	r, err := e.Leader(t.Context())
	must(t, err)
	if string(r.Kvs[0].Value) != "two" || e.Rev() != rev || e.Header().Revision != rev {
		t.Errorf("%+v, and not %d", r.Kvs[0], rev)
	}
}

func TestACampaignEndsWithItsContext(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	e1, e2 := concurrency.NewElection(session(t, c), "e"), concurrency.NewElection(session(t, c), "e")
	must(t, e1.Campaign(t.Context(), "e1"))
	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan error)
	go func() { led <- e2.Campaign(ctx, "e2") }()
	awaitWaiter(t, c, "e")
	cancel()
	wants(t, <-led, context.Canceled)
	must(t, e1.Resign(t.Context()))
	_, err := e1.Leader(t.Context())
	wants(t, err, concurrency.ErrElectionNoLeader)
}

func TestALostLeaderIsNoLeader(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s := session(t, c, concurrency.WithTTL(1))
	e := concurrency.NewElection(s, "e")
	must(t, e.Campaign(t.Context(), "x"))
	breakKey(t, c, "e")
	over(t, s.Done())
	wants(t, e.Proclaim(t.Context(), "y"), concurrency.ErrElectionNotLeader)
	must(t, e.Resign(t.Context()))
	wants(t, e.Campaign(t.Context(), "z"), concurrency.ErrSessionExpired)
}

func TestAnElectionIsResumedInItsSession(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	s := session(t, c)
	must(t, concurrency.NewElection(s, "e").Campaign(t.Context(), "one"))
	leader, err := concurrency.NewElection(s, "e").Leader(t.Context())
	must(t, err)
	key, rev := string(leader.Kvs[0].Key), leader.Kvs[0].CreateRevision
	wants(t, concurrency.ResumeElection(s, "e", key, rev+1).Proclaim(t.Context(), "x"),
		concurrency.ErrElectionNotLeader)
	wants(t, concurrency.ResumeElection(session(t, c), "e", key, rev).Proclaim(t.Context(), "x"),
		concurrency.ErrElectionNotLeader)
	resumed := concurrency.ResumeElection(s, "e", key, rev)
	must(t, resumed.Proclaim(t.Context(), "two"))
	must(t, resumed.Resign(t.Context()))
	_, err = resumed.Leader(t.Context())
	wants(t, err, concurrency.ErrElectionNoLeader)
}

func TestObserversEndWithTheirContext(t *testing.T) {
	leak.Check(t)
	e := concurrency.NewElection(session(t, pawltest.Start(t).Client(t)), "e")
	ctx, cancel := context.WithCancel(t.Context())
	observed := e.Observe(ctx)
	cancel()
	for range observed {
	}
}
