package pawl

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Observe tells the present leader (nil: nobody leads, as far as the client's node knows), and then
// every leader and every value in order. It begins and ends with the loop, as Watch does.
func (e *Election) Observe(ctx context.Context) iter.Seq2[*Leader, error] {
	return func(yield func(*Leader, error) bool) {
		w := e.c.newWatch(WatchKey(e.name))
		defer w.end()
		var o observer
		for {
			event, err := w.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if leader, changed := o.take(event); changed && !yield(leader, nil) {
				return
			}
		}
	}
}

// observer works out from events who leads.
type observer struct {
	holder *Holder
	// The highest token seen. After a change to another node, that node may know less.
	newest uint64
	told   bool
	last   *Leader
}

// take takes an event, and returns who leads now and whether that is to be told.
func (o *observer) take(event Event) (*Leader, bool) {
	switch event.Type {
	case EventOverflow:
		o.holder = nil
		return nil, false
	case EventReleased, EventExpired, EventBroken:
		if o.holder != nil && o.holder.Token == event.Holder.Token {
			o.holder = nil
		}
	case EventPresent, EventAcquired, EventUpdated, EventDowngraded:
		if event.Holder.Token >= o.newest {
			o.newest, o.holder = event.Holder.Token, &event.Holder
		}
		if event.Type == EventPresent { // It counts once all of the present state has been told.
			return nil, false
		}
	case EventCurrent:
	default:
		return nil, false
	}
	var leader *Leader
	if o.holder != nil {
		leader = leaderOf(*o.holder)
	}
	if o.told && same(leader, o.last) {
		return nil, false
	}
	o.told, o.last = true, leader
	return leader, true
}

func same(a, b *Leader) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Owner == b.Owner && string(a.Value) == string(b.Value) && a.Token == b.Token &&
		a.Label == b.Label && a.Host == b.Host && a.PID == b.PID
}

// askAgain is after what time a candidate that takes over asks again: the leader may be new, or may
// not have heard.
const askAgain = 5 * time.Second

// takeOver asks each leader to let go, again and again until the context is over. A leader of lower
// priority yields.
func (e *Election) takeOver(ctx context.Context, o *lockOptions) {
	leaders := make(chan bool, 1)
	e.c.engine.Go(func() {
		defer close(leaders)
		for leader, err := range e.Observe(ctx) {
			if err != nil {
				return
			}
			select {
			case leaders <- leader != nil:
			case <-ctx.Done():
				return
			}
		}
	})
	led := false
	for {
		timer := time.NewTimer(askAgain)
		select {
		case now, ok := <-leaders:
			timer.Stop()
			if !ok {
				return
			}
			led = now
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if led {
			owner := o.owner
			if _, err := e.c.AskRelease(ctx, e.name, owner, "", o.priority); errors.Is(err, context.Canceled) {
				return
			}
		}
	}
}
