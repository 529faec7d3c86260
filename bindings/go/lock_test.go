package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func TestALockIsHeldUntilItIsReleased(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	one, other := server.Client(t, pawl.WithOwner("one")), server.Client(t)
	l, err := one.Lock(t.Context(), "k", pawl.Lease(10*time.Second), pawl.Value([]byte("v")))
	if err != nil {
		t.Fatal(err)
	}
	if valid := l.Valid(); valid < 9*time.Second || valid > 10*time.Second {
		t.Errorf("valid for %v", valid)
	}
	var held *pawl.HeldError
	if _, err := other.Lock(t.Context(), "k"); !errors.As(err, &held) || !errors.Is(err, pawl.ErrHeld) || held.Holder.Owner != "one" {
		t.Errorf("the second lock: %v", err)
	}
	entry, err := other.Get(t.Context(), "k", pawl.Quorum())
	if err != nil || !entry.Held || string(entry.Holder.Value) != "v" || entry.Holder.Token != l.Token() {
		t.Errorf("%+v %v", entry, err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if l.Valid() != 0 || !errors.Is(l.Err(), pawl.ErrLost) || l.Context().Err() == nil {
		t.Error("a lock that was released is trusted")
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("the second release: %v", err)
	}
	next, err := other.Lock(t.Context(), "k")
	if err != nil || next.Token() <= l.Token() {
		t.Errorf("%v", err)
	}
}

func TestAWaiterGetsTheLockAfterTheRelease(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	one, other := server.Client(t), server.Client(t)
	l, err := one.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		_, err := other.Lock(context.Background(), "k", pawl.Wait(pawl.Forever))
		got <- err
	}()
	for {
		waiters, _, err := one.Waiters(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if len(waiters) == 1 {
			break
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestACanceledLockLeavesNothingHeld(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	one, other := server.Client(t), server.Client(t)
	l, err := one.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := other.Lock(ctx, "k", pawl.Wait(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, err := one.Lock(t.Context(), "k", pawl.Wait(time.Second)); err != nil {
		t.Fatal(err)
	} else if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestALockThatIsBrokenIsToldToItsHolder(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, admin := server.Client(t), server.Client(t)
	done := errors.New("fn has returned")
	err := c.Do(t.Context(), "k", func(ctx context.Context, token uint64) error {
		if _, err := admin.Call(ctx, "break", map[string]any{"key": "k", "now": true}); err != nil {
			return err
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, pawl.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
		return done
	}, pawl.Lease(600*time.Millisecond))
	var lost *pawl.LostError
	if !errors.As(err, &lost) || !errors.Is(err, done) || lost.Key != "k" {
		t.Errorf("%v", err)
	}
}

func TestACandidateLeadsAfterTheLeaderResigns(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c := server.Client(t)
	first, second := c.Election("e", pawl.Owner("a")), c.Election("e", pawl.Owner("b"))
	leadership, err := first.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *pawl.Leadership, 1)
	go func() {
		l, err := second.Campaign(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	if leader, err := second.Leader(t.Context()); err != nil || leader == nil || leader.Owner != "a" {
		t.Errorf("%+v %v", leader, err)
	}
	if err := leadership.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	next := <-got
	if leader, err := second.Leader(t.Context()); err != nil || leader == nil || leader.Owner != "b" || leader.Token != next.Token() {
		t.Errorf("%+v %v", leader, err)
	}
}

func TestNobodyListens(t *testing.T) {
	leak.Check(t)
	_, err := pawl.Dial(t.Context(), pawl.WithEndpoints("127.0.0.1:1"), pawl.WithTimeout(200*time.Millisecond))
	if !errors.Is(err, pawl.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}
