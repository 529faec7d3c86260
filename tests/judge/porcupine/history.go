package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
)

const never = math.MaxInt64 / 2

// A line is an operation of a history. Of an operation that was never answered, Return is never.
type line struct {
	ID         json.Number `json:"id"`
	Process    any         `json:"process"`
	Op         string      `json:"op"`
	Key        string      `json:"key"`
	LockID     string      `json:"lock_id"`
	Result     string      `json:"result"`
	Invoke     int64       `json:"invoke"`
	ReturnAt   *int64      `json:"return"`
	Mode       string      `json:"mode"`
	Of         int         `json:"of"`
	Permits    []int       `json:"permits"`
	Binding    uint64      `json:"binding"`
	Connection uint64      `json:"connection"`
	Token      uint64      `json:"token"`
	ValidMS    float64     `json:"valid_ms"`
	Rate       float64     `json:"rate"`
	Until      int64       `json:"until"`
	Believed   bool        `json:"believed"`
	Now        bool        `json:"now"`
	Value      *string     `json:"value"`
	Expect     *string     `json:"expect"`
	By         string      `json:"by"`
	Shown      *string     `json:"shown"`
	Consistent string      `json:"consistency"`
	Holder     uint64      `json:"holder_token"`
	Released   bool        `json:"released"`
	Owner      string      `json:"owner"`
	Members    []*line     `json:"members"`
	Return     int64       `json:"-"`
	text       string
}

// A run is the history of one cluster.
type run struct {
	Seed  int64   `json:"seed"`
	Drift float64 `json:"client_drift_ppm"`
	// Tokens may jump, and locks may be lost.
	Jumps bool `json:"jumps"`
	lines []*line
	byID  map[string]*line
}

// eachRun reads runs and hands each on as soon as it is complete.
func eachRun(in io.Reader, done func(*run)) error {
	r, err := read(in, nil, done)
	if err == nil && r != nil {
		done(r)
	}
	return err
}

// oneRun reads files of one run, whose processes have a file each.
func oneRun(files []io.Reader) (*run, error) {
	r := &run{}
	for _, in := range files {
		r.byID = map[string]*line{}
		if _, err := read(in, r, nil); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// read adds lines to the run r. If there is something to be done with a run, each first line begins
// another one. It returns the last run.
func read(in io.Reader, r *run, done func(*run)) (*run, error) {
	reader := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if err == io.EOF {
			// What was cut off in the middle of a line is not there.
			break
		} else if err != nil {
			return nil, err
		}
		if r, err = r.take(text, done); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return r, nil
}

// take adds a line to the run, or begins another one with it.
func (r *run) take(text []byte, done func(*run)) (*run, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	if l.Op == "run" {
		if done != nil && r != nil {
			done(r)
		}
		if done != nil {
			r = &run{byID: map[string]*line{}}
		}
		return r, json.Unmarshal(text, r)
	}
	if r == nil {
		return nil, errors.New("no run has begun")
	}
	return r, r.add(text, &l)
}

// add takes a line. One with the id of an earlier one completes it.
func (r *run) add(text []byte, l *line) error {
	if before := r.byID[string(l.ID)]; before != nil {
		if err := json.Unmarshal(text, before); err != nil {
			return err
		}
		before.settle(before.text + string(text))
		return nil
	}
	l.settle(string(text))
	if l.ID != "" && len(l.Members) == 0 {
		r.byID[string(l.ID)] = l
	}
	if len(l.Members) == 0 {
		r.lines = append(r.lines, l)
	}
	for _, member := range l.Members {
		whole := *l
		whole.Members, whole.Op = nil, "acquire"
		whole.Key, whole.LockID, whole.Mode, whole.Of = member.Key, member.LockID, member.Mode, member.Of
		whole.Token, whole.Permits = member.Token, member.Permits
		if member.Value != nil {
			whole.Value = member.Value
		}
		r.lines = append(r.lines, &whole)
	}
	return nil
}

func (l *line) settle(text string) {
	l.text = string(bytes.TrimSpace([]byte(text)))
	l.Return = never
	if l.ReturnAt != nil {
		l.Return = *l.ReturnAt
	}
}

func (l *line) process() string { return fmt.Sprint(l.Process) }

// until returns until when the client may trust the lock because of this answer, in true time.
func (r *run) until(l *line) int64 {
	if l.Op == "believe" {
		return l.Until
	}
	rate := 1 + r.Drift/1e6
	if l.Rate != 0 {
		rate = l.Rate
	}
	return l.Invoke + int64(l.ValidMS*1e6/rate)
}

// A piece is a part of a belief: a process trusts the lock from begin to end, with these permits.
type piece struct {
	begin, end int64
	numbers    []int
	token      uint64
	// The answer because of which it does.
	answer *line
}

// A lock is one lock_id of a key.
type lock struct {
	key, id string
	lines   []*line
	// What was asked for first, and from when on the lock is shared.
	mode    string
	of      int
	lowered int64
	// The beliefs of each process, in order.
	beliefs map[string][]piece
}

func (l *lock) name() string { return l.key + "/" + l.id }

// locks returns the locks of a run with what was believed in them.
func (r *run) locks() []*lock {
	byName := map[string]*lock{}
	var all []*lock
	closes := map[string][]*line{}
	for _, x := range r.lines {
		if x.Op == "close" {
			closes[x.process()] = append(closes[x.process()], x)
		}
		if x.LockID == "" || x.Op == "get" || x.Op == "wait" || x.Op == "event" {
			continue
		}
		name := x.Key + "/" + x.LockID
		if byName[name] == nil {
			byName[name] = &lock{key: x.Key, id: x.LockID, mode: "exclusive", lowered: never,
				beliefs: map[string][]piece{}}
			all = append(all, byName[name])
		}
		byName[name].lines = append(byName[name].lines, x)
	}
	for _, l := range all {
		l.settle(r, closes)
	}
	return all
}

func (l *lock) settle(r *run, closes map[string][]*line) {
	sort.SliceStable(l.lines, func(a, b int) bool { return l.lines[a].Invoke < l.lines[b].Invoke })
	asked := false
	processes := map[string]bool{}
	for _, x := range l.lines {
		if x.Op == "acquire" && !asked {
			asked = true
			if x.Mode != "" {
				l.mode = x.Mode
			}
			l.of = x.Of
		}
		if x.Op == "downgrade" {
			l.lowered = min(l.lowered, x.Invoke)
		}
		processes[x.process()] = true
	}
	for p := range processes {
		if pieces := r.believed(l, p, closes[p]); len(pieces) > 0 {
			l.beliefs[p] = pieces
		}
	}
}

// A moment is when something begins, lengthens or ends a belief.
type moment struct {
	at   int64
	ends bool
	of   *line
}

func (r *run) moments(l *lock, process string, closes []*line) (all []moment) {
	bound := false
	for _, x := range l.lines {
		mine := x.process() == process
		bound = bound || x.Binding > 0
		switch {
		case x.Op == "release", x.Op == "break" && x.Now, mine && x.Op == "forget",
			x.Op == "transfer" && x.Result != "not_found":
			all = append(all, moment{x.Invoke, true, x})
		case mine && (x.Op == "extend" || x.Op == "downgrade") && (x.Result == "lost" || x.Result == "not_found"):
			all = append(all, moment{x.Return, true, x})
		case mine && (x.Op == "believe" || x.Believed && x.Result == "ok"):
			all = append(all, moment{x.Return, false, x})
		}
	}
	for _, c := range closes {
		var answered, asked uint64
		for _, x := range l.lines {
			if x.Result == "ok" && x.Return <= c.Invoke {
				answered = max(answered, x.Binding)
			}
			if x.Binding > 0 && x.Invoke <= c.Invoke && (asked == 0 || x.Binding < asked) {
				asked = x.Binding
			}
		}
		if bound && answered <= c.Connection && asked > 0 && asked <= c.Connection {
			all = append(all, moment{c.Invoke, true, c})
		}
	}
	sort.SliceStable(all, func(a, b int) bool {
		return all[a].at < all[b].at || all[a].at == all[b].at && !all[a].ends && all[b].ends
	})
	return all
}

// believed returns what one process believes of a lock, as docs/testing/histories.md says.
func (r *run) believed(l *lock, process string, closes []*line) (pieces []piece) {
	var end int64
	var token, named uint64
	var numbers []int
	for _, m := range r.moments(l, process, closes) {
		if n := len(pieces); n > 0 && pieces[n-1].end > m.at {
			pieces[n-1].end = m.at
		}
		if m.ends {
			end = min(end, m.at)
			continue
		}
		if m.at >= end || m.of.Op == "extend" && m.of.Permits != nil {
			numbers = nil
		}
		numbers = append(slices.Clone(numbers), m.of.Permits...)
		if until := r.until(m.of); m.of.Binding > named {
			end = until
		} else {
			end = max(end, until)
		}
		named = max(named, m.of.Binding)
		token = max(token, m.of.Token)
		if m.at < end {
			pieces = append(pieces, piece{m.at, end, numbers, token, m.of})
		}
	}
	return slices.DeleteFunc(pieces, func(p piece) bool { return p.begin >= p.end })
}
