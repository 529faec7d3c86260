package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const clientTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestHooksAreToldOfRequestsAndSetTheirTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		var mu sync.Mutex
		var told []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		}
		trace := func(n int) string { return fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319c-%016d-01", n) }
		requests := 0
		c := f.client(WithTrace(clientTrace), WithHooks(Hooks{
			RequestStarted: func(_ context.Context, r *Request) func(error) {
				requests++
				note("%s %s", r.Method, r.Key)
				switch r.Method {
				case "ping": // The hook has no trace, so the request has that of the client.
				case "get":
					r.Trace = "nonsense"
				default:
					r.Trace = trace(requests)
				}
				return func(err error) { note("%s ended: %v", r.Method, err) }
			},
			Acquired:  func(key string, token uint64, _ time.Duration) { note("acquired %s %d", key, token) },
			Lost:      func(l *LostError) { note("lost %s %s", l.Key, l.Code()) },
			Connected: func(endpoint string) { note("connected %s", endpoint) },
		}))
		defer c.Abandon()
		if _, err := c.Call(t.Context(), "ping", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), "g"); err != nil {
			t.Fatal(err)
		}
		l := lockFor(t, c, Lease(9*time.Second))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.Extend(t.Context(), 0))
		must(l.Shorten(t.Context(), 6*time.Second))
		_, err := l.Update(t.Context(), []byte("v"))
		must(err)
		must(l.Release(t.Context()))
		must(lockFor(t, c).Transfer(t.Context(), "b"))
		synctest.Wait()
		want := []string{"ping ", "connected 10.0.0.1:7117", "ping ended: <nil>", "get g", "get ended: <nil>",
			"acquire k", "acquire ended: <nil>", "acquired k 7", "extend k", "extend ended: <nil>", "extend k",
			"extend ended: <nil>", "update k", "update ended: <nil>", "release k", "release ended: <nil>",
			"acquire k", "acquire ended: <nil>", "acquired k 7", "transfer k", "transfer ended: <nil>"}
		slices.Sort(want) // Callbacks come in their own time.
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("%q", told)
		}
		for i, one := range f.requestsOfAll() {
			expected := trace(i + 1)
			if one.method == "ping" || one.method == "get" {
				expected = clientTrace
			}
			if one.params["trace"] != expected {
				t.Errorf("%s has the trace %v", one.method, one.params["trace"])
			}
		}
		// What the client does by itself has the client's trace, and no hook is told of it.
		mu.Lock()
		told = nil
		mu.Unlock()
		l = lockFor(t, c, Lease(3*time.Second))
		f.serveBy(func(asked) (result, refusal map[string]any) {
			return nil, map[string]any{"code": "lost", "message": "it was broken"}
		})
		<-l.Done()
		synctest.Wait()
		if len(told) != 4 || told[3] != "lost k lost" {
			t.Errorf("%q", told)
		}
		all := f.requests("extend")
		if last := all[len(all)-1]; last.params["trace"] != clientTrace {
			t.Errorf("a renewal has the trace %v", last.params["trace"])
		}
	})
}

func (f *fakeNodes) requestsOfAll() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

func TestAskedErrorSaysWhyNobodyIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		watches := func(said, refusal map[string]any) {
			f.serveBy(func(a asked) (map[string]any, map[string]any) {
				if a.method == "watch" {
					return said, refusal
				}
				return f.serve(a)
			})
		}
		watches(nil, map[string]any{"code": "full", "field": "watches_per_client", "message": "no room"})
		c := f.client()
		defer c.Abandon()
		l := lockFor(t, c, OnAsked(func(Asked) {}))
		time.Sleep(time.Second)
		synctest.Wait()
		if err := l.AskedError(); !errors.Is(err, ErrFull) {
			t.Errorf("without room: %v", err)
		}
		watches(map[string]any{"watch": 1}, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if err := l.AskedError(); err != nil || l.Err() != nil {
			t.Errorf("with room: %v %v", err, l.Err())
		}
		watches(nil, map[string]any{"code": "denied", "message": "no"})
		refused := lockFor(t, c, OnAsked(func(Asked) {}))
		time.Sleep(time.Second)
		asked := len(f.requests("watch"))
		time.Sleep(time.Minute)
		if err := refused.AskedError(); !errors.Is(err, ErrDenied) || len(f.requests("watch")) != asked {
			t.Errorf("refused for good: %v, and asked %d times more", err, len(f.requests("watch"))-asked)
		}
	})
}
