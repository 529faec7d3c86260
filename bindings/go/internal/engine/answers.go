package engine

import (
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pawl/internal/fault"
)

// roundPause is how long a request that may wait pauses, on average, after every node has refused
// it.
const roundPause = 500 * time.Millisecond

// tlsAlert is the first byte of a server that has not understood a client without TLS.
const tlsAlert int64 = 0x15

// message handles a message of a node.
func (e *Engine) message(l *Link, message any) {
	list, ok := message.([]any)
	kind, isInt := int64(-1), false
	if ok && len(list) > 0 {
		kind, isInt = list[0].(int64)
	}
	switch {
	case isInt && kind == 2 && len(list) == 3:
		l.talked = true
		// The numbers of watches are those of the present node.
		if l == e.link {
			e.notification(list)
		}
	case isInt && kind == 1 && len(list) == 4:
		msgid, ok := list[1].(int64)
		if !ok || msgid < 0 || msgid > 1<<32-1 {
			l.fail(notPawl())
			return
		}
		e.response(l, uint32(msgid), list[2], list[3])
	case message == any(tlsAlert) && !l.talked && !l.endpoint.TLS:
		l.fail(fault.New("tls", "this is a port with TLS: write tls:// before the host"))
	default:
		l.fail(notPawl())
	}
}

func (e *Engine) notification(list []any) {
	params, _ := list[2].([]any)
	if list[1] != "event" || len(params) == 0 {
		return
	}
	if event, ok := params[0].(map[string]any); ok {
		e.owner.Event(event)
	}
}

func (e *Engine) response(l *Link, msgid uint32, refusal, result any) {
	var refused *fault.Error
	if refusal != nil {
		refused = fault.FromWire(refusal)
	}
	if msgid == pingMsgid && !e.pong(l, refused) {
		return
	}
	l.talked = true
	f := e.flights[msgid]
	if f == nil || f.link != l {
		return // This answers a ping, or a call that is over.
	}
	c := f.call
	found, isMap := result.(map[string]any)
	if f == c.before && (refused != nil || c.binds() || c.Method == "watch" || !isMap && result != nil) {
		// The node that was left refuses, and the next one may do better. Or what it has granted
		// belongs to the connection that was left: a lock that ends with it, or a watch.
		e.land(f)
		c.before = nil
		return
	}
	if c.Method == "watch" && l != e.link && refused == nil {
		e.land(f)
		c.flight = nil
		e.queue = slices.Insert(e.queue, 0, c)
		e.kick()
		return
	}
	if !f.waits && l == e.link {
		e.patience.Answered(time.Since(f.at), time.Now())
	}
	switch {
	case refused != nil:
		e.refused(l, c, f, refused)
	case !isMap && result != nil:
		e.end(c, Answer{}, fault.New("protocol", "the result is not a map"), true)
	default:
		if c.OnAnswer != nil {
			c.OnAnswer(found)
		}
		e.end(c, Answer{Result: found, SentAt: f.sentAt, Connection: l.Number, Node: l.endpoint.Text, TLS: l.endpoint.TLS}, nil, true)
	}
}

// pong handles an answer to a ping. false: it ends the connection.
func (e *Engine) pong(l *Link, refused *fault.Error) bool {
	// An error with this msgid is the node's last word about the connection. Only `busy` is an
	// answer to the ping itself.
	if refused != nil && refused.Code != "busy" {
		l.fail(refused)
		return false
	}
	l.silence.Ponged()
	if !l.ponged {
		l.ponged = true
		if l.onPong != nil {
			l.onPong()
		}
	}
	return true
}

// rest puts a call off.
func (e *Engine) rest(c *Call, pause time.Duration) {
	e.resting[c] = e.Alarm(pause, func() {
		delete(e.resting, c)
		e.queue = append(e.queue, c)
		e.kick()
	})
}

// restForQuota puts a call that was refused for a quota off for the time that the node names and up
// to half of it more. false: it names no time, or it is too long for the call.
func (e *Engine) restForQuota(c *Call, err *fault.Error) bool {
	if err.Code != "quota" || err.RetryAfter == 0 {
		return false
	}
	pause := time.Duration(float64(err.RetryAfter) * (1 + rand.Float64()/2))
	if time.Now().Add(pause).After(c.endsAt) {
		return false
	}
	c.Sends-- // The node did nothing.
	e.rest(c, pause)
	return true
}

// leaveOut takes a parameter that an old node does not know out of the call. It returns whether it
// did; the refusal had no effect.
func (e *Engine) leaveOut(l *Link, c *Call, err *fault.Error) bool {
	switch {
	case err.Code != "bad_request":
		return false
	case err.Field == "trace" && e.traceOf(c) != "" && c.untraced != l.Number:
		l.knowsTrace, c.untraced = false, l.Number
		return true
	case (err.Field == "party" || err.Field == "election") && c.Params.Get(err.Field) != nil:
		c.Params = c.Params.Without(err.Field)
		return true
	}
	return false
}

// refused handles an error that the node returned. A node without its memory, or without a quorum,
// refuses for itself and not for the cluster, so the call moves on to another node. It asks each
// node once, or for as long as it may wait, with a pause after each round.
func (e *Engine) refused(l *Link, c *Call, f *flight, err *fault.Error) {
	if l.following != nil {
		e.answeredThere(l, c, f, err)
		return
	}
	if e.restForQuota(c, err) {
		e.land(f)
		return
	}
	if e.leaveOut(l, c, err) {
		c.Sends--
		e.land(f)
		e.queue = slices.Insert(e.queue, 0, c)
		e.kick()
		return
	}
	if err.Code == "moved" && e.follow(l, c, f, err) {
		return
	}
	useless := err.Code == "recovering" || err.Code == "no_quorum"
	if !useless || c.Internal || !c.repeatable() || c.moves+1 >= e.rounds.count() && !c.mayStillWait(e.Clock.Now()) {
		e.end(c, Answer{}, err, true)
		return
	}
	if c.Method == "acquire" && err.Code == "no_quorum" {
		// The lock_id is used up. If the caller chose it, only the caller can choose another.
		if !c.Drawn {
			e.end(c, Answer{}, err, true)
			return
		}
		// An answer on the connection that was left would be about the previous lock_ids.
		e.land(c.before)
		c.before = nil
		e.ReleaseAll(c)
		c.DrawAnew()
	}
	c.refusal = err
	c.moves++
	switch {
	case c.moves%e.rounds.count() == 0:
		e.land(f)
		e.rest(c, time.Duration((0.5+rand.Float64())*float64(roundPause)))
		if l == e.link && e.rounds.count() > 1 {
			l.fail(err)
		}
	case l == e.link:
		l.fail(err)
	default: // The client has left that node already.
		e.land(f)
		e.queue = slices.Insert(e.queue, 0, c)
		e.kick()
	}
}
