package pawlk8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// Get says who leads. A candidate waits in it until it is granted the lock, another leader appears,
// or QueueWait is over. A grant is kept for the Create or Update that follows at once.
//
// The bytes differ each time, so that the elector never takes it from its own clock that the term
// of another one is over.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if t := l.current(); t != nil {
		if t.led {
			// Without asking anybody: an elector that is about to stop asks this before it does.
			return l.report(t.record)
		}
		return l.free()
	}
	if err := l.mayStand(ctx); err != nil {
		return nil, nil, err
	}
	now, err := l.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.config.QueueWait > 0 && (!now.held || l.reported(now)) {
		granted, next, err := l.queue(ctx, now)
		if err != nil {
			return nil, nil, err
		}
		if granted {
			return l.free()
		}
		now = next
	}
	if !now.held {
		return l.free()
	}
	return l.report(l.recordOf(now))
}

// Create takes the lock if nobody holds it.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.put(ctx, record)
}

// Update takes the lock if nobody holds it, and extends it if this candidate does. Without a holder
// in the record it releases the lock. It returns nil only if the lock outlasts the time for which
// the elector will believe in it.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		return l.release(ctx)
	}
	return l.put(ctx, record)
}

// mayStand refuses a candidate that is no candidate: the elector renews, and releases, under a
// deadline of RenewDeadline, and acquires without one. So a leader that has lost its lock does not
// take it again before it has stopped, and does not wait for anything in order to stop.
func (l *Lock) mayStand(ctx context.Context) error {
	until, ok := ctx.Deadline()
	if !ok || time.Until(until) > l.config.RenewDeadline {
		return nil
	}
	return fmt.Errorf("pawlk8s: %s is not held, and this elector stops within RenewDeadline (%v)",
		l.name, l.config.RenewDeadline)
}

func (l *Lock) look(ctx context.Context) (leader, error) {
	try, cancel := context.WithTimeout(ctx, l.config.requestTimeout())
	defer cancel()
	now, err := l.service.leader(try)
	if err != nil {
		return leader{}, fmt.Errorf("pawlk8s: who leads %s? %w", l.name, err)
	}
	return now, nil
}

// reported returns whether the elector knows this leader already.
func (l *Lock) reported(now leader) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen != nil && l.seen.HolderIdentity == l.nameOf(now)
}

// queue waits in the queue. It returns early with the next leader if that is another one than the
// elector knows of.
func (l *Lock) queue(ctx context.Context, known leader) (granted bool, next leader, err error) {
	record := l.first(time.Now())
	ctx, cancel := context.WithTimeout(ctx, l.config.QueueWait+l.config.requestTimeout())
	defer cancel()
	changed := make(chan leader, 1)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for pause(ctx, l.config.RetryPeriod) {
			now, err := l.look(ctx)
			if err == nil && now.held && now.owner != l.identity && now.owner != known.owner {
				changed <- now
				cancel()
				return
			}
		}
	}()
	lock, err := l.service.acquire(ctx, l.config.QueueWait, encode(record))
	cancel()
	<-looked
	switch {
	case err == nil:
		record.AcquireTime = metav1.Now()
		l.begin(lock, record)
		return true, leader{}, nil
	case len(changed) > 0:
		return false, <-changed, nil
	case errors.Is(err, errHeld):
		return false, known, nil
	}
	return false, leader{}, fmt.Errorf("pawlk8s: wait for %s: %w", l.name, err)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// put acquires or extends, and decides what the elector may believe.
func (l *Lock) put(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if seconds := int(l.config.LeaseDuration / time.Second); record.LeaseDurationSeconds != seconds {
		return fmt.Errorf("pawlk8s: the elector has a LeaseDuration of %d s, and Config of %v: both "+
			"must have the same times", record.LeaseDurationSeconds, l.config.LeaseDuration)
	}
	t := l.current()
	if t == nil {
		if err := l.mayStand(ctx); err != nil {
			return l.conflict(err)
		}
		var err error
		if t, err = l.take(ctx, record); err != nil {
			return err
		}
	}
	l.comes(t)
	if err := l.extend(ctx, t, record); err != nil {
		return err
	}
	return l.believe(t, record)
}

// take acquires the lock without waiting.
func (l *Lock) take(ctx context.Context, record resourcelock.LeaderElectionRecord) (*term, error) {
	try, cancel := context.WithTimeout(ctx, l.config.requestTimeout())
	defer cancel()
	lock, err := l.service.acquire(try, 0, encode(record))
	if errors.Is(err, errHeld) {
		return nil, l.conflict(err)
	}
	if err != nil {
		return nil, fmt.Errorf("pawlk8s: acquire %s: %w", l.name, err)
	}
	return l.begin(lock, record), nil
}

// extend renews the term. If it has just begun, that is needed only if the grant came late.
func (l *Lock) extend(ctx context.Context, t *term,
	record resourcelock.LeaderElectionRecord) error {
	if !t.led {
		l.tell(ctx, t, record)
		if t.lock.Valid() >= l.needed {
			return nil
		}
	} else if until, ok := ctx.Deadline(); ok && time.Until(until) > l.config.RenewDeadline {
		return fmt.Errorf("pawlk8s: the elector has a longer RenewDeadline than Config (%v): both "+
			"must have the same times", l.config.RenewDeadline)
	}
	try, cancel := context.WithTimeout(ctx, l.config.requestTimeout())
	defer cancel()
	if err := t.lock.Extend(try); err != nil {
		return l.failed(ctx, t, err)
	}
	return nil
}

// tell shows others the record of a new term. If that fails they see the one with which it waited.
func (l *Lock) tell(ctx context.Context, t *term, record resourcelock.LeaderElectionRecord) {
	record.AcquireTime = t.record.AcquireTime
	if record == t.record {
		return
	}
	try, cancel := context.WithTimeout(ctx, l.config.requestTimeout())
	defer cancel()
	_ = t.lock.Update(try, encode(record))
}

func (l *Lock) failed(ctx context.Context, t *term, err error) error {
	if errors.Is(err, errLost) {
		l.end(t)
		return l.conflict(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// An elector that is told to stop, by the context, has not failed.
	t.lapsed = t.led && !errors.Is(ctx.Err(), context.Canceled)
	l.await(t)
	return fmt.Errorf("pawlk8s: renew %s: %w", l.name, err)
}

// believe returns nil if the elector may believe that it leads. It will do so for RetryPeriod, and
// then for RenewDeadline if no renewal succeeds.
func (l *Lock) believe(t *term, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != t {
		return l.conflict(errLost)
	}
	if left := t.lock.Valid(); left < l.needed {
		t.lapsed = t.led
		l.await(t)
		return fmt.Errorf("pawlk8s: the answer about %s came too late: the lock is valid for %v, and "+
			"the elector would believe in it for %v", l.name, left.Round(time.Millisecond),
			l.config.RetryPeriod+l.config.RenewDeadline)
	}
	if !t.led {
		record.AcquireTime = t.record.AcquireTime
	}
	t.record, t.led, t.lapsed = record, true, false
	t.timer.Reset(l.lease)
	return nil
}

func (l *Lock) conflict(err error) error {
	return apierrors.NewConflict(resource, l.name, err)
}

// report returns a record with bytes that nobody has seen yet.
func (l *Lock) report(record resourcelock.LeaderElectionRecord) (*resourcelock.LeaderElectionRecord,
	[]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if record.HolderIdentity != l.identity && record.HolderIdentity != "" {
		l.seen = &record
	}
	return &record, append(encode(record), strconv.FormatUint(l.reads, 10)...), nil
}

// free says that nobody leads. If a leader is known, that is a record without a holder, in which
// the elector finds the number of leaders so far.
func (l *Lock) free() (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	seen := l.seen
	l.mu.Unlock()
	if seen == nil {
		return nil, nil, apierrors.NewNotFound(resource, l.name)
	}
	return l.report(resourcelock.LeaderElectionRecord{LeaderTransitions: seen.LeaderTransitions})
}

// first returns the record of a candidate that waits, for the moment before it is told more.
func (l *Lock) first(now time.Time) resourcelock.LeaderElectionRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity:       l.identity,
		LeaseDurationSeconds: int(l.config.LeaseDuration / time.Second),
		AcquireTime:          metav1.NewTime(now),
		RenewTime:            metav1.NewTime(now),
	}
	if l.seen != nil {
		record.LeaderTransitions = l.seen.LeaderTransitions + 1
	}
	return record
}

// nameOf returns the name of a leader. One that has the name of this candidate is another process.
func (l *Lock) nameOf(now leader) string {
	switch now.owner {
	case l.identity:
		return now.owner + " (another process)"
	case "":
		return "(without a name)"
	}
	return now.owner
}

// recordOf returns what the elector is told of another leader, which need not be one of Kubernetes.
func (l *Lock) recordOf(now leader) resourcelock.LeaderElectionRecord {
	var record resourcelock.LeaderElectionRecord
	_ = json.Unmarshal(now.value, &record)
	record.HolderIdentity = l.nameOf(now)
	record.LeaseDurationSeconds = max(record.LeaseDurationSeconds,
		int(l.config.LeaseDuration/time.Second))
	record.RenewTime = metav1.Now()
	return record
}

func encode(record resourcelock.LeaderElectionRecord) []byte {
	text, err := json.Marshal(record)
	if err != nil {
		panic(err) // It has only texts, numbers and times.
	}
	return text
}
