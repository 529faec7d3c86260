package engine

import (
	"context"
	"slices"

	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

// movedMax is how many endpoints the error `moved` may name.
const movedMax = 16

// followedMethods are those that are about no node and no connection.
var followedMethods = []string{"acquire", "extend", "update", "release", "downgrade", "transfer", "ask_release",
	"get", "list", "wait", "waiters", "explain", "break"}

// following is a call that another cluster is asked for.
type following struct {
	// Why the endpoint that is asked is of no use.
	next   chan *fault.Error
	cancel context.CancelFunc
}

// mayFollow returns the endpoints that the error names, or none if the call may not follow it.
func (e *Engine) mayFollow(c *Call, err *fault.Error, overTLS bool) []endpoint.Endpoint {
	if c.followed || c.binds() || !slices.Contains(followedMethods, c.Method) {
		return nil
	}
	if c.Params.Get("bond") != nil || slices.ContainsFunc(c.Locks(), func(m msgpack.Map) bool { return m.Get("bond") != nil }) {
		return nil
	}
	list, ok := err.Details["endpoints"].([]any)
	if !ok || len(list) > movedMax {
		return nil
	}
	var found []endpoint.Endpoint
	for _, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil
		}
		ep, wrong := endpoint.ParseOne(text)
		if wrong != nil || ep.Path != "" || ep.SRV || overTLS && !ep.TLS || ep.TLS && e.TLS == nil {
			return nil
		}
		found = append(found, ep)
	}
	return found
}

// follow asks another cluster for a call that was answered with `moved`. false: the call may not be
// followed, and the error is its outcome.
func (e *Engine) follow(l *Link, c *Call, f *flight, err *fault.Error) bool {
	to := e.mayFollow(c, err, l.endpoint.TLS)
	if len(to) == 0 {
		return false
	}
	e.land(f)
	e.land(c.before)
	c.flight, c.before = nil, nil
	c.Sends-- // The node did nothing.
	e.ask(c, to)
	return true
}

// StartAt begins a call at the endpoints that an error `moved` of an item names, whose answer has come
// over TLS or not. false: the error is the outcome. With the lock.
func (e *Engine) StartAt(c *Call, err *fault.Error, overTLS bool) bool {
	to := e.mayFollow(c, err, overTLS)
	if len(to) == 0 || e.Closed() {
		return false
	}
	e.prepare(c)
	e.ask(c, to)
	return true
}

// ask asks the endpoints, one after the other, until one has answered.
func (e *Engine) ask(c *Call, to []endpoint.Endpoint) {
	ctx, cancel := context.WithCancel(e.ctx)
	c.followed = true
	c.following = &following{next: make(chan *fault.Error, 1), cancel: cancel}
	e.follows[c] = true
	e.Go(func() {
		defer cancel()
		e.Lock()
		defer e.Unlock()
		defer delete(e.follows, c)
		var last *fault.Error
		for _, one := range to {
			for _, ep := range e.addresses(ctx, one) {
				if ctx.Err() != nil {
					return
				}
				if last = e.askOne(ctx, c, ep); last == nil {
					return
				}
				if c.Sends > 0 && slices.Contains(unsureAfterwards, c.Method) && last.Code != "recovering" {
					e.endLost(c, last)
					return
				}
			}
		}
		if ctx.Err() == nil {
			e.end(c, Answer{}, last, last.Code == "recovering")
		}
	})
}

// addresses returns an endpoint for each address of a host. With the lock, which it gives back while
// it waits.
func (e *Engine) addresses(ctx context.Context, ep endpoint.Endpoint) []endpoint.Endpoint {
	if !ep.IsName() {
		return []endpoint.Endpoint{ep}
	}
	e.Unlock()
	limited, cancel := context.WithTimeout(ctx, e.ConnectTimeout)
	defer cancel()
	places, err := endpoint.LookUp(limited, ep)
	e.Lock()
	if err != nil || len(places) == 0 {
		return []endpoint.Endpoint{ep}
	}
	var found []endpoint.Endpoint
	for _, p := range places {
		one := ep
		one.Address = p.Address
		found = append(found, one)
	}
	return found
}

// askOne asks one endpoint. nil: the call has its outcome, or is given up.
func (e *Engine) askOne(ctx context.Context, c *Call, ep endpoint.Endpoint) *fault.Error {
	if ep.IsName() {
		return fault.New("unreachable", "%s: the name has no address", ep.Text)
	}
	l, why := e.dial(ctx, ep, e.step(e.ConnectTimeout))
	if why != nil {
		return e.named(ep, why, "")
	}
	defer func() {
		l.following = nil
		l.close()
	}()
	if ctx.Err() != nil {
		return nil
	}
	l.following = c.following
	e.send(l, c)
	e.Unlock()
	defer e.Lock()
	select {
	case why = <-c.following.next:
		return why
	case <-ctx.Done():
		return nil
	}
}

// answeredThere handles a refusal of a node of the other cluster.
func (e *Engine) answeredThere(l *Link, c *Call, f *flight, err *fault.Error) {
	if err.Code == "recovering" {
		e.land(f)
		c.flight = nil
		l.next(err)
		return
	}
	e.end(c, Answer{}, err, true)
}

// next says that the connection is of no use for the call that is followed.
func (l *Link) next(why *fault.Error) {
	select {
	case l.following.next <- l.e.named(l.endpoint, why, ""):
	default:
	}
}
