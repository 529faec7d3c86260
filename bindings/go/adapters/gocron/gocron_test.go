package pawlgocron_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/pawl"
	pawlgocron "example.org/pawl/adapters/gocron"
	"example.org/pawl/pawltest"
	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
)

var (
	_ gocron.Locker  = (*pawlgocron.Locker)(nil)
	_ gocron.Elector = (*pawlgocron.Elector)(nil)
)

const (
	every  = time.Minute
	within = 10 * time.Second
)

// scheduler is a gocron scheduler with a clock of its own and one job.
type scheduler struct {
	clock    *clockwork.FakeClock
	outcomes chan gocron.JobStatus
}

// IncrementJob tells what has become of a fire.
func (s *scheduler) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	s.outcomes <- status
}

func (*scheduler) RecordJobTiming(_, _ time.Time, _ uuid.UUID, _ string, _ []string) {}

func start(t *testing.T, job func(), option gocron.SchedulerOption) *scheduler {
	t.Helper()
	s := &scheduler{clock: clockwork.NewFakeClock(), outcomes: make(chan gocron.JobStatus, 1)}
	real, err := gocron.NewScheduler(gocron.WithClock(s.clock), gocron.WithMonitor(s), option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Shutdown() })
	if _, err := real.NewJob(gocron.DurationJob(every), gocron.NewTask(job), gocron.WithName("report")); err != nil {
		t.Fatal(err)
	}
	real.Start()
	return s
}

// fire moves the clock on to the next fire.
func (s *scheduler) fire(t *testing.T) {
	t.Helper()
	if err := s.clock.BlockUntilContext(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(every)
}

func (s *scheduler) outcome(t *testing.T) gocron.JobStatus {
	t.Helper()
	select {
	case status := <-s.outcomes:
		return status
	case <-time.After(within):
		t.Fatal("a fire was neither run nor skipped")
	}
	return ""
}

func expect(t *testing.T, got, want gocron.JobStatus) {
	t.Helper()
	if got != want {
		t.Errorf("the fire is a %s, not a %s", got, want)
	}
}

func TestTwoSchedulersRunEachFireOnce(t *testing.T) {
	server := pawltest.Start(t)
	var runs atomic.Int32
	skipped := make(chan struct{})
	// The run goes on when the other scheduler has skipped the fire.
	job := func() {
		runs.Add(1)
		select {
		case <-skipped:
		case <-t.Context().Done():
		}
	}
	var one, other *scheduler
	for _, s := range []**scheduler{&one, &other} {
		locker := pawlgocron.NewLocker(server.Client(t), pawlgocron.AtLeast(0))
		*s = start(t, job, gocron.WithDistributedLocker(locker))
	}
	watcher := server.Client(t)
	const fires = 5
	for range fires {
		one.fire(t)
		other.fire(t)
		runner := one
		select {
		case status := <-one.outcomes:
			expect(t, status, gocron.Skip)
			runner = other
		case status := <-other.outcomes:
			expect(t, status, gocron.Skip)
		case <-time.After(within):
			t.Fatal("neither scheduler has skipped the fire")
		}
		skipped <- struct{}{}
		expect(t, runner.outcome(t), gocron.Success)
		if _, err := watcher.WaitUntil(t.Context(), "gocron/report", false); err != nil {
			t.Fatal(err)
		}
	}
	if runs.Load() != fires {
		t.Errorf("%d runs of %d fires", runs.Load(), fires)
	}
}

// told is a locker that tells when a run has ended, and its Unlock has returned.
type told struct {
	gocron.Locker
	unlocked chan struct{}
}

type toldLock struct {
	gocron.Lock
	unlocked chan struct{}
}

func (l told) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := l.Locker.Lock(ctx, job)
	return toldLock{lock, l.unlocked}, err
}

func (l toldLock) Unlock(ctx context.Context) error {
	defer close(l.unlocked)
	return l.Lock.Unlock(ctx)
}

func TestASchedulerWhoseClockIsLateDoesNotRunTheFireAgain(t *testing.T) {
	server := pawltest.Start(t)
	locker := func() gocron.Locker {
		return pawlgocron.NewLocker(server.Client(t), pawlgocron.AtLeast(2*time.Second))
	}
	ended := make(chan struct{})
	early := start(t, func() {}, gocron.WithDistributedLocker(told{locker(), ended}))
	late := start(t, func() {}, gocron.WithDistributedLocker(locker()))
	early.fire(t)
	expect(t, early.outcome(t), gocron.Success)
	<-ended
	late.fire(t)
	expect(t, late.outcome(t), gocron.Skip)
	if _, err := server.Client(t).WaitUntil(t.Context(), "gocron/report", false); err != nil {
		t.Fatal(err)
	}
	late.fire(t)
	expect(t, late.outcome(t), gocron.Success)
}

// gated is a connection to a node that hears nothing while the gate is closed.
type gated struct {
	net.Conn
	gate  *sync.RWMutex
	knock chan<- struct{}
}

func (g gated) Write(b []byte) (int, error) {
	if !g.gate.TryRLock() {
		g.knock <- struct{}{}
		g.gate.RLock()
	}
	defer g.gate.RUnlock()
	return g.Conn.Write(b)
}

func TestASchedulerWhoseNodeIsLateDoesNotRunTheFireAgain(t *testing.T) {
	server := pawltest.Start(t)
	var gate sync.RWMutex
	knock := make(chan struct{}, 100)
	through := pawl.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return gated{conn, &gate, knock}, err
	})
	locker := func(options ...pawl.Option) gocron.SchedulerOption {
		return gocron.WithDistributedLocker(pawlgocron.NewLocker(server.Client(t, options...)))
	}
	late := start(t, func() {}, locker(through))
	early := start(t, func() {}, locker())
	watcher := server.Client(t)
	gate.Lock()
	late.fire(t)
	<-knock
	early.fire(t)
	expect(t, early.outcome(t), gocron.Success)
	if _, err := watcher.WaitUntil(t.Context(), "gocron/report", false); err != nil {
		t.Fatal(err)
	}
	gate.Unlock()
	expect(t, late.outcome(t), gocron.Skip)
	late.fire(t)
	expect(t, late.outcome(t), gocron.Success)
}

func TestAJobSeesTheLockOfItsRun(t *testing.T) {
	server := pawltest.Start(t)
	locker := pawlgocron.NewLocker(server.Client(t), pawlgocron.AtLeast(0), pawlgocron.Prefix("jobs/"),
		pawlgocron.With(pawl.Lease(5*time.Second)))
	seen := make(chan *pawl.Lock, 1)
	s := start(t, func() { seen <- locker.Held("report") }, gocron.WithDistributedLocker(locker))
	s.fire(t)
	lock := <-seen
	if lock == nil || lock.Key() != "jobs/report" || lock.Token() == 0 {
		t.Fatalf("the job has seen %v", lock)
	}
	<-lock.Done()
	var lost *pawl.LostError
	if !errors.As(lock.Err(), &lost) || !lost.Released || locker.Held("report") != nil {
		t.Errorf("after the run: %v", lock.Err())
	}
}

func TestAFireIsSkippedWithoutNodes(t *testing.T) {
	server := pawltest.Start(t)
	client := server.Client(t, pawl.WithTimeout(200*time.Millisecond))
	s := start(t, func() {}, gocron.WithDistributedLocker(pawlgocron.NewLocker(client)))
	server.Kill()
	s.fire(t)
	expect(t, s.outcome(t), gocron.Skip)
}

// until waits until the elector leads, or does not.
func until(t *testing.T, e *pawlgocron.Elector, leads bool) {
	t.Helper()
	for end := time.Now().Add(within); (e.IsLeader(t.Context()) == nil) != leads; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("leads: not %v within %v", leads, within)
		}
	}
}

func TestOnlyTheLeaderRunsJobs(t *testing.T) {
	server := pawltest.Start(t)
	one := pawlgocron.NewElector(server.Client(t), "scheduler")
	until(t, one, true)
	other := pawlgocron.NewElector(server.Client(t), "scheduler")
	t.Cleanup(func() { _ = other.Close() })
	first := start(t, func() {}, gocron.WithDistributedElector(one))
	second := start(t, func() {}, gocron.WithDistributedElector(other))
	for range 2 {
		first.fire(t)
		second.fire(t)
		expect(t, first.outcome(t), gocron.Success)
		expect(t, second.outcome(t), gocron.Skip)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, other, true)
	first.fire(t)
	second.fire(t)
	expect(t, first.outcome(t), gocron.Skip)
	expect(t, second.outcome(t), gocron.Success)
}

func TestAnElectorThatReachesNoNodeDoesNotLead(t *testing.T) {
	server := pawltest.Start(t)
	client := server.Client(t, pawl.WithTimeout(500*time.Millisecond))
	e := pawlgocron.NewElector(client, "scheduler", pawl.Lease(time.Second))
	until(t, e, true)
	server.Kill()
	until(t, e, false)
	if err := e.IsLeader(t.Context()); !errors.Is(err, pawlgocron.ErrNotLeader) {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestALeaderThatHasLostCampaignsAgain(t *testing.T) {
	server := pawltest.Start(t)
	e := pawlgocron.NewElector(server.Client(t), "scheduler", pawl.Lease(600*time.Millisecond))
	t.Cleanup(func() { _ = e.Close() })
	until(t, e, true)
	admin := server.Client(t)
	before, err := admin.Get(t.Context(), "scheduler", pawl.Quorum())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Call(t.Context(), "break", map[string]any{"key": "scheduler", "now": true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	after, err := admin.WaitUntil(ctx, "scheduler", true)
	if err != nil || after.Holder.Token <= before.Holder.Token {
		t.Fatalf("%+v %v", after, err)
	}
	until(t, e, true)
}
