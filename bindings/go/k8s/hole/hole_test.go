package hole

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.org/pawl/k8s/internal/elections"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

var (
	runs = flag.Int("hole.runs", 50, "elections for each line of the table")
	real = flag.Int("hole.real", 0, "elections in real time, side by side; takes a minute")
)

func init() { klog.SetLogger(logr.Discard()) }

// leaseLocks makes candidates whose lock is a Lease object of the server.
func leaseLocks(server http.RoundTripper, t elections.Times) func(string, *elections.Path) (
	resourcelock.Interface, error) {
	return func(name string, p *elections.Path) (resourcelock.Interface, error) {
		client, err := coordinationv1.NewForConfigAndClient(
			&rest.Config{
				Host:          "http://apiserver",
				ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			}, &http.Client{Transport: transport{p, server}, Timeout: t.RequestTimeout()})
		if err != nil {
			return nil, err
		}
		return &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "controller"},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}, nil
	}
}

type line struct {
	elections.Times
	late time.Duration
}

// excluded says whether the arithmetic excludes two leaders. The first one believes until answer +
// retry + renew, with ReleaseOnCancel for a request's timeout more, and the others may lead from
// commit + lease on.
func (l line) excluded() bool {
	stops := l.late + l.Retry + l.Renew
	if l.Releases {
		stops += l.RequestTimeout()
	}
	return stops <= l.Lease
}

func lines() (table []line) {
	const second = time.Second
	for _, t := range []elections.Times{
		{Lease: 15 * second, Renew: 10 * second, Retry: 2 * second},
		{Lease: 12 * second, Renew: 10 * second, Retry: 2 * second},
		{Lease: 15 * second, Renew: 10 * second, Retry: 2 * second, Releases: true},
	} {
		for _, late := range []float64{0, 2, 3, 3.5, 4, 4.9} {
			table = append(table, line{t, time.Duration(late * float64(second))})
		}
	}
	return table
}

// The elector of client-go with a Lease object has two leaders, although all clocks are right. The
// test fails if a line of the table whose arithmetic excludes two leaders has them, and if no line
// has.
func TestTwoLeadersWithALeaseObject(t *testing.T) {
	fmt.Println(elections.Head)
	found := 0
	for _, line := range lines() {
		var sum elections.Tally
		for range *runs {
			synctest.Test(t, func(t *testing.T) {
				locks := leaseLocks(memory{newAPIServer()}, line.Times)
				got, err := elections.CutOff(line.Times, line.late, locks)
				if err != nil {
					t.Fatal(err)
				}
				sum.Add(got)
			})
		}
		fmt.Println(sum.Line(line.Times, line.late))
		if sum.Two > 0 && line.excluded() {
			t.Errorf("%v, %v late: two leaders, which the arithmetic excludes", line.Times, line.late)
		}
		found += sum.Two
	}
	if found == 0 {
		t.Error("never two leaders: has client-go been mended?")
	}
}

// The same without simulated time, over sockets.
func TestTwoLeadersInRealTime(t *testing.T) {
	if *real == 0 {
		t.Skip("takes a minute: -hole.real N runs N elections for each line side by side")
	}
	table := lines()
	sums := make([]elections.Tally, len(table))
	var mu sync.Mutex
	var running sync.WaitGroup
	for i, line := range table {
		for range *real {
			server := httptest.NewServer(newAPIServer())
			t.Cleanup(server.Close)
			locks := leaseLocks(redirected{server.Listener.Addr().String()}, line.Times)
			running.Go(func() {
				got, err := elections.CutOff(line.Times, line.late, locks)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				sums[i].Add(got)
			})
		}
	}
	running.Wait()
	fmt.Println(elections.Head)
	for i, line := range table {
		fmt.Println(sums[i].Line(line.Times, line.late))
	}
}
