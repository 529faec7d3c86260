package concurrency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.org/pawl"
)

var (
	// ErrLocked is returned by TryLock when another session holds the lock.
	ErrLocked = errors.New("mutex: Locked by another session")
	// ErrSessionExpired: the session is over, and with it all that it held.
	ErrSessionExpired = errors.New("mutex: session is expired")
	// ErrLockReleased is returned by Unlock when there is nothing to unlock.
	ErrLockReleased = errors.New("mutex: lock has already been released")
)

// ResponseHeader is what is left of etcd's: the revision, which is the token.
type ResponseHeader struct {
	Revision int64
}

// GetRevision returns the revision.
func (h *ResponseHeader) GetRevision() int64 {
	if h == nil {
		return 0
	}
	return h.Revision
}

func headerOf(lock *pawl.Lock) *ResponseHeader {
	if lock == nil {
		return nil
	}
	return &ResponseHeader{Revision: int64(lock.Token())}
}

// Mutex is a lock of a session.
type Mutex struct {
	s   *Session
	pfx string

	mu   sync.Mutex
	held *got
}

// NewMutex returns a mutex. Its key in Pawl is the prefix.
func NewMutex(s *Session, pfx string) *Mutex { return &Mutex{s: s, pfx: pfx} }

// Lock waits for the lock, until the context or the session is over. If it returns an error, the lock
// is not held.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.acquire(ctx, false, func(ctx context.Context) (got, error) {
		l, err := m.s.client.Lock(ctx, m.pfx, pawl.Lease(m.s.ttl), pawl.Wait(pawl.Forever))
		return got{lock: l}, err
	})
}

// TryLock takes the lock if that is possible at once. Otherwise it returns ErrLocked.
func (m *Mutex) TryLock(ctx context.Context) error {
	return m.acquire(ctx, true, func(ctx context.Context) (got, error) {
		l, err := m.s.client.Lock(ctx, m.pfx, pawl.Lease(m.s.ttl))
		if errors.Is(err, pawl.ErrHeld) {
			return got{}, nil
		}
		return got{lock: l}, err
	})
}

func (m *Mutex) acquire(ctx context.Context, try bool, f func(context.Context) (got, error)) error {
	g, err := m.s.hold(ctx, mutexPrefix+m.pfx, try, f)
	switch {
	case err != nil:
		return err
	case g == nil:
		return ErrLocked
	}
	m.mu.Lock()
	m.held = g
	m.mu.Unlock()
	return nil
}

// What a session holds is listed by kind and prefix.
const (
	mutexPrefix    = "mutex "
	electionPrefix = "election "
)

// Unlock releases the lock. If it had been lost before, and so what was done under it may not have
// been alone, the error is ErrSessionExpired with a *pawl.LostError in it. If the context is over,
// the release goes on in the background, and Unlock may be called again.
func (m *Mutex) Unlock(ctx context.Context) error {
	held := m.present()
	if held == nil {
		return ErrLockReleased
	}
	err := m.s.release(ctx, mutexPrefix+m.pfx, *held)
	if err != nil && !errors.Is(err, pawl.ErrLost) {
		return err
	}
	m.mu.Lock()
	if m.held == held {
		m.held = nil
	}
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSessionExpired, err)
	}
	return nil
}

func (m *Mutex) present() *got {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

func (m *Mutex) lock() *pawl.Lock {
	if held := m.present(); held != nil {
		return held.lock
	}
	return nil
}

// IsOwner returns whether the lock can be trusted now. It only reads clocks.
func (m *Mutex) IsOwner() bool {
	lock := m.lock()
	return lock != nil && m.s.ctx.Err() == nil && lock.Valid() > 0
}

// Key returns the key in Pawl while this mutex has the lock, and otherwise an empty string.
func (m *Mutex) Key() string {
	if m.present() == nil {
		return ""
	}
	return m.pfx
}

// Header returns a header whose revision is the token of the lock; nil: the mutex has none.
func (m *Mutex) Header() *ResponseHeader { return headerOf(m.lock()) }

type lockerMutex struct{ *Mutex }

func (l *lockerMutex) Lock() {
	if err := l.Mutex.Lock(context.Background()); err != nil {
		panic(err)
	}
}

func (l *lockerMutex) Unlock() {
	if err := l.Mutex.Unlock(context.Background()); err != nil && !errors.Is(err, ErrSessionExpired) {
		panic(err)
	}
}

// NewLocker returns a sync.Locker. Its Lock panics if the lock cannot be acquired, and its Unlock if
// it was not locked. It cannot tell the program that the lock is lost: watch Done of the session.
func NewLocker(s *Session, pfx string) sync.Locker { return &lockerMutex{NewMutex(s, pfx)} }
