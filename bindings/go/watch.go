package pawl

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
)

const (
	// How many events may wait for the program. After that it is told of an overflow, and then of
	// the present state.
	eventsMax       = 10000
	watchPauseFirst = 50 * time.Millisecond
	watchPauseLast  = 5 * time.Second
	listLimit       = 1000
	// The number of a watch that the present connection does not have.
	unbound = -1
)

// The types of events.
const (
	// EventPresent is told at first for each holder, and EventCurrent after the last one.
	EventPresent = "present"
	EventCurrent = "current"
	// These are changes, in order for each key. EventReleased: by its holder. EventExpired: the lease
	// is over. EventBroken: it was broken, or its connection or node is gone.
	EventAcquired   = "acquired"
	EventUpdated    = "updated"
	EventDowngraded = "downgraded"
	EventReleased   = "released"
	EventExpired    = "expired"
	EventBroken     = "lost"
	// EventAsked: somebody asks the holder to let go.
	EventAsked = "asked"
	// EventOverflow: events may have been missed. Forget everything: the present state follows.
	EventOverflow = "overflow"
)

var knownEvents = []string{EventAcquired, EventUpdated, EventDowngraded, EventReleased, EventExpired,
	EventBroken, EventAsked}

// Event is what a watch tells.
type Event struct {
	// Type is one of the constants above.
	Type string
	// Key is the key; empty for EventCurrent and EventOverflow.
	Key string
	// Holder is the holder that the event is about.
	Holder Holder
	// By, To and Priority are those of EventAsked.
	By, To   string
	Priority int
	// Position is the place of the event, for WatchFrom; it may be empty.
	Position []byte
}

// A WatchOption says what to watch.
type WatchOption func(*watch)

// WatchKey watches one key.
func WatchKey(key string) WatchOption {
	return func(w *watch) { w.place = msgpack.Pair{Name: "key", Value: []byte(key)}; w.key = key }
}

// WatchPrefix watches all keys that begin with the prefix; an empty one means all keys.
func WatchPrefix(prefix string) WatchOption {
	return func(w *watch) { w.place = msgpack.Pair{Name: "prefix", Value: []byte(prefix)} }
}

// WatchFrom continues after the position of an event, without the present state. If the node no
// longer has these events, an EventOverflow is told, and then the present state.
func WatchFrom(position []byte) WatchOption {
	return func(w *watch) { w.position, w.fresh = string(position), len(position) == 0 }
}

// watches is all watches of one client, by the numbers that they have on the present connection. It
// belongs to the engine's lock.
type watches struct {
	c        *Client
	all      map[*watch]bool
	byNumber map[int64]*watch
}

func newWatches(c *Client) *watches {
	return &watches{c: c, all: map[*watch]bool{}, byNumber: map[int64]*watch{}}
}

func (ws *watches) listening() bool { return len(ws.byNumber) > 0 }

// broken notes that the present connection is gone.
func (ws *watches) broken() {
	clear(ws.byNumber)
	for w := range ws.all {
		w.number = unbound
		w.wakeUp()
	}
}

func (ws *watches) deliver(said map[string]any) {
	number, ok := said["watch"].(int64)
	if w := ws.byNumber[number]; ok && w != nil {
		w.deliver(said)
	}
}

// unwatch ends a watch at the node of the present connection, which has given it the number.
func (ws *watches) unwatch(number int64) {
	e := ws.c.engine
	if e.Closed() {
		return
	}
	e.Start(&engine.Call{Method: "unwatch", Internal: true, Connection: e.Connection(),
		Params: msgpack.Map{{Name: "watch", Value: number}}})
}

func (ws *watches) close() {
	for w := range ws.all {
		w.closed = true
		w.wakeUp()
	}
}

// watch is one watch. The goroutine that asks it for events does everything but to take in what the
// node tells.
type watch struct {
	ws       *watches
	place    msgpack.Pair
	key      string
	position string
	// The number at the present connection.
	number int64
	queue  []Event
	// The events that have come while the present state is being read; reading says that it is.
	heldBack []Event
	reading  bool
	// The key after which the list of present keys goes on.
	after string
	// Events may have been missed.
	missing bool
	// The present state must be told.
	fresh  bool
	closed bool
	wake   chan struct{}
	pause  time.Duration
}

// Watch tells what happens to a key, or to all keys with a prefix. It first tells the present state
// (EventPresent for each holder, then EventCurrent), and then every change, in order for each key. It
// outlives its connection. If events may have been missed, it tells one EventOverflow, and then the
// present state again: a program that keeps a table of what it was told, and empties the table at
// each overflow, is right in the end. A watch tells when to look, never that it is safe to act.
//
// The watch begins with the loop and ends with it. It ends with an error if the node refuses it, if
// the context is over, or if the client is closed.
func (c *Client) Watch(ctx context.Context, options ...WatchOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := c.newWatch(options...)
		if w.place.Name == "" {
			yield(Event{}, badArgument("watch: give WatchKey or WatchPrefix"))
			return
		}
		defer w.end()
		for {
			event, err := w.next(ctx)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

func (c *Client) newWatch(options ...WatchOption) *watch {
	w := &watch{ws: c.watches, number: unbound, fresh: true, wake: make(chan struct{}, 1), pause: watchPauseFirst}
	for _, option := range options {
		option(w)
	}
	c.engine.Lock()
	defer c.engine.Unlock()
	w.ws.all[w] = true
	w.closed = c.engine.Closed()
	return w
}

func (w *watch) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// end ends the watch.
func (w *watch) end() {
	e := w.ws.c.engine
	e.Lock()
	defer e.Unlock()
	delete(w.ws.all, w)
	if w.number != unbound && w.ws.byNumber[w.number] == w {
		delete(w.ws.byNumber, w.number)
		w.ws.unwatch(w.number)
	}
	w.closed = true
}

// ---- what comes from the node, with the engine's lock ----

func (w *watch) deliver(said map[string]any) {
	if position, ok := said["position"].(string); ok && position != "" {
		w.position = position
	}
	kind := textOf(said["type"])
	switch {
	case kind == EventOverflow:
		w.overflow()
	case !slices.Contains(knownEvents, kind) || w.missing:
	case w.reading:
		w.heldBack = append(w.heldBack, w.event(kind, said))
		if len(w.heldBack) > eventsMax {
			w.overflow()
		}
	default:
		w.push(w.event(kind, said))
	}
}

func (w *watch) event(kind string, said map[string]any) Event {
	e := Event{Type: kind, Key: textOf(said["key"]), Position: []byte(w.position)}
	if kind == EventAsked {
		e.By, e.To, e.Priority = textOf(said["by"]), textOf(said["to"]), intOf(said["priority"])
	} else {
		e.Holder = holderOf(said)
	}
	return e
}

func (w *watch) push(e Event) {
	if len(w.queue) >= 2*eventsMax {
		w.queue = nil
		w.overflow()
		return
	}
	w.queue = append(w.queue, e)
	w.wakeUp()
}

// overflow reads the whole state again; the events that came before are of no use.
func (w *watch) overflow() {
	w.missing, w.reading, w.heldBack = true, false, nil
	w.wakeUp()
}

// ---- the program's side ----

// next returns the next event.
func (w *watch) next(ctx context.Context) (Event, error) {
	e := w.ws.c.engine
	for {
		if err := ctx.Err(); err != nil {
			return Event{}, err
		}
		e.Lock()
		if len(w.queue) > 0 {
			event := w.queue[0]
			w.queue = w.queue[1:]
			e.Unlock()
			return event, nil
		}
		if w.closed {
			e.Unlock()
			return Event{}, closedError()
		}
		if w.missing {
			w.missing, w.fresh = false, true
			e.Unlock()
			return Event{Type: EventOverflow}, nil
		}
		idle := w.number != unbound && !w.fresh && !w.reading
		e.Unlock()
		if idle {
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
			continue
		}
		if err := w.step(ctx); err != nil {
			return Event{}, err
		}
	}
}

// forGood are the errors with which a watch ends.
var forGood = []string{"denied", "bad_request", "too_large", "full", "tls", "closed", "moved", "bad_argument"}

// step makes the next request of the watch. It returns an error that ends the watch.
func (w *watch) step(ctx context.Context) error {
	err := w.request(ctx)
	var e *fault.Error
	switch {
	case err == nil:
		w.pause = watchPauseFirst
		return nil
	case !errors.As(err, &e), slices.Contains(forGood, e.Code):
		return err
	}
	return w.rest(ctx)
}

// rest waits before the watch asks again.
func (w *watch) rest(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(float64(w.pause) * (0.5 + rand.Float64())))
	defer timer.Stop()
	w.pause = min(2*w.pause, watchPauseLast)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ws.c.engine.Context().Done():
		return closedError()
	}
}

func (w *watch) request(ctx context.Context) error {
	e := w.ws.c.engine
	e.Lock()
	number, reading := w.number, w.reading
	e.Unlock()
	switch {
	case number == unbound:
		return w.begin(ctx)
	case !reading:
		// The watch is there, and the state is to be read again.
		e.Lock()
		w.reading, w.heldBack, w.after = true, nil, ""
		e.Unlock()
	}
	if w.place.Name == "key" {
		answer, err := e.Run(ctx, &engine.Call{Method: "get", Params: msgpack.Map{w.place}, Internal: true})
		if err == nil {
			w.present(answer.Result)
		}
		return err
	}
	return w.page(ctx)
}

// begin asks the node to watch.
func (w *watch) begin(ctx context.Context) error {
	e := w.ws.c.engine
	call := &engine.Call{Method: "watch", Params: msgpack.Map{w.place}, Internal: true}
	var unusable bool
	call.OnAnswer = func(said map[string]any) {
		number, ok := said["watch"].(int64)
		if unusable = !ok || number < 0; unusable {
			return
		}
		if w.closed { // The program did not wait for the answer.
			w.ws.unwatch(number)
			return
		}
		w.number, w.ws.byNumber[number] = number, w
		w.heldBack, w.reading, w.after = nil, w.fresh, ""
		if position, ok := said["position"].(string); ok && w.fresh {
			w.position = position
		}
	}
	e.Lock()
	if !w.fresh && w.position != "" {
		call.Params = append(call.Params, msgpack.Pair{Name: "from", Value: []byte(w.position)})
	}
	e.Start(call)
	e.Unlock()
	answer, err := call.Await(ctx)
	switch {
	case err != nil: // If the context is over, the answer still comes, and tells what is to be ended.
		return err
	case unusable:
		return fault.New("protocol", "the answer to a watch has no number")
	}
	e.Lock()
	fresh := w.reading
	e.Unlock()
	if fresh && w.place.Name == "key" {
		w.present(answer.Result)
	}
	return nil
}

// present tells the state of the key that is watched.
func (w *watch) present(said map[string]any) {
	e := w.ws.c.engine
	e.Lock()
	defer e.Unlock()
	if w.number == unbound || !w.reading {
		return // The connection is gone, or events were missed: begin again.
	}
	w.tell(entryOf(said, w.key))
	w.current()
}

func (w *watch) tell(entry Entry) {
	for _, h := range entry.Holders {
		w.queue = append(w.queue, Event{Type: EventPresent, Key: entry.Key, Holder: h})
	}
}

// current ends the present state, and tells what has come meanwhile.
func (w *watch) current() {
	w.queue = append(w.queue, Event{Type: EventCurrent, Position: []byte(w.position)})
	w.queue = append(w.queue, w.heldBack...)
	w.heldBack, w.reading, w.fresh = nil, false, false
}

// page tells a part of the present state of all keys with the prefix.
func (w *watch) page(ctx context.Context) error {
	e := w.ws.c.engine
	params := msgpack.Map{w.place, {Name: "limit", Value: listLimit}}
	if w.after != "" {
		params = append(params, msgpack.Pair{Name: "after", Value: []byte(w.after)})
	}
	answer, err := e.Run(ctx, &engine.Call{Method: "list", Params: params, Internal: true})
	if err != nil {
		return err
	}
	list, _ := answer.Result["keys"].([]any)
	var entries []Entry
	for _, one := range list {
		m, ok := one.(map[string]any)
		if !ok {
			continue
		}
		entry := entryOf(m, textOf(m["key"]))
		if entry.HolderCount > 1 {
			params := msgpack.Map{{Name: "key", Value: []byte(entry.Key)}}
			all, err := e.Run(ctx, &engine.Call{Method: "get", Params: params, Internal: true})
			if err != nil {
				return err
			}
			entry = entryOf(all.Result, entry.Key)
		}
		entries = append(entries, entry)
	}
	more, _ := answer.Result["more"].(bool)
	e.Lock()
	defer e.Unlock()
	if w.number == unbound || !w.reading {
		return nil
	}
	for _, entry := range entries {
		w.tell(entry)
	}
	if more && len(entries) > 0 {
		w.after = entries[len(entries)-1].Key
	} else {
		w.current()
	}
	return nil
}
