package pawl_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func TestAWatchTellsTheStateAndEachChange(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, other := server.Client(t), server.Client(t, pawl.WithOwner("me"))
	if _, err := other.Lock(t.Context(), "jobs/1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var types []string
	var position []byte
	for event, err := range c.Watch(ctx, pawl.WatchPrefix("jobs/")) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, event.Type+" "+event.Key)
		if event.Type == pawl.EventCurrent {
			l, err := other.Lock(ctx, "jobs/2")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if event.Type == pawl.EventReleased {
			position = event.Position
			break
		}
	}
	want := []string{"present jobs/1", "current ", "acquired jobs/2", "released jobs/2"}
	if len(types) != len(want) {
		t.Fatalf("%q", types)
	}
	for i := range want {
		if types[i] != want[i] {
			t.Errorf("%q", types)
		}
	}
	l, err := other.Lock(t.Context(), "jobs/3")
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range c.Watch(ctx, pawl.WatchPrefix("jobs/"), pawl.WatchFrom(position)) {
		if err != nil || event.Type != pawl.EventAcquired || event.Key != "jobs/3" || event.Holder.Token != l.Token() {
			t.Errorf("%+v %v", event, err)
		}
		break
	}
	cancel()
	for _, err := range c.Watch(ctx, pawl.WatchKey("jobs/1")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func TestAWatchEndsWithItsClient(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, err := pawl.Dial(t.Context(), pawl.WithEndpoints(server.Endpoint))
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range c.Watch(t.Context(), pawl.WatchKey("k")) {
		if event.Type == pawl.EventCurrent {
			go c.Close()
		} else if !errors.Is(err, pawl.ErrClosed) {
			t.Errorf("%+v %v", event, err)
		}
	}
}

// lines is where a logger writes to.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestALockThatNobodyKeepsIsReleasedAndTheClientSaysSo(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	var log lines
	c, other := server.Client(t, pawl.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), server.Client(t)
	func() {
		l, err := c.Lock(t.Context(), "abandoned", pawl.Lease(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		l.Abandon()
		if _, err := c.Lock(t.Context(), "k", pawl.Lease(time.Minute), pawl.OnAsked(func(pawl.Asked) {})); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Election("e").Campaign(t.Context(), pawl.Lease(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Locks(t.Context(), []string{"a", "b"}, pawl.Lease(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}()
	runtime.GC()
	for _, key := range []string{"k", "e", "a", "b"} {
		if _, err := other.Lock(t.Context(), key, pawl.Wait(10*time.Second)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		for end := time.Now().Add(5 * time.Second); !strings.Contains(log.String(), "key="+key) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if !strings.Contains(log.String(), "dropped without a release; it is released now\" key="+key) {
			t.Errorf("the log says of %s: %s", key, log.String())
		}
	}
	if entry, err := other.Get(t.Context(), "abandoned"); err != nil || !entry.Held {
		t.Errorf("%+v %v", entry, err)
	}
}

func TestALeaderYieldsToACandidateOfHigherPriority(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, other := server.Client(t), server.Client(t)
	leader, err := c.Election("e", pawl.Owner("a")).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *pawl.Leadership, 1)
	go func() {
		l, err := other.Election("e", pawl.Owner("b"), pawl.Priority(5), pawl.TakeOver()).Campaign(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	<-leader.Done()
	var yield *pawl.YieldError
	if !errors.As(context.Cause(leader.Context()), &yield) || yield.To != "b" {
		t.Fatalf("%v", context.Cause(leader.Context()))
	}
	if leader.Valid() == 0 || leader.Err() != nil {
		t.Error("the leadership is lost before it is resigned")
	}
	if err := leader.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if next := <-got; next == nil || next.Token() <= leader.Token() {
		t.Error("the candidate does not lead")
	}
}

func TestAnObserverIsToldEachLeader(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c := server.Client(t)
	e := c.Election("e", pawl.Owner("a"), pawl.Value([]byte("1")))
	var leader *pawl.Leadership
	var seen []string
	for l, err := range e.Observe(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		name := "nobody"
		if l != nil {
			name = l.Owner + string(l.Value)
		}
		seen = append(seen, name)
		switch len(seen) {
		case 1:
			if leader, err = e.Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := leader.Proclaim(t.Context(), []byte("2")); err != nil {
				t.Fatal(err)
			}
		case 3:
			if err := leader.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) == 4 {
			break
		}
	}
	for i, want := range []string{"nobody", "a1", "a2", "nobody"} {
		if seen[i] != want {
			t.Errorf("%q", seen)
		}
	}
}
