package pawlredsync_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/pawl"
	pawlredsync "example.org/pawl/adapters/redsync"
	"example.org/pawl/pawltest"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
)

var _ redis.Pool = (*pawlredsync.Pool)(nil)

const within = 10 * time.Second

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// free waits until nobody holds the key.
func free(t *testing.T, client *pawl.Client) {
	t.Helper()
	if _, err := client.WaitUntil(limited(t), "m", false); err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, m *redsync.Mutex) {
	t.Helper()
	if err := m.TryLockContext(limited(t)); err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, what string, want bool) func(bool, error) {
	return func(got bool, err error) {
		t.Helper()
		if got != want || want && err != nil {
			t.Errorf("%s: %v %v", what, got, err)
		}
	}
}

func TestOneMutexOfManyIsLockedAtATime(t *testing.T) {
	server := pawltest.Start(t)
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		m := redsync.New(pawlredsync.NewPool(server.Client(t))).NewMutex("m", redsync.WithTries(500),
			redsync.WithRetryDelay(5*time.Millisecond))
		all.Go(func() {
			if err := m.LockContext(limited(t)); err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			is(t, "valid", true)(m.ValidContext(limited(t)))
			inside.Add(-1)
			is(t, "unlock", true)(m.UnlockContext(limited(t)))
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d were locked at the same time", most.Load())
	}
}

func TestATakenMutexIsNotLocked(t *testing.T) {
	server := pawltest.Start(t)
	one := redsync.New(pawlredsync.NewPool(server.Client(t))).NewMutex("m")
	other := redsync.New(pawlredsync.NewPool(server.Client(t))).NewMutex("m")
	acquire(t, one)
	var taken *redsync.ErrTaken
	if err := other.TryLockContext(limited(t)); !errors.As(err, &taken) {
		t.Errorf("%v", err)
	}
	entry, err := server.Client(t).Get(limited(t), "m", pawl.Quorum())
	if err != nil || string(entry.Holder.Value) != one.Value() || entry.Holder.Token == 0 {
		t.Errorf("%+v %v", entry, err)
	}
	is(t, "the unlock by another one", false)(other.UnlockContext(limited(t)))
	is(t, "the unlock", true)(one.UnlockContext(limited(t)))
	is(t, "valid after the unlock", false)(one.ValidContext(limited(t)))
	acquire(t, other)
}

func TestAMutexEndsWhenItsExpiryIsOver(t *testing.T) {
	server := pawltest.Start(t)
	client := server.Client(t)
	rs := redsync.New(pawlredsync.NewPool(client))
	m := rs.NewMutex("m", redsync.WithExpiry(300*time.Millisecond))
	acquire(t, m)
	before := time.Now()
	free(t, server.Client(t))
	if held := time.Since(before); held > 2*time.Second || time.Now().Before(m.Until()) {
		t.Errorf("held for %v", held)
	}
	if ok, err := m.UnlockContext(limited(t)); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("the unlock: %v %v", ok, err)
	}
	is(t, "the extension", false)(m.ExtendContext(limited(t)))
}

func TestAnExtendedMutexEndsLater(t *testing.T) {
	server := pawltest.Start(t)
	rs := redsync.New(pawlredsync.NewPool(server.Client(t)))
	m := rs.NewMutex("m", redsync.WithExpiry(time.Second))
	acquire(t, m)
	begun := time.Now()
	for range 3 {
		// Not an event: the test shows what time does.
		time.Sleep(400 * time.Millisecond)
		is(t, "the extension", true)(m.ExtendContext(limited(t)))
	}
	is(t, "valid", true)(m.ValidContext(limited(t)))
	free(t, server.Client(t))
	if held := time.Since(begun); held < 2100*time.Millisecond {
		t.Errorf("held for %v only", held)
	}
}

func TestAnExtensionTakesAFreeMutexIfItShall(t *testing.T) {
	server := pawltest.Start(t)
	rs := redsync.New(pawlredsync.NewPool(server.Client(t)))
	m := rs.NewMutex("m", redsync.WithExpiry(200*time.Millisecond), redsync.WithSetNXOnExtend())
	acquire(t, m)
	free(t, server.Client(t))
	is(t, "the extension of a free one", true)(m.ExtendContext(limited(t)))
	is(t, "valid", true)(m.ValidContext(limited(t)))
	free(t, server.Client(t))
	acquire(t, rs.NewMutex("m"))
	is(t, "the extension of a taken one", false)(m.ExtendContext(limited(t)))
}

func TestAnExtensionMayEndAMutexSooner(t *testing.T) {
	server := pawltest.Start(t)
	client := server.Client(t)
	c, err := pawlredsync.NewPool(client).Get(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	m := redsync.New(pawlredsync.NewPool(client)).NewMutex("m", redsync.WithExpiry(30*time.Second))
	acquire(t, m)
	short := redsync.New(pawlredsync.NewPool(client)).NewMutex("m", redsync.WithExpiry(2*time.Second),
		redsync.WithValue(m.Value()))
	for _, one := range []struct {
		m    *redsync.Mutex
		most time.Duration
	}{{short, 2 * time.Second}, {m, 30 * time.Second}, {short, 2 * time.Second}} {
		is(t, "the extension", true)(one.m.ExtendContext(limited(t)))
		if left, err := c.PTTL("m"); left > one.most || left < one.most-time.Second || err != nil {
			t.Errorf("what is left of %v: %v %v", one.most, left, err)
		}
	}
}

func TestWhoKnowsTheValueExtendsAndUnlocksWhereverItIs(t *testing.T) {
	server := pawltest.Start(t)
	value := func() (string, error) { return "known", nil }
	mutex := func() *redsync.Mutex {
		return redsync.New(pawlredsync.NewPool(server.Client(t))).NewMutex("m",
			redsync.WithGenValueFunc(value), redsync.WithValue("known"))
	}
	one, other := mutex(), mutex()
	acquire(t, one)
	is(t, "valid elsewhere", true)(other.ValidContext(limited(t)))
	is(t, "the extension elsewhere", true)(other.ExtendContext(limited(t)))
	is(t, "the unlock elsewhere", true)(other.UnlockContext(limited(t)))
	is(t, "valid", false)(one.ValidContext(limited(t)))
	if ok, err := one.UnlockContext(limited(t)); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("the second unlock: %v %v", ok, err)
	}
}

func TestADeadHoldersMutexEnds(t *testing.T) {
	server := pawltest.Start(t)
	dead := server.Client(t)
	acquire(t, redsync.New(pawlredsync.NewPool(dead)).NewMutex("m", redsync.WithExpiry(time.Second)))
	if err := dead.Close(); err != nil {
		t.Error(err)
	}
	free(t, server.Client(t))
	acquire(t, redsync.New(pawlredsync.NewPool(server.Client(t))).NewMutex("m"))
}

func TestAConnectionDoesNothingThatPawlCannotPromise(t *testing.T) {
	server := pawltest.Start(t)
	c, err := pawlredsync.NewPool(server.Client(t)).Get(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set("m", "v"); err == nil {
		t.Error("a lock without an end")
	}
	script := redis.NewScript(1, "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
	if err := c.ScriptLoad(script); err == nil {
		t.Error("an unknown script is loaded")
	}
	if _, err := c.Eval(script, "m"); err == nil {
		t.Error("an unknown script is run")
	}
	if left, err := c.PTTL("m"); left != -2 || err != nil {
		t.Errorf("what is left of nothing: %v %v", left, err)
	}
	if ok, err := c.SetNX("m", "v", 5*time.Second); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if left, err := c.PTTL("m"); left < 4*time.Second || left > 5*time.Second || err != nil {
		t.Errorf("what is left of 5 s: %v %v", left, err)
	}
}
