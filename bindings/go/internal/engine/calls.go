package engine

import (
	"context"
	"slices"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

const (
	requestBytesMax = 4 << 20
	callsMax        = 100000
)

// Run makes the call and waits for its outcome. When the context is over the call is given up, and
// what an acquire may have taken is released in the background.
func (e *Engine) Run(ctx context.Context, c *Call) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	e.Lock()
	e.Start(c)
	e.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		e.Lock()
		e.Cancel(c)
		e.Unlock()
		select {
		case <-c.done:
		default:
			return Answer{}, ctx.Err()
		}
	}
	if c.err != nil {
		return Answer{}, c.err
	}
	return c.answer, nil
}

// Wait waits for the outcome of a call that was started, or for the end of the context, which does
// not end the call.
func (c *Call) Await(ctx context.Context) (Answer, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if c.err != nil {
		return Answer{}, c.err
	}
	return c.answer, nil
}

// Start begins a call. With the lock.
func (e *Engine) Start(c *Call) {
	c.done = make(chan struct{})
	if e.closed || e.closing && c.Method != "release" {
		c.finish(Answer{}, fault.New("closed", "the client is closed"))
		return
	}
	if len(e.queue)+len(e.flights)+len(e.resting) >= callsMax && !c.Internal && c.Method != "release" {
		c.finish(Answer{}, fault.New("busy", "too many requests are in progress"))
		return
	}
	if slices.Contains(takesAway, c.Method) {
		e.owner.TakenAway(c)
	}
	e.prepare(c)
	if c.Internal {
		e.queue = slices.Insert(e.queue, 0, c)
	} else {
		e.queue = append(e.queue, c)
	}
	e.kick()
}

// prepare notes when the call has to end.
func (e *Engine) prepare(c *Call) {
	c.done = make(chan struct{})
	c.waitEnd = e.Clock.Now().Plus(c.Wait)
	c.waits = c.Wait > 0 || slices.Contains(long, c.Method)
	limit := c.Timeout
	if limit == 0 {
		limit = e.Timeout
	}
	if c.WaitName == "" && c.Method == "wait" {
		limit = WaitForever
	}
	c.endsAt = time.Now().Add(c.Wait + limit)
	c.timer = e.Alarm(c.Wait+limit, func() { e.onDeadline(c) })
}

func (e *Engine) kick() {
	e.connect()
	e.flush()
}

// Cancel gives a call up. With the lock.
func (e *Engine) Cancel(c *Call) {
	select {
	case <-c.done:
		return
	default:
	}
	e.drop(c)
	if c.inDoubt(nil, false) {
		e.ReleaseAll(c)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}

// LetGo begins a release, which nothing stops before the lease is over. It keeps the key closed for so
// long. With the lock.
func (e *Engine) LetGo(key, lockID string, lease, closing time.Duration, trace string) *Call {
	c := &Call{Method: "release", Timeout: max(lease, e.Timeout), Trace: trace,
		Params: msgpack.Map{{Name: "key", Value: []byte(key)}, {Name: "lock_id", Value: lockID}}}
	if closing > 0 {
		c.Params = append(c.Params, msgpack.Pair{Name: "close_ms", Value: int64((closing + time.Millisecond - 1) / time.Millisecond)})
	}
	c.OnDone = func(Answer, *fault.Error) { delete(e.releases, c) }
	e.releases[c] = true
	e.Start(c)
	return c
}

// ReleaseAll releases what an acquire may have taken, in the background. The outcome is ignored: at
// worst the lease runs out by itself. With the lock.
func (e *Engine) ReleaseAll(c *Call) {
	lease, _ := c.Params.Get("lease_ms").(int64)
	for _, lock := range c.Locks() {
		key, _ := lock.Get("key").([]byte)
		if id, ok := lock.Get("lock_id").(string); ok {
			e.LetGo(string(key), id, time.Duration(lease)*time.Millisecond, 0, c.Trace)
		}
	}
}

// land forgets a flight.
func (e *Engine) land(f *flight) {
	if f == nil || e.flights[f.msgid] != f {
		return
	}
	delete(e.flights, f.msgid)
	f.link.silence.Ended(f.waits)
}

// landAll forgets the flights over a connection.
func (e *Engine) landAll(l *Link) {
	for _, f := range e.flights {
		if f.link == l {
			e.land(f)
		}
	}
}

func (e *Engine) drop(c *Call) {
	if c.following != nil {
		c.following.cancel()
	}
	e.land(c.flight)
	e.land(c.before)
	c.flight, c.before = nil, nil
	if i := slices.Index(e.queue, c); i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
	}
	if timer := e.resting[c]; timer != nil {
		timer.Stop()
		delete(e.resting, c)
	}
}

func (e *Engine) end(c *Call, answer Answer, err *fault.Error, answered bool) {
	e.drop(c)
	if err != nil && c.inDoubt(err, answered) {
		e.ReleaseAll(c)
	}
	c.finish(answer, err)
}

func (e *Engine) late() *fault.Error {
	if e.link != nil || e.lastError == nil {
		hint := ""
		if e.link != nil && !e.link.talked {
			hint = " from " + e.link.endpoint.Text + e.link.endpoint.Hint()
		}
		return fault.New("timeout", "no answer came in time%s", hint)
	}
	return e.lastError
}

// Late returns the error of a request that nobody has answered in time.
func (e *Engine) Late() error {
	e.Lock()
	defer e.Unlock()
	return e.late()
}

func (e *Engine) onDeadline(c *Call) {
	switch {
	case slices.Contains(unsureAfterwards, c.Method) && c.Sends > 0:
		e.end(c, Answer{}, fault.New("unsure", "no answer came in time; the request may still take effect"), false)
	case c.refusal != nil: // It says more than the silence of other nodes.
		e.end(c, Answer{}, c.refusal, false)
	default:
		e.end(c, Answer{}, e.late(), false)
	}
}

// flush sends what waits to be sent, as far as there is room.
func (e *Engine) flush() {
	for l := e.link; l != nil && len(e.queue) > 0 && l.writable() && l == e.link; {
		c := e.queue[0]
		e.queue = e.queue[1:]
		if c.Connection != 0 && c.Connection != l.Number {
			err := e.lastError
			if err == nil {
				err = fault.New("unreachable", "the connection is gone")
			}
			e.end(c, Answer{}, err, false)
			continue
		}
		e.send(l, c)
	}
}

func (e *Engine) send(l *Link, c *Call) {
	for {
		e.msgid++
		if e.msgid != pingMsgid && e.flights[e.msgid] == nil {
			break
		}
	}
	now := e.Clock.Now()
	data, err := msgpack.Append(nil, []any{0, e.msgid, c.Method, []any{c.body(l, now, e.traceOf(c))}})
	if err != nil {
		c.finish(Answer{}, fault.New("bad_argument", "the request cannot be sent: %s", err))
		return
	}
	if len(data) > requestBytesMax {
		c.finish(Answer{}, fault.New("too_large", "the request is larger than %d bytes", requestBytesMax))
		return
	}
	f := &flight{msgid: e.msgid, call: c, link: l, sentAt: now, at: time.Now(), waits: c.waits}
	c.flight = f
	c.Sends++
	e.flights[f.msgid] = f
	l.send(data)
	l.silence.Sent(c.waits, f.at)
	l.setAlarm()
}

// traceOf returns the traceparent of a call; empty: it has none.
func (e *Engine) traceOf(c *Call) string {
	if c.Trace != "" {
		return c.Trace
	}
	return e.Trace
}

// underWay returns the flights over this connection that are their calls' last ones, in the order
// of sending.
func (e *Engine) underWay(l *Link) []*flight {
	var found []*flight
	for _, f := range e.flights {
		if f.link == l && f.call.flight == f {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b *flight) int { return int(int32(a.msgid - b.msgid)) })
	return found
}

// lost puts the calls that were under way over a lost connection in front of those that were not
// sent yet, in the order in which they were sent, so that the next node gets them in this order.
func (e *Engine) lost(l *Link, err *fault.Error) {
	var again, over []*Call
	for _, f := range e.underWay(l) {
		if f.call.repeatable() {
			again = append(again, f.call)
		} else {
			over = append(over, f.call)
		}
	}
	e.landAll(l)
	e.queue = append(again, e.queue...)
	for _, c := range over {
		e.endLost(c, err)
	}
}

// left is called when a node is left while its answers still count. repeat: it is silent, so what
// may be repeated is sent again. It returns how many calls are.
func (e *Engine) left(l *Link, repeat bool) int {
	flights := e.underWay(l)
	var again []*Call
	for _, f := range flights {
		if c := f.call; repeat && c.repeatable() {
			e.land(c.before)
			c.before, c.flight = f, nil
			again = append(again, c)
		}
	}
	e.queue = append(slices.Clone(again), e.queue...)
	for _, f := range flights {
		if f.call.Connection != 0 {
			e.endLost(f.call, fault.New("unreachable", "its node was left"))
		}
	}
	return len(again)
}

func (e *Engine) mayReturn() bool {
	for _, f := range e.flights {
		if f.call.binds() {
			return false
		}
	}
	return true
}

func (e *Engine) endQueued(err *fault.Error) {
	for _, c := range slices.Clone(e.queue) {
		e.end(c, Answer{}, err, false)
	}
}

func (e *Engine) endLost(c *Call, err *fault.Error) {
	switch {
	case slices.Contains(unsureAfterwards, c.Method):
		e.end(c, Answer{}, fault.New("unsure", "%s; the request may have taken effect", err.Message), false)
	case c.Connection != 0:
		e.end(c, Answer{}, err, false)
	default:
		e.end(c, Answer{}, fault.New("closed", "%s", err.Message), false)
	}
}

func (e *Engine) all() []*Call {
	var found []*Call
	seen := map[*Call]bool{}
	add := func(c *Call) {
		if !seen[c] {
			seen[c] = true
			found = append(found, c)
		}
	}
	for _, f := range e.flights {
		add(f.call)
	}
	for _, c := range e.queue {
		add(c)
	}
	for c := range e.resting {
		add(c)
	}
	for c := range e.follows {
		add(c)
	}
	return found
}

// Left returns what is left of the wait of a call. With the lock.
func (e *Engine) Left(c *Call) time.Duration { return clock.Left(c.waitEnd, e.Clock.Now()) }
