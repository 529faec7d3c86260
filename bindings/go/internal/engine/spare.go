package engine

import (
	"context"
	"time"

	"example.org/pawl/internal/endpoint"
)

const (
	// How long a spare connection may take at least, and how many times as long as a ping.
	spareLeast = 50 * time.Millisecond
	spareTimes = 4
	// How long the client stays at another endpoint before it returns to the first one. If it has
	// to leave the first one again soon, it stays longer.
	returnFirst = 10 * time.Second
	returnLast  = 640 * time.Second
)

// spare is at most one further connection, to the node that is next. It counts once that node has
// answered a ping.
type spare struct {
	link   *Link
	cancel context.CancelFunc
	number int
}

// returns is the return to the first endpoint.
type returns struct {
	// The spare connection is for the return.
	returning bool
	pause     time.Duration
	at        time.Time
	timer     *time.Timer
}

func (r *returns) stop() {
	r.returning = false
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

func (e *Engine) dropSpare() {
	if e.spare.cancel != nil {
		e.spare.cancel()
		e.spare.cancel = nil
	}
	if l := e.spare.link; l != nil {
		e.spare.link = nil
		l.close()
	}
	e.spare.number++
}

func (e *Engine) spareLimit() time.Duration {
	limit := e.step(e.ConnectTimeout)
	return min(limit, max(spareLeast, spareTimes*e.patience.Time(limit)))
}

// dialSpare connects with the first of these endpoints whose node answers a ping.
func (e *Engine) dialSpare(to []endpoint.Endpoint, failed func()) {
	if e.spare.cancel != nil || e.spare.link != nil || e.closed {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	e.spare.cancel = cancel
	e.spare.number++
	number, limit := e.spare.number, e.spareLimit()
	e.Go(func() {
		defer cancel()
		e.Lock()
		defer e.Unlock()
		for _, ep := range to {
			if ctx.Err() != nil {
				return
			}
			if e.trySpare(ctx, ep, number, limit) {
				return
			}
		}
		if number == e.spare.number {
			e.spare.cancel = nil
			failed()
		}
	})
}

// trySpare returns whether the spare connection is made, or is not wanted any more.
func (e *Engine) trySpare(ctx context.Context, ep endpoint.Endpoint, number int, limit time.Duration) bool {
	began := time.Now()
	ep, why := e.locate(ctx, ep, limit)
	if why != nil {
		return false
	}
	l, why := e.dial(ctx, ep, limit)
	if why != nil {
		return false
	}
	if number != e.spare.number || ctx.Err() != nil {
		l.close()
		return true
	}
	pong := make(chan struct{})
	e.spare.link = l
	l.onPong = func() {
		if number == e.spare.number && l.up {
			e.spare.cancel = nil
			close(pong)
			e.spareReady(l)
		}
	}
	l.ping()
	e.Unlock()
	timer := time.NewTimer(max(0, limit-time.Since(began)))
	defer timer.Stop()
	select {
	case <-pong:
	case <-timer.C:
	case <-ctx.Done():
	}
	e.Lock()
	if l.ponged || number != e.spare.number {
		return true
	}
	e.spare.link = nil
	l.close()
	return false
}

// spareReady decides what becomes of a spare connection whose node has answered.
func (e *Engine) spareReady(l *Link) {
	switch {
	case e.link == nil || !e.link.up:
		e.dropSpare()
	case e.link.silence.IsOverdue && e.patience.Allows():
		e.switchTo(l, true)
	case e.returns.returning && !e.mayReturn():
		e.dropSpare()
		e.returnLater()
	case e.returns.returning:
		e.returns.at = time.Now()
		e.switchTo(l, false)
	}
}

// quiet is called after a ping was sent to a silent node although an answer is due.
func (e *Engine) quiet(l *Link) {
	if l == e.link && e.rounds.count() > 1 {
		e.dialOther()
	}
}

func (e *Engine) dialOther() {
	if e.patience.Allows() {
		if e.returns.returning {
			e.dropSpare()
			e.returns.returning = false
		}
		e.rounds.readAgain()
		e.dialSpare(e.rounds.others(e.link.endpoint, e.old), func() {})
	}
}

// overdue is called when a ping was not answered in time.
func (e *Engine) overdue(l *Link) {
	if l != e.link {
		return
	}
	if s := e.spare.link; s == nil || !s.up || !s.ponged {
		e.dialOther()
	} else if e.patience.Allows() {
		e.switchTo(s, true)
	}
}

func (e *Engine) planReturn() {
	e.returns.stop()
	if !e.PreferFirst || e.rounds.at == 0 {
		return
	}
	soon := !e.returns.at.IsZero() && time.Since(e.returns.at) < 8*e.returns.pause
	if soon {
		e.returns.pause = min(returnLast, 2*e.returns.pause)
	} else {
		e.returns.pause = returnFirst
	}
	e.returnLater()
}

func (e *Engine) returnLater() {
	e.returns.returning = false
	e.returns.timer = e.Alarm(e.returns.pause, e.goBack)
}

func (e *Engine) goBack() {
	if e.rounds.at == 0 {
		return
	}
	if e.link == nil || e.spare.cancel != nil || e.spare.link != nil || e.link.silence.Pinged {
		e.returnLater()
		return
	}
	e.returns.returning = true
	e.dialSpare(e.rounds.list.Items[:1], e.returnLater)
}
