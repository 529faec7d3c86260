// Command catalogue shares a file among many readers and one writer. On no host is the file read
// while it is being written.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 catalogue /shared/catalogue read
//	PAWL_ENDPOINTS=127.0.0.1:7117 catalogue /shared/catalogue write 'some text'
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"example.org/pawl"
)

const copies = 5

var wanted = []pawl.LockOption{pawl.Lease(5 * time.Second), pawl.Wait(time.Minute)}

func main() {
	ctx := context.Background()
	reads := len(os.Args) == 3 && os.Args[2] == "read"
	if !reads && (len(os.Args) != 4 || os.Args[2] != "write") {
		fmt.Fprintln(os.Stderr, "usage: catalogue FILE read | catalogue FILE write TEXT")
		os.Exit(2)
	}
	client, err := pawl.Dial(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if reads {
		err = read(ctx, client, os.Args[1])
	} else {
		err = write(ctx, client, os.Args[1], os.Args[3])
	}
	client.Close()
	if err != nil {
		log.Fatal(err)
	}
}

func read(ctx context.Context, client *pawl.Client, path string) error {
	// Readers hold the key together, but wait for writers that asked earlier.
	return client.Do(ctx, "catalogue", func(context.Context, uint64) error {
		return printFile(path)
	}, append(wanted, pawl.Shared())...)
}

func write(ctx context.Context, client *pawl.Client, path, text string) error {
	lock, err := client.Lock(ctx, "catalogue", wanted...)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	if err := writeFile(lock, path, text); err != nil {
		return err
	}
	// From here on others may read, and nobody writes before this one has read what it wrote.
	if err := lock.Downgrade(ctx); err != nil {
		return err
	}
	fmt.Println("written with token", lock.Token())
	return printFile(path)
}

// writeFile writes in several steps: a reader in between would see half of it.
func writeFile(lock *pawl.Lock, path, text string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	for range copies {
		fmt.Fprintln(out, text)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-lock.Done():
			out.Close()
			return lock.Err()
		}
	}
	return out.Close()
}

func printFile(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(os.Stdout, in)
	return err
}
