package pawlk8s

import (
	"context"
	"sync"
	"time"

	"example.org/pawl/k8s/internal/elections"
)

// A cell is a cluster of Pawl in memory, for one key: it grants, extends and releases a lease, and
// those who wait get it in order.
type cell struct {
	mu    sync.Mutex
	last  int // the lock_id, and the token, of the latest grant
	held  bool
	owner string
	value []byte
	ends  time.Time
	queue []*waiter

	grants    []string // who got it, in order
	denies    bool     // extensions find the lock lost
	unsettled error    // if it is set, acquisitions fail with it
}

type waiter struct {
	owner   string
	value   []byte
	lease   time.Duration
	granted chan int
}

// grant gives the key to somebody.
func (c *cell) grant(owner string, value []byte, lease time.Duration) int {
	c.last++
	c.held, c.owner, c.value, c.ends = true, owner, value, time.Now().Add(lease)
	c.grants = append(c.grants, owner)
	c.watch(c.last)
	return c.last
}

// watch ends the lease when its time is over.
func (c *cell) watch(id int) {
	time.AfterFunc(time.Until(c.ends), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held && c.last == id && !time.Now().Before(c.ends) {
			c.free()
		}
	})
}

// free ends the lock, and serves the next one in the queue.
func (c *cell) free() {
	c.held = false
	if len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		next.granted <- c.grant(next.owner, next.value, next.lease)
	}
}

// breakLock takes the lock from its holder.
func (c *cell) breakLock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free()
}

func (c *cell) holder() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held {
		return ""
	}
	return c.owner
}

func (c *cell) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// A remote is the cell as a candidate sees it over its path.
type remote struct {
	cell  *cell
	path  *elections.Path
	owner string
	lease time.Duration
}

func (r *remote) leader(ctx context.Context) (now leader, err error) {
	err = r.path.Do(ctx, false, func() error {
		r.cell.mu.Lock()
		defer r.cell.mu.Unlock()
		if r.cell.held {
			now = leader{held: true, owner: r.cell.owner, value: r.cell.value}
		}
		return nil
	})
	return now, err
}

func (r *remote) acquire(ctx context.Context, wait time.Duration, value []byte) (holding, error) {
	id, from := 0, time.Now()
	err := r.path.Do(ctx, false, func() (err error) {
		c := r.cell
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.unsettled != nil:
			return c.unsettled
		case !c.held:
			id = c.grant(r.owner, value, r.lease)
			return nil
		case wait == 0:
			return errHeld
		}
		w := &waiter{r.owner, value, r.lease, make(chan int, 1)}
		c.queue = append(c.queue, w)
		id, err = c.await(ctx, w, wait)
		from = time.Now()
		return err
	})
	if err != nil {
		if id != 0 {
			go r.withdraw(id)
		}
		return nil, err
	}
	return newScripted(r, id, from), nil
}

// withdraw releases a grant whose answer did not come in time, as a client does.
func (r *remote) withdraw(id int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.path.Do(ctx, false, func() error {
		r.cell.release(id)
		return nil
	})
}

// await waits for a grant, without the lock of the cell.
func (c *cell) await(ctx context.Context, w *waiter, wait time.Duration) (int, error) {
	c.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	err := errHeld
	select {
	case id := <-w.granted:
		c.mu.Lock()
		return id, nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	for i, other := range c.queue {
		if other == w {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			return 0, err
		}
	}
	return <-w.granted, nil // at the same moment
}

func (c *cell) release(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held && c.last == id {
		c.free()
	}
}

// scripted is a lock in the cell.
type scripted struct {
	remote *remote
	id     int

	mu    sync.Mutex
	until time.Time
	done  chan struct{}
	timer *time.Timer
}

func newScripted(r *remote, id int, from time.Time) *scripted {
	s := &scripted{remote: r, id: id, until: from.Add(r.lease), done: make(chan struct{})}
	s.timer = time.AfterFunc(time.Until(s.until), s.finish)
	return s
}

func (s *scripted) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.until = time.Time{}
		s.timer.Stop()
		close(s.done)
	}
}

func (s *scripted) Valid() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, time.Until(s.until))
}

func (s *scripted) Done() <-chan struct{} { return s.done }
func (s *scripted) Token() uint64         { return uint64(s.id) }

func (s *scripted) Extend(ctx context.Context) error {
	sent := time.Now()
	err := s.remote.path.Do(ctx, true, func() error {
		c := s.remote.cell
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.held || c.last != s.id || c.denies {
			return errLost
		}
		c.ends = time.Now().Add(s.remote.lease)
		c.watch(s.id)
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() {
		s.until = sent.Add(s.remote.lease)
		s.timer.Reset(time.Until(s.until))
	}
	return nil
}

func (s *scripted) Update(ctx context.Context, value []byte) error {
	return s.remote.path.Do(ctx, false, func() error {
		c := s.remote.cell
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.held || c.last != s.id {
			return errLost
		}
		c.value = value
		return nil
	})
}

func (s *scripted) Release(ctx context.Context) error {
	s.finish()
	return s.remote.path.Do(ctx, false, func() error {
		s.remote.cell.release(s.id)
		return nil
	})
}
