package pawlredsync

import (
	"context"
	"sync"
	"time"

	"example.org/pawl"
)

// taken is a lock that this process has taken. The client extends a lock for as long as its process
// lives, while one of redsync has an end: taken releases it then. If the process dies, or cannot reach
// the nodes, the lock ends with its lease, which began with a grant and so ends no sooner.
type taken struct {
	pool *Pool
	name name
	lock *pawl.Lock

	// mu orders what is done with the lock.
	mu    sync.Mutex
	ends  time.Time
	timer *time.Timer
	over  bool
}

// leaseOf returns the lease behind an expiry. It is longer by 1 %, so that it ends after what redsync
// counts, whichever of two clocks is faster.
func leaseOf(expiry time.Duration) time.Duration { return expiry + expiry/99 + time.Millisecond }

func (p *Pool) keep(n name, lock *pawl.Lock, expiry time.Duration) {
	t := &taken{pool: p, name: n, lock: lock, ends: time.Now().Add(expiry)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(expiry, t.end)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[n] = t
}

// forget stops everything but the release. Call it with the lock of t.
func (t *taken) forget() {
	t.over = true
	t.timer.Stop()
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if t.pool.taken[t.name] == t {
		delete(t.pool.taken, t.name)
	}
}

// end releases the lock when its time is over.
func (t *taken) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := time.Until(t.ends)
	switch {
	case t.over:
	case left > 0: // It was extended just before.
		t.timer.Reset(left)
	default:
		t.forget()
		_ = t.lock.Release(context.Background())
	}
}

func (t *taken) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.ends))
}

func (t *taken) release(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return pawl.ErrLost
	}
	t.forget()
	return t.lock.Release(ctx)
}

func (t *taken) extend(ctx context.Context, expiry time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || time.Until(t.ends) <= 0 {
		return pawl.ErrLost
	}
	if err := t.lock.Extend(ctx, leaseOf(expiry)); err != nil {
		return err
	}
	t.ends = time.Now().Add(expiry)
	t.timer.Reset(expiry)
	return nil
}
