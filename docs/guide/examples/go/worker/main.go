// Command worker does jobs, which are the files DIRECTORY/NAME.job. Start any number of workers, on
// all hosts that share the directory.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 worker /shared/queue
//
// Each job has a lock. Workers do not wait for each other, and a job belongs to one worker at a
// time. If a worker dies, the next one gets its job.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.org/pawl"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: worker DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, directory string) error {
	client, err := pawl.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	jobs, err := filepath.Glob(filepath.Join(directory, "*.job"))
	if err != nil {
		return err
	}
	for _, job := range jobs {
		task := func(ctx context.Context, token uint64) error {
			if err := work(ctx, job, token); err != nil {
				log.Printf("%s: not done: %v", job, err)
			}
			return nil
		}
		err := client.Do(ctx, "queue/"+filepath.Base(job), task,
			pawl.Lease(5*time.Second), pawl.ReleaseOnDisconnect())
		switch {
		case errors.Is(err, pawl.ErrHeld), errors.Is(err, pawl.ErrLost):
			// Another worker has it, and this one goes on to the next job.
		case err != nil:
			return err
		}
	}
	return nil
}

func work(ctx context.Context, job string, token uint64) error {
	if _, err := os.Stat(job); errors.Is(err, fs.ErrNotExist) {
		return nil // done by another worker, after the directory was read
	}
	mine := fmt.Sprintf("%s.%d", job, token)
	defer os.Remove(mine)
	if err := do(ctx, mine); err != nil {
		return err
	}
	if err := os.Rename(mine, strings.TrimSuffix(job, ".job")+".result"); err != nil {
		return err
	}
	fmt.Printf("%s with token %d\n", job, token)
	return os.Remove(job)
}

// do does the job itself, in steps, and only as long as the lock is held.
func do(ctx context.Context, result string) error {
	out, err := os.Create(result)
	if err != nil {
		return err
	}
	defer out.Close()
	for step := 1; step <= 3; step++ {
		fmt.Fprintln(out, "step", step)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
