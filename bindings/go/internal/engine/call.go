package engine

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

// WaitForever is the longest wait of the protocol: many years.
const WaitForever = 1e12 * time.Millisecond

// Answer is what a node has answered.
type Answer struct {
	Result map[string]any
	// SentAt is when the request was sent; valid_ms counts from then.
	SentAt clock.Instant
	// Connection is the number of the connection on which the answer came.
	Connection int
	// Node is the endpoint of that connection, and TLS says whether it is encrypted.
	Node string
	TLS  bool
}

// Call is a request, which may be sent to several nodes in turn.
type Call struct {
	Method string
	Params msgpack.Map
	// WaitName is the parameter that says how long the node may wait. Each time the call is sent,
	// it is what is left of Wait.
	WaitName string
	Wait     time.Duration
	// Timeout is how long to wait for an answer beyond Wait; 0: as the client does.
	Timeout time.Duration
	// Internal: the client itself makes the call. An error does not move it to another node.
	Internal bool
	// Drawn: the client has drawn the lock_ids, so it may draw others.
	Drawn bool
	// Connection is the number of the only connection on which the call may be sent; 0: any.
	Connection int
	// Order is how often the lease was shortened of the lock that is acquired again under its lock_id.
	Order int
	// Trace is the traceparent; empty: that of the client.
	Trace string
	// Holder is the lock in whose name a transfer is made.
	Holder any
	// Sends is how many times it was sent, but for those that had no effect.
	Sends int
	// OnAnswer is called with the lock and the result, before any later message is handled.
	OnAnswer func(result map[string]any)
	// OnDone is called with the lock and the outcome.
	OnDone func(Answer, *fault.Error)

	waitEnd clock.Instant
	waits   bool
	timer   *time.Timer
	endsAt  time.Time
	// The msgid with which it was sent last; and the one before on a connection that was left,
	// where an answer counts as well.
	flight, before *flight
	// The number of the last connection whose node has refused the parameter `trace`.
	untraced int
	moves    int
	// The refusal of a node that has too few masters or no memory yet.
	refusal *fault.Error
	// Another cluster is asked for it, or was.
	following *following
	followed  bool

	done   chan struct{}
	answer Answer
	err    *fault.Error
}

// flight is a request that was sent over a connection and not answered yet.
type flight struct {
	msgid    uint32
	call     *Call
	link     *Link
	sentAt   clock.Instant
	at       time.Time
	waits    bool
	repeated bool
}

var (
	// A repeat could undo what others did since (an update), misread the outcome of the first try
	// (a transfer), or act on the next node as well.
	neverRepeated = []string{"update", "transfer", "unwatch", "drain", "kick", "cluster_force"}
	// A node answers these when something has happened, and not at once.
	long = []string{"wait", "drain", "cluster_add_replica", "cluster_promote", "cluster_demote",
		"cluster_remove", "cluster_replace", "cluster_set_nodes", "cluster_set_timing", "cluster_force"}
	unsureAfterwards = []string{"update", "transfer"}
	// These take something from whoever trusts in the lock that they name.
	takesAway = []string{"release", "transfer", "downgrade"}
	// A node returns these errors before any commit: the acquire has taken nothing.
	refusals = []string{"held", "timeout", "bad_request", "denied", "too_long", "too_large", "quota",
		"deadlock", "moved"}
)

// NewLockID draws a lock_id.
func NewLockID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func (c *Call) repeatable() bool {
	return !slices.Contains(neverRepeated, c.Method) && c.Connection == 0
}

func (c *Call) mayStillWait(now clock.Instant) bool {
	if c.Method == "wait" && c.WaitName == "" {
		return true // It ends when it is canceled.
	}
	return (c.Method == "acquire" || c.Method == "wait") && clock.Left(c.waitEnd, now) > 0
}

// binds returns whether the call asks for a lock that ends with the connection.
func (c *Call) binds() bool {
	on, _ := c.Params.Get("release_on_disconnect").(bool)
	return on
}

// Locks returns the locks that an acquire names.
func (c *Call) Locks() []msgpack.Map {
	if locks, ok := c.Params.Get("locks").([]msgpack.Map); ok {
		return locks
	}
	return []msgpack.Map{c.Params}
}

// DrawAnew draws other lock_ids. The present ones, if any, are used up.
func (c *Call) DrawAnew() {
	locks, ok := c.Params.Get("locks").([]msgpack.Map)
	if !ok {
		c.Params = c.Params.With("lock_id", NewLockID())
		return
	}
	next := make([]msgpack.Map, len(locks))
	for i, lock := range locks {
		next[i] = lock.With("lock_id", NewLockID())
	}
	c.Params = c.Params.With("locks", next)
}

// body returns the parameters as they are sent now over this connection.
func (c *Call) body(l *Link, now clock.Instant, trace string) msgpack.Map {
	said := make(msgpack.Map, 0, len(c.Params)+3)
	if trace != "" && l.knowsTrace {
		said = append(said, msgpack.Pair{Name: "trace", Value: trace})
	}
	if c.WaitName != "" {
		said = append(said, msgpack.Pair{Name: c.WaitName, Value: int64(clock.Left(c.waitEnd, now) / time.Millisecond)})
	}
	if c.binds() {
		// After a repeat over another connection the end of the earlier one must not end the lock.
		said = append(said, msgpack.Pair{Name: "bond", Value: l.Number + c.Order})
	}
	return append(said, c.Params...)
}

// inDoubt returns whether an acquire that failed could have taken the key nevertheless.
func (c *Call) inDoubt(err *fault.Error, answered bool) bool {
	// An acquire that is tied to one connection is for a lock that is held already.
	if c.Method != "acquire" || c.Sends <= 0 || c.Connection != 0 {
		return false
	}
	if !answered || err == nil {
		return true
	}
	// The key is held under this lock_id in another mode; do not take it from its holder.
	if err.Code == "mismatch" {
		return false
	}
	return c.Sends > 1 || !slices.Contains(refusals, err.Code)
}

func (c *Call) finish(answer Answer, err *fault.Error) {
	if c.timer != nil {
		c.timer.Stop()
	}
	select {
	case <-c.done:
		return
	default:
	}
	c.answer, c.err = answer, err
	if c.OnDone != nil {
		c.OnDone(answer, err)
	}
	close(c.done)
}
