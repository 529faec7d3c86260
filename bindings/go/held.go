package pawl

import (
	"context"
	"sync/atomic"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

// held is what the client knows of a lock. It does not refer to the program's handle, so that the
// garbage collector can tell that nobody keeps that. But for what is atomic it belongs to the
// engine's lock.
type held struct {
	c           *Client
	key, lockID string
	options     *lockOptions
	// The deadline, by both clocks of one grant; nil: the lock is not trusted any more, for good.
	deadline atomic.Pointer[clock.Instant]
	token    atomic.Uint64
	// A transfer is under way, and until it fails the lock is not trusted.
	suspended atomic.Bool

	lease, warn time.Duration
	mode        string
	value       string
	slots       []int
	// When it is due, by the boot clock; 0: an extension is under way, or it is not renewed.
	renewAt   int64
	failures  int
	lastError *fault.Error
	// It is just acquired again under its lock_id.
	claiming bool
	// The numbers of the connections that it is bound to, and was bound to first; 0: to none.
	binding, first int
	// How often its lease was shortened. No answer to what was asked for under a smaller order makes
	// the deadline later.
	order int
	// The greatest bond under which an answer has come; 0: it is bound to no connection.
	bond int

	cause    *LostError
	released *engine.Call
	// Nothing is left to be released: it was handed over, or its client is abandoned.
	over bool
	// The program wants its lease to run out, if it does not release it.
	abandoned bool
	ctx       context.Context
	cancel    context.CancelCauseFunc
	// Why OnAsked is not called.
	askedError *fault.Error
	// Called with the engine's lock, once, when the lock is lost; or nil.
	onLost func(*LostError)
}

// left returns for how long the lock may be trusted. Once it has said 0 it says so for ever.
func (h *held) left(now clock.Instant) time.Duration {
	deadline := h.deadline.Load()
	if deadline == nil {
		return 0
	}
	left := clock.Left(*deadline, now)
	if left == 0 {
		h.deadline.CompareAndSwap(deadline, nil)
	}
	return left
}

// valid returns for how long the program may trust the lock. It reads two clocks, and takes no lock.
func (h *held) valid() time.Duration {
	if h.suspended.Load() {
		return 0
	}
	left := h.left(h.c.engine.Clock.Now())
	if h.suspended.Load() {
		return 0
	}
	return left
}

// prolong sets another deadline, unless the present one has passed.
func (h *held) prolong(deadline clock.Instant) bool {
	old := h.deadline.Load()
	return old != nil && h.deadline.CompareAndSwap(old, &deadline)
}

// state returns why the lock is not held any more; nil while it is.
func (h *held) state() *LostError {
	if h.cause == nil && h.deadline.Load() == nil {
		return &LostError{Key: h.key, Token: h.token.Load(),
			Cause: fault.New("lost", "the lease expired before it could be extended")}
	}
	return h.cause
}

// lose gives the lock up because of that cause: it is renewed no more.
func (h *held) lose(cause *fault.Error) {
	if h.cause != nil {
		return
	}
	h.cause = &LostError{Key: h.key, Token: h.token.Load(), Left: h.left(h.c.engine.Clock.Now()), Cause: cause}
	h.c.keeper.remove(h)
	h.cancel(h.cause)
	lost := h.cause
	if h.onLost != nil {
		h.onLost(lost)
	}
	if f := h.c.hooks.Lost; f != nil {
		h.c.callback(func() { f(lost) })
	}
	h.c.engine.After(func() {
		h.c.logger.Warn("pawl: a lock is lost", "key", lost.Key, "code", lost.Code(), "left", lost.Left)
	})
}

// forget stops trusting and renewing the lock. With an error, that is why it is lost.
func (h *held) forget(cause *fault.Error) bool {
	h.deadline.Store(nil)
	h.suspended.Store(false)
	if cause != nil {
		h.lose(cause)
		return true
	}
	had := h.released == nil
	if h.cause == nil {
		h.cause = &LostError{Key: h.key, Token: h.token.Load(), Released: true}
		h.cancel(h.cause)
	}
	h.c.keeper.remove(h)
	return had
}

// letGo stops trusting the lock, and begins to release it. It returns the release.
func (h *held) letGo() *engine.Call { return h.release(0, "") }

// release is letGo for a release that keeps the key closed, and has a traceparent.
func (h *held) release(closing time.Duration, trace string) *engine.Call {
	if h.forget(nil) && !h.over {
		h.released = h.c.engine.LetGo(h.key, h.lockID, h.lease, closing, trace)
	}
	return h.released
}

// distrust ends the trust at that instant, if it is to last longer.
func (h *held) distrust(after clock.Instant, now clock.Instant) {
	for old := h.deadline.Load(); old != nil && clock.Left(after, now) < clock.Left(*old, now); old = h.deadline.Load() {
		if h.deadline.CompareAndSwap(old, &after) {
			return
		}
	}
}

// claim returns the parameters that acquire the lock again under its lock_id.
func (h *held) claim() msgpack.Map {
	o := *h.options
	o.lease, o.value = h.lease, h.value
	if h.mode == "shared" {
		o.shared, o.permits, o.of = true, 0, 0
	}
	return append(append(o.params(h.c), o.mode()...),
		msgpack.Pair{Name: "key", Value: []byte(h.key)}, msgpack.Pair{Name: "lock_id", Value: h.lockID})
}

func intsOf(value any) []int {
	list, _ := value.([]any)
	var found []int
	for _, one := range list {
		if n, ok := one.(int64); ok {
			found = append(found, int(n))
		}
	}
	return found
}

func tokenOf(value any) uint64 {
	switch n := value.(type) {
	case int64:
		return uint64(max(n, 0))
	case uint64:
		return n
	}
	return 0
}
