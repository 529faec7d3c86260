package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/pawl"
	pawlk8s "example.org/pawl/k8s"
	"example.org/pawl/k8s/internal/elections"
	"example.org/pawl/k8s/internal/nodes"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// With this variable the test binary is the example program, or the same with short times.
const isProgram = "PAWL_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	if os.Getenv(isProgram) == "program" {
		main()
		return
	}
	ctrl.SetLogger(logr.Discard())
	if os.Getenv(isProgram) == "short" {
		err := run(ctrl.SetupSignalHandler(), "k8s/default/example", os.Args[2], times)
		fmt.Println("it ends:", err)
		return
	}
	os.Exit(m.Run())
}

const patience = 30 * time.Second

// ---- managers in this process, with short times ----

// A replica is a controller that is started again whenever it has ended, as Kubernetes does.
type replica struct {
	name    string
	network *nodes.Network

	mu    sync.Mutex
	terms []elections.Term
	stop  context.CancelFunc // ends the present manager
	leads bool
}

var times = pawlk8s.Config{
	LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second / 2,
}

// run runs managers until the context ends.
func (r *replica) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := pawl.New(pawl.WithEndpoints(r.network.Endpoints()),
		pawl.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		return err
	}
	defer client.Abandon()
	lock, err := pawlk8s.New(client, "k8s/default/example", r.name, times)
	if err != nil {
		return err
	}
	mgr, err := newManager(lock, times)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(r.work)); err != nil {
		return err
	}
	r.mu.Lock()
	r.stop = cancel
	r.mu.Unlock()
	_ = mgr.Start(lock.Guard(ctx)) // It also ends when leadership is lost.
	return nil
}

// work is what the leader does: it keeps the time for which it did.
func (r *replica) work(ctx context.Context) error {
	r.mu.Lock()
	r.terms = append(r.terms, elections.Term{Who: r.name, From: time.Now()})
	r.leads = true
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terms[len(r.terms)-1].To = time.Now()
	r.leads = false
	return nil
}

func leader(replicas []*replica) *replica {
	for _, r := range replicas {
		r.mu.Lock()
		leads := r.leads
		r.mu.Unlock()
		if leads {
			return r
		}
	}
	return nil
}

func awaitLeader(t *testing.T, replicas []*replica, not *replica) *replica {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if r := leader(replicas); r != nil && r != not {
			return r
		}
	}
	t.Fatal("nobody leads")
	return nil
}

// awaitQueue waits until all others stand in the queue.
func awaitQueue(t *testing.T, client *pawl.Client, n int) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		waiters, _, err := client.Waiters(context.Background(), "k8s/default/example")
		if err == nil && len(waiters) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("they do not wait")
}

// Three managers over three nodes. Their leader is stopped, loses its node, is cut off, and gets
// its answers late; nodes are killed and hang.
func TestManagersNeverWorkAtTheSameTime(t *testing.T) {
	cluster := nodes.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var replicas []*replica
	for i := range 3 {
		r := &replica{name: fmt.Sprint("replica-", i), network: cluster.Network(t)}
		replicas = append(replicas, r)
		running.Go(func() {
			if err := r.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer running.Wait()
	defer cancel()
	asks, err := pawl.New(pawl.WithEndpoints(cluster.Clients...))
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()

	first := awaitLeader(t, replicas, nil)
	awaitQueue(t, asks, 2)
	from := time.Now()
	first.stop()
	second := awaitLeader(t, replicas, first)
	t.Logf("taken over %v after the leader was stopped", time.Since(from))
	if took := time.Since(from); took > time.Second {
		t.Errorf("taken over after %v", took)
	}

	i := rand.N(3)
	cluster.Kill(i)
	hold(t, second, 3*time.Second)
	cluster.Restart(i)
	if err := cluster.Votes(i, patience); err != nil {
		t.Fatal(err)
	}
	i = rand.N(3)
	cluster.Stop(i)
	hold(t, second, 3*time.Second)
	cluster.Continue(i)

	now := second
	for _, fault := range []func(*nodes.Network){
		func(n *nodes.Network) { n.Cut(true) },
		func(n *nodes.Network) { n.Late(3 * time.Second) },
		func(n *nodes.Network) { n.Late(5 * time.Second) },
	} {
		from = time.Now()
		fault(now.network)
		next := awaitLeader(t, replicas, now)
		t.Logf("taken over %v after the leader's network failed", time.Since(from))
		now.network.Late(0)
		now.network.Cut(false)
		now = next
	}
	cancel()
	running.Wait()
	var all []elections.Term
	for _, r := range replicas {
		all = append(all, r.terms...)
	}
	if a, b, both, two := elections.Overlap(all); two {
		t.Errorf("two work for %v: %+v and %+v", both, a, b)
	}
	t.Logf("%d terms", len(all))
}

// hold checks that a replica leads for that long.
func hold(t *testing.T, r *replica, d time.Duration) {
	t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if leader([]*replica{r}) == nil {
			t.Fatal("a node has cost the leadership")
		}
	}
}

// ---- the program ----

type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

func start(t *testing.T, cluster *nodes.Cluster, as, identity string) *program {
	t.Helper()
	p := &program{t: t, lines: make(chan string, 1000)}
	p.cmd = exec.Command(os.Args[0], "-identity", identity, "-release-on-disconnect")
	p.cmd.Env = append(os.Environ(), isProgram+"="+as,
		"PAWL_ENDPOINTS="+strings.Join(cluster.Clients, ","))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-ended
		_ = p.cmd.Wait()
	})
	return p
}

// await waits for a line that has the words.
func (p *program) await(words string) {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("it ended without saying %q", words)
			}
			if strings.Contains(line, words) {
				return
			}
		case <-timer.C:
			p.t.Fatalf("it did not say %q", words)
		}
	}
}

func TestTheProgramTakesTurns(t *testing.T) {
	cluster := nodes.Start(t)
	asks, err := pawl.New(pawl.WithEndpoints(cluster.Clients...))
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()
	a := start(t, cluster, "program", "a")
	a.await("a leads")
	b := start(t, cluster, "program", "b")
	awaitQueue(t, asks, 1)
	c := start(t, cluster, "program", "c")
	awaitQueue(t, asks, 2)
	from := time.Now()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.await("b leads")
	t.Logf("taken over %v after SIGTERM", time.Since(from))
	from = time.Now()
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.await("c leads")
	t.Logf("taken over %v after SIGKILL", time.Since(from))
	if took := time.Since(from); took > 2*time.Second {
		t.Errorf("taken over %v after SIGKILL", took)
	}
}

// A leader that stood still for longer than its lease, while another one took over, stops at once
// when it goes on. By itself the elector would work for RenewDeadline.
func TestALeaderThatStoodStillStopsAtOnce(t *testing.T) {
	cluster := nodes.Start(t)
	a := start(t, cluster, "short", "a")
	a.await("a leads")
	b := start(t, cluster, "short", "b")
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.await("b leads")
	from := time.Now()
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// Either the elector or Guard notices first. A manager does not wait for its work then.
	a.await("lost")
	t.Logf("it stopped %v after it went on", time.Since(from))
	if took := time.Since(from); took > time.Second {
		t.Errorf("it stopped %v after it went on", took)
	}
}
