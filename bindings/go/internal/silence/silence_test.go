package silence

import (
	"testing"
	"time"

	"example.org/pawl/internal/patience"
)

type fixed struct{ leave, listening bool }

func (f fixed) Whole(bool) time.Duration { return 2 * time.Second }
func (f fixed) MayLeave() bool           { return f.leave }
func (f fixed) Listening() bool          { return f.listening }

// until rings the alarms up to that step, and returns when it came after the start.
func until(t *testing.T, w *Watch, now *time.Time, wanted Step) time.Duration {
	t.Helper()
	start := *now
	for range 1000 {
		at, awaits := w.Alarm(*now)
		if !awaits {
			t.Fatal("nothing is awaited")
		}
		*now = at
		step := w.Ring(*now)
		if step == Ping || step == PingDue {
			w.PingSent(*now)
		}
		if step == wanted {
			return now.Sub(start)
		}
	}
	t.Fatal("the step does not come")
	return 0
}

func TestASilentNodeIsPingedAndThenLeft(t *testing.T) {
	now := time.Unix(0, 0)
	p := patience.New()
	p.Answered(5*time.Millisecond, now)
	w := New(fixed{leave: true}, p, now)
	w.Sent(false, now)
	if d := until(t, w, &now, PingDue); d != 20*time.Millisecond {
		t.Errorf("pinged after %v", d)
	}
	if d := until(t, w, &now, Overdue); d != 20*time.Millisecond {
		t.Errorf("overdue after %v more", d)
	}
	if d := until(t, w, &now, Lost); d < 1900*time.Millisecond {
		t.Errorf("lost after %v more", d)
	}
}

func TestTheOnlyNodeIsGivenUpAfterTheWholeSilence(t *testing.T) {
	now := time.Unix(0, 0)
	w := New(fixed{}, patience.New(), now)
	w.Sent(false, now)
	if d := until(t, w, &now, Lost); d != 2*time.Second {
		t.Errorf("lost after %v", d)
	}
}

func TestANodeThatAnswersPingsMayLetRequestsWait(t *testing.T) {
	now := time.Unix(0, 0)
	w := New(fixed{leave: true}, patience.New(), now)
	w.Sent(true, now)
	until(t, w, &now, Ping)
	now = now.Add(time.Millisecond)
	w.Heard(now)
	w.Ponged()
	w.Settle()
	if w.Owed {
		t.Error("an answer is owed although the node has read the request")
	}
	if d := until(t, w, &now, Ping); d < 240*time.Millisecond || d > 250*time.Millisecond {
		t.Errorf("the next ping comes after %v", d)
	}
}

func TestAnAlarmThatRingsLateBlamesThisProcess(t *testing.T) {
	now := time.Unix(0, 0)
	p := patience.New()
	p.Answered(time.Millisecond, now)
	w := New(fixed{leave: true}, p, now)
	w.Sent(false, now)
	at, _ := w.Alarm(now)
	now = at.Add(50 * time.Millisecond)
	if step := w.Ring(now); step != Nothing {
		t.Errorf("step %d", step)
	}
	if d := p.Time(time.Second); d < 150*time.Millisecond {
		t.Errorf("the pause counts for %v only", d)
	}
	if at, _ := w.Alarm(now); at.Sub(now) < 150*time.Millisecond {
		t.Errorf("the next alarm is after %v", at.Sub(now))
	}
}

func TestNothingIsAwaitedOnAnIdleConnection(t *testing.T) {
	now := time.Unix(0, 0)
	if _, awaits := New(fixed{}, patience.New(), now).Alarm(now); awaits {
		t.Error("an idle connection has an alarm")
	}
	if at, awaits := New(fixed{listening: true}, patience.New(), now).Alarm(now); !awaits || at.Sub(now) != time.Second {
		t.Errorf("%v %v", at, awaits)
	}
}
