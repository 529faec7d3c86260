// Command kitrunner is the runner for Go of tests/kit: it does with the client what it reads on
// standard input, and prints what it sees (tests/kit/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"example.org/pawl"
	"example.org/pawl/fence"
	"example.org/pawl/internal/clock"
)

const (
	level        = 4
	lineBytesMax = 1 << 24
)

// command is a line of the kit.
type command map[string]json.RawMessage

// told is a line for the kit.
type told map[string]any

// holding is a lock or several ones, under the name that the kit has given to them.
type holding struct {
	lock       *pawl.Lock
	leadership *pawl.Leadership
	set        *pawl.LockSet
	released   bool
}

type runner struct {
	out     sync.Mutex
	mu      sync.Mutex
	clients map[string]*pawl.Client
	locks   map[string]*holding
	watches map[string]func()
	stores  map[string]*fence.Store
	cancels map[int]context.CancelFunc
}

func bootMicros() int64 { return clock.System{}.Now().Boot / 1000 }

// tell prints a line.
func (r *runner) tell(what told) {
	r.out.Lock()
	defer r.out.Unlock()
	if _, ok := what["at"]; !ok {
		what["at"] = bootMicros()
	}
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

func (r *runner) event(name string, fields told) {
	fields["event"] = name
	r.tell(fields)
}

// run does one command.
func (r *runner) run(ctx context.Context, id int, c command) {
	name := c.text("do")
	do, ok := commands[name]
	if !ok {
		r.tell(told{"id": id, "error": told{"code": "unknown_command"}})
		return
	}
	ok1, err := do(r, ctx, c)
	r.mu.Lock()
	delete(r.cancels, id)
	r.mu.Unlock()
	if err != nil {
		r.tell(told{"id": id, "error": errorOf(err)})
		return
	}
	answer := told{"id": id, "ok": ok1}
	if at, ok := ok1["at"]; ok {
		answer["at"] = at
		delete(ok1, "at")
	}
	r.tell(answer)
}

// errorOf returns the map that tells an error.
func errorOf(err error) told {
	if errors.Is(err, context.Canceled) {
		return told{"code": "canceled"}
	}
	var lost *pawl.LostError
	if errors.As(err, &lost) {
		return told{"code": lost.Code(), "message": err.Error()}
	}
	var e *pawl.Error
	if !errors.As(err, &e) {
		return told{"code": "crash", "message": err.Error()}
	}
	said := told{"code": e.Code, "message": e.Message}
	if e.Field != "" {
		said["field"] = e.Field
	}
	if e.Limit != 0 {
		said["limit_ms"] = e.Limit.Milliseconds()
	}
	if e.Key != "" {
		said["key"] = saidOf([]byte(e.Key))
	}
	var held *pawl.HeldError
	if errors.As(err, &held) && held.Holder.Owner != "" {
		said["holder"] = saidOf([]byte(held.Holder.Owner))
	}
	return said
}

func main() {
	r := &runner{clients: map[string]*pawl.Client{}, locks: map[string]*holding{}, watches: map[string]func(){},
		stores: map[string]*fence.Store{}, cancels: map[int]context.CancelFunc{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<16), lineBytesMax)
	var running sync.WaitGroup
	for in.Scan() {
		var c command
		if len(in.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, "kitrunner:", err)
			os.Exit(2)
		}
		id := c.number("id", 0)
		ctx, cancel := context.WithCancel(context.Background())
		r.mu.Lock()
		r.cancels[id] = cancel
		r.mu.Unlock()
		running.Go(func() {
			defer cancel()
			r.run(ctx, id, c)
		})
	}
	r.mu.Lock()
	clients := r.clients
	r.clients = map[string]*pawl.Client{}
	r.mu.Unlock()
	for _, c := range clients {
		c.Abandon()
	}
	running.Wait()
}
