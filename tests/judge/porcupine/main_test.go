package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A story is a history that is written by hand, with times in ms.
type story struct{ lines []string }

func (s *story) op(process int, op string, invoke, returned int64, fields string) *story {
	answered := fmt.Sprint(returned * 1e6)
	if returned < 0 {
		answered = "null"
	}
	s.lines = append(s.lines, fmt.Sprintf(`{"id":%d,"process":%d,"op":%q,"key":"k","invoke":%d,"return":%s,%s}`,
		len(s.lines)+1, process, op, invoke*1e6, answered, fields))
	return s
}

func (s *story) acquire(process int, lock string, invoke, returned, valid int64, token int, more string) *story {
	return s.op(process, "acquire", invoke, returned, fmt.Sprintf(
		`"lock_id":%q,"result":"ok","token":%d,"valid_ms":%d,"believed":true%s`, lock, token, valid, more))
}

func (s *story) update(invoke, returned int64, value, expect, result, more string) *story {
	return s.op(1, "update", invoke, returned, fmt.Sprintf(
		`"lock_id":"x","value":%q,"expect":%q,"by":"value","result":%q%s`, value, expect, result, more))
}

func (s *story) judge(t *testing.T) []finding {
	t.Helper()
	var found []finding
	text := `{"op":"run","seed":1,"client_drift_ppm":0}` + "\n" + strings.Join(s.lines, "\n") + "\n"
	err := eachRun(strings.NewReader(text), func(r *run) {
		f, undecided := judge(r, time.Minute)
		if undecided > 0 {
			t.Error("undecided")
		}
		found = f
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *story) good(t *testing.T) {
	t.Helper()
	for _, f := range s.judge(t) {
		t.Error(f.what)
	}
}

func (s *story) bad(t *testing.T, wanted string) {
	t.Helper()
	found := s.judge(t)
	if len(found) == 0 || !strings.Contains(found[0].what, wanted) {
		t.Errorf("found %v, wanted one with %q", found, wanted)
	}
}

func believed() *story { return new(story).acquire(1, "x", 0, 5, 100, 7, "") }

func TestOneAfterTheOther(t *testing.T) {
	believed().acquire(2, "y", 90, 101, 50, 8, "").good(t)
	believed().op(1, "release", 50, 60, `"lock_id":"x","result":"ok"`).acquire(2, "y", 40, 51, 50, 8, "").good(t)
	believed().op(1, "forget", 50, 50, `"lock_id":"x","result":"ok"`).acquire(2, "y", 40, 51, 50, 8, "").good(t)
}

func TestTwoHolders(t *testing.T) {
	believed().acquire(2, "y", 40, 90, 80, 8, "").bad(t, "no order of grants")
	believed().op(1, "extend", 60, 70, `"lock_id":"x","result":"ok","token":7,"valid_ms":100,"believed":true`).
		acquire(2, "y", 90, 101, 50, 8, "").bad(t, "no order of grants")
	believed().op(1, "release", 95, 99, `"lock_id":"x","result":"ok"`).acquire(2, "y", 40, 90, 80, 8, "").
		bad(t, "no order of grants")
}

func TestTokensGrow(t *testing.T) {
	believed().acquire(2, "y", 101, 110, 50, 7, "").bad(t, "no order of grants")
	believed().acquire(2, "y", 101, 110, 50, 6, "").bad(t, "no order of grants")
	believed().acquire(1, "x", 120, 130, 50, 7, "").good(t)
}

func TestReadersAndPermits(t *testing.T) {
	shared := `,"mode":"shared"`
	readers := func() *story {
		return new(story).acquire(1, "x", 0, 5, 100, 7, shared).acquire(2, "y", 10, 15, 100, 6, shared)
	}
	readers().good(t)
	readers().acquire(3, "z", 50, 60, 30, 9, "").bad(t, "no order of grants")
	readers().acquire(3, "z", 111, 112, 10, 7, "").bad(t, "no order of grants")
	believed().op(1, "downgrade", 30, 31, `"lock_id":"x","result":"ok"`).
		acquire(2, "y", 32, 40, 100, 8, shared).good(t)
	believed().acquire(2, "y", 32, 40, 100, 8, shared).bad(t, "no order of grants")
	permits := func(numbers string) *story {
		return new(story).acquire(1, "x", 0, 5, 100, 7, `,"mode":"permits","of":3,"permits":[0,1]`).
			acquire(2, "y", 10, 15, 100, 8, fmt.Sprintf(`,"mode":"permits","of":3,"permits":%s`, numbers))
	}
	permits("[2]").good(t)
	permits("[1]").bad(t, "permit 1 of 3")
	permits("[2]").acquire(3, "z", 50, 60, 30, 9, shared).bad(t, "permit")
	permits("[2]").acquire(3, "z", 50, 60, 30, 9, `,"mode":"permits","of":4,"permits":[3]`).bad(t, "permit")
}

func valued() *story { return new(story).acquire(1, "x", 0, 5, 1000, 7, `,"value":"a"`) }

func TestValues(t *testing.T) {
	valued().update(10, 20, "b", "a", "ok", "").update(30, 40, "c", "b", "ok", "").good(t)
	valued().update(10, 20, "b", "a", "ok", "").update(15, 40, "c", "a", "ok", "").bad(t, "the answers")
	valued().update(10, 20, "b", "a", "ok", "").update(30, 40, "c", "z", "mismatch", `,"shown":"a"`).
		bad(t, "the answers")
	// What was not answered took effect, or it did not.
	valued().update(10, -1, "b", "a", "unknown", "").update(30, 40, "c", "b", "ok", "").good(t)
	valued().update(10, -1, "b", "a", "unknown", "").update(30, 40, "c", "a", "ok", "").good(t)
	valued().update(10, 20, "b", "a", "lost", "").update(30, 40, "c", "b", "ok", "").bad(t, "the answers")
	// A repeat of the acquire brings the first value back only after the lock was lost.
	again := func(valid int64) *story {
		return new(story).acquire(1, "x", 0, 5, valid, 7, `,"value":"a"`).update(10, 20, "b", "a", "ok", "").
			acquire(1, "x", 100, 110, 1000, 8, `,"value":"a"`).update(120, 130, "c", "a", "ok", "")
	}
	again(50).good(t)
	again(500).bad(t, "the answers")
}

func TestReads(t *testing.T) {
	read := func(shown string) *story {
		return valued().update(10, 20, "b", "a", "ok", "").op(2, "get", 30, 40, fmt.Sprintf(
			`"consistency":"quorum","result":"ok","held":true,"holder_token":7,"shown":%q`, shown))
	}
	read("b").good(t)
	read("a").bad(t, "what a read showed")
	read("z").bad(t, "what a read showed")
}

func TestObservers(t *testing.T) {
	seen := func(s *story, process int, at int64, token int, owner string) *story {
		return s.op(process, "observed", at, at, fmt.Sprintf(`"token":%d,"owner":%q`, token, owner))
	}
	seen(seen(new(story), 1, 10, 1, "a"), 1, 20, 2, "b").good(t)
	seen(seen(new(story), 1, 10, 2, "b"), 1, 20, 1, "a").bad(t, "came after")
	circle := seen(seen(seen(seen(new(story), 1, 10, 1, "a"), 1, 20, 2, "b"), 2, 30, 2, "b"), 2, 40, 1, "a")
	found := circle.judge(t)
	if len(found) != 2 || !strings.Contains(found[1].what, "before themselves") {
		t.Error(found)
	}
}
