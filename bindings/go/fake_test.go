package pawl

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/msgpack"
)

// bubbleClock is a clock in the time of a bubble of testing/synctest.
type bubbleClock struct {
	mu    sync.Mutex
	began time.Time
	// How much further the clock is that counts suspend.
	suspended time.Duration
}

func newBubbleClock() *bubbleClock { return &bubbleClock{began: time.Now()} }

func (c *bubbleClock) Now() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := int64(time.Since(c.began)) + 1
	return clock.Instant{Boot: passed + int64(c.suspended), Mono: passed}
}

func (c *bubbleClock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended += d
}

// asked is a request that a fake node has got.
type asked struct {
	node   string
	method string
	params map[string]any
	at     time.Time
}

func (a asked) locks() []map[string]any {
	var found []map[string]any
	list, _ := a.params["locks"].([]any)
	for _, one := range list {
		found = append(found, one.(map[string]any))
	}
	return found
}

// fakeNodes are nodes that answer as a function says, over pipes.
type fakeNodes struct {
	t     *testing.T
	clock *bubbleClock
	// answer returns the result, or an error map; nil, nil: nothing is answered.
	answer func(asked) (result, refusal map[string]any)
	mu     sync.Mutex
	got    []asked
	conns  []net.Conn
	dead   map[string]bool
}

func newFakeNodes(t *testing.T) *fakeNodes {
	f := &fakeNodes{t: t, clock: newBubbleClock(), dead: map[string]bool{}}
	f.answer = f.serve
	return f
}

// serve is what a node does that serves everything.
func (f *fakeNodes) serve(a asked) (result, refusal map[string]any) {
	lease := func(m map[string]any) int64 { n, _ := m["lease_ms"].(int64); return n * 99 / 100 }
	switch a.method {
	case "acquire":
		return map[string]any{"token": int64(7), "mode": "exclusive", "valid_ms": lease(a.params), "waited_ms": 0}, nil
	case "extend":
		var locks []any
		for _, one := range a.locks() {
			locks = append(locks, map[string]any{"lock_id": one["lock_id"], "valid_ms": lease(one), "token": one["token"]})
		}
		return map[string]any{"locks": locks}, nil
	case "release":
		return map[string]any{"released": true}, nil
	}
	return map[string]any{}, nil
}

func (f *fakeNodes) client(options ...Option) *Client {
	f.t.Helper()
	all := []Option{WithEndpoints("10.0.0.1:7117"), withClock(f.clock), WithDialer(f.dial)}
	c, err := New(append(all, options...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fakeNodes) dial(_ context.Context, _, address string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead[address] {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	f.conns = append(f.conns, there)
	go f.run(address, there)
	return here, nil
}

func (f *fakeNodes) run(address string, conn net.Conn) {
	defer conn.Close()
	in := msgpack.NewReader(conn)
	var writing sync.Mutex
	for {
		message, err := in.Next()
		if err != nil {
			return
		}
		list := message.([]any)
		params, _ := list[3].([]any)
		a := asked{node: address, method: list[2].(string), params: map[string]any{}, at: time.Now()}
		if len(params) > 0 {
			a.params = params[0].(map[string]any)
		}
		f.mu.Lock()
		f.got = append(f.got, a)
		answer := f.answer
		f.mu.Unlock()
		go func() {
			result, refusal := answer(a)
			if result == nil && refusal == nil {
				return
			}
			data := []any{1, list[1], nil, result}
			if refusal != nil {
				data = []any{1, list[1], refusal, nil}
			}
			out, err := msgpack.Append(nil, data)
			if err != nil {
				f.t.Error(err)
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = conn.Write(out)
		}()
	}
}

func (f *fakeNodes) requests(method string) []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []asked
	for _, one := range f.got {
		if one.method == method {
			found = append(found, one)
		}
	}
	return found
}

func (f *fakeNodes) serveBy(answer func(asked) (result, refusal map[string]any)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}
