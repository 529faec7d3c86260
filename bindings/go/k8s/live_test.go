package pawlk8s

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/k8s/internal/elections"
	"example.org/pawl/k8s/internal/nodes"
)

var liveTime = flag.Duration("pawlk8s.live", 20*time.Second, "how long real nodes are disturbed")

// short are the times of the electors of these tests.
var short = elections.Times{Lease: 3 * second, Renew: 2 * second, Retry: second / 2}

// clientOf returns a client that goes through a network.
func clientOf(t *testing.T, network *nodes.Network) *pawl.Client {
	t.Helper()
	client, err := pawl.New(pawl.WithEndpoints(network.Endpoints()),
		pawl.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Abandon)
	return client
}

// A stand is a candidate with a network of its own.
type stand struct {
	client  *pawl.Client
	network *nodes.Network
	lock    *Lock
}

func standsOf(t *testing.T, c *nodes.Cluster, n int) (stands []stand) {
	t.Helper()
	for i := range n {
		network := c.Network(t)
		client := clientOf(t, network)
		l, err := New(client, "k8s/default/controller", fmt.Sprint("candidate-", i),
			configOf(short))
		if err != nil {
			t.Fatal(err)
		}
		stands = append(stands, stand{client, network, l})
	}
	return stands
}

// Real electors and real nodes, which are killed, stopped and cut off, and whose answers are late.
func TestNeverTwoLeadersOverRealNodes(t *testing.T) {
	cluster := nodes.Start(t)
	stands := standsOf(t, cluster, 3)
	ctx, cancel := context.WithTimeout(context.Background(), *liveTime)
	defer cancel()
	var running sync.WaitGroup
	var mu sync.Mutex
	var all []elections.Term
	for _, s := range stands {
		running.Go(func() {
			terms, err := runAgain(ctx, s.lock, short)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, terms...)
		})
	}
	running.Go(func() { trouble(ctx, stands) })
	running.Go(func() { hurt(ctx, t, cluster) })
	running.Wait()
	if a, b, both, two := elections.Overlap(all); two {
		t.Errorf("two leaders for %v: %+v and %+v", both, a, b)
	}
	if len(all) < 2 {
		t.Errorf("only %d terms", len(all))
	}
	t.Logf("%d terms in %v", len(all), *liveTime)
}

// trouble makes answers late, and cuts candidates off, mostly the leader, until the context ends.
func trouble(ctx context.Context, stands []stand) {
	for first := true; pause(ctx, rand.N(second)); {
		n, found := stands[rand.N(len(stands))].network, false
		for _, s := range stands {
			if _, leads := s.lock.Token(); leads && (first || rand.N(4) > 0) {
				n, found = s.network, true
			}
		}
		if first && !found {
			continue
		}
		kind, lasts := rand.N(3), 2*second+rand.N(4*second)
		if first { // Once at least the leader is to be another one.
			kind, lasts, first = 2, 5*second, false
		}
		switch kind {
		case 0:
			n.Late(rand.N(5 * second))
		case 1:
			n.Slow(rand.N(5 * second))
		case 2:
			n.Cut(true)
		}
		pause(ctx, lasts)
		n.Late(0)
		n.Cut(false)
	}
}

// hurt kills and stops nodes, one at a time, until the context ends.
func hurt(ctx context.Context, t *testing.T, c *nodes.Cluster) {
	for pause(ctx, second+rand.N(2*second)) {
		i := rand.N(3)
		if rand.N(2) == 0 {
			c.Stop(i)
			pause(ctx, second+rand.N(3*second))
			c.Continue(i)
			continue
		}
		c.Kill(i)
		pause(ctx, rand.N(second))
		c.Restart(i)
		if err := c.Votes(i, time.Minute); err != nil {
			t.Error(err)
			return
		}
	}
}

// runOne starts the elector of a stand, and returns what ends it.
func runOne(t *testing.T, s stand, times elections.Times) (*elections.Candidate, func()) {
	t.Helper()
	c, err := elections.NewCandidate(s.lock, times)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	end := sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(end)
	return c, end
}

func TestTakeoverOverRealNodes(t *testing.T) {
	cluster := nodes.Start(t)
	stands := standsOf(t, cluster, 3)
	times := short
	times.Releases = true
	first, endFirst := runOne(t, stands[0], times)
	<-first.Leads()
	second, _ := runOne(t, stands[1], times)
	awaitWaiters(t, stands[1], 1)
	from := time.Now()
	endFirst()
	<-second.Leads()
	t.Logf("after a release: %v", time.Since(from))
	if took := time.Since(from); took > 500*time.Millisecond {
		t.Errorf("taken over %v after a release", took)
	}
	third, _ := runOne(t, stands[2], times)
	awaitWaiters(t, stands[2], 1)
	cluster.Kill(rand.N(3))
	from = time.Now()
	for time.Since(from) < 3*time.Second {
		if !second.Leading() {
			t.Fatal("the death of a node has cost the leadership")
		}
		time.Sleep(10 * time.Millisecond)
	}
	stands[1].network.Cut(true)
	from = time.Now()
	<-third.Leads()
	t.Logf("after a cut: %v, with a lease of %v", time.Since(from), stands[1].lock.Lease())
	if took := time.Since(from); took > stands[1].lock.Lease()+time.Second {
		t.Errorf("taken over %v after the cut", took)
	}
	all := append(append(first.Terms(), second.Terms()...), third.Terms()...)
	if a, b, both, two := elections.Overlap(all); two {
		t.Errorf("two leaders for %v: %+v and %+v", both, a, b)
	}
}

// awaitWaiters waits until so many wait in the queue.
func awaitWaiters(t *testing.T, s stand, n int) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; {
		waiters, _, err := s.client.Waiters(context.Background(), s.lock.name)
		if err == nil && len(waiters) >= n {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d wait: %v", len(waiters), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
