package patience

import (
	"testing"
	"time"
)

func TestTheTimeFollowsTheSlowestRecentAnswer(t *testing.T) {
	p, now := New(), time.Unix(0, 0)
	if d := p.Time(time.Second); d != 100*time.Millisecond {
		t.Errorf("%v before any answer", d)
	}
	p.Answered(time.Millisecond, now)
	if d := p.Time(time.Second); d != least {
		t.Errorf("%v after a fast answer", d)
	}
	p.Answered(50*time.Millisecond, now)
	if d := p.Time(time.Second); d != 200*time.Millisecond {
		t.Errorf("%v after a slow answer", d)
	}
	for range 200 {
		p.Answered(time.Millisecond, now)
	}
	if d := p.Time(time.Second); d > 10*time.Millisecond {
		t.Errorf("%v after many fast answers", d)
	}
	if d := p.Time(time.Millisecond); d != time.Millisecond {
		t.Errorf("%v is longer than the longest", d)
	}
}

func TestEachSwitchDoublesTheTimeAndAnswersHalveItOnceASecond(t *testing.T) {
	p, now := New(), time.Unix(0, 0)
	p.Answered(time.Millisecond, now)
	p.Switched(0, now)
	p.TooShort(now)
	if d := p.Time(time.Second); d != 4*least {
		t.Errorf("%v after two", d)
	}
	for range 100 {
		p.Answered(time.Millisecond, now)
	}
	if d := p.Time(time.Second); d != 4*least {
		t.Errorf("%v: a busy connection forgets the switch in a moment", d)
	}
	p.Answered(time.Millisecond, now.Add(time.Second))
	p.Answered(time.Millisecond, now.Add(2*time.Second))
	if d := p.Time(time.Second); d != least {
		t.Errorf("%v after two seconds", d)
	}
}

func TestRequestsThatAreSentAgainHaveABudget(t *testing.T) {
	p, now := New(), time.Unix(0, 0)
	p.Switched(5, now)
	if !p.Allows() {
		t.Error("five of ten requests use the budget up")
	}
	p.Switched(1, now)
	if p.Allows() {
		t.Error("the budget has no end")
	}
	for range 10 {
		p.Answered(time.Millisecond, now)
	}
	if !p.Allows() {
		t.Error("answers give nothing back")
	}
}
