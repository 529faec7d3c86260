package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func TestWhateverIsCanceledWhenNothingStaysHeld(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, other := server.Client(t), server.Client(t)
	const keys = 3
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(4000))*time.Microsecond)
			defer cancel()
			l, err := c.Lock(ctx, fmt.Sprint("k", i%keys), pawl.Wait(time.Minute), pawl.Lease(time.Minute))
			switch {
			case err == nil:
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, context.DeadlineExceeded):
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range keys {
		l, err := other.Lock(t.Context(), fmt.Sprint("k", i), pawl.Wait(10*time.Second))
		if err != nil {
			t.Errorf("k%d: %v", i, err)
		} else if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
