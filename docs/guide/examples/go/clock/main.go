// Command clock is a service of which one instance runs in the cluster. The program is its own
// candidate. Start it on several hosts, each with its own name:
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 clock host-a
//
// One of them prints; when that one ends, the next one prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.org/pawl"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clock CANDIDATE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) error {
	client, err := pawl.Dial(ctx, pawl.WithOwner(name))
	if err != nil {
		return err
	}
	defer client.Close()
	election := client.Election("clock", pawl.Value([]byte(name)), pawl.Lease(5*time.Second),
		pawl.ReleaseOnDisconnect())
	for {
		leadership, err := election.Campaign(ctx)
		if ctx.Err() != nil {
			return nil // told to end
		}
		if err != nil {
			return err
		}
		fmt.Println("leading with token", leadership.Token())
		serve(ctx, leadership)
		// The next candidate leads only when this returns, unless the leadership was lost.
		err = leadership.Resign(context.Background())
		if err != nil && !errors.Is(err, pawl.ErrLost) {
			return err
		}
	}
}

// serve is the service. It ends when the program is told to, and in time before another one leads.
func serve(ctx context.Context, leadership *pawl.Leadership) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-leadership.Done():
			fmt.Println("stepped down:", context.Cause(leadership.Context()))
			return
		case <-tick.C:
			if leadership.Valid() > 0 { // cheap: reads only clocks
				fmt.Println("tick", leadership.Token())
			}
		}
	}
}
