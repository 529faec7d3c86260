// Package pawl gives a Go program the locks, elections and events of a Pawl cluster.
//
// A lock is tried once, unless Wait says how long to wait for it. It is renewed in the background,
// and says with Lock.Valid how long nobody else can hold the key, counted from the moment at which
// the last request that was granted was sent.
package pawl

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
)

// Version is that of the package.
const Version = "0.2.0"

// Client talks to a cluster over one connection. Any number of goroutines may use it.
type Client struct {
	engine       *engine.Engine
	keeper       *keeper
	watches      *watches
	logger       *slog.Logger
	hooks        Hooks
	owner, label string
	host         string
	timeout      time.Duration
	// The longest lease that the cluster allows, once it has said so. With the engine's lock.
	leaseMost time.Duration

	callbacks struct {
		sync.Mutex
		queue   []func()
		running bool
	}
}

// Dial makes a client and asks a node for a sign of life, for as long as the context and WithTimeout
// allow. What the options leave open comes from the environment, as for the command pawl:
// PAWL_ENDPOINTS, PAWL_PREFER_FIRST, PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY, PAWL_SERVER_NAME and
// TRACEPARENT. Close the client in the end.
func Dial(ctx context.Context, options ...Option) (*Client, error) {
	c, err := New(options...)
	if err != nil {
		return nil, err
	}
	if _, err := c.Call(ctx, "ping", nil); err != nil {
		c.Abandon()
		return nil, err
	}
	return c, nil
}

// New makes a client as Dial does, but connects only with the first request.
func New(options ...Option) (*Client, error) {
	o := fromEnvironment()
	for _, option := range options {
		option(&o)
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	c := &Client{logger: o.logger, hooks: o.hooks, label: o.label, timeout: o.timeout}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.host, c.owner = hostAndPid()
	if o.owner != "" {
		c.owner = o.owner
	}
	c.keeper = newKeeper(c)
	c.watches = newWatches(c)
	c.engine = engine.New(config, owner{c})
	return c, nil
}

// owner is what the engine asks of a client.
type owner struct{ c *Client }

func (o owner) ConnectionUp() {
	if f := o.c.hooks.Connected; f != nil {
		node := o.c.engine.Node()
		o.c.callback(func() { f(node) })
	}
	o.c.keeper.connectionUp()
}
func (o owner) ConnectionLeft()                    { o.c.watches.broken() }
func (o owner) ConnectionLost(l *engine.Link) bool { return o.c.keeper.connectionLost(l) }
func (o owner) Needs(number int) bool              { return o.c.keeper.bindings.depends(number) }
func (o owner) Share() time.Duration               { return o.c.keeper.share() }
func (o owner) Bound() bool                        { return o.c.keeper.bound() }
func (o owner) Listening() bool                    { return o.c.watches.listening() }
func (o owner) Event(event map[string]any)         { o.c.watches.deliver(event) }
func (o owner) TakenAway(call *engine.Call)        { o.c.keeper.takenAway(call) }

// callback runs f after the callbacks that were asked for before.
func (c *Client) callback(f func()) {
	c.callbacks.Lock()
	defer c.callbacks.Unlock()
	c.callbacks.queue = append(c.callbacks.queue, f)
	if !c.callbacks.running {
		c.callbacks.running = true
		go c.runCallbacks()
	}
}

func (c *Client) runCallbacks() {
	for {
		c.callbacks.Lock()
		if len(c.callbacks.queue) == 0 {
			c.callbacks.running = false
			c.callbacks.Unlock()
			return
		}
		f := c.callbacks.queue[0]
		c.callbacks.queue = c.callbacks.queue[1:]
		c.callbacks.Unlock()
		f()
	}
}

// begun tells the hook of a request of the program. It returns the traceparent of the request, which may
// be empty, and a function to call with the outcome.
func (c *Client) begun(ctx context.Context, method, key string) (trace string, ended func(error)) {
	r := Request{Method: method, Key: key}
	if f := c.hooks.RequestStarted; f != nil {
		ended = f(ctx, &r)
	}
	if ended == nil {
		ended = func(error) {}
	}
	if !traceForm.MatchString(r.Trace) {
		r.Trace = ""
	}
	return r.Trace, ended
}

// run makes a call of the program.
func (c *Client) run(ctx context.Context, key string, call *engine.Call) (engine.Answer, error) {
	trace, ended := c.begun(ctx, call.Method, key)
	call.Trace = trace
	answer, err := c.engine.Run(ctx, call)
	err = told(err)
	ended(err)
	return answer, err
}

// Done is closed when the client is closed. From then on none of its locks is trusted.
func (c *Client) Done() <-chan struct{} { return c.engine.Context().Done() }

// Node returns the endpoint that the client is connected to; empty if there is none.
func (c *Client) Node() string {
	c.engine.Lock()
	defer c.engine.Unlock()
	return c.engine.Node()
}

// Close releases the locks that are still held, waits for these releases for up to WithTimeout, ends
// all requests and watches, and closes the connection. Nothing of the client runs afterwards, but for
// a callback of the program that has not returned yet.
func (c *Client) Close() error { return c.close(true) }

// Abandon closes the client without releasing what it holds: the leases run out by themselves, and
// until then nobody else gets the keys.
func (c *Client) Abandon() { _ = c.close(false) }

func (c *Client) close(release bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	c.engine.Lock()
	c.engine.BeginClose()
	for _, h := range c.keeper.all() {
		if release {
			h.letGo()
		} else {
			h.over = true
			h.forget(nil)
		}
	}
	c.watches.close()
	c.keeper.close()
	c.engine.Unlock()
	if !release {
		cancel()
	}
	c.engine.Close(ctx)
	return nil
}

// closedError is the error of what a closed client is asked for.
func closedError() *Error { return fault.New("closed", "the client is closed") }
