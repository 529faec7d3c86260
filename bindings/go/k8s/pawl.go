package pawlk8s

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pawl"
)

// New makes the lock of one candidate in the election of that name, which is a key of Pawl; by
// custom it is k8s/NAMESPACE/NAME. The identity is what others see, and must differ from candidate
// to candidate; if it is empty, it is made of the host's name and a random number. New refuses what
// cannot be safe. Close the client after the elector, or the manager, has ended.
func New(client *pawl.Client, name, identity string, config Config) (*Lock, error) {
	if client == nil {
		return nil, errors.New("pawlk8s: the client is nil")
	}
	l, err := newLock(nil, name, identity, config)
	if err != nil {
		return nil, err
	}
	options := []pawl.LockOption{
		pawl.Owner(l.identity), pawl.Lease(l.lease),
		// The lock is given up this long before its end. An elector that keeps its times has stopped
		// before.
		pawl.Warn(l.config.Margin / 2),
	}
	if config.ReleaseOnDisconnect {
		options = append(options, pawl.ReleaseOnDisconnect())
	}
	l.service = &election{Election: client.Election(name, options...), lease: l.lease}
	return l, nil
}

// election is a service over a client of Pawl.
type election struct {
	*pawl.Election
	lease time.Duration
}

func (e *election) acquire(ctx context.Context, wait time.Duration, value []byte) (holding, error) {
	l, err := e.Campaign(ctx, pawl.Wait(wait), pawl.Value(value))
	var held *pawl.HeldError
	var said *pawl.Error
	switch {
	case err == nil:
		return leadership{l}, nil
	case errors.As(err, &held), errors.Is(err, pawl.ErrHeld):
		return nil, fmt.Errorf("%w: %w", errHeld, err)
	case errors.Is(err, pawl.ErrTooLong) && errors.As(err, &said):
		return nil, fmt.Errorf("a lease of %v is needed, and the cluster allows %v: raise its max_lease "+
			"(pawl cluster set-timing --max-lease), or give the elector and Config shorter times: %w",
			e.lease, said.Limit, err)
	}
	return nil, err
}

func (e *election) leader(ctx context.Context) (leader, error) {
	now, err := e.Leader(ctx)
	if err != nil || now == nil {
		return leader{}, err
	}
	return leader{held: true, owner: now.Owner, value: now.Value}, nil
}

// leadership is a holding over a lock of Pawl. An elector cannot yield, so nothing here listens to
// those who ask it to.
type leadership struct{ *pawl.Leadership }

func (l leadership) Done() <-chan struct{} { return l.Lock.Done() }

func (l leadership) Extend(ctx context.Context) error { return lost(l.Lock.Extend(ctx, 0)) }

func (l leadership) Update(ctx context.Context, value []byte) error {
	return lost(l.Proclaim(ctx, value))
}

func (l leadership) Release(ctx context.Context) error { return l.Lock.Release(ctx) }

func lost(err error) error {
	if errors.Is(err, pawl.ErrLost) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}
