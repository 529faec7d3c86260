// Package pawlredsync lets redsync lock in Pawl. One line changes:
//
//	rs := redsync.New(pawlredsync.NewPool(client))
//
// The key of a lock is the name of the mutex, and its value that of the mutex, as for clients of
// Redis whose address is a node of Pawl: both exclude each other. As there, a lock belongs to no process:
// nothing renews it, and whoever knows the value can extend and unlock it.
package pawlredsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pawl"
	"github.com/go-redsync/redsync/v4/redis"
)

// Pool is a redis.Pool. One is enough: it stands for the whole cluster.
type Pool struct {
	client  *pawl.Client
	options []pawl.LockOption
}

// name is a lock as redsync knows it.
type name struct{ key, value string }

// NewPool returns a Pool for redsync.New. The options are added to each lock.
func NewPool(client *pawl.Client, options ...pawl.LockOption) *Pool {
	return &Pool{client: client, options: append([]pawl.LockOption{pawl.Label("redsync")}, options...)}
}

// Get returns a connection whose requests are bounded by the context.
func (p *Pool) Get(ctx context.Context) (redis.Conn, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	return &conn{p, ctx}, nil
}

// leaseOf returns the lease behind an expiry. It is longer by 1 %, so that it ends after what redsync
// counts, whichever of two clocks is faster.
func leaseOf(expiry time.Duration) time.Duration { return expiry + expiry/99 + time.Millisecond }

// conn is a redis.Conn.
type conn struct {
	pool *Pool
	ctx  context.Context
}

func (c *conn) Close() error { return nil }

// Get returns the value of the lock that is held, or else nothing. It asks a quorum.
func (c *conn) Get(key string) (string, error) {
	entry, err := c.pool.client.Get(c.ctx, key, pawl.Quorum())
	if err != nil || !entry.Held {
		return "", err
	}
	return string(entry.Holder.Value), nil
}

// Set is not possible, and redsync does not use it.
func (c *conn) Set(key, _ string) (bool, error) {
	return false, fmt.Errorf("pawlredsync: SET of %q without an end: a lock of Pawl has one, so use SetNX", key)
}

// SetNX acquires the key until the expiry is over.
func (c *conn) SetNX(key, value string, expiry time.Duration) (bool, error) {
	options := append([]pawl.LockOption{pawl.Lease(leaseOf(expiry)), pawl.Value([]byte(value))}, c.pool.options...)
	lock, err := c.pool.client.Lock(c.ctx, key, options...)
	switch {
	case errors.Is(err, pawl.ErrHeld):
		return false, nil
	case err != nil:
		return false, err
	}
	lock.Abandon()
	return true, nil
}

// PTTL returns what is left of the lock that is held, at least; -2 without one, as Redis does.
func (c *conn) PTTL(key string) (time.Duration, error) {
	entry, err := c.pool.client.Get(c.ctx, key, pawl.Quorum())
	if err != nil {
		return 0, err
	}
	if !entry.Held {
		return -2, nil
	}
	left := entry.Holder.ValidAtLeast
	return max(0, left-left/100-time.Millisecond), nil // leaseOf, the other way round
}

// The scripts of redsync, by their SHA1.
const (
	scriptDelete = "e950836ed1e694540c503ef9972b8de518044d3b"
	scriptTouch  = "d75bb8b5bd13532ddedd17762e772346e39b321e"
	scriptRetake = "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79"
)

// What they return.
const (
	gone int64 = iota - 1
	no
	yes
)

func unknown(script *redis.Script) error {
	return fmt.Errorf("pawlredsync: the script %s is none of redsync 4.18: this version of redsync needs a newer adapter", script.Hash)
}

func (c *conn) ScriptLoad(script *redis.Script) error {
	switch script.Hash {
	case scriptDelete, scriptTouch, scriptRetake:
		return nil
	}
	return unknown(script)
}

// Eval does what the script does, without running it.
func (c *conn) Eval(script *redis.Script, keysAndArgs ...any) (any, error) {
	if err := c.ScriptLoad(script); err != nil {
		return nil, err
	}
	var n name
	var ms int
	ok := len(keysAndArgs) >= 2
	if ok {
		n.key, _ = keysAndArgs[0].(string)
		n.value, _ = keysAndArgs[1].(string)
	}
	if script.Hash != scriptDelete {
		if ok = ok && len(keysAndArgs) == 3; ok {
			ms, ok = keysAndArgs[2].(int)
		}
	}
	if !ok || n.key == "" {
		return nil, fmt.Errorf("pawlredsync: the script %s has other arguments than expected: %v", script.Hash, keysAndArgs)
	}
	expiry := time.Duration(ms) * time.Millisecond
	switch script.Hash {
	case scriptDelete:
		return c.delete(n)
	case scriptRetake:
		return c.retake(n, expiry)
	}
	return c.touch(n, expiry)
}

// find reads who holds the key: yes if the lock has the value, and then what is known of it.
func (c *conn) find(n name) (int64, pawl.Holder, error) {
	entry, err := c.pool.client.Get(c.ctx, n.key, pawl.Quorum())
	switch holder := entry.Holder; {
	case err != nil:
		return no, holder, err
	case !entry.Held:
		return gone, holder, nil
	case string(holder.Value) != n.value:
		return no, holder, nil
	case holder.LockID == "":
		return no, holder, fmt.Errorf("pawlredsync: the lock %q with this value belongs to another identity", n.key)
	default:
		return yes, holder, nil
	}
}

// delete releases the lock if it has the value, whichever process has taken it.
func (c *conn) delete(n name) (any, error) {
	owns, holder, err := c.find(n)
	if owns != yes || err != nil {
		return owns, err
	}
	answer, err := c.pool.client.Call(c.ctx, "release",
		map[string]any{"key": n.key, "lock_id": holder.LockID, "expect": []byte(n.value)})
	switch {
	case errors.Is(err, pawl.ErrMismatch):
		return no, nil
	case err != nil:
		return no, err
	case answer["released"] == false:
		return gone, nil
	}
	return yes, nil
}

// touch lets the lock end when the expiry is over, counted from now, also if that is sooner than before.
func (c *conn) touch(n name, expiry time.Duration) (any, error) {
	owns, holder, err := c.find(n)
	if owns != yes || err != nil {
		return no, err
	}
	lease := leaseOf(expiry)
	// Nobody counts how often the lease was shortened, so each request names the number after the
	// greatest one that masters report (docs/protocol/writes.md, Shorten).
	params := map[string]any{"key": n.key, "lock_id": holder.LockID, "lease_ms": lease.Milliseconds(),
		"token": holder.Token, "order": holder.Order + 1, "deadline_kept": false}
	if holder.OrderSettled && lease < holder.ValidAtLeast {
		params["shorten"] = true
	}
	_, err = c.pool.client.Call(c.ctx, "extend", params)
	if errors.Is(err, pawl.ErrLost) || errors.Is(err, pawl.ErrNotFound) {
		return no, nil
	}
	return yes, err
}

// retake is touch, or takes the lock if nobody holds it.
func (c *conn) retake(n name, expiry time.Duration) (any, error) {
	touched, err := c.touch(n, expiry)
	if touched == yes || err != nil {
		return touched, err
	}
	ok, err := c.SetNX(n.key, n.value, expiry)
	if ok {
		return yes, err
	}
	return no, err
}
