// Command limit limits the number of calls in a second, over all hosts. Each call takes a permit of
// a semaphore, and gives it back a second later.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 limit billing-api 3 10
//
// makes ten calls, of which three begin in any second.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"example.org/pawl"
)

const period = time.Second

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: limit NAME PERMITS CALLS")
		os.Exit(2)
	}
	permits, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	calls, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), os.Args[1], permits, calls); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string, permits, calls int) error {
	client, err := pawl.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	for range calls {
		// When this process dies, its permit is free after a period, which is neither at
		// once nor as late as the end of the lease.
		lock, err := client.Lock(ctx, name, pawl.Permits(1, permits),
			pawl.Wait(time.Minute), pawl.Lease(5*time.Second),
			pawl.ReleaseOnDisconnect(), pawl.LockDelay(period))
		if err != nil {
			return err
		}
		fmt.Println(time.Now().UnixMilli(), "call with permit", lock.Slots()[0]) // the call
		time.Sleep(period)
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}
