// Command nightly is started by cron on every host at the same minute. One of them makes the
// report; the others find that it is already made.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 nightly /shared/report-2024-05-01.txt
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"time"

	"example.org/pawl"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: nightly REPORT")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	client, err := pawl.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	// It waits: if the host that makes the report dies, the next one makes it.
	return client.Do(ctx, "nightly-report", func(ctx context.Context, token uint64) error {
		_, err := os.Stat(path)
		if err == nil {
			fmt.Println("made already")
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Nobody else writes to this name, because each token is given out only once.
		mine := fmt.Sprintf("%s.%d", path, token)
		defer os.Remove(mine)
		if err := makeReport(ctx, mine); err != nil {
			return err
		}
		if err := os.Rename(mine, path); err != nil {
			return err
		}
		fmt.Println("made with token", token)
		return nil
	}, pawl.Wait(10*time.Minute), pawl.Lease(5*time.Second), pawl.ReleaseOnDisconnect())
}

// makeReport does the work in steps. It ends when the lock is lost: then ctx is over.
func makeReport(ctx context.Context, path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	for section := 1; section <= 5; section++ {
		fmt.Fprintln(out, "section", section)
		select {
		case <-time.After(100 * time.Millisecond): // the work
		case <-ctx.Done():
			out.Close()
			return context.Cause(ctx)
		}
	}
	return out.Close()
}
