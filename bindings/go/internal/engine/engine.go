// Package engine talks to the nodes: it has one connection to one of them at a time, sends requests
// over it, and goes on with them at another node when that one is of no use. All of its state
// belongs to one lock, which its owner takes as well; functions that say so are called with it.
package engine

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/patience"
)

// Config is what an engine needs to know.
type Config struct {
	Endpoints      *endpoint.List
	PreferFirst    bool
	TLS            *TLSFiles // nil: no certificates
	ConnectTimeout time.Duration
	Silence        time.Duration
	Timeout        time.Duration
	Trace          string
	Clock          clock.Clock
	Dial           func(ctx context.Context, network, address string) (net.Conn, error)
	Logger         *slog.Logger
}

// Owner is what looks after the locks and watches of a client. Its methods are called with the
// engine's lock.
type Owner interface {
	// ConnectionUp is called when another connection is the present one, before anything else is
	// sent over it.
	ConnectionUp()
	// ConnectionLeft is called when the present connection is not the present one any more.
	ConnectionLeft()
	// ConnectionLost is called when a connection is about to be closed, or is closed. true: the
	// owner keeps it open, and calls CloseKept later.
	ConnectionLost(l *Link) bool
	// Needs says whether a connection that was left must stay open.
	Needs(number int) bool
	// Share says how long one step may take while locks are held; 0: as long as usual.
	Share() time.Duration
	// Bound says whether a lock needs a connection, even without a request.
	Bound() bool
	// Listening says whether the node sends events without being asked.
	Listening() bool
	// Event is called with an event of a watch.
	Event(event map[string]any)
	// TakenAway is called before a request is sent that takes something from whoever trusts in
	// the lock that it names.
	TakenAway(c *Call)
}

// Engine is the connections and requests of one client.
type Engine struct {
	Config
	mu    sync.Mutex
	owner Owner
	// What runs once the lock is given back, in order.
	after []func()

	patience *patience.Patience
	rounds   rounds
	link     *Link // the present connection
	old      *Link // the connection that was left, and is still read
	spare    spare
	// Why the last connection, or the last try to connect, has failed.
	lastError *fault.Error
	// Why the present connection is gone.
	gone        chan struct{}
	wanted      chan struct{}
	running     bool
	connections int
	served      bool // some node has answered
	leftEarly   time.Time
	returns     returns
	lookups     map[string]*lookup

	queue    []*Call
	flights  map[uint32]*flight
	resting  map[*Call]*time.Timer
	releases map[*Call]bool
	follows  map[*Call]bool
	msgid    uint32
	closing  bool
	closed   bool

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// New makes an engine, which connects when something is to be sent.
func New(config Config, owner Owner) *Engine {
	e := &Engine{Config: config, owner: owner, patience: patience.New(),
		flights: map[uint32]*flight{}, resting: map[*Call]*time.Timer{},
		releases: map[*Call]bool{}, follows: map[*Call]bool{}, lookups: map[string]*lookup{}, wanted: make(chan struct{}, 1)}
	if e.Clock == nil {
		e.Clock = clock.System{}
	}
	if e.Dial == nil {
		e.Dial = new(net.Dialer).DialContext
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.rounds = newRounds(config.Endpoints, config.PreferFirst)
	e.returns.pause = returnFirst
	return e
}

// Lock takes the lock of the engine.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock gives the lock back, and then does what was put off until then.
func (e *Engine) Unlock() {
	after := e.after
	e.after = nil
	e.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// After puts something off until the lock is given back. With the lock.
func (e *Engine) After(f func()) { e.after = append(e.after, f) }

// Go runs f in a goroutine that Close waits for.
func (e *Engine) Go(f func()) { e.tasks.Go(f) }

// Context is canceled when the engine is closed.
func (e *Engine) Context() context.Context { return e.ctx }

// Alarm calls f with the lock after d. With the lock.
func (e *Engine) Alarm(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		e.Lock()
		defer e.Unlock()
		if !e.closed {
			f()
		}
	})
}

// Connection returns the number of the present connection; 0: there is none. With the lock.
func (e *Engine) Connection() int {
	if e.link != nil && e.link.up {
		return e.link.Number
	}
	return 0
}

// Closed returns whether the engine is closed, or about to be. With the lock.
func (e *Engine) Closed() bool { return e.closed || e.closing }

// Trouble says why there is no connection; nil if there is one. With the lock.
func (e *Engine) Trouble() *fault.Error {
	if e.Connection() != 0 {
		return nil
	}
	return e.lastError
}

// Node returns the endpoint that the client is connected to; empty: there is none. With the lock.
func (e *Engine) Node() string {
	if e.link == nil {
		return ""
	}
	return e.link.endpoint.Text
}

// BeginClose ends every request but releases. With the lock.
func (e *Engine) BeginClose() {
	e.closing = true
	for _, c := range e.all() {
		if c.Method != "release" {
			e.end(c, Answer{}, fault.New("closed", "the client is closed"), false)
		}
	}
}

// Close ends what is under way, closes all connections, and waits until nothing of them is left.
// It waits for releases that are under way, until the context is over.
func (e *Engine) Close(ctx context.Context) {
	e.Lock()
	e.BeginClose()
	for len(e.releases) > 0 && ctx.Err() == nil {
		var one *Call
		for one = range e.releases {
			break
		}
		e.Unlock()
		select {
		case <-one.done:
		case <-ctx.Done():
		}
		e.Lock()
	}
	e.closed = true
	for _, c := range e.all() {
		c.finish(Answer{}, fault.New("closed", "the client is closed"))
	}
	for _, timer := range e.resting {
		timer.Stop()
	}
	e.returns.stop()
	e.dropSpare()
	for _, l := range []*Link{e.link, e.old} {
		if l != nil {
			l.close()
		}
	}
	e.cancel()
	e.Unlock()
	e.tasks.Wait()
}
