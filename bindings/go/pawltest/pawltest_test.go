package pawltest

import (
	"strings"
	"testing"

	"example.org/pawl"
)

func TestAServerIsThereUntilItIsStopped(t *testing.T) {
	s := Start(t)
	client := s.Client(t)
	l, err := client.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if _, err := pawl.Dial(t.Context(), pawl.WithEndpoints(s.Endpoint), pawl.WithTimeout(100e6)); err == nil {
		t.Error("the server is still there")
	}
}

func TestTwoServersHaveNothingToDoWithEachOther(t *testing.T) {
	for range 2 {
		if _, err := Start(t).Client(t).Lock(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutAPawldTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PAWL_TEST_PAWLD", "/nowhere/pawld")
	if _, err := Run(); err == nil || !strings.Contains(err.Error(), "PAWL_TEST_PAWLD") {
		t.Errorf("%v", err)
	}
}
