// Package pawlgrpc guards the writes of a gRPC service by locks, on both sides.
//
// The interceptors of the client are a write gate: a call that writes needs a lock in its context,
// and is refused if the lock cannot be trusted for long enough. It carries the token of the lock, as
// the metadata pawl-token. The interceptors of the server refuse a token that is older than one that
// they have seen, by a fence store.
package pawlgrpc

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.org/pawl"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// TokenKey is the key of the metadata that carries the token.
var TokenKey = strings.ToLower(pawl.TokenHeader)

// Writes selects the calls that write, by the full name of their method: /package.Service/Method.
type Writes func(method string) bool

// UnaryClientInterceptor returns a write gate. A call that writes is refused with
// codes.FailedPrecondition, and with a *pawl.LostError in the error, if the lock of its context
// (pawl.NewContext, or that of a function of Client.Do) was given up or is valid for less than the margin: the longest time that a write can
// take, pauses included. Otherwise it carries the present token, and ends with the validity that the
// lock has at this moment, or when the lock is lost. Then the error has its usual code, and
// pawl.ErrLost in it: the write may have been done. Other calls pass as they are.
//
// The gate cannot recall a write that is on its way: let the service check the token.
func UnaryClientInterceptor(writes Writes, margin time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !writes(method) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		g := &gate{pawl.FromContext(ctx), method, margin}
		token, valid, err := g.pass()
		if err != nil {
			return err
		}
		guarded, cancel := context.WithTimeout(outgoing(ctx, token), valid)
		defer cancel()
		defer context.AfterFunc(g.lock.Context(), cancel)()
		err = invoke(guarded, method, req, reply, cc, opts...)
		if err != nil && guarded.Err() != nil && ctx.Err() == nil {
			return g.lost(err)
		}
		return err
	}
}

// StreamClientInterceptor returns a write gate for streams. A stream that writes is refused as a call
// is; it ends when the lock is lost, and each message passes the gate before it is sent. It carries
// the token that the lock has when the stream begins.
func StreamClientInterceptor(writes Writes, margin time.Duration) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if !writes(method) {
			return streamer(ctx, desc, cc, method, opts...)
		}
		g := &gate{pawl.FromContext(ctx), method, margin}
		token, _, err := g.pass()
		if err != nil {
			return nil, err
		}
		guarded, cancel := context.WithCancel(outgoing(ctx, token))
		stop := context.AfterFunc(g.lock.Context(), cancel)
		end := sync.OnceFunc(func() { stop(); cancel() })
		stream, err := streamer(guarded, desc, cc, method, opts...)
		if err != nil {
			end()
			return nil, err
		}
		// A program may also end its stream by its own context, and read no more of it.
		context.AfterFunc(guarded, end)
		return &guardedStream{stream, g, desc.ServerStreams, end}, nil
	}
}

type gate struct {
	lock   *pawl.Lock
	method string
	margin time.Duration
}

// pass returns what pawl.Lock.Gate does, with a status in the error.
func (g *gate) pass() (token uint64, valid time.Duration, err error) {
	if g.lock == nil {
		return 0, 0, status.Errorf(codes.FailedPrecondition,
			"%s writes, and its context has no lock: use pawl.NewContext", g.method)
	}
	if token, valid, err = g.lock.Gate(g.margin); err != nil {
		return 0, 0, refusal(codes.FailedPrecondition, err.Error(), err)
	}
	return token, valid, nil
}

func outgoing(ctx context.Context, token uint64) context.Context {
	said, _ := metadata.FromOutgoingContext(ctx)
	said = said.Copy()
	if said == nil {
		said = metadata.MD{}
	}
	said.Set(TokenKey, strconv.FormatUint(token, 10))
	return metadata.NewOutgoingContext(ctx, said)
}

// lost returns the error of a write that has ended with the lock.
func (g *gate) lost(err error) error {
	cause := g.lock.Err()
	if cause == nil {
		cause = &pawl.LostError{Key: g.lock.Key(), Token: g.lock.Token(), Left: g.lock.Valid()}
	}
	return refusal(status.Code(err), "the write was given up with the lock, and may have been done: "+
		status.Convert(err).Message(), cause)
}

// refusal returns an error with a status, in which errors.Is and errors.As find the cause.
func refusal(code codes.Code, text string, cause error) error {
	return &refused{status.New(code, text), cause}
}

type refused struct {
	status *status.Status
	cause  error
}

func (r *refused) Error() string              { return r.status.Err().Error() }
func (r *refused) GRPCStatus() *status.Status { return r.status }
func (r *refused) Unwrap() error              { return r.cause }

type guardedStream struct {
	grpc.ClientStream
	gate *gate
	// The server sends more than one message.
	several bool
	end     func()
}

// SendMsg sends the message if that is allowed. Otherwise the stream is ended.
func (s *guardedStream) SendMsg(m any) error {
	if _, _, err := s.gate.pass(); err != nil {
		s.end()
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg ends what the gate has made for the stream with the stream.
func (s *guardedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && s.several {
		return nil
	}
	defer s.end()
	if err != nil && s.gate.lock.Err() != nil && status.Code(err) == codes.Canceled {
		return s.gate.lost(err)
	}
	return err
}
