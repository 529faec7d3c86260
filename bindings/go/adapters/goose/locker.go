// Package pawlgoose lets one process of many migrate a database, whatever the database can lock
// itself. One line changes:
//
//	goose.NewProvider(dialect, db, migrations, goose.WithLocker(pawlgoose.New(client, "migrate/shop")))
package pawlgoose

import (
	"context"
	"database/sql"
	"errors"

	"example.org/pawl"
)

// Locker is a lock.Locker and a lock.SessionLocker of goose: use one of them. Providers that share a
// Locker take turns.
type Locker struct {
	client  *pawl.Client
	key     string
	options []pawl.LockOption
	// held has the lock while a provider migrates.
	held chan *pawl.Lock
	// free has one element while none does.
	free chan struct{}
}

// New returns a Locker for goose.WithLocker or goose.WithSessionLocker. The key stands for the
// database: all processes that migrate it name the same one.
func New(client *pawl.Client, key string, options ...pawl.LockOption) *Locker {
	l := &Locker{client: client, key: key, held: make(chan *pawl.Lock, 1), free: make(chan struct{}, 1),
		options: append([]pawl.LockOption{pawl.Wait(pawl.Forever), pawl.Label("goose")}, options...)}
	l.free <- struct{}{}
	return l
}

// Lock waits for its turn, until the context is over, or for as long as pawl.Wait says.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.lock(ctx) }

// Unlock lets the next process migrate. An error says that the lock was lost meanwhile: another
// process may have migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.unlock(ctx) }

// SessionLock is like Lock. The connection does not matter.
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.lock(ctx) }

// SessionUnlock is like Unlock.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.unlock(ctx) }

func (l *Locker) lock(ctx context.Context) error {
	select {
	case <-l.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	lock, err := l.client.Lock(ctx, l.key, l.options...)
	if err != nil {
		l.free <- struct{}{}
		return err
	}
	l.held <- lock
	return nil
}

func (l *Locker) unlock(ctx context.Context) error {
	select {
	case lock := <-l.held:
		defer func() { l.free <- struct{}{} }()
		return lock.Release(ctx)
	default:
		return errors.New("pawlgoose: unlock of a database that is not locked")
	}
}
