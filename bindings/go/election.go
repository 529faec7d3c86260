package pawl

import (
	"context"
	"slices"
)

// Election is the part that this program has in an election: a lock whose key is the name of the
// election. The leader holds it, candidates wait for it in order, the value is what the leader
// proclaims, and the token grows from leader to leader.
type Election struct {
	c       *Client
	name    string
	options []LockOption
}

// Leader is who leads an election.
type Leader struct {
	// Owner is the name of the candidate, and Value what it proclaims.
	Owner string
	Value []byte
	Token uint64
	// Label, Host and PID say more about its process, if they are known.
	Label, Host string
	PID         int
}

// Election returns an election, in which the options are those of the candidate: Owner names it,
// Value is what it proclaims. Candidates wait for as long as it takes unless Wait says otherwise.
func (c *Client) Election(name string, options ...LockOption) *Election {
	return &Election{c: c, name: name, options: append([]LockOption{Wait(Forever)}, options...)}
}

// Leadership is the lock of a leader. Act only while Valid is above 0, and stop when Context is
// canceled.
type Leadership struct {
	*Lock
	election *Election
}

// Campaign waits to be elected, also while no node can be reached or too few masters answer. The
// options are added to those of the election.
func (e *Election) Campaign(ctx context.Context, options ...LockOption) (*Leadership, error) {
	all := append(slices.Clone(e.options), options...)
	l, err := e.c.Lock(ctx, e.name, append(all, patiently, func(o *lockOptions) { o.election = true })...)
	if err != nil {
		return nil, err
	}
	return &Leadership{Lock: l, election: e}, nil
}

// Resign stops leading at once, and then lets the next candidate lead. It returns as Lock.Release
// does.
func (l *Leadership) Resign(ctx context.Context) error { return l.Release(ctx) }

// Proclaim sets the value that observers see.
func (l *Leadership) Proclaim(ctx context.Context, value []byte) error {
	_, err := l.Update(ctx, value)
	return err
}

// Leader reads from a quorum of the masters who leads now; nil: nobody.
func (e *Election) Leader(ctx context.Context) (*Leader, error) {
	entry, err := e.c.Get(ctx, e.name, Quorum())
	if err != nil || !entry.Held {
		return nil, err
	}
	return leaderOf(entry.Holder), nil
}

func leaderOf(h Holder) *Leader {
	return &Leader{Owner: h.Owner, Value: h.Value, Token: h.Token, Label: h.Label, Host: h.Host, PID: h.PID}
}
