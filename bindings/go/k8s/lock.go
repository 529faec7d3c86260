// Package pawlk8s elects Kubernetes controllers through Pawl. A Lock takes the place of the Lease
// object in the leader elector of client-go, and of controller-runtime:
//
//	lock, err := pawlk8s.New(client, "k8s/default/my-controller", "", pawlk8s.Config{})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection:                      true,
//		LeaderElectionResourceLockInterface: lock,
//	})
//	err = mgr.Start(lock.Guard(ctx))
//
// The elector with a Lease object can have two leaders although all clocks are right (package hole
// measures how often). With a Lock it cannot, as long as the process runs: it is told that it leads
// only if the lock outlasts the time for which it will believe so. Guard covers the rest: a process
// that stood still, and a lock that was broken.
package pawlk8s

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Config has the times of the elector. They must be the ones that the elector is given, too: in
// LeaderElectionConfig of client-go, or in LeaseDuration, RenewDeadline and RetryPeriod of the
// Options of controller-runtime.
type Config struct {
	// LeaseDuration, RenewDeadline and RetryPeriod default to 15 s, 10 s and 2 s, as in
	// controller-runtime and in the components of Kubernetes.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Margin is what the lock outlasts the elector's belief by, at least: how late the elector's
	// timers may be. The default is a twentieth of RenewDeadline.
	Margin time.Duration

	// QueueWait is how long a candidate stands in the queue before it looks who leads and stands
	// there again. The default is 30 s. If it is negative, a candidate does not wait: it tries
	// every RetryPeriod, as with a Lease object.
	QueueWait time.Duration

	// ReleaseOnDisconnect lets the next candidate lead milliseconds after the leader's process has
	// died, in place of a lease later. Set it only if nothing between this process and the nodes
	// closes connections in its name, as a sidecar proxy may: then another one would lead while this
	// one believes in its lock until its next renewal.
	ReleaseOnDisconnect bool
}

const (
	mostName     = 512 // bytes
	mostIdentity = 256
)

// keepGrant is how long a lock that Get was granted waits for the elector to take it.
const keepGrant = time.Second

// A Lock is the lock of one candidate, for one elector. It implements resourcelock.Interface.
type Lock struct {
	service  service
	name     string
	identity string
	config   Config
	lease    time.Duration // what Pawl is asked for
	needed   time.Duration // what must be left of it when the elector is told that it leads

	mu     sync.Mutex
	term   *term                              // nil: this candidate holds nothing
	seen   *resourcelock.LeaderElectionRecord // the latest leader that is known, or nil
	reads  uint64
	guards map[*context.CancelCauseFunc]struct{}
}

var _ resourcelock.Interface = (*Lock)(nil)

func newLock(s service, name, identity string, config Config) (*Lock, error) {
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("pawlk8s: no identity is given, and the host has no name: %w", err)
		}
		identity = fmt.Sprintf("%s_%016x", host, rand.Uint64())
	}
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("pawlk8s: %w", err)
	}
	switch {
	case name == "" || len(name) > mostName:
		return nil, fmt.Errorf("pawlk8s: the name has %d bytes: it must have 1 to %d", len(name),
			mostName)
	case len(identity) > mostIdentity:
		return nil, fmt.Errorf("pawlk8s: the identity has %d bytes: it must have at most %d",
			len(identity), mostIdentity)
	}
	needed := config.RetryPeriod + config.RenewDeadline + config.Margin
	return &Lock{
		service:  s,
		name:     name,
		identity: identity,
		config:   config,
		// An answer may take as long as a request of controller-runtime may.
		lease:  max(config.LeaseDuration, needed+config.requestTimeout()),
		needed: needed,
		guards: map[*context.CancelCauseFunc]struct{}{},
	}, nil
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&c.LeaseDuration, 15*time.Second)
	set(&c.RenewDeadline, 10*time.Second)
	set(&c.RetryPeriod, 2*time.Second)
	set(&c.Margin, c.RenewDeadline/20)
	set(&c.QueueWait, 30*time.Second)
	return c
}

func (c Config) check() error {
	switch {
	case c.RetryPeriod <= 0:
		return fmt.Errorf("RetryPeriod is %v: it must be positive", c.RetryPeriod)
	case float64(c.RenewDeadline) <= 1.2*float64(c.RetryPeriod):
		return fmt.Errorf("RenewDeadline (%v) must be more than 1.2 times RetryPeriod (%v)",
			c.RenewDeadline, c.RetryPeriod)
	case c.LeaseDuration <= c.RenewDeadline:
		return fmt.Errorf("LeaseDuration (%v) must be longer than RenewDeadline (%v)",
			c.LeaseDuration, c.RenewDeadline)
	case c.LeaseDuration < time.Second:
		return fmt.Errorf("LeaseDuration is %v: the elector counts it in whole seconds",
			c.LeaseDuration)
	case c.Margin < time.Millisecond:
		return fmt.Errorf("Margin is %v: timers are not that punctual; leave it at 0 for %v",
			c.Margin, c.RenewDeadline/20)
	}
	return nil
}

// requestTimeout is how long one try may take, so that there is time for a second one.
func (c Config) requestTimeout() time.Duration { return c.RenewDeadline / 2 }

// Identity returns the name of this candidate.
func (l *Lock) Identity() string { return l.identity }

// Describe names the lock in the elector's log.
func (l *Lock) Describe() string { return "pawl:" + l.name }

// RecordEvent does nothing: there is no object in Kubernetes that an event could be about. The
// audit files of Pawl's nodes and their events have every change of the leader.
func (l *Lock) RecordEvent(string) {}

// Lease returns for how long the lock is taken: as long after its leader has died may another one
// lead, at the latest.
func (l *Lock) Lease() time.Duration { return l.lease }

// Token returns the fencing token of the present term: a number that grows from leader to leader.
// ok is false while this candidate does not lead.
func (l *Lock) Token() (token uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || !l.term.led {
		return 0, false
	}
	return l.term.lock.Token(), true
}

// ErrLost is the cause of the end of a context that Guard has made: the elector believed that it
// leads, and the lock is gone, or about to be.
var ErrLost = errors.New("pawlk8s: the lock of the leader is lost")

// Guard returns a context that ends with ctx, and as soon as the elector believes that it leads and
// the lock is lost. Run the elector, or start the manager, with it. By itself an elector goes on
// for RenewDeadline when it is told that another one leads.
//
// It matters in two cases, in which the elector believes for too long by itself: when the process
// stood still for longer than the lease (a suspended machine, SIGSTOP), and when somebody has
// broken the lock.
func (l *Lock) Guard(ctx context.Context) context.Context {
	guarded, end := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guards[&end] = struct{}{}
	context.AfterFunc(guarded, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.guards, &end)
	})
	return guarded
}
