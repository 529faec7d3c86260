package main

import (
	"fmt"
	"slices"
)

// A leadership is one leader of one election.
type leadership struct {
	key   string
	token uint64
	owner string
}

func (l leadership) String() string { return fmt.Sprintf("%s (token %d)", l.owner, l.token) }

// judgeObservers checks the order of leaders. Each observer says that one leader came after another,
// and so do the beliefs of leaders that did not overlap. All of it together must be an order: nobody
// leads, is followed by another, and leads again under the same token. Tokens, which no observer
// needs for that, have to grow along this order.
func judgeObservers(r *run) (found []finding) {
	after := map[leadership]map[leadership]*line{}
	follows := func(before, then leadership, because *line) {
		if before == then {
			return
		}
		if after[before] == nil {
			after[before] = map[leadership]*line{}
		}
		if after[before][then] == nil {
			after[before][then] = because
		}
		if then.token <= before.token && !r.Jumps {
			found = append(found, finding{fmt.Sprintf("%s: %v came after %v", then.key, then, before), []*line{because}})
		}
	}
	last := map[string]leadership{}
	for _, x := range r.lines {
		if x.Op != "observed" || x.Token == 0 {
			continue
		}
		who, now := x.process()+" "+x.Key, leadership{x.Key, x.Token, x.Owner}
		if before, seen := last[who]; seen {
			follows(before, now, x)
		}
		last[who] = now
	}
	observed := map[string]bool{}
	for _, l := range last {
		observed[l.key] = true
	}
	ends := map[string]moment{}
	led := map[string]leadership{}
	var believed []*line
	for _, x := range r.lines {
		if x.Op == "believe" && observed[x.Key] && x.Owner != "" {
			believed = append(believed, x)
		}
	}
	slices.SortStableFunc(believed, func(a, b *line) int { return int(a.Return - b.Return) })
	for _, x := range believed {
		now := leadership{x.Key, x.Token, x.Owner}
		if before, seen := led[x.Key]; seen && ends[x.Key].at <= x.Return {
			follows(before, now, x)
		}
		led[x.Key], ends[x.Key] = now, moment{at: x.Until}
	}
	if circle := circleOf(after); circle != nil {
		found = append(found, finding{fmt.Sprintf("leaders that came before themselves: %v", circle), nil})
	}
	return found
}

// circleOf returns leaders of which each came before the next, and the last before the first.
func circleOf(after map[leadership]map[leadership]*line) []leadership {
	const open, done = 1, 2
	state := map[leadership]int{}
	var path []leadership
	var visit func(leadership) []leadership
	visit = func(l leadership) []leadership {
		state[l], path = open, append(path, l)
		for next := range after[l] {
			if state[next] == open {
				return slices.Clone(path[slices.Index(path, next):])
			}
			if state[next] == 0 {
				if circle := visit(next); circle != nil {
					return circle
				}
			}
		}
		state[l], path = done, path[:len(path)-1]
		return nil
	}
	for l := range after {
		if state[l] == 0 {
			if circle := visit(l); circle != nil {
				return circle
			}
		}
	}
	return nil
}
