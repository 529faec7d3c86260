// Package pawltusd gives tusd locks that many servers share, so that an upload which one of them has
// begun goes on at another one. One line changes:
//
//	pawltusd.New(client).UseIn(composer)
package pawltusd

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.org/pawl"
	"github.com/tus/tusd/v2/pkg/handler"
)

const (
	prefixDefault = "tusd/"
	// A waiter asks the holder again after a while: the question may not have reached it, and the
	// holder may be another one by then.
	askAgain  = time.Second
	askSooner = 100 * time.Millisecond
	askTime   = 5 * time.Second
)

// An Option sets one thing of a Locker.
type Option func(*Locker)

// Prefix sets what the keys begin with; the id of the upload follows. The default is "tusd/".
func Prefix(prefix string) Option { return func(l *Locker) { l.prefix = prefix } }

// With adds options to each lock, such as pawl.Lease.
func With(options ...pawl.LockOption) Option {
	return func(l *Locker) { l.options = append(l.options, options...) }
}

// Locker is a handler.Locker.
type Locker struct {
	client  *pawl.Client
	prefix  string
	options []pawl.LockOption
}

// New returns a Locker.
func New(client *pawl.Client, options ...Option) *Locker {
	l := &Locker{client: client, prefix: prefixDefault, options: []pawl.LockOption{pawl.Label("tusd")}}
	for _, option := range options {
		option(l)
	}
	return l
}

// UseIn adds this locker to the composer.
func (l *Locker) UseIn(composer *handler.StoreComposer) { composer.UseLocker(l) }

// NewLock returns a lock for one request to the upload of this id.
func (l *Locker) NewLock(id string) (handler.Lock, error) {
	return &lock{locker: l, key: l.prefix + id}, nil
}

type lock struct {
	locker *Locker
	key    string
	held   *pawl.Lock
	// stop ends the watch for a loss.
	stop func() bool
}

// Lock waits for the lock. It asks whoever holds it to let go. requestUnlock is called when another
// request asks, and when the lock is about to be lost.
func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	request := sync.OnceFunc(requestUnlock)
	options := append([]pawl.LockOption{pawl.OnAsked(func(pawl.Asked) { request() })}, l.locker.options...)
	held, err := l.locker.client.Lock(ctx, l.key, options...)
	if errors.Is(err, pawl.ErrHeld) {
		held, err = l.wait(ctx, options)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return handler.ErrLockTimeout
	case err != nil:
		return err
	}
	l.held, l.stop = held, context.AfterFunc(held.Context(), request)
	return nil
}

// wait waits in the queue, and asks holders meanwhile.
func (l *lock) wait(ctx context.Context, options []pawl.LockOption) (*pawl.Lock, error) {
	asking, cancel := context.WithCancel(ctx)
	var asks sync.WaitGroup
	defer asks.Wait()
	defer cancel()
	asks.Go(func() {
		for asking.Err() == nil {
			pause(asking, l.ask(asking))
		}
	})
	return l.locker.client.Lock(ctx, l.key, append(options, pawl.Wait(pawl.Forever))...)
}

// ask asks the holder once, and returns when to do so again.
func (l *lock) ask(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	reached, err := l.locker.client.AskRelease(ctx, l.key, "", "", 0)
	if err != nil || reached == 0 {
		return askSooner
	}
	return askAgain
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Unlock releases the lock.
func (l *lock) Unlock() error {
	if l.held == nil {
		return errors.New("pawltusd: unlock of a lock that is not locked")
	}
	l.stop()
	return l.held.Release(context.Background())
}
