package pawlredsync_test

import (
	"context"
	"fmt"
	"log"

	"example.org/pawl"
	pawlredsync "example.org/pawl/adapters/redsync"
	"example.org/pawl/pawltest"
	"github.com/go-redsync/redsync/v4"
)

func Example() {
	server, err := pawltest.Run() // Your program has a cluster, which PAWL_ENDPOINTS names.
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	client, err := pawl.Dial(context.Background(), pawl.WithEndpoints(server.Endpoint))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	rs := redsync.New(pawlredsync.NewPool(client))
	mutex := rs.NewMutex("nightly-report")
	if err := mutex.Lock(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("locked")
	if ok, err := mutex.Unlock(); !ok || err != nil {
		log.Fatal(err)
	}
	// Output: locked
}
