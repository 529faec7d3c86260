package pawlgrpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.org/pawl"
	pawlgrpc "example.org/pawl/adapters/grpc"
	"example.org/pawl/fence"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	writeMethod  = "/test.Ledger/Write"
	readMethod   = "/test.Ledger/Read"
	streamMethod = "/test.Ledger/Stream"
)

// ledger is a service that sends back what it is sent. Write blocks on "hang".
type ledger struct{ hangs chan bool }

func (l *ledger) answer(ctx context.Context, said *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	if said.Value == "hang" {
		l.hangs <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return said, nil
}

func unary(name, full string) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context,
		dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		said := new(wrapperspb.StringValue)
		if err := dec(said); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: full}
		return interceptor(ctx, said, info, func(ctx context.Context, req any) (any, error) {
			return srv.(*ledger).answer(ctx, req.(*wrapperspb.StringValue))
		})
	}}
}

func echo(_ any, stream grpc.ServerStream) error {
	for {
		said := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(said); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := stream.SendMsg(said); err != nil {
			return err
		}
	}
}

var description = grpc.ServiceDesc{
	ServiceName: "test.Ledger", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{unary("Write", writeMethod), unary("Read", readMethod)},
	Streams: []grpc.StreamDesc{{StreamName: "Stream", Handler: echo, ServerStreams: true, ClientStreams: true}},
}

func writes(method string) bool { return method != readMethod }

func name(_ context.Context, method string, request any) string {
	if method == readMethod || request.(*wrapperspb.StringValue).Value == "only looks" {
		return ""
	}
	return "ledger"
}

// serve starts the service with the interceptors, and returns it with a connection without a gate.
func serve(t *testing.T) (*ledger, string) {
	t.Helper()
	store, err := fence.Open("")
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(grpc.UnaryInterceptor(pawlgrpc.UnaryServerInterceptor(store, name)),
		grpc.StreamInterceptor(pawlgrpc.StreamServerInterceptor(store, name)))
	service := &ledger{make(chan bool, 1)}
	server.RegisterService(&description, service)
	ended := make(chan bool)
	go func() { _ = server.Serve(listener); close(ended) }()
	t.Cleanup(func() { server.Stop(); <-ended; _ = store.Close() })
	return service, listener.Addr().String()
}

func connect(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+address,
		append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func gated(t *testing.T, address string, margin time.Duration) *grpc.ClientConn {
	t.Helper()
	return connect(t, address,
		grpc.WithUnaryInterceptor(pawlgrpc.UnaryClientInterceptor(writes, margin)),
		grpc.WithStreamInterceptor(pawlgrpc.StreamClientInterceptor(writes, margin)))
}

func call(ctx context.Context, cc *grpc.ClientConn, method, said string) error {
	return cc.Invoke(ctx, method, wrapperspb.String(said), new(wrapperspb.StringValue))
}

func open(t *testing.T, ctx context.Context, cc *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := cc.NewStream(ctx, &description.Streams[0], streamMethod)
	must(t, err)
	return stream
}

func exchange(stream grpc.ClientStream, said string) error {
	if err := stream.SendMsg(wrapperspb.String(said)); err != nil && err != io.EOF {
		return err
	}
	return stream.RecvMsg(new(wrapperspb.StringValue))
}

func lock(t *testing.T, c *pawl.Client, options ...pawl.LockOption) *pawl.Lock {
	t.Helper()
	l, err := c.Lock(t.Context(), "ledger", options...)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code codes.Code, lost bool) {
	t.Helper()
	if status.Code(err) != code || errors.Is(err, pawl.ErrLost) != lost {
		t.Fatalf("%v, which has the code %v", err, status.Code(err))
	}
}

func TestAWriteUnderALockPasses(t *testing.T) {
	leak.Check(t)
	_, address := serve(t)
	cc := gated(t, address, time.Second)
	l := lock(t, pawltest.Start(t).Client(t))
	ctx := metadata.AppendToOutgoingContext(pawl.NewContext(t.Context(), l), "other", "x")
	must(t, call(ctx, cc, writeMethod, "w"))
	stream := open(t, ctx, cc)
	must(t, exchange(stream, "one"))
	must(t, exchange(stream, "two"))
	must(t, stream.CloseSend())
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
		t.Error(err)
	}
}

func TestAWriteWithoutALockIsRefusedAndAReadPasses(t *testing.T) {
	leak.Check(t)
	_, address := serve(t)
	cc := gated(t, address, 0)
	must(t, call(t.Context(), cc, readMethod, "r"))
	err := call(t.Context(), cc, writeMethod, "w")
	refused(t, err, codes.FailedPrecondition, false)
	if !strings.Contains(err.Error(), "NewContext") {
		t.Error("the error does not name the remedy:", err)
	}
	_, err = cc.NewStream(t.Context(), &description.Streams[0], streamMethod)
	refused(t, err, codes.FailedPrecondition, false)
}

func TestAWriteUnderALockThatWasReleasedIsRefused(t *testing.T) {
	leak.Check(t)
	_, address := serve(t)
	cc := gated(t, address, 0)
	l := lock(t, pawltest.Start(t).Client(t))
	ctx := pawl.NewContext(t.Context(), l)
	stream := open(t, ctx, cc)
	must(t, exchange(stream, "one"))
	must(t, l.Release(t.Context()))
	refused(t, call(ctx, cc, writeMethod, "w"), codes.FailedPrecondition, true)
	refused(t, stream.SendMsg(wrapperspb.String("two")), codes.FailedPrecondition, true)
	refused(t, stream.RecvMsg(new(wrapperspb.StringValue)), codes.Canceled, true)
	_, err := cc.NewStream(ctx, &description.Streams[0], streamMethod)
	refused(t, err, codes.FailedPrecondition, true)
}

func TestAWriteThatNeedsMoreThanTheLockHasLeftIsRefused(t *testing.T) {
	leak.Check(t)
	_, address := serve(t)
	cc := gated(t, address, time.Minute)
	l := lock(t, pawltest.Start(t).Client(t), pawl.Lease(10*time.Second))
	err := call(pawl.NewContext(t.Context(), l), cc, writeMethod, "w")
	refused(t, err, codes.FailedPrecondition, true)
	var lost *pawl.LostError
	if !errors.As(err, &lost) || lost.Key != "ledger" || lost.Left == 0 {
		t.Errorf("%+v", lost)
	}
}

func TestAWriteIsGivenUpWithItsLock(t *testing.T) {
	leak.Check(t)
	service, address := serve(t)
	cc := gated(t, address, 0)
	c := pawltest.Start(t).Client(t)
	l := lock(t, c)
	wrote := make(chan error)
	go func() { wrote <- call(pawl.NewContext(context.Background(), l), cc, writeMethod, "hang") }()
	<-service.hangs
	must(t, l.Release(t.Context()))
	refused(t, <-wrote, codes.Canceled, true)
}

func TestAWriteEndsWithTheValidityOfItsLock(t *testing.T) {
	leak.Check(t)
	var left time.Duration
	var said metadata.MD
	look := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
			said, _ = metadata.FromOutgoingContext(ctx)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	_, address := serve(t)
	cc := connect(t, address, grpc.WithChainUnaryInterceptor(
		pawlgrpc.UnaryClientInterceptor(writes, 0), look))
	l := lock(t, pawltest.Start(t).Client(t), pawl.Lease(20*time.Second))
	// What the program itself says in the metadata stays, but not a token of its own.
	ctx := metadata.AppendToOutgoingContext(t.Context(), "other", "x", pawlgrpc.TokenKey, "1")
	must(t, call(pawl.NewContext(ctx, l), cc, writeMethod, "w"))
	if token := said.Get(pawlgrpc.TokenKey); len(said.Get("other")) != 1 || len(token) != 1 ||
		token[0] != strconv.FormatUint(l.Token(), 10) {
		t.Errorf("the metadata is %v", said)
	}
	if left < 15*time.Second || left > 20*time.Second {
		t.Errorf("the deadline is %v away", left)
	}
	must(t, call(t.Context(), cc, readMethod, "r"))
}

func TestTheServiceRefusesAHolderWhoseSuccessorHasBeenThere(t *testing.T) {
	leak.Check(t)
	_, address := serve(t)
	cc := connect(t, address)
	c := pawltest.Start(t).Client(t)
	token := func(said string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), pawlgrpc.TokenKey, said)
	}
	first := lock(t, c)
	stale := strconv.FormatUint(first.Token(), 10)
	must(t, call(token(stale), cc, writeMethod, "one"))
	old := open(t, token(stale), cc)
	must(t, exchange(old, "one again"))
	must(t, first.Release(t.Context()))
	l := lock(t, c)
	must(t, call(pawl.NewContext(t.Context(), l), gated(t, address, 0), writeMethod, "new"))
	err := call(token(stale), cc, writeMethod, "late")
	refused(t, err, codes.FailedPrecondition, false)
	if !strings.Contains(err.Error(), "token "+stale) {
		t.Error(err)
	}
	must(t, exchange(old, "only looks"))
	refused(t, exchange(old, "late"), codes.FailedPrecondition, false)
	refused(t, call(t.Context(), cc, writeMethod, "w"), codes.InvalidArgument, false)
	refused(t, exchange(open(t, t.Context(), cc), "w"), codes.InvalidArgument, false)
	for _, wrong := range []string{"0", "-1", "x", "1.5"} {
		refused(t, call(token(wrong), cc, writeMethod, "w"), codes.InvalidArgument, false)
	}
	must(t, call(t.Context(), cc, readMethod, "r"))
}

func TestAStoreThatIsClosedAllowsNothing(t *testing.T) {
	store, err := fence.Open("")
	must(t, err)
	must(t, store.Close())
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(pawlgrpc.TokenKey, "7"))
	_, err = pawlgrpc.UnaryServerInterceptor(store, name)(ctx, wrapperspb.String("w"),
		&grpc.UnaryServerInfo{FullMethod: writeMethod}, nil)
	refused(t, err, codes.Unavailable, false)
}
