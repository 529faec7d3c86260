package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"example.org/pawl"
	concurrency "example.org/pawl/adapters/etcd"
	"example.org/pawl/pawltest"
)

func Example() {
	server, err := pawltest.Run() // a server to try it with
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx := context.Background()

	client, err := pawl.Dial(ctx, pawl.WithEndpoints(server.Endpoint))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	mutex := concurrency.NewMutex(session, "/jobs/report")
	switch err := mutex.TryLock(ctx); {
	case errors.Is(err, concurrency.ErrLocked):
		fmt.Println("another process makes the report")
		return
	case err != nil:
		log.Fatal(err)
	}
	defer mutex.Unlock(ctx)

	select {
	case <-session.Done():
		fmt.Println("stop: the lock is lost")
	default:
		fmt.Println("the lock is ours, with a token:", mutex.Header().Revision > 0)
	}
	// Output: the lock is ours, with a token: true
}
