package pawl

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// LockSet is several keys that were acquired together.
type LockSet struct {
	locks  []*Lock
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Locks acquires all of the keys, or none, without deadlock, in whatever order programs name them.
// After an error none of them is held, and Key of the error names the key that it is about.
func (c *Client) Locks(ctx context.Context, keys []string, options ...LockOption) (*LockSet, error) {
	o, err := optionsOf(options)
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	if len(keys) == 0 || len(keys) > 64 || len(slices.Compact(sorted)) != len(keys) {
		return nil, badArgument("keys: give 1 to 64 keys, and no key twice")
	}
	s := &LockSet{}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	a := &acquiring{c: c, options: o, several: true}
	// What it refers to must not keep the set from being found dropped.
	cancel := s.cancel
	a.onLost = func(*held) func(*LostError) { return func(lost *LostError) { cancel(lost) } }
	for _, key := range keys {
		a.wants = append(a.wants, want{key, o.mode()})
	}
	got, err := c.acquire(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, h := range got {
		s.locks = append(s.locks, newLock(h))
	}
	return s, nil
}

// All returns the locks, in the order in which the keys were named.
func (s *LockSet) All() []*Lock { return slices.Clone(s.locks) }

// Lock returns the lock of the key; nil: the set has none.
func (s *LockSet) Lock(key string) *Lock {
	for _, l := range s.locks {
		if l.Key() == key {
			return l
		}
	}
	return nil
}

// Valid returns for how long all of them may still be trusted.
func (s *LockSet) Valid() time.Duration {
	valid := s.locks[0].Valid()
	for _, l := range s.locks[1:] {
		valid = min(valid, l.Valid())
	}
	return valid
}

// Context is canceled when one of the locks is given up; context.Cause is its *LostError. It is also
// canceled when the set is released.
func (s *LockSet) Context() context.Context { return s.ctx }

// Done is closed when one of the locks is given up, or the set is released.
func (s *LockSet) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns nil as long as all of them are held, and then the *LostError of the first one that is
// not.
func (s *LockSet) Err() error {
	for _, l := range s.locks {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Shorten makes the leases of all of them end sooner, as Lock.Shorten does, with the errors joined.
func (s *LockSet) Shorten(ctx context.Context, lease time.Duration) error {
	errs := make([]error, len(s.locks))
	var all sync.WaitGroup
	for i, l := range s.locks {
		all.Go(func() { errs[i] = l.Shorten(ctx, lease) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Release stops trusting all of them at once, and then releases them. It returns as Lock.Release
// does, with the errors joined.
func (s *LockSet) Release(ctx context.Context) error {
	all := make([]releasing, len(s.locks))
	for i, l := range s.locks {
		all[i] = l.beginRelease(ctx)
	}
	e := s.locks[0].h.c.engine
	e.Lock()
	for _, l := range s.locks {
		l.h.deadline.Store(nil)
	}
	for i := range all {
		all[i].start(0)
	}
	s.cancel(&LostError{Key: s.locks[0].h.key, Released: true})
	e.Unlock()
	var errs []error
	for _, r := range all {
		errs = append(errs, r.wait(ctx))
	}
	return errors.Join(errs...)
}
