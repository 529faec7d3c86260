// Command move moves money from one account to another while other processes do the same. Each
// account is a file with a number.
//
//	PAWL_ENDPOINTS=127.0.0.1:7117 move /shared/accounts anna ben 5
//
// One request acquires both locks or none. If another process moves money from ben to anna at the
// same moment, there is no deadlock.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.org/pawl"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: move DIRECTORY FROM TO AMOUNT")
		os.Exit(2)
	}
	amount, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), os.Args[1], os.Args[2], os.Args[3], amount)
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, directory, from, to string, amount int) error {
	client, err := pawl.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	locks, err := client.Locks(ctx, []string{"account/" + from, "account/" + to},
		pawl.Lease(5*time.Second), pawl.Wait(time.Minute))
	if err != nil {
		return err
	}
	fmt.Println("tokens", locks.All()[0].Token(), "and", locks.All()[1].Token())
	err = move(filepath.Join(directory, from), filepath.Join(directory, to), amount)
	return errors.Join(err, locks.Release(ctx))
}

func move(from, to string, amount int) error {
	there, err := readAmount(from)
	if err != nil {
		return err
	}
	here, err := readAmount(to)
	if err != nil {
		return err
	}
	if there < amount {
		return fmt.Errorf("%s has only %d", from, there)
	}
	if err := writeAmount(from, there-amount); err != nil {
		return err
	}
	return writeAmount(to, here+amount)
}

func readAmount(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func writeAmount(path string, amount int) error {
	return os.WriteFile(path, fmt.Appendln(nil, amount), 0o666)
}
