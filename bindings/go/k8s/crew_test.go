package pawlk8s

import (
	"context"
	"testing"
	"testing/synctest"

	"example.org/pawl/k8s/internal/elections"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A crew is candidates of one cell, each with a path of its own.
type crew struct {
	t     *testing.T
	cell  *cell
	paths map[string]*elections.Path
	locks map[string]*Lock
}

func crewOf(t *testing.T, names ...string) *crew {
	c := &crew{t, &cell{}, map[string]*elections.Path{}, map[string]*Lock{}}
	for _, name := range names {
		c.paths[name] = elections.NewPath()
		l, err := member(c.cell, name, c.paths[name], Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.locks[name] = l
	}
	return c
}

// record is what the elector of a candidate writes.
func record(l *Lock) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: l.identity, LeaseDurationSeconds: 15}
}

// lead makes a candidate the leader.
func (c *crew) lead(name string) *Lock {
	c.t.Helper()
	l := c.locks[name]
	ctx := context.Background()
	got, _, err := l.Get(ctx)
	next := record(l)
	if apierrors.IsNotFound(err) {
		err = l.Create(ctx, next)
	} else if err == nil {
		next.LeaderTransitions = got.LeaderTransitions + 1
		err = l.Update(ctx, next)
	}
	if err != nil {
		c.t.Fatal(name, err)
	}
	return l
}

// renewing returns a context as the elector has when it renews.
func renewing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 10*second)
}

// run starts the elector of a candidate.
func (c *crew) run(ctx context.Context, name string, times elections.Times) (
	candidate *elections.Candidate, stopped <-chan struct{}) {
	c.t.Helper()
	candidate, err := elections.NewCandidate(c.locks[name], times)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		candidate.Run(ctx)
	}()
	return candidate, done
}

func bubble(t *testing.T, test func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		test(t)
		settle()
	})
}
