package pawl

import (
	"encoding/hex"
	"os"
	"time"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/msgpack"
)

// Forever is a wait without an end, for Wait.
const Forever = time.Duration(engine.WaitForever)

const leaseDefault = 30 * time.Second

// A LockOption sets one thing of a lock or of a candidate in an election.
type LockOption func(*lockOptions)

type lockOptions struct {
	lease       time.Duration
	leaseGiven  bool
	wait        time.Duration
	warn        time.Duration
	warnGiven   bool
	owner       string
	ownerGiven  bool
	value       string
	label       string
	shared      bool
	permits, of int
	priority    int32
	delay       time.Duration
	disconnect  bool
	party       string
	onAsked     func(Asked)
	election    bool
	takeOver    bool
	patient     bool
}

// Wait waits in the queue for the key for up to d; Forever waits without an end. Without this option
// a lock is tried once. The context of the call bounds the wait, too.
func Wait(d time.Duration) LockOption { return func(o *lockOptions) { o.wait = d } }

// Lease sets how long the key stays held after the last renewal if this process dies. The lock is
// renewed at a third of it. The default is 30 s, or what the cluster allows if that is less.
func Lease(d time.Duration) LockOption {
	return func(o *lockOptions) { o.lease, o.leaseGiven = d, true }
}

// Warn sets how long before its deadline a lock that cannot be renewed is given up: the time that
// the program needs to stop. The default is a sixth of the lease, the most is half of it.
func Warn(d time.Duration) LockOption {
	return func(o *lockOptions) { o.warn, o.warnGiven = d, true }
}

// Shared lets other shared locks hold the key together with this one.
func Shared() LockOption { return func(o *lockOptions) { o.shared = true } }

// Permits takes n permits of a semaphore that has `of` (at most 128). All users of the semaphore
// name the same `of`. Lock.Slots gives the numbers of the permits.
func Permits(n, of int) LockOption { return func(o *lockOptions) { o.permits, o.of = n, of } }

// Priority serves waiters with a higher priority first. The default is 0.
func Priority(p int32) LockOption { return func(o *lockOptions) { o.priority = p } }

// LockDelay keeps the key closed for d after the lease has ended without a release.
func LockDelay(d time.Duration) LockOption { return func(o *lockOptions) { o.delay = d } }

// ReleaseOnDisconnect ends the lock as soon as this process has died, and not only when its lease is
// over. The lock outlives the death of its node: it is bound to the next connection.
func ReleaseOnDisconnect() LockOption { return func(o *lockOptions) { o.disconnect = true } }

// Owner sets the name that others see; in an election it is the name of the candidate. The default
// is that of the client.
func Owner(name string) LockOption {
	return func(o *lockOptions) { o.owner, o.ownerGiven = name, true }
}

// Value sets the bytes that others read with Get.
func Value(v []byte) LockOption { return func(o *lockOptions) { o.value = string(v) } }

// Label sets a free text of at most 128 bytes that others see.
func Label(text string) LockOption { return func(o *lockOptions) { o.label = text } }

// Party names who waits, for nodes that look for deadlocks: they take it that a party does nothing
// else while it waits. The default is a party of its own for each call of Lock. Give the same one to
// calls of one task that holds several locks. It has 16 bytes.
func Party(id [16]byte) LockOption {
	return func(o *lockOptions) { o.party = hex.EncodeToString(id[:]) }
}

// OnAsked is called when another client asks the holder to let go. It runs in a goroutine of the
// client, one call at a time; what it does about it is up to the program.
func OnAsked(f func(Asked)) LockOption { return func(o *lockOptions) { o.onAsked = f } }

// Asked is a request of another client to let go of a key.
type Asked struct {
	// Key is the key of the lock.
	Key string
	// By is who asks, and To in whose favour.
	By, To string
	// Priority is that of the candidate or waiter in whose favour it is asked.
	Priority int32
}

func (o *lockOptions) check() error {
	switch {
	case o.lease < time.Millisecond:
		return badArgument("lease: it must be at least a millisecond")
	case o.wait < 0:
		return badArgument("wait: it must not be negative")
	case o.warnGiven && (o.warn < 0 || o.warn > o.lease/2):
		return badArgument("warn: it must be at most half of the lease")
	case o.delay < 0:
		return badArgument("lock delay: it must not be negative")
	case (o.permits != 0 || o.of != 0) && (o.shared || o.permits < 1 || o.permits > o.of):
		return badArgument("permits: take 1 to `of` permits, and no other mode")
	case o.wait > Forever || o.lease > Forever || o.delay > Forever:
		return badArgument("a duration is longer than the protocol can say")
	}
	return nil
}

func optionsOf(more []LockOption) (*lockOptions, error) {
	o := &lockOptions{lease: leaseDefault}
	for _, option := range more {
		option(o)
	}
	if o.party == "" {
		o.party = engine.NewLockID()
	}
	return o, o.check()
}

// within returns the options with a lease that the cluster allows, if the lease was left open. What
// it allows covers the lock delay, too.
func (o *lockOptions) within(most time.Duration) *lockOptions {
	if o.leaseGiven || most == 0 {
		return o
	}
	if most > o.delay {
		most -= o.delay
	}
	next := *o
	next.lease = min(o.lease, most)
	next.warn = min(o.warn, next.lease/2)
	return &next
}

func (o *lockOptions) warnTime() time.Duration {
	if o.warnGiven {
		return o.warn
	}
	return o.lease / 6
}

func millis(d time.Duration) int64 { return int64(d / time.Millisecond) }

// mode returns the parameters that name the mode.
func (o *lockOptions) mode() msgpack.Map {
	switch {
	case o.permits > 0:
		return msgpack.Map{{Name: "permits", Value: o.permits}, {Name: "of", Value: o.of}}
	case o.shared:
		return msgpack.Map{{Name: "mode", Value: "shared"}}
	}
	return nil
}

// params returns the parameters of an acquire but for the keys and their modes.
func (o *lockOptions) params(c *Client) msgpack.Map {
	owner, label := c.owner, c.label
	if o.ownerGiven {
		owner = o.owner
	}
	if o.label != "" {
		label = o.label
	}
	said := msgpack.Map{
		{Name: "lease_ms", Value: millis(o.lease)}, {Name: "owner", Value: []byte(owner)},
		{Name: "host", Value: c.host}, {Name: "pid", Value: os.Getpid()},
		{Name: "party", Value: o.party},
	}
	add := func(is bool, name string, value any) {
		if is {
			said = append(said, msgpack.Pair{Name: name, Value: value})
		}
	}
	add(o.value != "", "value", []byte(o.value))
	add(o.priority != 0, "priority", o.priority)
	add(o.delay > 0, "lock_delay_ms", millis(o.delay+time.Millisecond-1))
	add(o.disconnect, "release_on_disconnect", true)
	add(label != "", "label", []byte(label))
	add(o.election, "election", true)
	return said
}
