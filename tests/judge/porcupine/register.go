package main

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

type access int

const (
	first access = iota
	maybeAgain
	compareAndSet
	maybeCompareAndSet
	shows
)

// A write is one operation on the value of a lock.
type write struct {
	access access
	value  string
	expect *string
	of     *line
}

// A value is the state of the register.
type value struct {
	there bool
	text  string
}

// after returns the values that may be there after an operation, none if it cannot have happened.
func (v value) after(w write) []any {
	set := value{true, w.value}
	fits := w.expect == nil || v.there && *w.expect == v.text
	switch w.access {
	case first:
		// A repeat of a request changes nothing while the lock is held.
		if v.there {
			return []any{v}
		}
		return []any{set}
	case maybeAgain:
		return []any{v, set}
	case compareAndSet:
		if fits {
			return []any{set}
		}
	case maybeCompareAndSet:
		if fits {
			return []any{v, set}
		}
		return []any{v}
	case shows:
		if v.there && v.text == w.value {
			return []any{v}
		}
	}
	return nil
}

var register = func() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{value{}} },
		Step: func(state, input, _ any) []any { return state.(value).after(input.(write)) },
	}
	return m.ToModel()
}()

// Errors after which nothing was changed, and nothing will be.
var refused = []string{"lost", "not_found", "denied", "held", "bad_request", "full", "too_long"}

// unseen returns whether nobody has seen the value that an operation may have written. Then it does
// not matter whether it did: whoever wrote next expected nothing.
func unseen(w write, writes, reads []porcupine.Operation) bool {
	sees := func(o porcupine.Operation) bool {
		other := o.Input.(write)
		return other.of != w.of && (other.access == shows && other.value == w.value ||
			other.expect != nil && *other.expect == w.value)
	}
	return (w.access == maybeCompareAndSet || w.access == maybeAgain) && !slices.ContainsFunc(writes, sees) && !slices.ContainsFunc(reads, sees)
}

// accesses returns the operations on a lock's value, and the reads by quorum. One may show a write
// that is under way and the next one not, so the reads have no order among themselves.
func accesses(r *run, l *lock) (writes, reads []porcupine.Operation) {
	add := func(to *[]porcupine.Operation, w write, from, until int64) {
		*to = append(*to, porcupine.Operation{ClientId: len(*to), Input: w, Call: from, Return: until})
	}
	if slices.ContainsFunc(l.lines, func(x *line) bool { return x.Op == "acquire" && x.Value == nil }) {
		return nil, nil
	}
	for _, x := range l.lines {
		unknown := x.Result != "ok" && x.Result != "mismatch"
		switch {
		case x.Op == "acquire" && x.Value != nil:
			w := write{first, *x.Value, nil, x}
			until := x.Return
			if unknown {
				until = never
			}
			// The lock may have been lost and granted again.
			if begin := l.trustedSince(); begin < until && !l.trusted(max(begin, x.Invoke), until) {
				w.access = maybeAgain
			}
			if !slices.Contains(refused, x.Result) || x.Result == "held" {
				add(&writes, w, x.Invoke, until)
			}
		case x.Op == "update" && x.Value != nil && x.Result == "ok":
			add(&writes, write{compareAndSet, *x.Value, x.Expect, x}, x.Invoke, x.Return)
		case x.Op == "update" && x.Value != nil && unknown && !slices.Contains(refused, x.Result):
			add(&writes, write{maybeCompareAndSet, *x.Value, x.Expect, x}, x.Invoke, never)
		case (x.Op == "update" || x.Op == "release") && x.Result == "mismatch" && x.Shown != nil:
			add(&writes, write{shows, *x.Shown, nil, x}, x.Invoke, x.Return)
		}
	}
	for _, x := range r.lines {
		if x.Op == "get" && x.Key == l.key && x.Consistent == "quorum" && x.Result == "ok" && x.Shown != nil &&
			l.hasToken(x.Holder) && l.trusted(x.Invoke, x.Return) {
			add(&reads, write{shows, *x.Shown, nil, x}, x.Invoke, x.Return)
		}
	}
	all := slices.Clone(writes)
	writes = slices.DeleteFunc(writes, func(o porcupine.Operation) bool {
		return unseen(o.Input.(write), all, reads)
	})
	return writes, reads
}

// trusted returns whether somebody believes in the lock from one time to another.
func (l *lock) trusted(from, to int64) bool {
	for _, pieces := range l.beliefs {
		var begin, end int64
		for _, p := range pieces {
			if p.begin != end {
				begin = p.begin
			}
			if end = p.end; begin <= from && to <= end {
				return true
			}
		}
	}
	return false
}

// trustedSince returns when the first belief in the lock begins.
func (l *lock) trustedSince() int64 {
	begin := int64(never)
	for _, pieces := range l.beliefs {
		begin = min(begin, pieces[0].begin)
	}
	return begin
}

func (l *lock) hasToken(token uint64) bool {
	return slices.ContainsFunc(l.lines, func(x *line) bool { return x.Result == "ok" && x.Token == token && token > 0 })
}

func judgeRegister(r *run, l *lock, limit time.Duration) (found []finding, sure bool) {
	writes, reads := accesses(r, l)
	sure = true
	check := func(history []porcupine.Operation, what string) {
		result := porcupine.CheckOperationsTimeout(register, history, limit)
		if result == porcupine.Illegal {
			f := finding{what: "the value of " + l.name() + ": no order of the writes explains " + what}
			for _, o := range history {
				f.lines = append(f.lines, o.Input.(write).of)
			}
			found = append(found, f)
		}
		sure = sure && result != porcupine.Unknown
	}
	if len(writes) > 1 {
		check(writes, "the answers")
	}
	for _, read := range reads {
		read.ClientId = len(writes)
		check(append(slices.Clone(writes), read), "what a read showed")
	}
	return found, sure
}
