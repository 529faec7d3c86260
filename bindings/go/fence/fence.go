// Package fence keeps the highest tokens that were seen, by name, for the process that guards a
// resource: a file, a directory, a device, or a service that has no transactions of its own.
//
// Every request to the resource carries the token of the lock under which it is made, and the
// resource refuses the request if a newer holder has been there. So a holder that was stopped or cut
// off, and still believes that it holds the lock, does no harm once the next holder has begun. A
// resource with transactions (a database) keeps the number in its own table instead, as Check shows:
// then the check and the write happen together or not at all.
package fence

import (
	"errors"
	"fmt"
	"sync"
)

// NameMax is the largest size of a name in bytes.
const NameMax = 1024

const namesMax = 1_000_000

// A file with fewer records is not rewritten. (Tests need not write that many.)
var rewriteLeast = 1024

// Mode is the mode of the lock whose token is checked.
type Mode int

// The modes.
const (
	// Exclusive: the token must not be below any token seen, and from now on no token may be below
	// it.
	Exclusive Mode = iota
	// Shared, for readers: the token must not be below any exclusive token seen, and from now on no
	// exclusive token may be below it. Readers do not disturb each other.
	Shared
	// Permits is the same as Shared. If each permit guards its own thing, put the permit number into
	// the name and use Exclusive.
	Permits
)

// Check returns whether the holder of the token is the newest one seen, and then stores the token as
// the highest one: for a program that keeps the number together with the data that it protects. Token
// 0 is always refused.
func Check(highest *uint64, token uint64) bool {
	if token == 0 || token < *highest {
		return false
	}
	*highest = token
	return true
}

// Store is a store of tokens in a file, or in memory. `pawl fence`, the C library and the Python
// package use the same files. Any number of goroutines may use a store, and several processes of one
// machine may use one file. Do not share it between machines over a network file system.
//
// A token is on disk before it is allowed, so no crash forgets it, not even a crash of the machine,
// as long as the disk keeps what it has confirmed. A half-written last record is dropped; a file that
// is damaged anywhere else is refused and never repaired by guessing. If the file is lost, everything
// is forgotten: do not put it into a temporary directory.
type Store struct {
	mu     sync.Mutex
	marks  map[string]mark
	file   *file
	closed bool
}

// Open opens the file, and creates it with mode 0600 if it is missing; its directory must exist. With
// an empty path the store is only in memory. Close it in the end.
func Open(path string) (*Store, error) {
	s := &Store{marks: map[string]mark{}}
	if path == "" {
		return s, nil
	}
	f, err := openFile(path, s.take)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	s.file = f
	// A file that is damaged or cannot be opened is refused at once.
	if err := f.locked(func() error { return nil }); err != nil {
		f.close()
		return nil, fmt.Errorf("fence: %w", err)
	}
	return s, nil
}

// Check returns whether the holder of the token may use what is stored under the name (usually the
// key of the lock), and the highest token seen under it, this one included. If it may, the token is
// recorded. After an error the answer is not known: refuse the request.
func (s *Store) Check(name string, token uint64, mode Mode) (allowed bool, highest uint64, err error) {
	if token == 0 || len(name) > NameMax {
		return false, 0, fmt.Errorf("fence: give a token that is not 0, and a name of at most %d bytes", NameMax)
	}
	if mode < Exclusive || mode > Permits {
		return false, 0, fmt.Errorf("fence: %d is no mode", mode)
	}
	err = s.locked(func() error {
		before, known := s.marks[name]
		if !known && len(s.marks) >= namesMax {
			return fmt.Errorf("the store already has %d names, which is its limit", namesMax)
		}
		least := before.exclusive
		if mode == Exclusive {
			least = before.highest
		}
		if highest = before.highest; token < least {
			return nil
		}
		now := mark{before.exclusive, max(before.highest, token)}
		if mode == Exclusive {
			now.exclusive = max(before.exclusive, token)
		}
		if err := s.record(name, before, now); err != nil {
			return err
		}
		allowed, highest = true, now.highest
		return nil
	})
	if err != nil {
		return false, 0, err
	}
	return allowed, highest, nil
}

// Highest returns the highest token seen under the name; 0: there is none. It records nothing.
func (s *Store) Highest(name string) (highest uint64, err error) {
	err = s.locked(func() error {
		highest = s.marks[name].highest
		return nil
	})
	return highest, err
}

// Close closes the store, which allows nothing any more. A store that is only in memory is forgotten.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.file != nil {
		s.file.close()
	}
	s.closed, s.marks = true, nil
	return nil
}

func (s *Store) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.New("the store is closed")
	if !s.closed {
		if s.file == nil {
			err = do()
		} else {
			err = s.file.locked(do)
		}
	}
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// take merges a record of the file. Numbers only grow, so the order of the records does not matter.
func (s *Store) take(name string, m mark) error {
	known, ok := s.marks[name]
	if !ok && len(s.marks) >= namesMax {
		return fmt.Errorf("the store has more than %d names, which is its limit", namesMax)
	}
	s.marks[name] = mark{max(known.exclusive, m.exclusive), max(known.highest, m.highest)}
	return nil
}

func (s *Store) record(name string, before, now mark) error {
	if s.file != nil {
		var err error
		if now == before {
			err = s.file.sync()
		} else {
			err = s.file.append(name, now)
		}
		if err != nil {
			return err
		}
	}
	s.marks[name] = now
	if s.file != nil && s.file.records >= max(rewriteLeast, 2*len(s.marks)) {
		return s.file.rewrite(s.marks)
	}
	return nil
}
