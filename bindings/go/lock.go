package pawl

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

// Lock is one acquisition of a key. Any number of goroutines may use it. A Lock that nobody keeps is
// released when the garbage collector finds it, and the client logs that: release it instead.
type Lock struct {
	h *held
}

// Lock acquires the key. Without Wait it tries once, and a *HeldError says who holds the key. When
// the context is over, the call returns its error, and whatever was acquired is released in the
// background. The context has no influence on the lock once it is held.
func (c *Client) Lock(ctx context.Context, key string, options ...LockOption) (*Lock, error) {
	o, err := optionsOf(options)
	if err != nil {
		return nil, err
	}
	got, err := c.acquire(ctx, &acquiring{c: c, options: o, wants: []want{{key, o.mode()}}})
	if err != nil {
		return nil, err
	}
	return newLock(got[0]), nil
}

func newLock(h *held) *Lock {
	l := &Lock{h: h}
	runtime.AddCleanup(l, dropped, h)
	return l
}

// dropped releases a lock that nobody keeps.
func dropped(h *held) {
	e := h.c.engine
	e.Lock()
	defer e.Unlock()
	if h.over || h.abandoned || h.released != nil || e.Closed() {
		return
	}
	h.letGo()
	e.After(func() {
		h.c.logger.Warn("pawl: a lock was dropped without a release; it is released now", "key", h.key)
	})
}

// Key returns the key.
func (l *Lock) Key() string { return l.h.key }

// ID returns the lock_id of this acquisition, in 32 hex digits.
func (l *Lock) ID() string { return l.h.lockID }

// Token returns the fencing token, which grows with every acquisition of the key. Send it along with
// each write. It may grow while the lock is held, so ask for it each time.
func (l *Lock) Token() uint64 { return l.h.token.Load() }

// Valid returns for how long nobody else can hold the key. It counts from the moment at which the
// last request that was granted was sent, by a clock that counts suspend and by one that is not
// slewed, and is over as soon as either says so. Once it has returned 0 it returns 0 for ever. It
// only reads two clocks.
func (l *Lock) Valid() time.Duration {
	valid := l.h.valid()
	runtime.KeepAlive(l)
	return valid
}

// Context returns a context that is canceled when the lock is given up, which is the warn time before
// its deadline wherever that can be known, and when it is released. context.Cause is a *LostError.
// Keep the Lock itself as long as the context is in use.
func (l *Lock) Context() context.Context { return l.h.ctx }

// Done is closed when the lock is given up, or released.
func (l *Lock) Done() <-chan struct{} { return l.h.ctx.Done() }

// Err returns nil as long as the lock is held, and then a *LostError that says why it is not.
func (l *Lock) Err() error {
	e := l.h.c.engine
	e.Lock()
	defer e.Unlock()
	l.h.valid()
	if cause := l.h.state(); cause != nil {
		return cause
	}
	return nil
}

// Mode returns the present mode: exclusive, shared or permits.
func (l *Lock) Mode() string {
	l.h.c.engine.Lock()
	defer l.h.c.engine.Unlock()
	return l.h.mode
}

// Slots returns the numbers of the permits of a semaphore that this lock holds. They go from 0 to
// of - 1, and no two holders have the same one.
func (l *Lock) Slots() []int {
	l.h.c.engine.Lock()
	defer l.h.c.engine.Unlock()
	return slices.Clone(l.h.slots)
}

// Release stops trusting the lock at once, and then releases it. It returns nil once it is released,
// also if that was done before, and a *LostError if it was not held any more. If the context is over,
// it returns its error, and the release goes on in the background until it succeeds or the lease has
// run out.
func (l *Lock) Release(ctx context.Context) error { return l.release(ctx, 0) }

// ReleaseAndClose releases the lock as Release does, and keeps the key closed for d: nobody gets it
// before that. If the lock was released before, or not held any more, nothing is closed. Nodes of
// release 0.2.0 refuse it (ErrBadRequest), and then the key is held until the lease has run out.
func (l *Lock) ReleaseAndClose(ctx context.Context, d time.Duration) error {
	if d < 0 || d > Forever {
		return badArgument("close: it must not be negative, nor longer than the protocol can say")
	}
	return l.release(ctx, d)
}

func (l *Lock) release(ctx context.Context, closing time.Duration) error {
	r := l.beginRelease(ctx)
	e := l.h.c.engine
	e.Lock()
	r.start(closing)
	e.Unlock()
	return r.wait(ctx)
}

// releasing is a release that the program has asked for.
type releasing struct {
	l     *Lock
	trace string
	ended func(error)
	// The release, and whether it was begun here; nil: the lock was handed over or abandoned.
	call  *engine.Call
	first bool
}

func (l *Lock) beginRelease(ctx context.Context) releasing {
	r := releasing{l: l}
	r.trace, r.ended = l.h.c.begun(ctx, "release", l.h.key)
	return r
}

// start begins the release, unless that was done before. With the engine's lock.
func (r *releasing) start(closing time.Duration) {
	r.first = r.l.h.released == nil
	r.call = r.l.h.release(closing, r.trace)
}

// wait waits for the outcome.
func (r *releasing) wait(ctx context.Context) error {
	err := r.outcome(ctx)
	runtime.KeepAlive(r.l)
	r.ended(err)
	return err
}

func (r *releasing) outcome(ctx context.Context) error {
	if r.call == nil {
		return nil
	}
	h := r.l.h
	limited, cancel := context.WithTimeout(ctx, h.c.timeout)
	defer cancel()
	answer, err := r.call.Await(limited)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return h.c.engine.Late()
	case err != nil:
		return told(err)
	}
	if released, ok := answer.Result["released"].(bool); r.first && ok && !released {
		h.c.engine.Lock()
		defer h.c.engine.Unlock()
		if !h.cause.Released {
			return h.cause
		}
		return &LostError{Key: h.key, Token: h.token.Load(),
			Cause: fault.New("lost", "the lock was not held any more when it was released")}
	}
	return nil
}

// Abandon stops trusting the lock, and renews it no more, without a release: the lease runs out by
// itself, also if nobody keeps the Lock. It may still be released.
func (l *Lock) Abandon() {
	e := l.h.c.engine
	e.Lock()
	defer e.Unlock()
	l.h.abandoned = true
	l.h.forget(nil)
}

// Extend extends the lock now, with another lease if that is not 0, which later renewals keep. What the
// lock has is never shortened.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	if lease != 0 && lease < time.Millisecond {
		return badArgument("lease: it must be at least a millisecond")
	}
	return l.extend(ctx, lease, l.h.c.keeper.extendNow)
}

// Shorten makes the lease end within that time from now, which must not be longer than the present
// lease, and from now on renews the lock for that long. Valid falls at once, before any node is asked,
// whatever the outcome, and no answer to an earlier request makes it longer. After an error that is not
// ErrLost or ErrDenied the lock is held for the new lease, and the key may be closed to others until the
// earlier end. Nodes of release 0.2.0 refuse it (ErrBadRequest).
func (l *Lock) Shorten(ctx context.Context, lease time.Duration) error {
	if lease < time.Millisecond {
		return badArgument("lease: it must be at least a millisecond")
	}
	return l.extend(ctx, lease, l.h.c.keeper.shortenNow)
}

func (l *Lock) extend(ctx context.Context, lease time.Duration,
	now func(context.Context, *held, time.Duration, string) error) error {
	trace, ended := l.h.c.begun(ctx, "extend", l.h.key)
	err := told(now(ctx, l.h, lease, trace))
	runtime.KeepAlive(l)
	ended(err)
	return err
}

func (l *Lock) params(more ...msgpack.Pair) msgpack.Map {
	return append(msgpack.Map{{Name: "key", Value: []byte(l.h.key)}, {Name: "lock_id", Value: l.h.lockID}}, more...)
}

// Update writes the value that others read with Get, and returns its value_seq, which names this
// write. ErrUnsure: the write may still take effect.
func (l *Lock) Update(ctx context.Context, value []byte) ([]byte, error) {
	return l.update(ctx, value)
}

// CompareAndUpdate writes the value if `expect` is the present one, or its value_seq. Otherwise the
// error is ErrMismatch.
func (l *Lock) CompareAndUpdate(ctx context.Context, value, expect []byte) ([]byte, error) {
	if expect == nil {
		expect = []byte{}
	}
	return l.update(ctx, value, msgpack.Pair{Name: "expect", Value: expect})
}

func (l *Lock) update(ctx context.Context, value []byte, more ...msgpack.Pair) ([]byte, error) {
	if value == nil {
		value = []byte{}
	}
	params := append(l.params(msgpack.Pair{Name: "value", Value: value}), more...)
	call := &engine.Call{Method: "update", Params: params}
	call.OnAnswer = func(map[string]any) { l.h.value = string(value) }
	answer, err := l.h.c.run(ctx, l.h.key, call)
	runtime.KeepAlive(l)
	if err != nil {
		return nil, err
	}
	seq, _ := answer.Result["value_seq"].(string)
	return []byte(seq), nil
}

// Downgrade makes an exclusive lock a shared one without letting go, for good. It may be repeated.
func (l *Lock) Downgrade(ctx context.Context) error {
	e := l.h.c.engine
	e.Lock()
	mode := l.h.mode
	e.Unlock()
	if mode == "permits" {
		return badArgument("downgrade: only an exclusive lock can be made a shared one")
	}
	_, err := l.h.c.run(ctx, l.h.key, &engine.Call{Method: "downgrade", Params: l.params()})
	runtime.KeepAlive(l)
	return err
}

// Transfer releases the lock in favour of the waiter whose owner is `to`, whoever waits ahead of it.
// From the call on the lock is not trusted. ErrNotFound: nobody of this name waits, nothing was
// released, and the lock is held as before. After any other error the lock is released without a
// successor.
func (l *Lock) Transfer(ctx context.Context, to string) error {
	trace, ended := l.h.c.begun(ctx, "transfer", l.h.key)
	err := l.transfer(ctx, to, trace)
	ended(err)
	return err
}

func (l *Lock) transfer(ctx context.Context, to, trace string) error {
	h, e := l.h, l.h.c.engine
	e.Lock()
	h.valid()
	if cause := h.state(); cause != nil {
		e.Unlock()
		return cause
	}
	if h.claiming || h.suspended.Load() {
		e.Unlock()
		return fault.New("busy", "the lock is just being bound to another connection, or handed over: try again later")
	}
	h.suspended.Store(true)
	call := &engine.Call{Method: "transfer", Trace: trace, Holder: h, Params: l.params(msgpack.Pair{Name: "to", Value: []byte(to)})}
	call.OnDone = func(answer engine.Answer, err *fault.Error) { h.transferred(answer, err) }
	e.Start(call)
	e.Unlock()
	answer, err := call.Await(ctx)
	runtime.KeepAlive(l)
	if err != nil {
		e.Lock()
		if h.suspended.Load() { // The context is over. A transfer that is given up becomes a release.
			e.Cancel(call)
			h.letGo()
		}
		e.Unlock()
		return told(err)
	}
	if done, ok := answer.Result["transferred"].(bool); ok && !done {
		return &LostError{Key: h.key, Token: h.token.Load(), Cause: fault.New("lost", "the lock was not held any more")}
	}
	return nil
}

// transferred handles the outcome of a transfer, with the engine's lock.
func (h *held) transferred(_ engine.Answer, err *fault.Error) {
	switch {
	case err == nil:
		h.over = true
		h.forget(nil)
	case (err.Code == "not_found" || err.Code == "denied" || err.Code == "bad_request") &&
		err.Details["transferred"] == nil && err.Details["released"] == nil && h.cause == nil:
		h.suspended.Store(false)
		h.c.keeper.schedule(h, false)
		h.c.keeper.arm()
	default:
		h.letGo()
	}
}

type lockKey struct{}

// NewContext returns a context that carries the lock.
func NewContext(ctx context.Context, l *Lock) context.Context {
	return context.WithValue(ctx, lockKey{}, l)
}

// FromContext returns the lock that the context carries, such as that of a function that Do has called;
// nil: it carries none.
func FromContext(ctx context.Context) *Lock {
	l, _ := ctx.Value(lockKey{}).(*Lock)
	return l
}

// Do acquires the key, calls fn, waits for it, and releases the lock. The context of fn is canceled
// with the context of the call, and, with a *LostError as its cause, when the lock is lost. It carries
// the lock (FromContext); the token is the one that the lock has when fn begins. If the lock is lost before fn has returned, the error
// is a *LostError, joined with that of fn if it has returned another one.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, token uint64) error, options ...LockOption) error {
	l, err := c.Lock(ctx, key, options...)
	if err != nil {
		return err
	}
	return l.do(ctx, fn)
}

func (l *Lock) do(ctx context.Context, fn func(ctx context.Context, token uint64) error) error {
	inner, cancel := context.WithCancelCause(NewContext(ctx, l))
	stop := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	defer func() {
		stop()
		cancel(nil)
		_ = l.Release(context.WithoutCancel(ctx))
	}()
	err := fn(inner, l.Token())
	lost := l.Err()
	switch {
	case lost == nil:
		return err
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, lost):
		return lost
	}
	return errors.Join(lost, err)
}

// Locker returns a sync.Locker for the key. Its Lock waits without an end, and panics if the key
// cannot be acquired for another reason than a lack of nodes or of a quorum, in which case it goes on
// waiting. Its Unlock releases the key. It cannot tell the program that the lock is lost: prefer Lock
// or Do.
func (c *Client) Locker(key string, options ...LockOption) sync.Locker {
	return &locker{c: c, key: key, options: append(slices.Clone(options), Wait(Forever), patiently)}
}

func patiently(o *lockOptions) { o.patient = true }

type locker struct {
	c       *Client
	key     string
	options []LockOption
	// Goroutines of this process take turns at it.
	mu sync.Mutex
	l  *Lock
}

func (k *locker) Lock() {
	k.mu.Lock()
	l, err := k.c.Lock(context.Background(), k.key, k.options...)
	if err != nil {
		k.mu.Unlock()
		panic(err)
	}
	k.l = l
}

func (k *locker) Unlock() {
	l := k.l
	k.l = nil
	if l == nil {
		panic("pawl: Unlock of a key that this Locker has not locked")
	}
	_ = l.Release(context.Background())
	k.mu.Unlock()
}
