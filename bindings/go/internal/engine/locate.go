package engine

import (
	"context"
	"time"

	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
)

// A name is not looked up twice within this time.
const lookUpPause = time.Second

// lookup is the last look-up of a name.
type lookup struct {
	began time.Time
	done  chan struct{}
	err   error
}

// locate returns an endpoint with an address. A name is looked up again in the background at each
// new connection; the first time the caller waits for it, up to the limit. With the lock, which it
// gives back while it waits.
func (e *Engine) locate(ctx context.Context, ep endpoint.Endpoint, limit time.Duration) (endpoint.Endpoint, *fault.Error) {
	source, ok := e.rounds.list.Source(ep)
	if !ok || !source.IsName() {
		return ep, nil
	}
	one := e.lookUp(source)
	if !ep.IsName() {
		return ep, nil
	}
	e.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-one.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	e.Lock()
	for _, item := range e.rounds.list.Items {
		if item.Source == source.Source && !item.IsName() {
			return item, nil
		}
	}
	select {
	case <-one.done:
		if one.err != nil {
			return ep, fault.New("unreachable", "%s: %s", ep.Text, one.err.Error())
		}
		return ep, fault.New("unreachable", "%s: the name has no address", ep.Text)
	default:
		return ep, fault.New("unreachable", "%s: looking up the name takes too long", ep.Text)
	}
}

// lookUp begins to look a name up, unless that is under way or was just done.
func (e *Engine) lookUp(source endpoint.Endpoint) *lookup {
	one := e.lookups[source.Text]
	if one != nil {
		select {
		case <-one.done:
			if time.Since(one.began) < lookUpPause {
				return one
			}
		default:
			return one
		}
	}
	one = &lookup{began: time.Now(), done: make(chan struct{})}
	e.lookups[source.Text] = one
	e.Go(func() {
		places, err := endpoint.LookUp(e.ctx, source)
		e.Lock()
		defer e.Unlock()
		if one.err = err; err == nil && len(places) > 0 {
			e.rounds.found(source.Text, places)
		}
		close(one.done)
	})
	return one
}
