package pawl

import (
	"math"
	"math/rand/v2"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
)

const (
	retryLeast = 10 * time.Millisecond
	// Go's timers stand still while the machine sleeps. So the two clocks that count are read at
	// least once in this time.
	napLongest = time.Second
)

// keeper renews locks: it extends each whenever a third of its lease has passed, many in one
// request, and gives up in time those that cannot be extended. It belongs to the engine's lock.
type keeper struct {
	c        *Client
	locks    map[*held]bool
	byID     map[string]*held
	bindings *bindings
	timer    *time.Timer
	timerAt  int64 // by the boot clock
	// How many locks have each lease, and the shortest one; 0: there is none.
	leases   map[time.Duration]int
	shortest time.Duration
	// Closed at the next connection, if somebody waits for it; otherwise nil.
	up chan struct{}
}

func newKeeper(c *Client) *keeper {
	k := &keeper{c: c, locks: map[*held]bool{}, byID: map[string]*held{}, leases: map[time.Duration]int{}}
	k.bindings = &bindings{k: k, locks: map[*held]bool{}}
	return k
}

// share returns how long one step may take: a sixth of the shortest lease. So the client can leave
// two hanging nodes between a third of the lease and the warning. 0: no lock is held.
func (k *keeper) share() time.Duration { return k.shortest / 6 }

// bound returns whether some lock must have a connection that it is bound to.
func (k *keeper) bound() bool {
	for h := range k.locks {
		if h.binding != 0 {
			return true
		}
	}
	return false
}

func (k *keeper) all() []*held {
	found := make([]*held, 0, len(k.locks))
	for h := range k.locks {
		found = append(found, h)
	}
	return found
}

// add begins to renew the lock, which is bound to the connection of that number; 0: to none.
func (k *keeper) add(h *held, atOnce bool, connection int) {
	k.locks[h], k.byID[h.lockID] = true, h
	if connection != 0 {
		k.bindings.begin(h, connection)
	}
	k.count(h.lease, 1)
	k.schedule(h, atOnce)
	k.armFor(k.napOf(h, k.c.engine.Clock.Now()))
}

func (k *keeper) remove(h *held) {
	if k.locks[h] {
		delete(k.locks, h)
		delete(k.byID, h.lockID)
		h.renewAt = 0
		k.count(h.lease, -1)
	}
	k.settle()
}

// settle closes the connections that no lock depends on any more.
func (k *keeper) settle() {
	k.bindings.settle()
	k.c.engine.Settle()
}

// count notes that so many more locks have that lease.
func (k *keeper) count(lease time.Duration, more int) {
	if k.leases[lease] += more; k.leases[lease] == 0 {
		delete(k.leases, lease)
	}
	k.shortest = 0
	for one := range k.leases {
		if k.shortest == 0 || one < k.shortest {
			k.shortest = one
		}
	}
}

// setLease gives a lock another lease, and another time of warning that fits.
func (k *keeper) setLease(h *held, lease time.Duration) {
	usual := h.warn == h.lease/6
	if k.locks[h] {
		k.count(h.lease, -1)
		k.count(lease, 1)
	}
	h.lease, h.warn = lease, min(h.warn, lease/2)
	if usual {
		h.warn = lease / 6
	}
}

// connectionLost is called when the connection is about to be closed, or is closed. It returns
// whether the connection is retained.
func (k *keeper) connectionLost(l *engine.Link) bool {
	for _, h := range k.all() {
		// A transfer of this lock is under way. If it fails, the lock must not be trusted again.
		if h.suspended.Load() && 0 < h.binding && h.binding <= l.Number {
			h.forget(gone())
		}
	}
	retained := k.bindings.connectionLost(l)
	k.arm()
	return retained
}

// connectionUp binds the locks to the new connection at once. Until then the nodes would not notice
// the death of this process.
func (k *keeper) connectionUp() {
	now := k.c.engine.Clock.Now()
	for h := range k.locks {
		if h.binding != 0 {
			h.renewAt = now.Boot
		}
	}
	if k.up != nil {
		close(k.up)
		k.up = nil
	}
	k.renewDue(now)
	k.arm()
}

// takenAway ends the trust in locks that a request of the program lets go of by their lock_id.
func (k *keeper) takenAway(call *engine.Call) {
	key, _ := call.Params.Get("key").([]byte)
	id, _ := call.Params.Get("lock_id").(string)
	h := k.byID[id]
	switch {
	case h == nil || h.key != string(key) || call.Holder == any(h):
	case call.Method == "downgrade":
		h.mode = "shared"
	default:
		h.forget(fault.New("lost", "this client has let go of the lock by its lock_id"))
	}
}

func (k *keeper) close() {
	if k.timer != nil {
		k.timer.Stop()
	}
	k.bindings.close()
}

// ---- when ----

// schedule plans the next extension.
func (k *keeper) schedule(h *held, atOnce bool) {
	now := k.c.engine.Clock.Now()
	h.renewAt = now.Boot
	if !atOnce {
		wait := h.left(now) - h.lease/3*2
		// A node may grant a shorter lease than was asked for. Do not ask it all the time then.
		h.renewAt += int64(max(wait, h.lease/16))
	}
}

// retry plans another try: soon, later after each failure, with a random part, and still several
// times before the deadline.
func (k *keeper) retry(h *held, err *fault.Error) {
	h.lastError = err
	now := k.c.engine.Clock.Now()
	wait := min(h.lease/64<<min(h.failures, 3), h.left(now)/4)
	h.failures++
	h.renewAt = now.Boot + int64(max(retryLeast, time.Duration(float64(wait)*(0.5+rand.Float64()))))
}

// arm sets the timer for what is next.
func (k *keeper) arm() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	if len(k.locks) == 0 && len(k.bindings.retained) == 0 {
		return
	}
	now := k.c.engine.Clock.Now()
	nap := napLongest
	for h := range k.locks {
		nap = min(nap, k.napOf(h, now))
	}
	k.armFor(nap)
}

// napOf returns for how long there is nothing to do for the lock.
func (k *keeper) napOf(h *held, now clock.Instant) time.Duration {
	if h.suspended.Load() {
		return napLongest
	}
	nap := min(napLongest, h.left(now)-h.warn)
	if at := k.asksAt(h); at != math.MaxInt64 {
		nap = min(nap, time.Duration(at-now.Boot))
	}
	return max(time.Millisecond, nap)
}

// armFor sets the timer, unless it rings earlier already.
func (k *keeper) armFor(nap time.Duration) {
	at := k.c.engine.Clock.Now().Boot + int64(nap)
	if k.timer != nil && k.timerAt <= at || k.c.engine.Closed() {
		return
	}
	if k.timer != nil {
		k.timer.Stop()
	}
	k.timerAt = at
	k.timer = k.c.engine.Alarm(nap, k.tick)
}

func (k *keeper) tick() {
	k.timer = nil
	now := k.c.engine.Clock.Now()
	for _, h := range k.all() {
		if !h.suspended.Load() && h.left(now) <= h.warn {
			h.lose(k.causeOf(h, now))
		}
	}
	k.settle()
	k.renewDue(now)
	k.arm()
}

func (k *keeper) causeOf(h *held, now clock.Instant) *fault.Error {
	switch trouble := k.c.engine.Trouble(); {
	case h.left(now) == 0:
		return fault.New("lost", "the lease expired before it could be extended")
	case h.lastError != nil:
		return h.lastError
	case trouble != nil:
		return trouble
	}
	return fault.New("timeout", "the lease could not be extended in time")
}

// asksAt returns when the lock is due, by the boot clock. A lock that is bound to a connection waits
// until there is one.
func (k *keeper) asksAt(h *held) int64 {
	if h.suspended.Load() || h.renewAt == 0 || h.binding != 0 && k.c.engine.Connection() == 0 {
		return math.MaxInt64
	}
	return h.renewAt
}

func (k *keeper) renewDue(now clock.Instant) {
	any := false
	for h := range k.locks {
		any = any || k.asksAt(h) <= now.Boot
	}
	if !any {
		return
	}
	// Locks that will be due within an eighth of their lease are extended as well, so that locks
	// which began at different times are soon due together.
	due := map[how][]*held{}
	for h := range k.locks {
		early := int64(h.lease / 8)
		if h.failures > 0 {
			early = 0
		}
		if at := k.asksAt(h); at == math.MaxInt64 || at-early > now.Boot {
			continue
		}
		h.renewAt = 0
		kind := k.howFor(h)
		due[kind] = append(due[kind], h)
	}
	for kind, locks := range due {
		for _, batch := range batches(locks) {
			k.extend(batch, kind)
		}
	}
}
