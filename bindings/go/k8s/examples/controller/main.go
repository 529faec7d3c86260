// Controller is a controller manager that is elected through Pawl. Start it as often as you like,
// on as many hosts: one of them leads, and prints a line each second. It finds Pawl through the
// same environment variables as the command pawl (PAWL_ENDPOINTS and so on), and Kubernetes as
// every controller does. This example asks Kubernetes for nothing, so that it also runs without
// one.
//
//	controller [-name k8s/default/example] [-identity NAME] [-release-on-disconnect] [-v]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"example.org/pawl"
	pawlk8s "example.org/pawl/k8s"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	name := flag.String("name", "k8s/default/example", "the election: a key of Pawl")
	identity := flag.String("identity", "", "the candidate's name (default: host and a number)")
	kill := flag.Bool("release-on-disconnect", false, "let the next one lead when this one is killed")
	verbose := flag.Bool("v", false, "log what the manager does")
	flag.Parse()
	if *verbose {
		ctrl.SetLogger(zap.New())
	} else {
		ctrl.SetLogger(zap.New(zap.WriteTo(discard{})))
	}
	times := pawlk8s.Config{
		LeaseDuration:       15 * time.Second,
		RenewDeadline:       10 * time.Second,
		RetryPeriod:         2 * time.Second,
		ReleaseOnDisconnect: *kill,
	}
	if err := run(ctrl.SetupSignalHandler(), *name, *identity, times); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func run(ctx context.Context, name, identity string, times pawlk8s.Config) error {
	client, err := pawl.New() // PAWL_ENDPOINTS and so on
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := pawlk8s.New(client, name, identity, times)
	if err != nil {
		return err
	}
	mgr, err := newManager(lock, times)
	if err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return work(ctx, lock) }))
	if err != nil {
		return err
	}
	fmt.Println(lock.Identity(), "stands for", name)
	guarded := lock.Guard(ctx)
	err = mgr.Start(guarded)
	if err == nil && ctx.Err() == nil {
		err = context.Cause(guarded)
	}
	return err
}

// newManager makes a manager that is elected through the lock. It must have the times of the lock.
func newManager(lock *pawlk8s.Lock, times pawlk8s.Config) (manager.Manager, error) {
	kubernetes, err := ctrl.GetConfig()
	if clientcmd.IsEmptyConfig(err) {
		kubernetes, err = &rest.Config{Host: "http://127.0.0.1:1"}, nil // There is no Kubernetes here.
	}
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(kubernetes, ctrl.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock, // This line elects through Pawl.
		LeaderElectionReleaseOnCancel:       true, // main ends when the manager does.
		LeaseDuration:                       &times.LeaseDuration,
		RenewDeadline:                       &times.RenewDeadline,
		RetryPeriod:                         &times.RetryPeriod,
		Metrics:                             metrics.Options{BindAddress: "0"},
	})
}

// work is what only the leader does.
func work(ctx context.Context, lock *pawlk8s.Lock) error {
	token, _ := lock.Token()
	fmt.Println(lock.Identity(), "leads with token", token)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			fmt.Println(lock.Identity(), "works:", n)
		case <-ctx.Done():
			fmt.Println(lock.Identity(), "stops")
			return nil
		}
	}
}
