package pawl

import (
	"errors"
	"fmt"
	"time"

	"example.org/pawl/internal/fault"
)

// Error is what a node, or the client itself, says of a request that failed. Compare it with
// errors.Is and one of the Err variables, which are one for each code.
type Error = fault.Error

// One error for each code of the client protocol. The client guide says what to do about each
// (docs/client-guide.md, Errors, one by one).
var (
	// ErrHeld: another client holds the key, or others wait ahead. The error is a *HeldError.
	ErrHeld = &Error{Code: "held"}
	// ErrTimeout: the wait is over, or no node has answered in time. You do not hold the key.
	ErrTimeout = &Error{Code: "timeout"}
	// ErrDeadlock: clients wait for each other in a ring, and the node ended this wait. Release
	// what you hold, and try again.
	ErrDeadlock = &Error{Code: "deadlock"}
	// ErrNoQuorum: too few masters answered, whichever node was asked.
	ErrNoQuorum = &Error{Code: "no_quorum"}
	// ErrLost: the lock is no longer yours. Errors of a lock are of type *LostError.
	ErrLost = &Error{Code: "lost"}
	// ErrUnsure: it is not known whether the request took effect.
	ErrUnsure = &Error{Code: "unsure"}
	// ErrMismatch: the present value is another one than expected.
	ErrMismatch = &Error{Code: "mismatch"}
	// ErrNotFound: there is no such key or lock; for a transfer, nobody of that name waits.
	ErrNotFound = &Error{Code: "not_found"}
	// ErrRecovering: the nodes take no part in the cluster.
	ErrRecovering = &Error{Code: "recovering"}
	// ErrQuota: this identity or address has as much of the node as it may have. The client has
	// waited and asked again as long as the time of the call allowed.
	ErrQuota = &Error{Code: "quota"}
	// ErrIndeterminate: a quorum read found no majority for either answer. Ask again.
	ErrIndeterminate = &Error{Code: "indeterminate"}
	// ErrTooLong: the lease is longer than the cluster allows, which is Limit of the error.
	ErrTooLong = &Error{Code: "too_long"}
	// ErrTooLarge, ErrFull and ErrBusy: a limit was reached, which Field of the error names.
	ErrTooLarge = &Error{Code: "too_large"}
	ErrFull     = &Error{Code: "full"}
	ErrBusy     = &Error{Code: "busy"}
	// ErrDenied: the access rules do not allow it to this identity.
	ErrDenied = &Error{Code: "denied"}
	// ErrBadRequest: a parameter is wrong, which Field of the error names.
	ErrBadRequest = &Error{Code: "bad_request"}
	// ErrUnsettled: an earlier change of the cluster is not over.
	ErrUnsettled = &Error{Code: "unsettled"}
	// ErrMoved: another cluster serves this request, and the client may not follow it there.
	ErrMoved = &Error{Code: "moved"}

	// ErrUnreachable: no node could be connected to in time.
	ErrUnreachable = &Error{Code: "unreachable"}
	// ErrTLS: certificates do not fit; the message says whose and why.
	ErrTLS = &Error{Code: "tls"}
	// ErrProtocol: the program that answers is not Pawl.
	ErrProtocol = &Error{Code: "protocol"}
	// ErrClosed: the client is closed, or the connection broke during a request that is never
	// repeated.
	ErrClosed = &Error{Code: "closed"}
	// ErrBadArgument: an argument is impossible, and no node was asked.
	ErrBadArgument = &Error{Code: "bad_argument"}
)

// HeldError says that somebody else holds the key, or, with the code `timeout`, that somebody does
// at the end of the wait. errors.Is finds ErrHeld or ErrTimeout in it.
type HeldError struct {
	// Err is the error as the node sent it.
	Err *Error
	// Holder is who holds the key. Holder.Owner and Holder.Token are empty if that is not known.
	Holder Holder
}

// Unwrap returns the error that the node sent.
func (e *HeldError) Unwrap() error { return e.Err }

// Error returns a sentence that names the holder, if that is known.
func (e *HeldError) Error() string {
	if e.Holder.Owner == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s (held by %q)", e.Err.Error(), e.Holder.Owner)
}

// LostError says why a lock is lost, or is about to be. errors.Is finds ErrLost in it, and what is
// in Cause.
type LostError struct {
	// Key is the key of the lock, and Token the last token that it had.
	Key   string
	Token uint64
	// Left is how much longer the lock can be trusted, at the moment at which this was found out.
	Left time.Duration
	// Released: the program has let go of the lock itself.
	Released bool
	// Cause is what the nodes said last, or why none of them was reached.
	Cause *Error
}

// Code returns the code of the cause.
func (e *LostError) Code() string {
	if e.Cause == nil {
		return "lost"
	}
	return e.Cause.Code
}

// Error returns a sentence that names the key and the cause.
func (e *LostError) Error() string {
	switch {
	case e.Released:
		return fmt.Sprintf("pawl: the lock on %q was released", e.Key)
	case e.Cause == nil:
		return fmt.Sprintf("pawl: the lock on %q is lost", e.Key)
	}
	return fmt.Sprintf("pawl: the lock on %q is lost: %s (%s)", e.Key, e.Cause.Message, e.Cause.Code)
}

// Is returns whether the target is ErrLost.
func (e *LostError) Is(target error) bool { return target == error(ErrLost) }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

func badArgument(format string, args ...any) error {
	return fault.New("bad_argument", format, args...)
}

// told returns the error as the program sees it.
func told(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != "held" && e.Code != "timeout" {
		return err
	}
	if _, already := err.(*HeldError); already {
		return err
	}
	holder, ok := e.Details["holder"].(map[string]any)
	if !ok && e.Code != "held" {
		return err
	}
	return &HeldError{Err: e, Holder: holderOf(holder)}
}
