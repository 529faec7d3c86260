package pawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWatchThatIsEndedBeforeItsAnswerIsEndedAtTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			if a.method == "watch" {
				time.Sleep(100 * time.Millisecond)
				return map[string]any{"watch": 7}, nil
			}
			return f.serve(a)
		})
		c := f.client()
		defer c.Abandon()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		for _, err := range c.Watch(ctx, WatchKey("k")) {
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		time.Sleep(time.Second)
		if ended := f.requests("unwatch"); len(ended) != 1 || ended[0].params["watch"] != int64(7) {
			t.Errorf("%+v", ended)
		}
	})
}

func TestTheNumberOfAWatchIsThatOfThePresentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			switch {
			case a.node == "10.0.0.1:1" && a.method == "watch":
				time.Sleep(time.Second)
				return map[string]any{"watch": 5}, nil
			case a.node == "10.0.0.1:1": // It does not even answer pings, so it is left.
				return nil, nil
			case a.method == "watch":
				time.Sleep(1500 * time.Millisecond)
				return map[string]any{"watch": 1}, nil
			}
			return f.serve(a)
		})
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		defer c.Abandon()
		for event, err := range c.Watch(t.Context(), WatchKey("k")) {
			if err != nil {
				t.Error(err)
			}
			if event.Type == EventCurrent {
				break
			}
		}
		time.Sleep(time.Second)
		if asked := f.requests("watch"); len(asked) != 2 || asked[1].node != "10.0.0.2:1" || asked[1].at.Sub(asked[0].at) > time.Second {
			t.Fatalf("the second node is not asked while the first one may still answer: %+v", asked)
		}
		if ended := f.requests("unwatch"); len(ended) != 1 || ended[0].node != "10.0.0.2:1" || ended[0].params["watch"] != int64(1) {
			t.Errorf("%+v", ended)
		}
	})
}

func TestAWatchThatIsAskedForWhereTheClientLeavesIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNodes(t)
		f.dead["10.0.0.1:1"] = true
		f.serveBy(func(a asked) (result, refusal map[string]any) {
			switch {
			case a.node == "10.0.0.2:1" && a.method == "watch":
				time.Sleep(1500 * time.Millisecond)
				return map[string]any{"watch": 5}, nil
			case a.method == "watch":
				return map[string]any{"watch": 1}, nil
			}
			return f.serve(a)
		})
		c := f.client(WithEndpoints("10.0.0.1:1", "10.0.0.2:1"), WithPreferFirst())
		defer c.Abandon()
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		delete(f.dead, "10.0.0.1:1")
		f.mu.Unlock()
		time.Sleep(9500 * time.Millisecond) // The client returns to its first node after 10 s.
		for event, err := range c.Watch(t.Context(), WatchKey("k")) {
			if err != nil {
				t.Error(err)
			}
			if event.Type == EventCurrent {
				break
			}
		}
		time.Sleep(time.Second)
		if ended := f.requests("unwatch"); len(ended) != 1 || ended[0].node != "10.0.0.1:1" || ended[0].params["watch"] != int64(1) {
			t.Errorf("%+v", ended)
		}
	})
}
