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

// TryLock acquires the key if that is possible at once. Otherwise it returns nil and no error.
func (c *Client) TryLock(ctx context.Context, key string, options ...LockOption) (*Lock, error) {
	l, err := c.Lock(ctx, key, append(slices.Clone(options), Wait(0))...)
	if errors.Is(err, ErrHeld) {
		return nil, nil
	}
	return l, err
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
	if h.over || h.released != nil || h.cause != nil && h.cause.Released || e.Closed() {
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
func (l *Lock) Release(ctx context.Context) error {
	_, err := l.release(ctx)
	return err
}

// release returns also whether this call has released the lock.
func (l *Lock) release(ctx context.Context) (bool, error) {
	e := l.h.c.engine
	e.Lock()
	first := l.h.released == nil
	call := l.h.letGo()
	lost := l.h.cause
	e.Unlock()
	if call == nil { // It was handed over, or its client is closed.
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, l.h.c.timeout)
	defer cancel()
	answer, err := call.Await(limited)
	runtime.KeepAlive(l)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return false, e.Late()
	case err != nil:
		return false, told(err)
	case !first:
		return false, nil
	}
	if released, ok := answer.Result["released"].(bool); ok && !released {
		if lost.Released {
			lost = &LostError{Key: l.h.key, Token: l.h.token.Load(),
				Cause: fault.New("lost", "the lock was not held any more when it was released")}
		}
		return false, lost
	}
	return true, nil
}

// Extend extends the lock now, with another lease if that is not 0, which later renewals keep.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	if lease != 0 && lease < time.Millisecond {
		return badArgument("lease: it must be at least a millisecond")
	}
	err := l.h.c.keeper.extendNow(ctx, l.h, lease)
	runtime.KeepAlive(l)
	return told(err)
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
	call := &engine.Call{Method: "transfer", Holder: h, Params: l.params(msgpack.Pair{Name: "to", Value: []byte(to)})}
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

// Do acquires the key, calls fn, waits for it, and releases the lock. The context of fn is canceled
// with the context of the call, and, with a *LostError as its cause, when the lock is lost; the token
// is the one that the lock has when fn begins. If the lock is lost before fn has returned, the error
// is a *LostError, joined with that of fn if it has returned another one.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, token uint64) error, options ...LockOption) error {
	l, err := c.Lock(ctx, key, options...)
	if err != nil {
		return err
	}
	return l.do(ctx, fn)
}

func (l *Lock) do(ctx context.Context, fn func(ctx context.Context, token uint64) error) error {
	inner, cancel := context.WithCancelCause(ctx)
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
