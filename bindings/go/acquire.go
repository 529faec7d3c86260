package pawl

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

const (
	patientFirst = 100 * time.Millisecond
	patientLast  = 5 * time.Second
)

// want is one key of an acquire.
type want struct {
	key  string
	mode msgpack.Map
}

// acquiring is one acquire under way. Its outcome is taken over while the engine's lock is held, so
// that nothing can come between the grant and the first look after it.
type acquiring struct {
	c       *Client
	options *lockOptions
	wants   []want
	several bool
	trace   string
	onLost  func(h *held) func(*LostError)

	got  []*held
	late bool
	err  *fault.Error
}

// acquire acquires. If the lease was left open, and the default is longer than the cluster allows, it
// asks again with a lease that is allowed.
func (c *Client) acquire(ctx context.Context, a *acquiring) ([]*held, error) {
	began := time.Now()
	trace, ended := c.begun(ctx, "acquire", a.wants[0].key)
	a.trace = trace
	got, err := c.acquireWithin(ctx, a)
	err = told(err)
	ended(err)
	if f := c.hooks.Acquired; f != nil && err == nil {
		waited := time.Since(began)
		for _, h := range got {
			token := h.token.Load()
			c.callback(func() { f(h.key, token, waited) })
		}
	}
	return got, err
}

func (c *Client) acquireWithin(ctx context.Context, a *acquiring) ([]*held, error) {
	given := a.options
	c.engine.Lock()
	most := c.leaseMost
	c.engine.Unlock()
	a.options = given.within(most)
	got, err := c.acquirePatiently(ctx, a)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != "too_long" || e.Limit == 0 {
		return got, err
	}
	shorter := given.within(e.Limit)
	if shorter.lease >= a.options.lease {
		return nil, err
	}
	c.engine.Lock()
	c.leaseMost = e.Limit
	c.engine.Unlock()
	a.options = shorter
	return c.acquirePatiently(ctx, a)
}

// passing are the errors after which a patient candidate asks again: it could not even wait.
var passing = []string{"no_quorum", "recovering", "unreachable", "busy", "indeterminate", "quota"}

func (c *Client) acquirePatiently(ctx context.Context, a *acquiring) ([]*held, error) {
	end := c.engine.Clock.Now().Plus(a.options.wait)
	pause := patientFirst
	for {
		left := clock.Left(end, c.engine.Clock.Now())
		got, err := c.acquireOnce(ctx, a, left)
		var e *fault.Error
		if err == nil || !a.options.patient || !errors.As(err, &e) || !slices.Contains(passing, e.Code) ||
			left <= pause {
			return got, err
		}
		timer := time.NewTimer(time.Duration(float64(pause) * (0.5 + rand.Float64()/2)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-c.engine.Context().Done():
			timer.Stop()
			return nil, closedError()
		}
		pause = min(2*pause, patientLast)
	}
}

func (c *Client) acquireOnce(ctx context.Context, a *acquiring, wait time.Duration) ([]*held, error) {
	call := &engine.Call{Method: "acquire", WaitName: "wait_ms", Wait: wait, Drawn: true, Trace: a.trace}
	call.Params = a.options.params(c)
	if a.several {
		locks := make([]msgpack.Map, len(a.wants))
		for i, w := range a.wants {
			locks[i] = append(msgpack.Map{{Name: "key", Value: []byte(w.key)}}, w.mode...)
		}
		call.Params = append(call.Params, msgpack.Pair{Name: "locks", Value: locks})
	} else {
		call.Params = append(append(call.Params, a.wants[0].mode...),
			msgpack.Pair{Name: "key", Value: []byte(a.wants[0].key)})
	}
	call.DrawAnew()
	err := a.ask(ctx, call, true)
	if err == nil && a.late {
		// After a wait of a hundred leases the drift of the clocks over it is longer than the
		// lease. The same lock_ids are asked for again; without an answer they are released.
		again := &engine.Call{Method: "acquire", Params: call.Params, WaitName: "wait_ms", Wait: wait, Sends: 1,
			Trace: a.trace}
		err = a.ask(ctx, again, false)
	}
	if err != nil {
		return nil, err
	}
	return a.got, nil
}

// ask makes the request, and takes over what it grants.
func (a *acquiring) ask(ctx context.Context, call *engine.Call, again bool) error {
	a.got, a.late, a.err = nil, false, nil
	call.OnDone = func(answer engine.Answer, err *fault.Error) {
		if err == nil {
			a.granted(call, answer, again)
		}
	}
	if _, err := a.c.engine.Run(ctx, call); err != nil {
		return err
	}
	if a.err != nil {
		return a.err
	}
	return nil
}

// granted takes over a grant, with the engine's lock.
func (a *acquiring) granted(call *engine.Call, answer engine.Answer, again bool) {
	e := a.c.engine
	valid, _ := answer.Result["valid_ms"].(int64)
	waited, _ := answer.Result["waited_ms"].(int64)
	deadline := answer.SentAt.Plus(time.Duration(min(max(valid, 0), 1e12)) * time.Millisecond)
	over := clock.Left(deadline, e.Clock.Now()) == 0
	said := a.saidOf(call, answer.Result)
	switch {
	case over && again && waited > millis(a.options.lease):
		a.late = true
		return
	case over:
		a.err = fault.New("lost", "the answer arrived after the lease had expired")
	case a.options.disconnect && answer.Connection != e.Connection():
		a.err = fault.New("unreachable", "the connection that the lock ends with was gone when the answer came")
	case said == nil:
		a.err = fault.New("protocol", "the answer is not about the keys that were asked for")
	}
	if a.err != nil {
		e.ReleaseAll(call)
		return
	}
	for i, lock := range call.Locks() {
		id, _ := lock.Get("lock_id").(string)
		a.got = append(a.got, a.take(a.wants[i].key, id, deadline, said[i], answer, waited))
	}
}

// saidOf returns what the answer says of each lock; nil: it is not about what was asked for.
func (a *acquiring) saidOf(call *engine.Call, result map[string]any) []map[string]any {
	if !a.several {
		return []map[string]any{result}
	}
	list, _ := result["locks"].([]any)
	found := make([]map[string]any, len(a.wants))
	for _, one := range list {
		item, _ := one.(map[string]any)
		i := slices.IndexFunc(a.wants, func(w want) bool { return item["key"] == any(w.key) })
		if i < 0 {
			return nil
		}
		found[i] = item
	}
	if slices.ContainsFunc(found, func(m map[string]any) bool { return m == nil }) {
		return nil
	}
	return found
}

func (a *acquiring) take(key, id string, deadline clock.Instant, said map[string]any, answer engine.Answer, waited int64) *held {
	h := &held{c: a.c, key: key, lockID: id, options: a.options, lease: a.options.lease,
		warn: a.options.warnTime(), value: a.options.value, slots: intsOf(said["slots"])}
	h.mode, _ = said["mode"].(string)
	if h.mode == "" {
		h.mode = "exclusive"
		if a.options.permits > 0 {
			h.mode = "permits"
		} else if a.options.shared {
			h.mode = "shared"
		}
	}
	h.deadline.Store(&deadline)
	h.token.Store(tokenOf(said["token"]))
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	if a.onLost != nil {
		h.onLost = a.onLost(h)
	}
	connection := 0
	if a.options.disconnect {
		connection = answer.Connection
	}
	// A client that has waited for a long time extends at once.
	a.c.keeper.add(h, waited > millis(h.lease), connection)
	h.listen()
	return h
}
