// Package pawlcertmagic gives the storage of certmagic the locks of Pawl, so that of many servers one
// obtains or renews a certificate. One line changes:
//
//	certmagic.Default.Storage = pawlcertmagic.New(client, &certmagic.FileStorage{Path: path})
//
// Certificates stay where they are; only the locks of the storage are no longer used.
package pawlcertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.org/pawl"
	"github.com/caddyserver/certmagic"
)

const prefixDefault = "certmagic/"

// An Option sets one thing of a Storage.
type Option func(*Storage)

// Prefix sets what the keys begin with; certmagic's name of the lock follows. The default is
// "certmagic/".
func Prefix(prefix string) Option { return func(s *Storage) { s.prefix = prefix } }

// With adds options to each lock, such as pawl.Lease.
func With(options ...pawl.LockOption) Option {
	return func(s *Storage) { s.options = append(s.options, options...) }
}

// Storage is a certmagic.Storage, TryLocker and LockLeaseRenewer.
type Storage struct {
	certmagic.Storage
	client  *pawl.Client
	prefix  string
	options []pawl.LockOption

	mu sync.Mutex
	// held has the locks of each name that have not been unlocked, the oldest first. There are
	// several only if all but the last one are lost.
	held map[string][]*pawl.Lock
}

// New returns the storage with the locks of Pawl in place of its own.
func New(client *pawl.Client, storage certmagic.Storage, options ...Option) *Storage {
	s := &Storage{Storage: storage, client: client, prefix: prefixDefault,
		options: []pawl.LockOption{pawl.Label("certmagic")}, held: make(map[string][]*pawl.Lock)}
	for _, option := range options {
		option(s)
	}
	return s
}

// String names the storage in logs.
func (s *Storage) String() string { return fmt.Sprintf("%v, with locks of Pawl", s.Storage) }

// Lock waits for its turn in the queue of the lock, until the context is over.
func (s *Storage) Lock(ctx context.Context, name string) error {
	_, err := s.lock(ctx, name, pawl.Forever)
	return err
}

// TryLock returns false if somebody else holds the lock.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	locked, err := s.lock(ctx, name, 0)
	if errors.Is(err, pawl.ErrHeld) {
		return false, nil
	}
	return locked, err
}

func (s *Storage) lock(ctx context.Context, name string, wait time.Duration) (bool, error) {
	options := append([]pawl.LockOption{pawl.Wait(wait)}, s.options...)
	lock, err := s.client.Lock(ctx, s.prefix+name, options...)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lock)
	return true, nil
}

// Unlock releases the lock. It is no error if the lock was lost before.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	lock := s.take(name)
	if lock == nil {
		return fmt.Errorf("pawlcertmagic: unlock of %q, which is not locked", name)
	}
	if err := lock.Release(ctx); err != nil && !errors.Is(err, pawl.ErrLost) {
		return err
	}
	return nil
}

func (s *Storage) take(name string) *pawl.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks := s.held[name]
	if len(locks) == 0 {
		return nil
	}
	if s.held[name] = locks[1:]; len(locks) == 1 {
		delete(s.held, name)
	}
	return locks[0]
}

// RenewLockLease makes sure that the lock is still held, and extends it now. The duration does not
// matter: a lock is extended in the background for as long as this process lives. An error ends the
// attempt of certmagic: somebody else may obtain the certificate.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	var lock *pawl.Lock
	if locks := s.held[name]; len(locks) > 0 {
		lock = locks[len(locks)-1]
	}
	s.mu.Unlock()
	if lock == nil {
		return fmt.Errorf("pawlcertmagic: renewal of %q, which is not locked", name)
	}
	return lock.Extend(ctx, 0)
}
