package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"example.org/pawl"
	"example.org/pawl/fence"
)

type doing func(r *runner, ctx context.Context, c command) (told, error)

var commands map[string]doing

func init() {
	commands = map[string]doing{
		"hello": hello, "connect": connect, "close": closeClient, "lock": lock, "locks": locks,
		"extend": extend, "shorten": shorten, "token": token, "valid": valid, "check": check, "release": release,
		"forget": forget, "downgrade": downgrade, "update": update, "transfer": transfer,
		"ask_release": askRelease, "get": get, "waiters": waiters, "explain": explain,
		"campaign": campaign, "proclaim": proclaim, "leader": leader, "observe": observe,
		"watch": watch, "stop": stop, "cancel": cancel, "fence": checkFence, "gate": gate,
	}
}

func hello(*runner, context.Context, command) (told, error) {
	return told{"language": "go", "version": pawl.Version, "level": level}, nil
}

func connect(r *runner, _ context.Context, c command) (told, error) {
	var o []pawl.Option
	if c.has("endpoints") {
		o = append(o, pawl.WithEndpoints(c.list("endpoints")...))
	}
	if c.yes("prefer_first") {
		o = append(o, pawl.WithPreferFirst())
	}
	if c.has("timeout_ms") {
		o = append(o, pawl.WithTimeout(c.ms("timeout_ms")))
	}
	client, err := pawl.New(o...)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients[c.text("client")] = client
	return told{}, nil
}

func (r *runner) client(c command) *pawl.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clients[c.text("client")]
}

func closeClient(r *runner, _ context.Context, c command) (told, error) {
	client := r.client(c)
	r.mu.Lock()
	delete(r.clients, c.text("client"))
	r.mu.Unlock()
	return told{}, client.Close()
}

// ---- locks ----

func (r *runner) holding(c command) (*holding, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.locks[c.text("lock")]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("there is no lock %q", c.text("lock"))
}

// keep remembers what was acquired, and tells when one of the locks is lost.
func (r *runner) keep(name string, h *holding, all ...*pawl.Lock) {
	r.mu.Lock()
	r.locks[name] = h
	r.mu.Unlock()
	for _, l := range all {
		ctx, key := l.Context(), l.Key()
		go func() {
			<-ctx.Done()
			var lost *pawl.LostError
			if errors.As(context.Cause(ctx), &lost) && !lost.Released {
				r.event("lost", told{"lock": name, "code": lost.Code(), "valid_ms": lost.Left.Milliseconds(),
					"token": strconv.FormatUint(lost.Token, 10), "key": saidOf([]byte(key))})
			}
		}()
	}
}

func granted(l *pawl.Lock) told {
	said := told{"token": strconv.FormatUint(l.Token(), 10), "valid_ms": l.Valid().Milliseconds(), "lock_id": l.ID()}
	if slots := l.Slots(); len(slots) > 0 {
		said["slots"] = slots
	}
	return said
}

func lock(r *runner, ctx context.Context, c command) (told, error) {
	name, o := c.text("as"), c.options()
	if c.yes("asked") {
		o = append(o, pawl.OnAsked(func(a pawl.Asked) {
			r.event("asked", told{"lock": name, "by": saidOf([]byte(a.By)), "to": saidOf([]byte(a.To)), "priority": a.Priority})
		}))
	}
	l, err := r.client(c).Lock(ctx, string(c.data("key")), o...)
	if err != nil {
		return nil, err
	}
	r.keep(name, &holding{lock: l}, l)
	return granted(l), nil
}

func locks(r *runner, ctx context.Context, c command) (told, error) {
	s, err := r.client(c).Locks(ctx, c.list("keys"), c.options()...)
	if err != nil {
		return nil, err
	}
	r.keep(c.text("as"), &holding{set: s}, s.All()...)
	tokens := told{}
	for _, l := range s.All() {
		tokens[l.Key()] = strconv.FormatUint(l.Token(), 10)
	}
	return told{"tokens": tokens, "valid_ms": s.Valid().Milliseconds()}, nil
}

func campaign(r *runner, ctx context.Context, c command) (told, error) {
	l, err := r.client(c).Election(string(c.data("name")), c.options()...).Campaign(ctx)
	if err != nil {
		return nil, err
	}
	r.keep(c.text("as"), &holding{lock: l.Lock, leadership: l}, l.Lock)
	return granted(l.Lock), nil
}

// withLock makes a command out of something that is done with a lock.
func withLock(r *runner, c command, do func(*pawl.Lock) (told, error)) (told, error) {
	h, err := r.holding(c)
	if err != nil {
		return nil, err
	}
	if h.lock == nil {
		return nil, fmt.Errorf("%q is a set of locks", c.text("lock"))
	}
	return do(h.lock)
}

func extend(r *runner, ctx context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		if err := l.Extend(ctx, c.ms("lease_ms")); err != nil {
			return nil, err
		}
		return told{"token": strconv.FormatUint(l.Token(), 10), "valid_ms": l.Valid().Milliseconds()}, nil
	})
}

func shorten(r *runner, ctx context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		if err := l.Shorten(ctx, c.ms("lease_ms")); err != nil {
			return nil, err
		}
		return told{"valid_ms": l.Valid().Milliseconds()}, nil
	})
}

func token(r *runner, _ context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		return told{"token": strconv.FormatUint(l.Token(), 10)}, nil
	})
}

func valid(r *runner, _ context.Context, c command) (told, error) {
	h, err := r.holding(c)
	if err != nil {
		return nil, err
	}
	at := bootMicros()
	if h.set != nil {
		return told{"valid_ms": h.set.Valid().Milliseconds(), "at": at}, nil
	}
	return told{"valid_ms": h.lock.Valid().Milliseconds(), "at": at}, nil
}

func check(r *runner, _ context.Context, c command) (told, error) {
	h, err := r.holding(c)
	if err != nil {
		return nil, err
	}
	if h.set != nil {
		return told{}, h.set.Err()
	}
	return told{}, h.lock.Err()
}

func release(r *runner, ctx context.Context, c command) (told, error) {
	h, err := r.holding(c)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	first := !h.released
	h.released = true
	r.mu.Unlock()
	if h.set != nil {
		err = h.set.Release(ctx)
	} else {
		err = h.lock.ReleaseAndClose(ctx, c.ms("close_ms"))
	}
	if errors.Is(err, pawl.ErrLost) {
		return told{"released": false}, nil
	}
	return told{"released": first}, err
}

func forget(r *runner, _ context.Context, c command) (told, error) {
	r.mu.Lock()
	delete(r.locks, c.text("lock"))
	r.mu.Unlock()
	runtime.GC()
	return told{}, nil
}

func downgrade(r *runner, ctx context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) { return told{}, l.Downgrade(ctx) })
}

func update(r *runner, ctx context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		var err error
		if c.has("expect") {
			_, err = l.CompareAndUpdate(ctx, c.data("value"), c.data("expect"))
		} else {
			_, err = l.Update(ctx, c.data("value"))
		}
		return told{}, err
	})
}

func proclaim(r *runner, ctx context.Context, c command) (told, error) {
	h, err := r.holding(c)
	if err != nil {
		return nil, err
	}
	return told{}, h.leadership.Proclaim(ctx, c.data("value"))
}

func transfer(r *runner, ctx context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		return told{"transferred": true}, l.Transfer(ctx, string(c.data("to")))
	})
}

func gate(r *runner, _ context.Context, c command) (told, error) {
	return withLock(r, c, func(l *pawl.Lock) (told, error) {
		sent := ""
		below := carrier(func(q *http.Request) (*http.Response, error) {
			sent = q.Header.Get(pawl.TokenHeader)
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: q}, nil
		})
		q, err := http.NewRequest(http.MethodPut, "http://resource.invalid/", nil)
		if err != nil {
			return nil, err
		}
		_, err = l.Transport(below, pawl.Margin(c.ms("margin_ms"))).RoundTrip(q)
		if errors.Is(err, pawl.ErrLost) {
			return told{"accepted": false}, nil
		}
		return told{"accepted": true, "token": sent}, err
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (f carrier) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func checkFence(r *runner, _ context.Context, c command) (told, error) {
	path := c.text("file")
	token, err := strconv.ParseUint(c.text("token"), 10, 64)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	store := r.stores[path]
	if store == nil {
		if store, err = fence.Open(path); err != nil {
			return nil, err
		}
		r.stores[path] = store
	}
	accepted, _, err := store.Check(string(c.data("key")), token, fence.Exclusive)
	return told{"accepted": accepted}, err
}

// ---- reading ----

func askRelease(r *runner, ctx context.Context, c command) (told, error) {
	to := ""
	if c.has("to") {
		to = string(c.data("to"))
	}
	reached, err := r.client(c).AskRelease(ctx, string(c.data("key")), "", to, int32(c.number("priority", 0)))
	return told{"reached": reached}, err
}

func get(r *runner, ctx context.Context, c command) (told, error) {
	var o []pawl.ReadOption
	if c.yes("quorum") {
		o = append(o, pawl.Quorum())
	}
	entry, err := r.client(c).Get(ctx, string(c.data("key")), o...)
	if err != nil || !entry.Held {
		return told{"held": false}, err
	}
	return told{"held": true, "owner": saidOf([]byte(entry.Holder.Owner)), "value": saidOf(entry.Holder.Value),
		"token": strconv.FormatUint(entry.Holder.Token, 10)}, nil
}

func waiters(r *runner, ctx context.Context, c command) (told, error) {
	found, _, err := r.client(c).Waiters(ctx, string(c.data("key")))
	owners := []any{}
	for _, w := range found {
		owners = append(owners, saidOf([]byte(w.Owner)))
	}
	return told{"owners": owners}, err
}

func explain(r *runner, ctx context.Context, c command) (told, error) {
	found, err := r.client(c).Explain(ctx, string(c.data("key")))
	masters := []told{}
	for _, m := range found.Masters {
		masters = append(masters, told{"node": m.Node, "state": m.State})
	}
	return told{"masters": masters}, err
}

// ---- elections and watches ----

func leaderTold(l *pawl.Leader) any {
	if l == nil {
		return nil
	}
	return told{"owner": saidOf([]byte(l.Owner)), "value": saidOf(l.Value), "token": strconv.FormatUint(l.Token, 10)}
}

func leader(r *runner, ctx context.Context, c command) (told, error) {
	found, err := r.client(c).Election(string(c.data("name"))).Leader(ctx)
	return told{"leader": leaderTold(found)}, err
}

// follow runs something until the kit stops it, and tells an error with which it ends.
func (r *runner) follow(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.mu.Lock()
	r.watches[name] = func() { cancel(); <-done }
	r.mu.Unlock()
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, pawl.ErrClosed) {
			fields := errorOf(err)
			fields["watch"] = name
			r.event("ended", fields)
		}
	}()
}

func observe(r *runner, _ context.Context, c command) (told, error) {
	name, e := c.text("as"), r.client(c).Election(string(c.data("name")))
	r.follow(name, func(ctx context.Context) error {
		for leader, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			r.event("leader", told{"watch": name, "leader": leaderTold(leader)})
		}
		return nil
	})
	return told{}, nil
}

func watch(r *runner, _ context.Context, c command) (told, error) {
	name, client := c.text("as"), r.client(c)
	what := pawl.WatchKey(string(c.data("key")))
	if c.has("prefix") {
		what = pawl.WatchPrefix(string(c.data("prefix")))
	}
	r.follow(name, func(ctx context.Context) error {
		for event, err := range client.Watch(ctx, what) {
			if err != nil {
				return err
			}
			fields := told{"watch": name, "type": event.Type}
			if event.Key != "" {
				fields["key"] = saidOf([]byte(event.Key))
			}
			if event.Holder.Token != 0 {
				fields["owner"] = saidOf([]byte(event.Holder.Owner))
				fields["value"] = saidOf(event.Holder.Value)
				fields["token"] = strconv.FormatUint(event.Holder.Token, 10)
			}
			r.event("change", fields)
		}
		return nil
	})
	return told{}, nil
}

func stop(r *runner, _ context.Context, c command) (told, error) {
	r.mu.Lock()
	end := r.watches[c.text("watch")]
	delete(r.watches, c.text("watch"))
	r.mu.Unlock()
	if end != nil {
		end()
	}
	return told{}, nil
}

func cancel(r *runner, _ context.Context, c command) (told, error) {
	r.mu.Lock()
	end := r.cancels[c.number("command", 0)]
	r.mu.Unlock()
	if end != nil {
		end()
	}
	// What was canceled is told first, as far as that takes no time.
	time.Sleep(time.Millisecond)
	return told{}, nil
}
