// Command append guards a plain file. It appends a line, unless somebody with a higher token was
// here before.
//
//	append /var/lib/app/journal ledger 17 'a line'
//
// Every writer has to use this program (or append.sh, append.c, append.py), on the one machine that
// has the file.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"syscall"

	"example.org/pawl/fence"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: append FILE NAME TOKEN LINE")
		os.Exit(2)
	}
	token, err := strconv.ParseUint(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	if err := guardedAppend(os.Args[1], os.Args[2], token, os.Args[4]); err != nil {
		log.Fatal(err)
	}
}

// guardedAppend checks and writes. For all others, that is one step, because both happen while this
// process has the file lock.
func guardedAppend(path, name string, token uint64, line string) error {
	guard, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := syscall.Flock(int(guard.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	store, err := fence.Open(path + ".fence")
	if err != nil {
		return err
	}
	defer store.Close()
	allowed, highest, err := store.Check(name, token, fence.Exclusive)
	if err != nil {
		return err
	}
	if !allowed {
		return fmt.Errorf("refused: token %d has been seen", highest)
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, line); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
