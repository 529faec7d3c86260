package pawlgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.org/pawl"
)

// campaignPause is how long an Elector waits after a campaign that has failed.
const campaignPause = time.Second

// ErrNotLeader says that another scheduler leads, or nobody yet.
var ErrNotLeader = errors.New("pawlgocron: this scheduler does not lead")

// Elector is a gocron.Elector: it takes part in an election from NewElector until Close.
type Elector struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	lead   *pawl.Leadership
	failed error
}

// NewElector takes part in the election of this name, in the background, with the options of a
// candidate, until it or the client is closed.
func NewElector(client *pawl.Client, election string, options ...pawl.LockOption) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{cancel: cancel, ended: make(chan struct{})}
	go func() {
		select {
		case <-client.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	go e.run(ctx, client.Election(election, append([]pawl.LockOption{pawl.Label("gocron")}, options...)...))
	return e
}

// IsLeader returns nil while this scheduler leads and nobody else can. It never asks a node.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.lead != nil && e.lead.Err() == nil && e.lead.Valid() > 0:
		return nil
	case e.failed != nil:
		return fmt.Errorf("%w: %w", ErrNotLeader, e.failed)
	}
	return ErrNotLeader
}

// Close leaves the election, and lets the next candidate lead if this scheduler did.
func (e *Elector) Close() error {
	e.cancel()
	<-e.ended
	return nil
}

func (e *Elector) run(ctx context.Context, election *pawl.Election) {
	defer close(e.ended)
	for ctx.Err() == nil {
		lead, err := election.Campaign(ctx)
		e.set(lead, err)
		if err != nil {
			pause(ctx, campaignPause)
			continue
		}
		select {
		case <-lead.Done():
		case <-ctx.Done():
		}
		e.set(nil, lead.Err())
		resign(ctx, lead)
	}
}

// resign waits until the next candidate may lead only if this one leaves the election: nodes that do
// not answer must not keep it from the next campaign.
func resign(ctx context.Context, lead *pawl.Leadership) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if ctx.Err() == nil {
		cancel()
	}
	_ = lead.Resign(within)
}

func (e *Elector) set(lead *pawl.Leadership, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lead, e.failed = lead, err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
