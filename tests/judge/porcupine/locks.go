package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A resource is what locks exclude each other from: a key, or one permit of a semaphore, which is
// like a key of its own (docs/protocol/permits.md).
type resource struct {
	name string
	// The semaphore's number of permits, and the number of this one; of is 0 for a key alone.
	of, number int
	locks      []*lock
}

func resources(locks []*lock) (all []*resource) {
	byKey := map[string][]*lock{}
	for _, l := range locks {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for key, of := range byKey {
		permits := map[[2]int]bool{}
		for _, l := range of {
			for _, pieces := range l.beliefs {
				for _, p := range pieces {
					for _, number := range p.numbers {
						permits[[2]int{l.of, number}] = true
					}
				}
			}
		}
		if len(permits) == 0 {
			all = append(all, &resource{name: key, locks: of})
		}
		for p := range permits {
			all = append(all, &resource{fmt.Sprintf("%s, permit %d of %d", key, p[1], p[0]), p[0], p[1], of})
		}
	}
	return all
}

// class returns what kind of lock it is for the resource. Locks of one class go together, unless
// the class is empty. `concerned` is false if the lock is no lock on this resource.
func (res *resource) class(l *lock, p piece) (class string, concerned bool) {
	switch {
	case l.mode == "shared" || p.begin >= l.lowered:
		return "shared", true
	case l.mode != "permits":
		return "", true
	case l.of != res.of:
		return fmt.Sprintf("permits of %d", l.of), true
	default:
		return "", slices.Contains(p.numbers, res.number)
	}
}

type action int

const (
	granted action = iota
	confirmed
	lowered
	ended
)

// A step is one step of a lock on a resource.
type step struct {
	action action
	lock   *lock
	// Who believes: a lock may be believed in by several processes.
	process string
	class   string
	token   uint64
	of      *line
}

func (s step) holder() string { return s.lock.id + " " + s.process }

// steps returns the operations of a resource. A lock is granted between the request and its answer.
// It ends as soon as nobody believes in it any more: that it may last longer at the masters could
// only make a later grant impossible. The same is true of a lock that becomes a shared one.
func (res *resource) steps() (all []porcupine.Operation) {
	add := func(s step, from, to int64) {
		all = append(all, porcupine.Operation{ClientId: len(all), Input: s, Call: from, Return: to})
	}
	for _, l := range res.locks {
		for process, pieces := range l.beliefs {
			var open *step
			var end int64
			for _, p := range pieces {
				class, concerned := res.class(l, p)
				if !concerned {
					continue
				}
				now := step{granted, l, process, class, p.token, p.answer}
				if open != nil && p.begin == end {
					now.action = confirmed
				} else if open != nil {
					open.action = ended
					add(*open, end, end)
				}
				add(now, min(p.answer.Invoke, p.begin), p.begin)
				if now.action == granted && p.begin < l.lowered && l.lowered < never {
					low := now
					low.action = lowered
					add(low, l.lowered, l.lowered)
				}
				open, end = &now, p.end
			}
			if open != nil {
				open.action = ended
				add(*open, end, end)
			}
		}
	}
	return all
}

// A held is a lock in a state.
type held struct{ lock, class string }

// A lockState is the state of the model: a lock with fencing tokens.
type lockState struct {
	// By holder.
	held map[string]held
	// The highest token of each class, and the lock that had it.
	highest map[string]step
}

func lockModel(tokens bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) { return state.(lockState).step(input.(step), tokens) },
		Equal: func(a, b any) bool {
			one, two := a.(lockState), b.(lockState)
			return maps.Equal(one.held, two.held) && maps.EqualFunc(one.highest, two.highest,
				func(a, b step) bool { return a.token == b.token && a.lock == b.lock })
		},
		DescribeOperation: func(input, _ any) string {
			s := input.(step)
			return fmt.Sprintf("%s %s token %d", [...]string{"granted", "confirmed", "lowered", "ended"}[s.action],
				s.lock.id, s.token)
		},
	}
}

func (st lockState) step(s step, tokens bool) (bool, any) {
	now, there := st.held[s.holder()]
	switch s.action {
	case lowered:
		if there && now.class == "" {
			return true, st.with(s.holder(), held{s.lock.id, "shared"}, nil)
		}
		return true, st
	case ended:
		if !there {
			return false, st
		}
		after := st.with(s.holder(), held{}, nil)
		delete(after.held, s.holder())
		return true, after
	case confirmed:
		return there, st
	}
	for _, other := range st.held {
		if other.lock != s.lock.id && (other.class != s.class || s.class == "") {
			return false, st
		}
	}
	for class, before := range st.highest {
		if tokens && (class != s.class || s.class == "") && before.lock != s.lock && s.token <= before.token {
			return false, st
		}
	}
	return true, st.with(s.holder(), held{s.lock.id, s.class}, &s)
}

// with returns a copy with a holder, and with its token.
func (st lockState) with(holder string, now held, s *step) lockState {
	after := lockState{map[string]held{}, st.highest}
	maps.Copy(after.held, st.held)
	after.held[holder] = now
	if s != nil && s.token >= st.highest[s.class].token {
		after.highest = map[string]step{}
		maps.Copy(after.highest, st.highest)
		after.highest[s.class] = *s
	}
	return after
}

func judgeResource(res *resource, tokens bool, limit time.Duration) ([]finding, bool) {
	steps := res.steps()
	result, info := porcupine.CheckOperationsVerbose(lockModel(tokens), steps, limit)
	if result != porcupine.Illegal {
		return nil, result == porcupine.Ok
	}
	return []finding{{"no order of grants and ends explains " + res.name + longest(info, steps), lines(steps)}}, true
}

// longest describes the longest order that was found, by its last steps.
func longest(info porcupine.LinearizationInfo, steps []porcupine.Operation) string {
	best := []int{}
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(best) {
				best = order
			}
		}
	}
	model := lockModel(true)
	var last []string
	for _, at := range best[max(0, len(best)-4):] {
		last = append(last, model.DescribeOperation(steps[at].Input, nil))
	}
	if len(last) == 0 {
		return ""
	}
	return "; after " + strings.Join(last, ", ") + " nothing fits"
}

func lines(steps []porcupine.Operation) (all []*line) {
	for _, o := range steps {
		if s := o.Input.(step); s.action != ended && s.action != lowered {
			all = append(all, s.of)
		}
	}
	slices.SortFunc(all, func(a, b *line) int { return int(a.Invoke - b.Invoke) })
	return all
}
