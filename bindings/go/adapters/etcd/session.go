// Package concurrency has the shape of etcd's package go.etcd.io/etcd/client/v3/concurrency, on a
// client of Pawl: a program that locks or elects with that package changes its import and the line
// that makes the client.
//
//	client, err := pawl.Dial(ctx)
//	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
//	mutex := concurrency.NewMutex(session, "/jobs/report")
//	err = mutex.Lock(ctx)
//
// The prefix of a mutex or of an election is its key in Pawl, as it is: `pawl explain /jobs/report`.
// A revision is the fencing token, which grows from holder to holder of a key.
//
// What is different from etcd:
//
//   - There are no keys of candidates below the prefix and no lease of the session. Each lock has a
//     lease of its own, as long as the TTL, that is renewed at a third of it.
//   - Done is closed before the first lock of the session can be somebody else's, a sixth of the TTL
//     ahead where that can be known, and not when the server has ended the lease.
//   - Types of etcd's client have a counterpart here, with the fields that make sense: GetResponse,
//     KeyValue, ResponseHeader. IsOwner returns a bool: there is no transaction to put it in. Send
//     the token along with each write instead, and let the resource check it (package fence).
//   - Unlock says so if the lock had been lost.
//   - There is no STM, no Session.Lease and no WithLease.
package concurrency

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.org/pawl"
)

const (
	defaultSessionTTL = 60
	// After a loss the other locks of a session are kept for this part of the TTL, in which the
	// program stops.
	stoppingShare = 6
)

var (
	errClosed   = errors.New("session: closed")
	errOrphaned = errors.New("session: orphaned")
	errNoClient = errors.New("session: the client is closed")
)

// Session is the owner of locks and leaderships. They all end with it. Any number of goroutines may
// use it.
//
// As in etcd, one session holds a key once: a second Mutex with the same prefix in the same session
// shares the lock of the first one, and the first Unlock of either releases it. To exclude
// goroutines of one program from each other, give each a session.
type Session struct {
	client *pawl.Client
	ttl    time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	entries map[string]*entry
	late    *time.Timer
	// What the session held when it was orphaned.
	orphans []*pawl.Lock
}

// entry is what a session has under one key.
type entry struct {
	// Who acquires has the only place.
	turn chan struct{}
	// How many calls use this entry. It counts the lock as one.
	users      int
	lock       *pawl.Lock
	leadership *pawl.Leadership
}

type sessionOptions struct {
	ttl int
	ctx context.Context
}

// SessionOption sets one thing of a session.
type SessionOption func(*sessionOptions)

// WithTTL sets the lease of the locks in seconds. The default is 60; a number that is not positive is
// ignored. If it is more than the cluster allows, locks and campaigns fail with pawl.ErrTooLong.
func WithTTL(ttl int) SessionOption {
	return func(o *sessionOptions) {
		if ttl > 0 {
			o.ttl = ttl
		}
	}
}

// WithContext ends the session with the context, as Orphan does.
func WithContext(ctx context.Context) SessionOption {
	return func(o *sessionOptions) { o.ctx = ctx }
}

// NewSession makes a session. It asks a node for a sign of life.
func NewSession(client *pawl.Client, opts ...SessionOption) (*Session, error) {
	o := sessionOptions{ttl: defaultSessionTTL, ctx: context.Background()}
	for _, opt := range opts {
		opt(&o)
	}
	if _, err := client.Call(o.ctx, "ping", nil); err != nil {
		return nil, err
	}
	s := &Session{client: client, ttl: time.Duration(o.ttl) * time.Second, entries: map[string]*entry{}}
	s.ctx, s.cancel = context.WithCancelCause(o.ctx)
	context.AfterFunc(s.ctx, s.ended)
	go func() {
		select {
		case <-client.Done():
			s.cancel(errNoClient)
		case <-s.ctx.Done():
		}
	}()
	return s, nil
}

// Client returns the client of the session.
func (s *Session) Client() *pawl.Client { return s.client }

// Ctx returns a context that is canceled when Done is closed. context.Cause is the *pawl.LostError of
// the lock that was lost, if that was the reason.
func (s *Session) Ctx() context.Context { return s.ctx }

// Done is closed when nothing of the session may be trusted any more: when one of its locks is given
// up, which is a sixth of the TTL before somebody else can get it wherever that can be known, when
// the client is closed, and when the session is closed, orphaned, or its context is over. After a loss the other locks stay held for another sixth of the TTL, so that
// the program can stop, and are released then.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Orphan ends the session without releasing what it holds: nothing renews it any more, and the keys
// become free when the TTL is over.
func (s *Session) Orphan() { s.cancel(errOrphaned) }

// Close ends the session and releases what it holds.
func (s *Session) Close() error {
	s.cancel(errClosed)
	ctx, cancel := context.WithTimeout(context.Background(), s.ttl)
	defer cancel()
	return s.releaseAll(ctx)
}

// ended sees to what becomes of the locks of a session that is over.
func (s *Session) ended() {
	cause := context.Cause(s.ctx)
	switch {
	case cause == errClosed:
	case errors.Is(cause, pawl.ErrLost):
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.entries) > 0 {
			s.late = time.AfterFunc(s.ttl/stoppingShare, func() { _ = s.releaseAll(context.Background()) })
		}
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.orphans = s.dropAll()
		for _, lock := range s.orphans {
			lock.Abandon()
		}
	}
}

// dropAll forgets all locks, and returns them. With mu.
func (s *Session) dropAll() []*pawl.Lock {
	var locks []*pawl.Lock
	for key, e := range s.entries {
		if e.lock != nil {
			locks = append(locks, e.lock)
			s.drop(key, e, e.lock)
		}
	}
	if s.late != nil {
		s.late.Stop()
	}
	return locks
}

func (s *Session) releaseAll(ctx context.Context) error {
	s.mu.Lock()
	locks := append(s.dropAll(), s.orphans...)
	s.orphans = nil
	s.mu.Unlock()
	errs := make([]error, len(locks))
	var all sync.WaitGroup
	for i, lock := range locks {
		all.Go(func() { errs[i] = notLost(lock.Release(ctx)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func notLost(err error) error {
	if errors.Is(err, pawl.ErrLost) {
		return nil
	}
	return err
}

// use returns the entry of the key, which the caller gives back with done.
func (s *Session) use(key string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1)}
		s.entries[key] = e
	}
	e.users++
	return e
}

func (s *Session) done(key string, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unuse(key, e)
}

func (s *Session) unuse(key string, e *entry) {
	if e.users--; e.users == 0 {
		delete(s.entries, key)
	}
}

// drop forgets the lock of the entry, if it is that one, which is then not missed when it ends.
func (s *Session) drop(key string, e *entry, lock *pawl.Lock) {
	if e.lock != lock {
		return
	}
	e.lock, e.leadership = nil, nil
	s.unuse(key, e)
}

// got is what an acquisition brings.
type got struct {
	lock       *pawl.Lock
	leadership *pawl.Leadership
}

// hold returns what the session holds under the key, or acquires it. If it only tries, it returns nil
// instead of waiting for another goroutine of the session.
func (s *Session) hold(ctx context.Context, key string, try bool,
	acquire func(context.Context) (got, error)) (*got, error) {
	if s.ctx.Err() != nil {
		return nil, ErrSessionExpired
	}
	e := s.use(key)
	defer s.done(key, e)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if ok, err := e.takeTurn(ctx, try); err != nil || !ok {
		return nil, s.told(err)
	}
	defer func() { <-e.turn }()
	s.mu.Lock()
	present := got{e.lock, e.leadership}
	s.mu.Unlock()
	if present.lock != nil {
		if present.lock.Err() != nil { // The session learns it at this moment.
			return nil, ErrSessionExpired
		}
		return &present, nil
	}
	g, err := acquire(ctx)
	if err != nil || g.lock == nil {
		return nil, s.told(err)
	}
	return &g, s.keep(key, e, g)
}

func (e *entry) takeTurn(ctx context.Context, try bool) (bool, error) {
	if try {
		select {
		case e.turn <- struct{}{}:
			return true, nil
		default:
			return false, nil
		}
	}
	select {
	case e.turn <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// keep makes the lock one of the session.
func (s *Session) keep(key string, e *entry, g got) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		go func() { _ = g.lock.Release(context.Background()) }()
		return ErrSessionExpired
	}
	e.lock, e.leadership = g.lock, g.leadership
	e.users++
	context.AfterFunc(g.lock.Context(), func() { s.lost(key, e, g.lock) })
	return nil
}

// lost is called when a lock has ended. If the session has released it, that is no loss.
func (s *Session) lost(key string, e *entry, lock *pawl.Lock) {
	s.mu.Lock()
	missed := e.lock == lock
	if missed {
		s.drop(key, e, lock)
	}
	s.mu.Unlock()
	if missed {
		s.cancel(lock.Err())
	}
}

// release releases a lock of the session.
func (s *Session) release(ctx context.Context, key string, g got) error {
	s.mu.Lock()
	if e := s.entries[key]; e != nil {
		s.drop(key, e, g.lock)
	}
	s.mu.Unlock()
	if g.leadership != nil {
		return g.leadership.Resign(ctx)
	}
	return g.lock.Release(ctx)
}

// told returns the error as the program sees it.
func (s *Session) told(err error) error {
	if err != nil && s.ctx.Err() != nil {
		return ErrSessionExpired
	}
	return err
}
