package pawl

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"example.org/pawl/fence"
	"example.org/pawl/internal/fault"
)

// TokenHeader is the field of a request in which Transport sends the token. fence.Handler checks it.
const TokenHeader = fence.TokenHeader

// Gate returns the token for a write that is sent now, and for how long the write may take: the validity
// that the lock has at this moment. If the lock was given up, or is valid for less than the margin, which
// is what the write can take with all its pauses, the error is a *LostError, and the write must not be
// sent. A gate cannot recall a write that is on its way: let the resource check the token as well.
func (l *Lock) Gate(margin time.Duration) (token uint64, valid time.Duration, err error) {
	token, valid = l.Token(), l.Valid()
	if err := l.Err(); err != nil {
		return 0, 0, err
	}
	if valid == 0 || valid < margin {
		return 0, 0, &LostError{Key: l.Key(), Token: token, Left: valid,
			Cause: fault.New("lost", "the lock is valid for %v only, and a write needs %v", valid, margin)}
	}
	return token, valid, nil
}

// A GateOption sets one thing of a write gate.
type GateOption func(*gate)

// Margin sets for how long the lock must still be valid for a write to be sent: the longest time that
// the write can take, pauses included. The default is a sixth of the lease.
func Margin(d time.Duration) GateOption { return func(g *gate) { g.margin = d } }

// Transport returns a transport that guards writes by the lock. A request that writes (other than GET,
// HEAD and OPTIONS) passes Gate. Then it is sent with the present token (Pawl-Token: N), and its context
// ends with the validity that the lock has at this moment, or when the lock is lost. Other requests pass
// as they are. If base is nil, it is http.DefaultTransport.
func (l *Lock) Transport(base http.RoundTripper, options ...GateOption) http.RoundTripper {
	g := &gate{lock: l, base: base, margin: l.h.options.lease / 6}
	if g.base == nil {
		g.base = http.DefaultTransport
	}
	for _, option := range options {
		option(g)
	}
	return g
}

type gate struct {
	lock   *Lock
	base   http.RoundTripper
	margin time.Duration
}

// RoundTrip sends the request if that is allowed.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.base.RoundTrip(r)
	}
	token, valid, err := g.lock.Gate(g.margin)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), valid, ErrLost)
	stop := context.AfterFunc(g.lock.Context(), cancel)
	end := func() { stop(); cancel() }
	guarded := r.Clone(ctx)
	guarded.Header.Set(TokenHeader, strconv.FormatUint(token, 10))
	answer, err := g.base.RoundTrip(guarded)
	if err != nil {
		end()
		return nil, err
	}
	answer.Body = &endingBody{answer.Body, end}
	return answer, nil
}

// endingBody ends the context of a request with the body of its answer.
type endingBody struct {
	io.ReadCloser
	end func()
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
