package pawl_test

import (
	"fmt"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/pawltest"
)

func BenchmarkLockAndRelease(b *testing.B) {
	c := pawltest.Start(b).Client(b)
	for b.Loop() {
		l, err := c.Lock(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	c := pawltest.Start(b).Client(b)
	l, err := c.Lock(b.Context(), "k", pawl.Lease(time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if l.Valid() == 0 {
			b.Fatal(l.Err())
		}
	}
}

// BenchmarkLockAmongThousands takes and releases a lock while the client holds many.
func BenchmarkLockAmongThousands(b *testing.B) {
	c := pawltest.Start(b).Client(b)
	for i := range 10000 {
		l, err := c.Lock(b.Context(), fmt.Sprint("many/", i), pawl.Lease(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = l.Valid() }()
	}
	for b.Loop() {
		l, err := c.Lock(b.Context(), "k", pawl.Lease(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
