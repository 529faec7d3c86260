// porcupine judges histories (docs/testing/histories.md) with a checker that others have written:
// https://github.com/anishathalye/porcupine. It knows Pawl as three models: a lock with fencing
// tokens, of which each permit of a semaphore is one; a register, which is the value of a lock; and
// the order in which observers are shown leaders.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// A finding is what is wrong in a run, and the lines that it is about.
type finding struct {
	what  string
	lines []*line
}

// judge returns what is wrong in a run. `limit` is how long it may take for each key, or 0.
func judge(r *run, limit time.Duration) (found []finding, undecided int) {
	locks := r.locks()
	for _, part := range resources(locks) {
		f, sure := judgeResource(part, !r.Jumps, limit)
		found = append(found, f...)
		if !sure {
			undecided++
		}
	}
	for _, l := range locks {
		f, sure := judgeRegister(r, l, limit)
		found = append(found, f...)
		if !sure {
			undecided++
		}
	}
	return append(found, judgeObservers(r)...), undecided
}

type totals struct{ runs, lines, found, undecided int }

func (t *totals) add(r *run, limit time.Duration) {
	found, undecided := judge(r, limit)
	t.runs++
	t.lines += len(r.lines)
	t.found += len(found)
	t.undecided += undecided
	for _, f := range found[:min(len(found), 5)] {
		fmt.Printf("run %d: %s\n", r.Seed, f.what)
		for _, l := range f.lines[:min(len(f.lines), 40)] {
			fmt.Printf("  %s\n", l.text)
		}
	}
}

func (t *totals) read(files []io.Reader, together bool, limit time.Duration) error {
	if together {
		r, err := oneRun(files)
		if err == nil {
			t.add(r, limit)
		}
		return err
	}
	for _, in := range files {
		if err := eachRun(in, func(r *run) { t.add(r, limit) }); err != nil {
			return err
		}
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "porcupine:", err)
	os.Exit(2)
}

func main() {
	limit := flag.Duration("limit", 20*time.Second, "how long to search for an order of what happened to one key")
	together := flag.Bool("together", false, "the files are of one run, whose processes have a file each")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: porcupine [-limit 20s] [-together] FILE...\n"+
			"Judges histories; - is the standard input. The status is 0 if nothing is wrong, 1 if\n"+
			"something is or could not be decided in time, and 2 if a file cannot be read.\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var files []io.Reader
	for _, name := range flag.Args() {
		in := os.Stdin
		if name != "-" {
			var err error
			if in, err = os.Open(name); err != nil {
				fail(err)
			}
		}
		files = append(files, in)
	}
	var t totals
	if err := t.read(files, *together, *limit); err != nil {
		fail(err)
	}
	fmt.Printf("%d runs, %d operations: %d wrong, %d undecided\n", t.runs, t.lines, t.found, t.undecided)
	if t.runs == 0 || t.found+t.undecided > 0 {
		os.Exit(1)
	}
}
