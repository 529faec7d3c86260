package pawl

import (
	"context"
	"errors"
	"fmt"
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

func leaderOf(h Holder) *Leader {
	return &Leader{Owner: h.Owner, Value: h.Value, Token: h.Token, Label: h.Label, Host: h.Host, PID: h.PID}
}

// Election returns an election, in which the options are those of the candidate: Owner names it,
// Value is what it proclaims. Candidates wait for as long as it takes unless Wait says otherwise.
func (c *Client) Election(name string, options ...LockOption) *Election {
	return &Election{c: c, name: name, options: append([]LockOption{Wait(Forever)}, options...)}
}

// TakeOver lets a candidate ask a present leader of lower priority to yield. Candidates of equal
// priority never disturb each other.
func TakeOver() LockOption { return func(o *lockOptions) { o.takeOver = true } }

// YieldError is the cause with which the context of a leadership is canceled when another candidate
// has asked for it, by TakeOver or with AskRelease: stop, and call Resign, which hands over to it.
type YieldError struct {
	// To is the name of that candidate.
	To string
}

// Error names the candidate.
func (e *YieldError) Error() string {
	return fmt.Sprintf("pawl: this leader is to hand over to %q", e.To)
}

// Leadership is the lock of a leader. Act only while Valid is above 0, and stop when Context is
// canceled.
type Leadership struct {
	*Lock
	election *Election
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

// Campaign waits to be elected, also while no node can be reached or too few masters answer. The
// options are added to those of the election.
//
// A leader hands over to a candidate that is named when somebody asks it to let go, or to the one
// that asks if that has a higher priority: its Context is canceled with a *YieldError. With OnAsked
// the program decides instead, and calls Transfer or Yield.
func (e *Election) Campaign(ctx context.Context, options ...LockOption) (*Leadership, error) {
	all := append(slices.Clone(e.options), options...)
	l := &Leadership{election: e}
	o, err := optionsOf(all)
	if err != nil {
		return nil, err
	}
	o.patient, o.election = true, true
	asked := make(chan Asked, 16)
	if o.onAsked == nil {
		o.onAsked = func(a Asked) {
			select {
			case asked <- a:
			default:
			}
		}
	}
	if o.takeOver {
		asking, stop := context.WithCancel(ctx)
		defer stop()
		e.c.engine.Go(func() { e.takeOver(asking, o) })
	}
	got, err := e.c.acquire(ctx, &acquiring{c: e.c, options: o, wants: []want{{e.name, o.mode()}}})
	if err != nil {
		return nil, err
	}
	l.Lock = newLock(got[0])
	l.ctx, l.cancel = context.WithCancelCause(l.Lock.Context())
	// What it refers to must not keep the lock from being found dropped.
	y := &yielding{c: e.c, name: e.name, priority: o.priority, lock: l.Lock.Context(), cancel: l.cancel}
	e.c.engine.Go(func() { y.decide(asked) })
	return l, nil
}

// yielding decides for a leader to whom it hands over.
type yielding struct {
	c        *Client
	name     string
	priority int32
	lock     context.Context
	cancel   context.CancelCauseFunc
}

func (y *yielding) decide(asked <-chan Asked) {
	for {
		select {
		case <-y.lock.Done():
			return
		case a := <-asked:
			to := a.To
			if to == "" && a.Priority > y.priority {
				to = a.By
			}
			if to == "" {
				continue
			}
			waiters, _, err := y.c.Waiters(y.lock, y.name)
			if err == nil && slices.ContainsFunc(waiters, func(w Waiter) bool { return w.Owner == to }) {
				y.cancel(&YieldError{To: to})
				return
			}
		}
	}
}

// Context is canceled when the leadership is given up, with a *LostError as its cause, and when this
// leader is to hand over, with a *YieldError.
func (l *Leadership) Context() context.Context { return l.ctx }

// Done is closed when Context is canceled.
func (l *Leadership) Done() <-chan struct{} { return l.ctx.Done() }

// Yield cancels Context as if another candidate had asked for the leadership.
func (l *Leadership) Yield(to string) { l.cancel(&YieldError{To: to}) }

// Resign stops leading at once, and lets the next candidate lead, or the one to which this leader is to
// hand over. It returns as Lock.Release does.
func (l *Leadership) Resign(ctx context.Context) error {
	var yield *YieldError
	if errors.As(context.Cause(l.ctx), &yield) && l.Lock.Err() == nil {
		err := l.Transfer(ctx, yield.To)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrLost) {
			return err
		}
		// Nobody of that name waits any more, or it is not possible.
	}
	return l.Release(ctx)
}

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

// Ask asks the leader to let go, in favour of the candidate `to` if that is not empty. It returns how
// many clients were told, at least.
func (e *Election) Ask(ctx context.Context, to string) (reached int, err error) {
	o, err := optionsOf(e.options)
	if err != nil {
		return 0, err
	}
	return e.c.AskRelease(ctx, e.name, o.owner, to, o.priority)
}
