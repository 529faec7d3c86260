package pawlk8s

import (
	"context"
	"errors"
	"time"
)

// A service is what a Lock needs of Pawl, for one key. Its methods return as soon as the context
// ends.
type service interface {
	// acquire takes the key under a new lock_id. It waits in the queue for up to `wait`. If
	// somebody else has the key the error is errHeld.
	acquire(ctx context.Context, wait time.Duration, value []byte) (holding, error)
	// leader asks a quorum who holds the key.
	leader(ctx context.Context) (leader, error)
}

// A holding is a lock that was granted.
type holding interface {
	// Valid is what is left of it at least, counted from the sending of the latest request that
	// was granted.
	Valid() time.Duration
	// Done is closed when the lock is lost, or shortly before its end if nothing extends it.
	Done() <-chan struct{}
	// Token is its fencing token.
	Token() uint64
	// Extend asks for the whole lease again. The error is errLost if the lock is over.
	Extend(ctx context.Context) error
	// Update sets the value that others see.
	Update(ctx context.Context, value []byte) error
	// Release gives the lock up. It is not trusted any more, whatever comes of it.
	Release(ctx context.Context) error
}

// A leader is who holds the key.
type leader struct {
	held  bool
	owner string
	value []byte
}

var (
	errHeld = errors.New("another one holds it")
	errLost = errors.New("it is not held any more")
)
