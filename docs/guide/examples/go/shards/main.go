// Command shards is a leader with workers. Twelve shards of work are divided among all processes
// that run.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 shards crawler host-a
//
// Every process is a worker, which holds the key crawler/workers/NAME, and a candidate in the
// election crawler. The leader watches crawler/workers/ and proclaims the list of workers. Every
// worker observes the list, and takes its own shards.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"example.org/pawl"
)

const shards = 12

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: shards NAME WORKER")
		os.Exit(2)
	}
	log.Fatal(run(context.Background(), os.Args[1], os.Args[2]))
}

func run(ctx context.Context, name, me string) error {
	client, err := pawl.Dial(ctx, pawl.WithOwner(me))
	if err != nil {
		return err
	}
	defer client.Close()
	options := []pawl.LockOption{pawl.Lease(5 * time.Second), pawl.ReleaseOnDisconnect()}
	membership, err := client.Lock(ctx, name+"/workers/"+me,
		append(options, pawl.Wait(10*time.Second))...)
	if err != nil {
		return err
	}
	// A worker that has lost its membership ends; a service manager may start it again.
	ctx, fail := context.WithCancelCause(membership.Context())
	defer fail(nil)
	election := client.Election(name, options...)
	go func() { fail(lead(ctx, client, election, name+"/workers/")) }()
	for leader, err := range election.Observe(ctx) {
		if err != nil {
			break
		}
		var workers []string
		if leader != nil {
			workers = strings.Fields(string(leader.Value))
		}
		work(workers, me)
	}
	return context.Cause(ctx)
}

// work is told the list of workers. Here the worker would do its shards.
func work(workers []string, me string) {
	line := "shards:"
	if place := slices.Index(workers, me); place >= 0 {
		for shard := place; shard < shards; shard += len(workers) {
			line += fmt.Sprint(" ", shard)
		}
	}
	fmt.Println(line)
}

// lead is a candidate again and again, and proclaims the workers while it leads.
func lead(ctx context.Context, client *pawl.Client, election *pawl.Election, prefix string) error {
	for {
		leadership, err := election.Campaign(ctx)
		if err != nil {
			return err
		}
		fmt.Println("leading with token", leadership.Token())
		fmt.Println("stepped down:", divide(leadership, client, prefix))
		if err := leadership.Resign(ctx); err != nil && !errors.Is(err, pawl.ErrLost) {
			return err
		}
	}
}

func divide(leadership *pawl.Leadership, client *pawl.Client, prefix string) error {
	workers, complete := map[string]bool{}, false
	for event, err := range client.Watch(leadership.Context(), pawl.WatchPrefix(prefix)) {
		if err != nil {
			return err
		}
		switch event.Type {
		case pawl.EventPresent, pawl.EventAcquired:
			workers[strings.TrimPrefix(event.Key, prefix)] = true
		case pawl.EventReleased, pawl.EventExpired, pawl.EventBroken:
			delete(workers, strings.TrimPrefix(event.Key, prefix))
		case pawl.EventOverflow: // the table may be wrong: the present state follows
			clear(workers)
			complete = false
		case pawl.EventCurrent:
			complete = true
		default:
			continue
		}
		if !complete {
			continue
		}
		list := strings.Join(slices.Sorted(maps.Keys(workers)), " ")
		if err := leadership.Proclaim(leadership.Context(), []byte(list)); err != nil {
			return err
		}
	}
	return nil
}
