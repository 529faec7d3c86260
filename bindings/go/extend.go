package pawl

import (
	"context"
	"fmt"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

// One request to extend has at most so many locks, objects and bytes of keys: a node reads 65,536
// objects and 4 MiB. A lock is a map of up to six pairs, one of which lists its permit numbers.
const (
	batchMax      = 1000
	batchObjects  = 1<<16 - 256
	objectsOfLock = 1 + 2*6
	batchBytes    = 3 << 20
)

// how says how an extension is sent. Extensions of the same kind go into one request.
type how struct {
	// The number of the only connection that may carry it, for locks that are bound to that
	// connection or are to be bound to it; 0: any connection.
	connection int
	// The extension binds the locks to that connection.
	binds bool
	// The extension is sent with deadline_kept, as all but those that bind a lock whose lease was never
	// shortened.
	kept bool
	// The extension shortens the leases.
	shortens bool
}

// howFor returns how an extension of the lock is sent now.
func (k *keeper) howFor(h *held) how {
	if h.binding == 0 {
		return how{kept: true}
	}
	kind := how{connection: k.c.engine.Connection()}
	kind.binds = kind.connection != h.binding
	kind.kept = !kind.binds || h.order > 0
	return kind
}

// batches returns the locks in lists that fit into one request each.
func batches(locks []*held) [][]*held {
	var found [][]*held
	var batch []*held
	objects, size := 0, 0
	for _, h := range locks {
		own := objectsOfLock + len(h.slots)
		if len(batch) == batchMax || objects+own > batchObjects || size+len(h.key) > batchBytes {
			found = append(found, batch)
			batch, objects, size = nil, 0, 0
		}
		batch = append(batch, h)
		objects, size = objects+own, size+len(h.key)
	}
	return append(found, batch)
}

// extension returns the parameters that extend the locks.
func extension(batch []*held, kind how) msgpack.Map {
	items := make([]msgpack.Map, len(batch))
	party := batch[0].options.party
	for i, h := range batch {
		items[i] = msgpack.Map{
			{Name: "key", Value: []byte(h.key)}, {Name: "lock_id", Value: h.lockID},
			{Name: "lease_ms", Value: millis(h.lease)}, {Name: "token", Value: h.token.Load()},
		}
		if len(h.slots) > 0 {
			items[i] = append(items[i], msgpack.Pair{Name: "slots", Value: h.slots})
		}
		switch {
		case kind.binds || kind.connection != 0 && h.order > 0:
			items[i] = append(items[i], msgpack.Pair{Name: "bond", Value: h.bondOver(kind.connection)})
		case h.order > 0:
			items[i] = append(items[i], msgpack.Pair{Name: "order", Value: h.order})
		}
		if kind.shortens {
			items[i] = append(items[i], msgpack.Pair{Name: "shorten", Value: true})
		}
		if h.options.party != party {
			party = ""
		}
	}
	params := msgpack.Map{{Name: "locks", Value: items}, {Name: "deadline_kept", Value: kind.kept}}
	if party != "" {
		// A node that did not grant the locks learns it so.
		params = append(params, msgpack.Pair{Name: "party", Value: party})
	}
	return params
}

// extend asks for an extension of the locks. With the engine's lock, as all that follows.
func (k *keeper) extend(batch []*held, kind how) {
	call := &engine.Call{Method: "extend", Params: extension(batch, kind), Internal: true,
		Connection: kind.connection, Timeout: k.longest(batch)}
	orders := ordersOf(batch)
	call.OnDone = func(answer engine.Answer, err *fault.Error) { k.answered(batch, orders, kind, answer, err) }
	k.c.engine.Start(call)
}

// longest returns for how long some lock of the batch can be trusted.
func (k *keeper) longest(batch []*held) time.Duration {
	now := k.c.engine.Clock.Now()
	longest := time.Millisecond
	for _, h := range batch {
		longest = max(longest, h.left(now))
	}
	return longest
}

// ordersOf returns the orders that a request which is made now names.
func ordersOf(batch []*held) []int {
	orders := make([]int, len(batch))
	for i, h := range batch {
		orders[i] = h.order
	}
	return orders
}

// outcome is what an answer says of a lock.
type outcome struct {
	h *held
	// What the request has named as the order of the lock.
	order  int
	item   map[string]any
	err    *fault.Error
	sentAt clock.Instant
}

// outcomes calls `one` with what the answer says of each lock. Locks that have moved to another cluster
// are asked for there first, in one request for each list of endpoints.
func (k *keeper) outcomes(batch []*held, orders []int, kind how, answer engine.Answer, failure *fault.Error,
	timeout time.Duration, one func(outcome)) {
	items, _ := answer.Result["locks"].([]any)
	moved := map[string][]*held{}
	errs := map[string]*fault.Error{}
	for i, h := range batch {
		var item map[string]any
		if i < len(items) {
			item, _ = items[i].(map[string]any)
		}
		err := judge(item, failure)
		if err == nil || err.Code != "moved" || failure != nil {
			one(outcome{h, orders[i], item, err, answer.SentAt})
			continue
		}
		list := fmt.Sprintf("%q", err.Details["endpoints"])
		moved[list], errs[list] = append(moved[list], h), err
	}
	for list, locks := range moved {
		call := &engine.Call{Method: "extend", Params: extension(locks, kind), Internal: true, Timeout: timeout}
		orders := ordersOf(locks)
		call.OnDone = func(there engine.Answer, failed *fault.Error) {
			items, _ := there.Result["locks"].([]any)
			for i, h := range locks {
				var item map[string]any
				if i < len(items) {
					item, _ = items[i].(map[string]any)
				}
				one(outcome{h, orders[i], item, judge(item, failed), there.SentAt})
			}
			k.arm()
		}
		if !k.c.engine.StartAt(call, errs[list], answer.TLS) {
			for i, h := range locks {
				one(outcome{h, orders[i], nil, errs[list], answer.SentAt})
			}
		}
	}
}

func (k *keeper) answered(batch []*held, orders []int, kind how, answer engine.Answer, failure *fault.Error) {
	if failure != nil && failure.Code == "denied" && len(batch) > 1 {
		// A node refuses a request as a whole if this client may not extend one of its locks. So
		// that the others stay held, each half is asked for by itself.
		var still []*held
		for i, h := range batch {
			if k.isStill(h, orders[i]) {
				still = append(still, h)
			}
		}
		for _, half := range [][]*held{still[:len(still)/2], still[len(still)/2:]} {
			if len(half) > 0 {
				k.extend(half, kind)
			}
		}
		return
	}
	answers, useless := 0, 0
	k.outcomes(batch, orders, kind, answer, failure, k.longest(batch), func(o outcome) {
		answers++
		if o.err != nil && (o.err.Code == "no_quorum" || o.err.Code == "recovering") {
			useless++
		}
		if k.isStill(o.h, o.order) {
			k.extended(o.h, o.item, o.err, o.sentAt, kind)
		}
	})
	if answers > 0 && useless == answers && !k.bindings.full(k.c.engine.Connection()) {
		k.c.engine.MoveOn(fault.New("no_quorum", "the node does not reach a quorum"))
	}
	k.arm()
}

// isStill returns whether an answer to a request that has named this order counts. Once the lease was
// shortened, no answer to an earlier request does.
func (k *keeper) isStill(h *held, order int) bool {
	return k.locks[h] && !h.suspended.Load() && h.order == order
}

// judge returns why the lock was not extended; nil if it was.
func judge(item map[string]any, failure *fault.Error) *fault.Error {
	if failure != nil {
		return failure
	}
	if said := item["error"]; said != nil {
		return fault.FromWire(said)
	}
	if _, ok := item["valid_ms"].(int64); !ok {
		return fault.New("protocol", "no outcome for the lock")
	}
	return nil
}

func (k *keeper) extended(h *held, item map[string]any, err *fault.Error, sentAt clock.Instant, kind how) {
	switch {
	case h.left(k.c.engine.Clock.Now()) == 0:
		// A deadline that has passed is final, whatever arrives later.
		if err == nil {
			err = fault.New("lost", "the answer arrived after the lease had expired")
		}
		h.lose(err)
	case err == nil:
		k.prolong(h, item, sentAt, kind.connection)
	case err.Code == "lost" || err.Code == "not_found":
		h.deadline.Store(nil)
		h.lose(&fault.Error{Code: "lost", Message: err.Message, Details: err.Details})
	case err.Code == "denied":
		h.lose(err)
	case err.Code == "unsure" && !kind.kept && kind.connection == k.c.engine.Connection() && !h.claiming:
		k.claim(h, kind)
	case err.Code == "too_long" && k.allow(h, err):
		k.schedule(h, true)
	default:
		k.retry(h, err)
	}
}

func (k *keeper) prolong(h *held, item map[string]any, sentAt clock.Instant, connection int) {
	now := k.c.engine.Clock.Now()
	valid, _ := item["valid_ms"].(int64)
	deadline := sentAt.Plus(time.Duration(min(max(valid, 0), 1e12)) * time.Millisecond)
	slots := intsOf(item["slots"])
	others := len(slots) > 0 && !equal(slots, h.slots)
	// The deadline may move to an earlier time in two cases: other permit numbers go with the
	// deadline that they were granted for; and under another bond the lock ends with another
	// connection, or at another time.
	first := k.bindings.made(h, connection)
	if first || others || clock.Left(deadline, now) > h.left(now) {
		// Both clocks of a deadline must come from one promise, so never mix two deadlines.
		if !h.prolong(deadline) {
			h.lose(fault.New("lost", "the answer arrived after the lease had expired"))
			return
		}
	}
	if others {
		h.slots = slots
	}
	if token := tokenOf(item["token"]); token > h.token.Load() {
		h.token.Store(token)
	}
	h.lastError, h.failures = nil, 0
	k.c.engine.Settle()
	k.schedule(h, h.binding != 0 && h.binding != k.c.engine.Connection())
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// allow renews the lock for what the cluster allows now. false: the node does not say what is allowed.
func (k *keeper) allow(h *held, err *fault.Error) bool {
	if err.Limit == 0 || err.Limit >= h.lease {
		return false
	}
	k.setLease(h, err.Limit)
	return true
}

// claim acquires the lock again under its lock_id, which binds it to the connection. This is needed
// when too few masters still had the lock: some have learned it anew after a restart or a pause. The
// lock may have a higher token afterwards.
func (k *keeper) claim(h *held, kind how) {
	h.claiming = true
	order := h.order
	call := &engine.Call{Method: "acquire", Params: h.claim(), WaitName: "wait_ms", Internal: true,
		Connection: kind.connection, Order: order}
	call.OnDone = func(answer engine.Answer, err *fault.Error) {
		h.claiming = false
		if err != nil {
			switch err.Code {
			case "no_quorum", "denied", "recovering", "unreachable":
			default: // The error leaves open whether the lock is held.
				err = fault.New("unsure", "%s", err.Message)
			}
		}
		if k.isStill(h, order) {
			k.extended(h, answer.Result, err, answer.SentAt, how{connection: kind.connection, kept: true})
			k.arm()
		}
	}
	k.c.engine.Start(call)
}

// lockExtensible takes the engine's lock, once the lock can be extended: one that is bound to a
// connection needs one. After an error it has not taken it.
func (k *keeper) lockExtensible(ctx context.Context, h *held) error {
	timer := time.NewTimer(k.c.timeout)
	defer timer.Stop()
	e := k.c.engine
	for {
		e.Lock()
		var err error
		if cause := h.state(); cause != nil {
			err = cause
		} else if h.suspended.Load() {
			err = fault.New("busy", "a transfer of the lock is under way")
		}
		if err == nil && (h.binding == 0 || e.Connection() != 0) {
			return nil
		}
		if err != nil {
			e.Unlock()
			return err
		}
		if k.up == nil {
			k.up = make(chan struct{})
		}
		up := k.up
		e.Connect()
		e.Unlock()
		select {
		case <-up:
		case <-h.ctx.Done():
		case <-timer.C:
			return e.Late()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// extendNow extends a lock at the wish of the program, with another lease if that is not 0.
func (k *keeper) extendNow(ctx context.Context, h *held, lease time.Duration, trace string) error {
	if err := k.lockExtensible(ctx, h); err != nil {
		return err
	}
	if lease > 0 {
		k.setLease(h, lease)
	}
	return k.ask(ctx, h, k.howFor(h), trace)
}

// trustedShare is the part of a shortened lease that the holder may trust before there is an answer,
// which says more. The drift of clocks is at most a tenth (docs/operations/reference.md).
const trustedShare = 7.0 / 8

// shortenNow makes the lease of a lock end sooner. It first gives up the trust in any later end.
func (k *keeper) shortenNow(ctx context.Context, h *held, lease time.Duration, trace string) error {
	if err := k.lockExtensible(ctx, h); err != nil {
		return err
	}
	var err error
	switch {
	case lease > h.lease:
		err = badArgument("shorten: the lease is %v, and does not become longer", h.lease)
	case h.claiming:
		err = fault.New("busy", "the lock is just being bound to another connection: try again later")
	}
	if err != nil {
		k.c.engine.Unlock()
		return err
	}
	k.setLease(h, lease)
	h.order++
	now := k.c.engine.Clock.Now()
	h.distrust(now.Plus(time.Duration(float64(lease)*trustedShare)), now)
	h.renewAt = 0
	k.arm()
	kind := k.howFor(h)
	kind.shortens = true
	return k.ask(ctx, h, kind, trace)
}

// ask sends an extension of one lock, and waits for its outcome. With the engine's lock, which it gives
// back.
func (k *keeper) ask(ctx context.Context, h *held, kind how, trace string) error {
	e := k.c.engine
	done := make(chan *fault.Error, 1)
	batch, orders := []*held{h}, []int{h.order}
	call := &engine.Call{Method: "extend", Params: extension(batch, kind), Connection: kind.connection, Trace: trace}
	if kind.shortens {
		call.Timeout = k.longest(batch)
	}
	call.OnDone = func(answer engine.Answer, failure *fault.Error) {
		k.outcomes(batch, orders, kind, answer, failure, 0, func(o outcome) {
			if k.isStill(h, o.order) {
				if kind.shortens && failure != nil && failure.Code == "bad_request" && call.Sends == 1 {
					// Nothing was done: a node of release 0.2.0 does not know the parameters.
					h.order--
				}
				k.extended(h, o.item, o.err, o.sentAt, kind)
				k.arm()
			}
			done <- o.err
		})
	}
	e.Start(call)
	e.Unlock()
	var err *fault.Error
	select {
	case err = <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	e.Lock()
	defer e.Unlock()
	if cause := h.state(); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	return nil
}
