package engine

import (
	"context"
	"time"

	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
)

const (
	pingMsgid    = 0
	silenceLeast = 100 * time.Millisecond
)

// waiting returns whether something waits to be sent.
func (e *Engine) waiting() bool { return len(e.queue) > 0 }

// connect makes a connection if there is none, because something is to be sent. With the lock.
func (e *Engine) connect() {
	if e.closed {
		return
	}
	if !e.running {
		e.running = true
		e.Go(e.main)
	}
	select {
	case e.wanted <- struct{}{}:
	default:
	}
}

// Connect makes a connection if there is none, because a lock or watch needs one. With the lock.
func (e *Engine) Connect() { e.connect() }

// sleep waits, without the lock, and returns whether the engine still runs.
func (e *Engine) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// main makes connections, one after the other, as long as something needs one.
func (e *Engine) main() {
	e.Lock()
	defer e.Unlock()
	for !e.closed {
		if !e.waiting() && !e.owner.Bound() && !e.owner.Listening() {
			e.Unlock()
			select {
			case <-e.wanted:
			case <-e.ctx.Done():
			}
			e.Lock()
			continue
		}
		e.rounds.readAgain()
		why, talked := e.visit(e.rounds.present())
		e.lastError = why
		if talked {
			e.served = true
			e.rounds.good()
		}
		if !e.rounds.goOn(why) {
			continue
		}
		// Waiting does not change certificates and access rules. A client that was served before
		// goes on: the certificates may be renewed in time.
		if e.rounds.hopeless && !e.served {
			e.endQueued(why)
		}
		pause := e.rounds.pause(e.step(time.Hour))
		e.Unlock()
		e.sleep(pause)
		e.Lock()
	}
}

// step returns how long one step may take while locks are held, and at most the limit.
func (e *Engine) step(limit time.Duration) time.Duration {
	if share := e.owner.Share(); share > 0 {
		return min(limit, share)
	}
	return limit
}

// whole returns how long a node may be silent before the connection is given up. If only events are
// awaited, the limit is longer, so that idle watchers do not send ping after ping.
func (e *Engine) whole(owed bool) time.Duration {
	if !owed {
		return 4 * e.Silence
	}
	return max(silenceLeast, e.step(e.Silence))
}

// dial connects with an endpoint. With the lock, which it gives back while it waits.
func (e *Engine) dial(ctx context.Context, ep endpoint.Endpoint, limit time.Duration) (*Link, *fault.Error) {
	if ep.TLS && e.TLS == nil {
		return nil, fault.New("tls", "a tls:// endpoint needs a file of authorities (PAWL_CACERT)")
	}
	if ep.TLS {
		if err := e.TLS.Load(); err != nil {
			return nil, fault.New("tls", "%s", err.Error())
		}
	}
	e.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	network, address := ep.Dial()
	conn, err := e.Dial(ctx, network, address)
	var why *fault.Error
	switch {
	case err != nil && ctx.Err() != nil:
		why = fault.New("unreachable", "connecting took too long")
	case err != nil:
		why = fault.New("unreachable", "%s", err.Error())
	case ep.TLS:
		conn, why = e.TLS.wrap(ctx, conn, ep.Host)
	}
	e.Lock()
	if why != nil {
		return nil, why
	}
	if e.closed {
		conn.Close()
		return nil, fault.New("closed", "the client is closed")
	}
	return newLink(e, conn, ep), nil
}

// visit connects, and returns when that connection is gone, or the one of another node that it was
// left for. It returns the cause, and whether the node has ever sent anything.
func (e *Engine) visit(ep endpoint.Endpoint) (*fault.Error, bool) {
	limit := e.step(e.ConnectTimeout)
	ep, why := e.locate(e.ctx, ep, limit)
	if why != nil {
		return why.Prefixed("", e.rounds.list.Problem), false
	}
	l, why := e.dial(e.ctx, ep, limit)
	if why != nil {
		return e.named(ep, why, ""), false
	}
	e.gone = make(chan struct{})
	gone := e.gone
	e.arrive(l)
	e.Unlock()
	<-gone
	e.Lock()
	last := e.link
	e.link = nil
	e.dropSpare()
	e.returns.stop()
	hint := ""
	if !last.talked && last.down.Code != "protocol" && last.down.Code != "tls" {
		hint = last.endpoint.Hint()
	}
	why = e.named(last.endpoint, last.down, hint)
	e.lost(last, why)
	return why, last.talked
}

// arrive makes this the present connection.
func (e *Engine) arrive(l *Link) {
	e.connections++
	e.link, l.Number = l, e.connections
	e.rounds.use(l.endpoint)
	e.planReturn()
	if l.up {
		e.owner.ConnectionUp()
	} else {
		e.linkDown(l)
	}
	e.flush()
	l.setAlarm()
}

// linkDown notes that a connection has ended.
func (e *Engine) linkDown(l *Link) {
	switch l {
	case e.link:
		e.owner.ConnectionLeft()
		close(e.gone)
	case e.old:
		e.old = nil
		e.lost(l, e.named(l.endpoint, l.down, ""))
		e.flush()
	case e.spare.link:
		e.spare.link = nil
	default:
		if l.following != nil {
			e.landAll(l)
			l.next(l.down)
		}
	}
}

// named adds the endpoint to the message of an error.
func (e *Engine) named(ep endpoint.Endpoint, why *fault.Error, hint string) *fault.Error {
	return why.Prefixed(ep.Text+": ", hint+e.rounds.list.Problem)
}

// MoveOn leaves the present node for another one, because it is of no use. With the lock.
func (e *Engine) MoveOn(why *fault.Error) {
	if e.link != nil && e.rounds.count() > 1 {
		e.link.fail(why)
	}
}

// heard notes that bytes have arrived over a connection.
func (e *Engine) heard(l *Link) {
	switch {
	case l == e.link && !e.returns.returning:
		e.dropSpare()
	case l == e.old && l != nil:
		now := time.Now()
		if now.Before(e.leftEarly) {
			e.patience.TooShort(now)
		}
		e.leftEarly = time.Time{}
	}
}

// settle closes the connection that was left once nothing depends on it any more.
func (e *Engine) settle() {
	old := e.old
	if old != nil && old.silence.Flights == 0 && !old.silence.Owed && !old.silence.PongDue && !e.owner.Needs(old.Number) {
		e.old = nil
		old.close()
	}
}

// Settle closes the connection that was left once nothing depends on it any more. With the lock.
func (e *Engine) Settle() { e.settle() }

// switchTo leaves the present connection for the spare one. repeat: the node is silent, and the
// calls that may be repeated are sent again; otherwise they stay there.
func (e *Engine) switchTo(spare *Link, repeat bool) {
	left, old := e.link, e.old
	if old != nil {
		old.fail(fault.New("timeout", "the node does not answer"))
	}
	e.returns.returning = false
	e.spare.link = nil
	now := time.Now()
	e.leftEarly = time.Time{}
	if repeat {
		e.leftEarly = now.Add(e.patience.Time(e.Silence / 2))
	}
	e.old, e.link = left, nil
	e.owner.ConnectionLeft()
	repeated := e.left(left, repeat)
	if repeat {
		e.patience.Switched(repeated, now)
	}
	e.arrive(spare)
	left.setAlarm()
	e.settle()
}
