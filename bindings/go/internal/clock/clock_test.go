package clock

import (
	"testing"
	"time"
)

func TestADeadlineIsOverAsSoonAsEitherClockSaysSo(t *testing.T) {
	start := Instant{Boot: 1000, Mono: 50}
	end := start.Plus(time.Second)
	if left := Left(end, Instant{Boot: 1000 + int64(time.Second), Mono: 51}); left != 0 {
		t.Fatalf("the boot clock has passed the deadline, and %v is left", left)
	}
	if left := Left(end, Instant{Boot: 1001, Mono: 50 + int64(2*time.Second)}); left != 0 {
		t.Fatalf("the raw clock has passed the deadline, and %v is left", left)
	}
	if left := Left(end, Instant{Boot: 1400, Mono: 50 + 700}); left != time.Second-700 {
		t.Fatalf("the clock that says less does not count: %v", left)
	}
}

func TestTheClocksOfTheMachineGoOn(t *testing.T) {
	first := System{}.Now()
	time.Sleep(2 * time.Millisecond)
	second := System{}.Now()
	if second.Boot-first.Boot < int64(time.Millisecond) || second.Mono-first.Mono < int64(time.Millisecond) {
		t.Fatalf("%v and then %v", first, second)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		System{}.Now()
	}
}
