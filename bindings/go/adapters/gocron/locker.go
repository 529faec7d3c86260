// Package pawlgocron runs each fire of a gocron job in one scheduler of many. One line changes:
//
//	gocron.NewScheduler(gocron.WithDistributedLocker(pawlgocron.NewLocker(client)))
//
// or, so that one scheduler runs all jobs until it ends:
//
//	gocron.NewScheduler(gocron.WithDistributedElector(elector))
package pawlgocron

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.org/pawl"
	"github.com/go-co-op/gocron/v2"
)

const (
	prefixDefault  = "gocron/"
	atLeastDefault = 500 * time.Millisecond
)

// An Option sets one thing of a Locker.
type Option func(*Locker)

// AtLeast keeps the key of a fire closed for at least d, however soon the job ends, so that a scheduler
// that is late by less than d does not run the same fire again: because of its clock, or because a
// node answers late. A fire for which no node has answered within d is skipped. Set it to more than
// clocks may differ, and to at most half of the shortest time between two fires. The default is 500 ms.
func AtLeast(d time.Duration) Option { return func(l *Locker) { l.atLeast = d } }

// Prefix sets what the keys begin with; the name of the job follows. The default is "gocron/".
func Prefix(prefix string) Option { return func(l *Locker) { l.prefix = prefix } }

// With adds options to each lock, such as pawl.Lease.
func With(options ...pawl.LockOption) Option {
	return func(l *Locker) { l.options = append(l.options, options...) }
}

// Locker is a gocron.Locker. The key is the name of the job: give each job one (gocron.WithName).
type Locker struct {
	client  *pawl.Client
	prefix  string
	atLeast time.Duration
	options []pawl.LockOption

	mu   sync.Mutex
	held map[string]*pawl.Lock
}

// NewLocker returns a Locker for gocron.WithDistributedLocker or gocron.WithDistributedJobLocker.
func NewLocker(client *pawl.Client, options ...Option) *Locker {
	l := &Locker{client: client, prefix: prefixDefault, atLeast: atLeastDefault,
		held: make(map[string]*pawl.Lock)}
	for _, option := range options {
		option(l)
	}
	return l
}

// Lock takes the lock of one run of the job. It does not wait: if another scheduler has it, or no
// node answers within AtLeast, gocron skips this fire and tells the listener AfterLockError why.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := l.acquire(ctx, l.prefix+job)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[job] = lock
	return &run{locker: l, job: job, lock: lock, ends: time.Now().Add(l.atLeast)}, nil
}

// acquire acquires the key within AtLeast: by then another scheduler may have run the fire and
// released the key.
func (l *Locker) acquire(ctx context.Context, key string) (*pawl.Lock, error) {
	options := append([]pawl.LockOption{pawl.Label("gocron")}, l.options...)
	if l.atLeast == 0 {
		return l.client.Lock(ctx, key, options...)
	}
	within, cancel := context.WithTimeout(ctx, l.atLeast)
	defer cancel()
	lock, err := l.client.Lock(within, key, options...)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("pawlgocron: no node has answered within AtLeast (%v), so another scheduler "+
			"may have run this fire: %w", l.atLeast, err)
	}
	return lock, err
}

// Held returns the lock of the run of this job that is under way in this process; nil: there is
// none. With it the job can ask whether it may go on (pawl.Lock.Context, Valid), and for the fencing
// token, which gocron does not hand on.
func (l *Locker) Held(job string) *pawl.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[job]
}

// run is the lock of one run of a job.
type run struct {
	locker *Locker
	job    string
	lock   *pawl.Lock
	ends   time.Time
}

// Unlock releases the lock. The key stays closed until AtLeast is over, also if this process ends.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.mu.Lock()
	if r.locker.held[r.job] == r.lock {
		delete(r.locker.held, r.job)
	}
	r.locker.mu.Unlock()
	// The context is that of the job, and canceled when the scheduler stops.
	return r.lock.ReleaseAndClose(context.WithoutCancel(ctx), max(0, time.Until(r.ends)))
}
