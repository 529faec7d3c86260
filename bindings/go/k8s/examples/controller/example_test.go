package main

import (
	"context"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.org/pawl"
	pawlk8s "example.org/pawl/k8s"
)

// The program of docs/guide/kubernetes-controllers.md.
func elect(ctx context.Context, config *rest.Config) error {
	client, err := pawl.New() // PAWL_ENDPOINTS and so on
	if err != nil {
		return err
	}
	lock, err := pawlk8s.New(client, "k8s/default/my-controller", "", pawlk8s.Config{})
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
	})
	if err != nil {
		return err
	}
	return mgr.Start(lock.Guard(ctx))
}

var _ = elect
