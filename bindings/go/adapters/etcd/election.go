package concurrency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.org/pawl"
)

var (
	// ErrElectionNotLeader: this election does not lead.
	ErrElectionNotLeader = errors.New("election: not leader")
	// ErrElectionNoLeader: nobody leads.
	ErrElectionNoLeader = errors.New("election: no leader")
)

// KeyValue is what is left of etcd's. The key names the candidate: that of the leader is equal to
// Key of its election.
type KeyValue struct {
	Key, Value []byte
	// CreateRevision is the token of the leader, which is Rev of its election.
	CreateRevision int64
}

// GetResponse is what is left of etcd's: Kvs has the leader.
type GetResponse struct {
	Header *ResponseHeader
	Kvs    []*KeyValue
}

// Election is the part that a session has in an election.
type Election struct {
	session *Session
	pfx     string

	mu     sync.Mutex
	held   *got
	header *ResponseHeader
}

// NewElection returns an election. Its name in Pawl is the prefix.
func NewElection(s *Session, pfx string) *Election { return &Election{session: s, pfx: pfx} }

// ResumeElection returns an election that leads, if the session leads with that revision: for another
// part of the program that has only kept Key and Rev.
func ResumeElection(s *Session, pfx string, leaderKey string, leaderRev int64) *Election {
	e := NewElection(s, pfx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.entries[electionPrefix+pfx]; h != nil && h.lock != nil &&
		int64(h.lock.Token()) == leaderRev && keyOf(pfx, h.lock.Token()) == leaderKey {
		e.held = &got{h.lock, h.leadership}
	}
	return e
}

func keyOf(pfx string, token uint64) string { return fmt.Sprintf("%s/%x", pfx, token) }

// Campaign waits to be elected, until the context or the session is over, and proclaims the value. If
// the session leads already, it only proclaims.
func (e *Election) Campaign(ctx context.Context, val string) error {
	fresh := false
	g, err := e.session.hold(ctx, electionPrefix+e.pfx, false, func(ctx context.Context) (got, error) {
		fresh = true
		l, err := e.session.client.Election(e.pfx, pawl.Lease(e.session.ttl),
			pawl.Value([]byte(val))).Campaign(ctx)
		if err != nil {
			return got{}, err
		}
		return got{l.Lock, l}, nil
	})
	if err != nil {
		return err
	}
	e.set(g, headerOf(g.lock))
	if !fresh {
		return e.Proclaim(ctx, val)
	}
	return nil
}

func (e *Election) set(g *got, header *ResponseHeader) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = g
	if header != nil {
		e.header = header
	}
}

func (e *Election) present() *got {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// Proclaim sets the value that observers see.
func (e *Election) Proclaim(ctx context.Context, val string) error {
	g := e.present()
	if g == nil {
		return ErrElectionNotLeader
	}
	err := g.leadership.Proclaim(ctx, []byte(val))
	if errors.Is(err, pawl.ErrLost) || g.lock.Err() != nil {
		e.set(nil, nil)
		return ErrElectionNotLeader
	}
	if err == nil {
		e.set(g, headerOf(g.lock))
	}
	return err
}

// Resign stops leading, and lets the next candidate lead. It returns nil if there is nothing to
// resign.
func (e *Election) Resign(ctx context.Context) error {
	g := e.present()
	if g == nil {
		return nil
	}
	err := notLost(e.session.release(ctx, electionPrefix+e.pfx, *g))
	e.set(nil, nil)
	return err
}

// Leader reads from a quorum of the masters who leads. Without a leader the error is
// ErrElectionNoLeader.
func (e *Election) Leader(ctx context.Context) (*GetResponse, error) {
	leader, err := e.session.client.Election(e.pfx).Leader(ctx)
	switch {
	case err != nil:
		return nil, err
	case leader == nil:
		return nil, ErrElectionNoLeader
	}
	return e.response(leader), nil
}

func (e *Election) response(leader *pawl.Leader) *GetResponse {
	return &GetResponse{
		Header: &ResponseHeader{Revision: int64(leader.Token)},
		Kvs: []*KeyValue{{
			Key:            []byte(keyOf(e.pfx, leader.Token)),
			Value:          leader.Value,
			CreateRevision: int64(leader.Token),
		}},
	}
}

// Observe tells the present leader, if there is one, and then each new leader and each new value, in
// order. The channel is closed when the context is over, or the client is closed.
func (e *Election) Observe(ctx context.Context) <-chan *GetResponse {
	leaders := make(chan *GetResponse)
	go func() {
		defer close(leaders)
		for leader, err := range e.session.client.Election(e.pfx).Observe(ctx) {
			if err != nil {
				return
			}
			if leader == nil {
				continue
			}
			select {
			case leaders <- e.response(leader):
			case <-ctx.Done():
				return
			}
		}
	}()
	return leaders
}

// Key returns the key that stands for this candidate while it leads, and otherwise an empty string.
func (e *Election) Key() string {
	if g := e.present(); g != nil {
		return keyOf(e.pfx, g.lock.Token())
	}
	return ""
}

// Rev returns the revision with which it leads, which is the token of the leader; 0: it does not lead.
func (e *Election) Rev() int64 {
	if g := e.present(); g != nil {
		return int64(g.lock.Token())
	}
	return 0
}

// Header returns the header of the last Campaign or Proclaim that succeeded.
func (e *Election) Header() *ResponseHeader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.header
}
