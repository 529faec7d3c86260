package pawlgrpc_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"example.org/pawl"
	pawlgrpc "example.org/pawl/adapters/grpc"
	"example.org/pawl/fence"
	"example.org/pawl/pawltest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// The service of this example is the health service; take its Check for a write.
func Example() {
	ctx := context.Background()
	node, err := pawltest.Run() // a node of Pawl to try it with
	if err != nil {
		log.Fatal(err)
	}
	defer node.Stop()

	// The service.
	store, err := fence.Open("") // a path, for a service that outlives its process
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	writesTo := func(ctx context.Context, method string, request any) string {
		if method == grpc_health_v1.Health_Check_FullMethodName {
			return "ledger"
		}
		return ""
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(pawlgrpc.UnaryServerInterceptor(store, writesTo)),
		grpc.StreamInterceptor(pawlgrpc.StreamServerInterceptor(store, writesTo)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Stop()

	// The client of the service.
	writes := func(method string) bool { return method == grpc_health_v1.Health_Check_FullMethodName }
	connection, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(pawlgrpc.UnaryClientInterceptor(writes, 2*time.Second)),
		grpc.WithStreamInterceptor(pawlgrpc.StreamClientInterceptor(writes, 2*time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ledger := grpc_health_v1.NewHealthClient(connection)

	client, err := pawl.Dial(ctx, pawl.WithEndpoints(node.Endpoint))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := client.Lock(ctx, "ledger")
	if err != nil {
		log.Fatal(err)
	}
	write := func() error {
		_, err := ledger.Check(pawl.NewContext(ctx, lock), &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	fmt.Println("while it is held:", status.Code(write()))
	if err := lock.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("after the release:", status.Code(write()))
	// Output:
	// while it is held: OK
	// after the release: FailedPrecondition
}
