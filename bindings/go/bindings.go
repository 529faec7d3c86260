package pawl

import (
	"slices"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
)

const (
	// The largest number of connections that are retained.
	retainedMax = 64
	// Once this many connections are retained, none is given up any more only because its node
	// does not reach a quorum: the other nodes do not reach one either.
	retainedBeforeStaying = 8
)

// bindings looks after locks that end with the connection. The bond of a lock is the number of the
// connection that ends it. Over a new connection the lock is first of all extended under the new
// number. A connection that this side has given up is retained until no lock depends on it any more,
// because its node would release these locks when it is closed.
type bindings struct {
	k *keeper
	// A lock that is given up stays in here for as long as it is trusted.
	locks    map[*held]bool
	retained []*engine.Link
}

// begin binds a lock to the connection over which it was acquired.
func (b *bindings) begin(h *held, number int) {
	h.first, h.binding, h.bond = number, number, number
	b.locks[h] = true
}

// bondOver returns the bond that a request names for a lock over the connection of that number. It grows
// with each connection, and each time the lease is shortened.
func (h *held) bondOver(number int) int { return number + h.order }

// made notes that an extension over the connection of that number was accepted. It returns whether
// this is the first answer under its bond; then only this answer counts.
func (b *bindings) made(h *held, number int) bool {
	if h.binding == 0 || h.bondOver(number) <= h.bond {
		return false
	}
	h.bond = h.bondOver(number)
	if number > h.binding {
		h.binding = number
		b.settle()
	}
	return true
}

// dependent returns a lock that would, or could, end with that connection while somebody still
// trusts it: it is known to be bound to that connection, or to an earlier one and perhaps to that one
// since.
func (b *bindings) dependent(number int) *held {
	now := b.k.c.engine.Clock.Now()
	for h := range b.locks {
		if h.first <= number && h.binding <= number && h.left(now) > 0 {
			return h
		}
	}
	return nil
}

func (b *bindings) depends(number int) bool { return b.dependent(number) != nil }

func gone() *fault.Error {
	return fault.New("lost", "the connection that the lock ends with is gone")
}

// loseDependents gives up the locks that depend on a connection before that connection is closed.
func (b *bindings) loseDependents(number int) {
	for h := b.dependent(number); h != nil; h = b.dependent(number) {
		h.forget(gone())
		delete(b.locks, h)
	}
}

// full returns whether too many connections are retained to give up the present one for another
// node.
func (b *bindings) full(number int) bool {
	return len(b.retained) >= retainedBeforeStaying && b.depends(number)
}

// connectionLost is called when the connection is about to be closed, or is closed. If the node has
// closed it, the locks live on. It returns whether the connection is retained.
func (b *bindings) connectionLost(l *engine.Link) bool {
	if l.Ended || !b.depends(l.Number) {
		return false
	}
	if len(b.retained) == retainedMax {
		b.loseDependents(b.retained[0].Number)
		b.settle()
	}
	b.retained = append(b.retained, l)
	return true
}

// settle closes the connections on which no lock depends any more.
func (b *bindings) settle() {
	now := b.k.c.engine.Clock.Now()
	for h := range b.locks {
		if h.left(now) == 0 {
			delete(b.locks, h)
		}
	}
	b.retained = slices.DeleteFunc(b.retained, func(l *engine.Link) bool {
		if b.depends(l.Number) {
			return false
		}
		l.CloseKept()
		return true
	})
}

// close ends the trust in what depends on a connection, and closes the connections that are retained.
func (b *bindings) close() {
	for h := range b.locks {
		h.deadline.Store(nil)
	}
	for _, l := range b.retained {
		l.CloseKept()
	}
	b.retained = nil
}
