package engine

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
	"example.org/pawl/internal/msgpack"
	"example.org/pawl/internal/silence"
)

// How many bytes may wait to be written before requests wait in the queue of the client.
const unsentMax = 1 << 20

// Link is a connection to a node. What it has belongs to the lock of the engine.
type Link struct {
	e        *Engine
	endpoint endpoint.Endpoint
	conn     net.Conn
	// Number is that of the connection at this client, which is a bond of the locks that end with
	// it; 0: it is a spare one.
	Number int
	// Ended: the node has closed the connection.
	Ended bool
	// up: nothing has ended it yet; otherwise down says what has.
	up   bool
	down *fault.Error
	// kept: the owner closes it.
	kept bool
	// The node has sent something; it has answered a ping; it knows the parameter `trace`.
	talked, ponged, knowsTrace bool
	silence                    *silence.Watch
	alarm                      *time.Timer
	alarmAt                    time.Time
	out                        []byte
	more                       *sync.Cond
	onPong                     func()
	// The call that it was made for, at the nodes of another cluster; or nil.
	following *following
}

func newLink(e *Engine, conn net.Conn, ep endpoint.Endpoint) *Link {
	l := &Link{e: e, conn: conn, endpoint: ep, up: true, knowsTrace: true, more: sync.NewCond(&e.mu)}
	l.silence = silence.New(rules{l}, e.patience, time.Now())
	e.Go(l.read)
	e.Go(l.write)
	return l
}

// rules is what the silence of a connection has to know.
type rules struct{ l *Link }

func (r rules) Whole(owed bool) time.Duration { return r.l.e.whole(owed) }
func (r rules) MayLeave() bool                { return r.l == r.l.e.link && r.l.e.rounds.count() > 1 }
func (r rules) Listening() bool               { return r.l == r.l.e.link && r.l.e.owner.Listening() }

// hearing notes that bytes have arrived.
type hearing struct{ l *Link }

func (h hearing) Read(p []byte) (int, error) {
	n, err := h.l.conn.Read(p)
	if n > 0 {
		h.l.e.Lock()
		h.l.silence.Heard(time.Now())
		h.l.e.heard(h.l)
		h.l.e.Unlock()
	}
	return n, err
}

func (l *Link) read() {
	in := msgpack.NewReader(hearing{l})
	for {
		message, err := in.Next()
		l.e.Lock()
		if err != nil {
			l.Ended = l.Ended || l.up && hangUp(err)
			l.fail(readError(err))
			l.e.Unlock()
			return
		}
		if l.up {
			l.e.message(l, message)
			l.silence.Settle()
			l.setAlarm()
			l.e.settle()
		}
		l.e.Unlock()
	}
}

// hangUp returns whether the error of a connection says that the other side has ended it.
func hangUp(err error) bool {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	return !errors.Is(err, msgpack.ErrFormat) && !errors.Is(err, net.ErrClosed)
}

func readError(err error) *fault.Error {
	switch {
	case errors.Is(err, msgpack.ErrFormat):
		return notPawl()
	case alertOf(err) != nil:
		return fault.New("tls", "%s", tlsText(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New("unreachable", "the node has closed the connection")
	}
	return fault.New("unreachable", "%s", err.Error())
}

func notPawl() *fault.Error {
	return fault.New("protocol", "the answer does not follow Pawl's protocol: is this the client port of "+
		"a Pawl node?")
}

func (l *Link) write() {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	for {
		for l.up && len(l.out) == 0 {
			l.more.Wait()
		}
		if !l.up {
			return
		}
		out := l.out
		l.out = nil
		l.e.mu.Unlock()
		_, err := l.conn.Write(out)
		l.e.mu.Lock()
		if err != nil {
			// What the node has said before is still read, and says more than this.
			return
		}
		if l == l.e.link && len(l.e.queue) > 0 {
			l.e.flush()
		}
	}
}

// writable returns whether there is room for another request.
func (l *Link) writable() bool { return l.up && len(l.out) < unsentMax }

// send sends the bytes of a message.
func (l *Link) send(data []byte) {
	l.out = append(l.out, data...)
	l.more.Signal()
}

func (l *Link) ping() {
	data, _ := msgpack.Append(nil, []any{0, pingMsgid, "ping", []any{}})
	l.send(data)
	l.silence.PingSent(time.Now())
}

// setAlarm sets the alarm of the silence.
func (l *Link) setAlarm() {
	if !l.up {
		return
	}
	now := time.Now()
	at, awaits := l.silence.Alarm(now)
	switch {
	case !awaits:
		if l.alarm != nil {
			l.alarm.Stop()
			l.alarm, l.alarmAt = nil, time.Time{}
		}
	case l.alarm == nil:
		l.alarmAt = at
		l.alarm = l.e.Alarm(max(0, at.Sub(now)), l.ring)
	case !l.alarmAt.Equal(at):
		l.alarmAt = at
		l.alarm.Reset(max(0, at.Sub(now)))
	}
}

func (l *Link) ring() {
	if !l.up {
		return
	}
	l.alarmAt = time.Time{}
	switch step := l.silence.Ring(time.Now()); step {
	case silence.Ping, silence.PingDue:
		l.ping()
		if step == silence.PingDue {
			l.e.quiet(l)
		}
	case silence.Overdue:
		l.e.overdue(l)
	case silence.Lost:
		l.fail(fault.New("timeout", "the node does not answer"))
	case silence.Nothing:
	}
	l.setAlarm()
}

// fail ends the connection because of the error.
func (l *Link) fail(why *fault.Error) {
	if !l.up {
		return
	}
	l.up, l.down = false, why
	if l.alarm != nil {
		l.alarm.Stop()
	}
	l.more.Signal()
	l.kept = l.Number != 0 && l.e.owner.ConnectionLost(l)
	if !l.kept {
		l.conn.Close()
	}
	l.e.linkDown(l)
}

// close closes the connection.
func (l *Link) close() {
	l.fail(fault.New("closed", "the connection was closed"))
	if !l.kept {
		l.conn.Close()
	}
}

// CloseKept closes a connection that the owner has kept open.
func (l *Link) CloseKept() { l.conn.Close() }
