package pawlgrpc

import (
	"context"
	"strconv"

	"example.org/pawl/fence"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Name returns what a request writes to, usually the key of the lock; an empty string for a request
// that only reads, which needs no token.
type Name func(ctx context.Context, method string, request any) string

// UnaryServerInterceptor lets calls pass to the service only if their token (pawl-token) is not below
// that of a newer holder. A token that is too old is answered with codes.FailedPrecondition, a missing
// or wrong one with InvalidArgument, and if the store cannot tell with Unavailable.
func UnaryServerInterceptor(store *fence.Store, name Name) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo,
		handler grpc.UnaryHandler) (any, error) {
		if err := check(ctx, store, name(ctx, info.FullMethod, req)); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

// StreamServerInterceptor checks each message of a stream as UnaryServerInterceptor checks a call: the
// message is the request. A message that is refused ends the stream.
func StreamServerInterceptor(store *fence.Store, name Name) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler) error {
		checked := &checkedStream{ServerStream: stream, store: store, name: name, method: info.FullMethod}
		err := handler(srv, checked)
		if checked.refused != nil {
			return checked.refused
		}
		return err
	}
}

type checkedStream struct {
	grpc.ServerStream
	store   *fence.Store
	name    Name
	method  string
	refused error
}

// RecvMsg receives a message, and checks its token.
func (s *checkedStream) RecvMsg(m any) error {
	if s.refused != nil {
		return s.refused
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.refused = check(s.Context(), s.store, s.name(s.Context(), s.method, m))
	return s.refused
}

func check(ctx context.Context, store *fence.Store, name string) error {
	if name == "" {
		return nil
	}
	said := metadata.ValueFromIncomingContext(ctx, TokenKey)
	if len(said) == 0 {
		return status.Errorf(codes.InvalidArgument,
			"this request needs the token of a lock in the metadata %s", TokenKey)
	}
	token, err := strconv.ParseUint(said[0], 10, 64)
	if err != nil || token == 0 || len(said) > 1 {
		return status.Errorf(codes.InvalidArgument,
			"the metadata %s must have one token, a decimal number above 0", TokenKey)
	}
	allowed, highest, err := store.Check(name, token, fence.Exclusive)
	switch {
	case err != nil:
		return status.Errorf(codes.Unavailable, "the token cannot be checked: %v", err)
	case !allowed:
		return status.Errorf(codes.FailedPrecondition,
			"token %d for %q is too old: a newer holder has been here, with token %d", token, name, highest)
	}
	return nil
}
