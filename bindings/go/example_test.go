package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/fence"
	"example.org/pawl/pawltest"
)

// TestMain starts a server for the examples, which find it by PAWL_ENDPOINTS.
func TestMain(m *testing.M) {
	server, err := pawltest.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawltest:", err)
		os.Exit(1)
	}
	os.Setenv("PAWL_ENDPOINTS", server.Endpoint)
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

func dial() (context.Context, *pawl.Client) {
	client, err := pawl.Dial(context.Background())
	if err != nil {
		panic(err)
	}
	return context.Background(), client
}

func writeReport(context.Context, uint64) error    { return nil }
func writePart(context.Context, int, uint64) error { return nil }
func work(context.Context, uint64) error           { return nil }

func daily(ctx context.Context) error {
	client, err := pawl.Dial(ctx) // PAWL_ENDPOINTS, or 127.0.0.1:7117
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, "reports/daily", func(ctx context.Context, token uint64) error {
		return writeReport(ctx, token) // ctx ends with the lock, and the resource refuses lower tokens
	}, pawl.Lease(30*time.Second), pawl.Wait(time.Minute))
}

func ExampleClient_Do() {
	fmt.Println(daily(context.Background()))
	// Output: <nil>
}

func nightly(ctx context.Context, client *pawl.Client) error {
	lock, err := client.Lock(ctx, "reports/nightly", pawl.Wait(time.Minute))
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	for part := range 3 {
		if lock.Valid() < time.Second { // less than this step can take
			return lock.Err()
		}
		if err := writePart(lock.Context(), part, lock.Token()); err != nil {
			return err
		}
	}
	return nil
}

func ExampleClient_Lock() {
	ctx, client := dial()
	defer client.Close()
	fmt.Println(nightly(ctx, client))
	// Output: <nil>
}

// A key that somebody else holds is an error that says who.
func ExampleHeldError() {
	ctx, client := dial()
	defer client.Close()
	first, err := client.Lock(ctx, "only one", pawl.Owner("worker 1"))
	fmt.Println(first != nil, err)
	_, err = client.Lock(ctx, "only one", pawl.Owner("worker 2"))
	var taken *pawl.HeldError
	fmt.Println(errors.Is(err, pawl.ErrHeld), errors.As(err, &taken) && taken.Holder.Owner == "worker 1")
	// Output:
	// true <nil>
	// true true
}

func ExampleClient_Locks() {
	ctx, client := dial()
	defer client.Close()
	// All or nothing, in whatever order they are named, without deadlock.
	both, err := client.Locks(ctx, []string{"accounts/2", "accounts/1"}, pawl.Wait(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(both.Lock("accounts/1").Token() > 0, both.Release(ctx))
	// Output: true <nil>
}

func ExamplePermits() {
	ctx, client := dial()
	defer client.Close()
	two, err := client.Lock(ctx, "api-calls", pawl.Permits(2, 10))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(two.Slots()), "of ten permits")
	// Output: 2 of ten permits
}

func lead(ctx context.Context, client *pawl.Client) error {
	election := client.Election("billing/leader", pawl.Owner("host-1"),
		pawl.Value([]byte("http://host-1:8080")), pawl.Lease(10*time.Second), pawl.ReleaseOnDisconnect())
	leadership, err := election.Campaign(ctx) // waits to be elected
	if err != nil {
		return err
	}
	defer leadership.Resign(context.WithoutCancel(ctx)) // the next candidate leads
	return work(leadership.Context(), leadership.Token())
}

func ExampleElection_Campaign() {
	ctx, client := dial()
	defer client.Close()
	fmt.Println(lead(ctx, client))
	// Output: <nil>
}

func follow(ctx context.Context, client *pawl.Client) error {
	for leader, err := range client.Election("billing/leader").Observe(ctx) {
		if err != nil {
			return err
		}
		if leader == nil {
			fmt.Println("nobody leads")
		} else {
			fmt.Println(leader.Owner, "leads at", string(leader.Value))
			return nil
		}
	}
	return nil
}

func ExampleElection_Observe() {
	ctx, client := dial()
	defer client.Close()
	leadership, err := client.Election("billing/leader", pawl.Owner("a"), pawl.Value([]byte("10.0.0.7"))).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leadership.Resign(ctx)
	fmt.Println(follow(ctx, client))
	// Output:
	// a leads at 10.0.0.7
	// <nil>
}

func table(ctx context.Context, client *pawl.Client) error {
	holders := map[string]string{}
	for event, err := range client.Watch(ctx, pawl.WatchPrefix("jobs/")) {
		if err != nil {
			return err
		}
		switch event.Type {
		case pawl.EventPresent, pawl.EventAcquired:
			holders[event.Key] = event.Holder.Owner
		case pawl.EventReleased, pawl.EventExpired, pawl.EventBroken:
			delete(holders, event.Key)
		case pawl.EventOverflow: // changes may have been missed; the present state follows
			clear(holders)
		case pawl.EventCurrent:
			fmt.Println(len(holders), "jobs run")
			return nil
		}
	}
	return nil
}

func ExampleClient_Watch() {
	ctx, client := dial()
	defer client.Close()
	job, err := client.Lock(ctx, "jobs/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer job.Release(ctx)
	fmt.Println(table(ctx, client))
	// Output:
	// 1 jobs run
	// <nil>
}

func guarded(ctx context.Context, lock *pawl.Lock, url string) (*http.Response, error) {
	web := &http.Client{Transport: lock.Transport(nil, pawl.Margin(2*time.Second))}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader("report"))
	if err != nil {
		return nil, err
	}
	return web.Do(request) // an error for which errors.Is(err, pawl.ErrLost), if the lock does not last
}

func resource(store *fence.Store, next http.Handler) http.Handler {
	name := func(r *http.Request) string { return r.URL.Path }
	return fence.Handler(store, name, next) // 412 for an old token, 428 for none
}

func ExampleLock_Transport() {
	ctx, client := dial()
	defer client.Close()
	store, _ := fence.Open("") // in memory; give a file to keep it
	server := httptest.NewServer(resource(store, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	lock, err := client.Lock(ctx, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := guarded(ctx, lock, server.URL+"/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(answer.Status, lock.Release(ctx))
	_, err = guarded(ctx, lock, server.URL+"/report")
	fmt.Println(err != nil)
	// Output:
	// 200 OK <nil>
	// true
}

func TestReport(t *testing.T) {
	server := pawltest.Start(t) // pawld --dev, on a free port, until the test ends
	client := server.Client(t)
	if _, err := client.Lock(t.Context(), "reports/daily"); err != nil {
		t.Fatal(err)
	}
}
