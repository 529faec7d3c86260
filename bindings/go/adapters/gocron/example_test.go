package pawlgocron_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"example.org/pawl"
	pawlgocron "example.org/pawl/adapters/gocron"
	"example.org/pawl/pawltest"
	"github.com/go-co-op/gocron/v2"
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

	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(pawlgocron.NewLocker(client)))
	if err != nil {
		log.Fatal(err)
	}
	ran := make(chan struct{}, 1)
	report := func() { ran <- struct{}{} }
	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(report),
		gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-ran
	fmt.Println("one scheduler has run it")
	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output: one scheduler has run it
}
