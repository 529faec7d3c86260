package pawl

import (
	"context"
	"math"
	"time"

	"example.org/pawl/internal/engine"
	"example.org/pawl/internal/msgpack"
)

// Holder is somebody who holds a key. What is not known is zero.
type Holder struct {
	Owner    string
	Value    []byte
	ValueSeq []byte
	Token    uint64
	// Mode is exclusive, shared or permits; then Permits, Of and Slots say which ones.
	Mode        string
	Permits, Of int
	Slots       []int
	// Remaining is how long the lease lasts at most, as far as the node that was asked knows. No
	// time that anybody may count on.
	Remaining time.Duration
	// ValidAtLeast is for how long nobody else is granted the key, from the moment at which the
	// request was sent; and HeldAtMost after how long the lease is over unless it is extended.
	// Only a read from a quorum has them.
	ValidAtLeast, HeldAtMost time.Duration
	// Held is for how long, at least, it has held the key.
	Held               time.Duration
	Label, Host        string
	PID                int
	Identity           string
	Election           bool
	WithoutEnd         bool
	LockDelay, Closing time.Duration
	// LockID and Order are told only to callers to whom the lock belongs. Order is the greatest order that
	// the holder has named (docs/client-protocol.md, shorten); OrderSettled says, in a read from a quorum,
	// whether a quorum has it.
	LockID       string
	Order        int
	OrderSettled bool
}

// Entry is what a node says about a key.
type Entry struct {
	Key string
	// Held: somebody holds the key, and Holder says who. If there are several, it is the one whose
	// lease ends last, and Holders has all of them; More: there are further ones.
	Held   bool
	Holder Holder
	// Holders has all holders, also if there is only one.
	Holders []Holder
	// HolderCount is how many there are.
	HolderCount int
	More        bool
	// Closing: nobody holds the key, but it is not free before Holder.Closing is over.
	Closing bool
	// Contested, Recovering: the node says so.
	Contested, Recovering bool
	// Node is the node that answered, and Role what it is: master or replica.
	Node, Role string
	// Age is how old a replica's view may be; -1 on a master, and if it is not known.
	Age time.Duration
}

// A ReadOption sets one thing of a read.
type ReadOption func(*readOptions)

type readOptions struct{ quorum bool }

// Quorum asks a quorum of the masters, where the present state matters. Otherwise the node that is
// asked answers from its memory.
func Quorum() ReadOption { return func(o *readOptions) { o.quorum = true } }

func durationOf(value any) time.Duration {
	n, ok := value.(int64)
	if !ok {
		return 0
	}
	return time.Duration(max(0, min(n, math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

func intOf(value any) int {
	n, _ := value.(int64)
	return int(n)
}

func holderOf(m map[string]any) Holder {
	h := Holder{Owner: textOf(m["owner"]), Value: []byte(textOf(m["value"])),
		ValueSeq: []byte(textOf(m["value_seq"])), Token: tokenOf(m["token"]), Mode: textOf(m["mode"]),
		Permits: intOf(m["permits"]), Of: intOf(m["of"]), Slots: intsOf(m["slots"]),
		Remaining: durationOf(m["remaining_ms"]), ValidAtLeast: durationOf(m["valid_at_least_ms"]),
		HeldAtMost: durationOf(m["held_at_most_ms"]), Held: durationOf(m["held_ms"]),
		Label: textOf(m["label"]), Host: textOf(m["host"]), PID: intOf(m["pid"]),
		Identity: textOf(m["identity"]), LockDelay: durationOf(m["lock_delay_ms"]),
		Closing: durationOf(m["closing_ms"]), LockID: textOf(m["lock_id"]), Order: intOf(m["order"])}
	h.OrderSettled, _ = m["order_settled"].(bool)
	h.Election, _ = m["election"].(bool)
	h.WithoutEnd, _ = m["without_end"].(bool)
	return h
}

func entryOf(m map[string]any, key string) Entry {
	e := Entry{Key: key, Node: textOf(m["node"]), Role: textOf(m["role"]), Age: -1}
	e.Held, _ = m["held"].(bool)
	e.Closing, _ = m["closing"].(bool)
	e.More, _ = m["more"].(bool)
	e.Contested, _ = m["contested"].(bool)
	e.Recovering, _ = m["recovering"].(bool)
	if _, ok := m["age_ms"].(int64); ok {
		e.Age = durationOf(m["age_ms"])
	}
	if e.Held || e.Closing {
		e.Holder = holderOf(m)
	}
	switch holders := m["holders"].(type) {
	case []any:
		for _, one := range holders {
			if said, ok := one.(map[string]any); ok {
				e.Holders = append(e.Holders, holderOf(said))
			}
		}
	case int64: // A list says only how many there are.
		e.HolderCount = int(holders)
	}
	if e.Held && len(e.Holders) == 0 {
		e.Holders = []Holder{e.Holder}
	}
	if e.Held {
		e.HolderCount = max(e.HolderCount, len(e.Holders))
	}
	return e
}

// Call makes any request of the client protocol (docs/client-protocol.md) that is not an acquire, and
// returns its result. Strings and byte strings of the result are of type string, whole numbers are
// int64. A lock that a request lets go of is not trusted any more by the handles of this client.
func (c *Client) Call(ctx context.Context, method string, params map[string]any) (map[string]any, error) {
	if method == "acquire" || method == "watch" || method == "unwatch" {
		return nil, badArgument("Call: use Lock, Locks or Watch instead of %s", method)
	}
	call := &engine.Call{Method: method}
	for name, value := range params {
		call.Params = append(call.Params, msgpack.Pair{Name: name, Value: value})
	}
	if text, ok := params["key"].(string); ok {
		call.Params = call.Params.With("key", []byte(text))
	}
	if ms, ok := params["timeout_ms"]; ok && method == "wait" {
		n, ok := ms.(int)
		if !ok {
			return nil, badArgument("Call: timeout_ms must be an int")
		}
		call.Params = call.Params.Without("timeout_ms")
		call.WaitName, call.Wait = "timeout_ms", time.Duration(n)*time.Millisecond
	}
	key, _ := params["key"].(string)
	answer, err := c.run(ctx, key, call)
	return answer.Result, err
}

// Get reads who holds the key, and its value.
func (c *Client) Get(ctx context.Context, key string, options ...ReadOption) (Entry, error) {
	var o readOptions
	for _, option := range options {
		option(&o)
	}
	params := map[string]any{"key": key}
	if o.quorum {
		params["consistency"] = "quorum"
	}
	result, err := c.Call(ctx, "get", params)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(result, key), nil
}

// List reads up to limit held keys that begin with the prefix and come after `after`, in order, from
// the memory of the node that is asked; more says that there are further ones. A limit of 0 is 100,
// and the most is 1,000.
func (c *Client) List(ctx context.Context, prefix, after string, limit int) (entries []Entry, more bool, err error) {
	params := map[string]any{"prefix": []byte(prefix)}
	if after != "" {
		params["after"] = []byte(after)
	}
	if limit != 0 {
		params["limit"] = limit
	}
	result, err := c.Call(ctx, "list", params)
	if err != nil {
		return nil, false, err
	}
	list, _ := result["keys"].([]any)
	for _, one := range list {
		if said, ok := one.(map[string]any); ok {
			entries = append(entries, entryOf(said, textOf(said["key"])))
		}
	}
	more, _ = result["more"].(bool)
	return entries, more, nil
}

// WaitUntil waits until the key is held, or free, without taking it. It is the view of one node, and
// may be out of date when it is read.
func (c *Client) WaitUntil(ctx context.Context, key string, held bool) (Entry, error) {
	params := map[string]any{"key": key, "for": "free"}
	if held {
		params["for"] = "held"
	}
	result, err := c.Call(ctx, "wait", params)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(result, key), nil
}

// Waiter is somebody who waits for a key.
type Waiter struct {
	Owner string
	// Since is how long, at least, it has waited, at Node.
	Since       time.Duration
	Node        string
	Priority    int
	Mode        string
	Permits, Of int
	Label, Host string
	PID         int
	Election    bool
	Identity    string
}

// Waiters lists who waits for the key, in order; more says that there are further ones.
func (c *Client) Waiters(ctx context.Context, key string) (waiters []Waiter, more bool, err error) {
	result, err := c.Call(ctx, "waiters", map[string]any{"key": key})
	if err != nil {
		return nil, false, err
	}
	list, _ := result["waiters"].([]any)
	for _, one := range list {
		m, ok := one.(map[string]any)
		if !ok {
			continue
		}
		w := Waiter{Owner: textOf(m["owner"]), Since: durationOf(m["since_ms"]), Node: textOf(m["node"]),
			Priority: intOf(m["priority"]), Mode: textOf(m["mode"]), Permits: intOf(m["permits"]),
			Of: intOf(m["of"]), Label: textOf(m["label"]), Host: textOf(m["host"]), PID: intOf(m["pid"]),
			Identity: textOf(m["identity"])}
		w.Election, _ = m["election"].(bool)
		waiters = append(waiters, w)
	}
	more, _ = result["more"].(bool)
	return waiters, more, nil
}

// Testimony is what one master reports about a key.
type Testimony struct {
	// State is voting, recovering, other_epoch or silent.
	Node, State string
	// Home: this master keeps the queue of the key, in which Waiting requests wait.
	Home    bool
	Waiting int
	// Records are the holders as this master knows them, without values.
	Records []Holder
	// Promised: this master has promised the key to a request that is being coordinated.
	Promised bool
	// Kept is how many requests this master will answer when the key is free here.
	Kept int
	More bool
}

// Explanation says why a key is held, or not.
type Explanation struct {
	Entry
	Masters []Testimony
}

// Explain asks all masters about the key. The answer is for people and logs.
func (c *Client) Explain(ctx context.Context, key string) (Explanation, error) {
	result, err := c.Call(ctx, "explain", map[string]any{"key": key})
	if err != nil {
		return Explanation{}, err
	}
	found := Explanation{Entry: entryOf(result, key)}
	list, _ := result["masters"].([]any)
	for _, one := range list {
		m, ok := one.(map[string]any)
		if !ok {
			continue
		}
		t := Testimony{Node: textOf(m["node"]), State: textOf(m["state"]), Waiting: intOf(m["waiting"]),
			Kept: intOf(m["kept"]), Promised: m["promise"] != nil}
		t.Home, _ = m["home"].(bool)
		t.More, _ = m["more"].(bool)
		records, _ := m["records"].([]any)
		for _, record := range records {
			if said, ok := record.(map[string]any); ok {
				t.Records = append(t.Records, holderOf(said))
			}
		}
		found.Masters = append(found.Masters, t)
	}
	return found, nil
}

// Status reads the state of the node and of its cluster, with the fields of the client protocol.
func (c *Client) Status(ctx context.Context) (map[string]any, error) {
	return c.Call(ctx, "status", nil)
}

// AskRelease asks the holder of the key to let go, in the name of the owner `by` (empty: that of the
// client), in favour of the waiter `to` (empty: nobody). It returns how many clients were told, at
// least. What the holder does is up to it.
func (c *Client) AskRelease(ctx context.Context, key, by, to string, priority int32) (reached int, err error) {
	if by == "" {
		by = c.owner
	}
	params := map[string]any{"key": key, "owner": []byte(by)}
	if to != "" {
		params["to"] = []byte(to)
	}
	if priority != 0 {
		params["priority"] = priority
	}
	result, err := c.Call(ctx, "ask_release", params)
	return intOf(result["reached"]), err
}
