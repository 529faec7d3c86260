package pawl_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/fence"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func TestAWriteIsSentOnlyWithALockThatIsValidForLongEnough(t *testing.T) {
	leak.Check(t)
	store, err := fence.Open("")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	resource := httptest.NewServer(fence.Handler(store, func(*http.Request) string { return "report" },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got += string(body)
			io.WriteString(w, "written")
		})))
	defer resource.Close()
	client := pawltest.Start(t).Client(t)
	write := func(l *pawl.Lock, text string, o ...pawl.GateOption) (int, error) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		web := &http.Client{Transport: l.Transport(transport, o...)}
		answer, err := web.Post(resource.URL, "text/plain", strings.NewReader(text))
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode == 200 && string(body) != "written" {
			t.Errorf("%q %v", body, err)
		}
		return answer.StatusCode, nil
	}
	old, err := client.Lock(t.Context(), "report", pawl.Lease(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if code, err := write(old, "a"); code != 200 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	if _, err := write(old, "b", pawl.Margin(time.Hour)); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("%v", err)
	}
	if err := old.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := write(old, "c"); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("%v", err)
	}
	next, err := client.Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if code, err := write(next, "d"); code != 200 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	if got != "ad" {
		t.Errorf("the resource has got %q", got)
	}
	if allowed, highest, _ := store.Check("report", old.Token(), fence.Exclusive); allowed || highest != next.Token() {
		t.Errorf("%v %d", allowed, highest)
	}
}
