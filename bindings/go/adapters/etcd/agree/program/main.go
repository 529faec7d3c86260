// Command program locks and elects. With the first three imports exchanged, and the call that makes
// the client, it is a program for etcd: the test compiles both, and runs this one.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"example.org/pawl"
	concurrency "example.org/pawl/adapters/etcd"
)

func main() {
	ctx := context.Background()
	client, err := pawl.Dial(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := lock(ctx, session(client), session(client)); err != nil {
		log.Fatal(err)
	}
	if err := lead(ctx, session(client)); err != nil {
		log.Fatal(err)
	}
}

func session(client *pawl.Client) *concurrency.Session {
	s, err := concurrency.NewSession(client, concurrency.WithTTL(10),
		concurrency.WithContext(context.Background()))
	if err != nil {
		log.Fatal(err)
	}
	return s
}

func lock(ctx context.Context, one, other *concurrency.Session) error {
	defer one.Close()
	defer other.Close()
	mutex := concurrency.NewMutex(one, "/jobs/report")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	err := concurrency.NewMutex(other, "/jobs/report").TryLock(ctx)
	fmt.Println("refused:", errors.Is(err, concurrency.ErrLocked))
	fmt.Println("revision:", mutex.Header().Revision > 0, mutex.Key() != "")
	select {
	case <-one.Done():
		return concurrency.ErrSessionExpired
	default:
	}
	if err := mutex.Unlock(ctx); err != nil {
		return err
	}
	fmt.Println("released:", errors.Is(mutex.Unlock(ctx), concurrency.ErrLockReleased))
	locker := concurrency.NewLocker(other, "/jobs/report")
	locker.Lock()
	locker.Unlock()
	return nil
}

func lead(ctx context.Context, s *concurrency.Session) error {
	defer s.Close()
	election := concurrency.NewElection(s, "/leader")
	if _, err := election.Leader(ctx); !errors.Is(err, concurrency.ErrElectionNoLeader) {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	leaders := election.Observe(watching)
	if err := election.Campaign(ctx, "at host a"); err != nil {
		return err
	}
	leader := <-leaders
	fmt.Printf("leads: %s, me: %v %v\n", leader.Kvs[0].Value,
		string(leader.Kvs[0].Key) == election.Key(), leader.Kvs[0].CreateRevision == election.Rev())
	again := concurrency.ResumeElection(s, "/leader", election.Key(), election.Rev())
	if err := again.Proclaim(ctx, "at host b"); err != nil {
		return err
	}
	leader, err := election.Leader(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("proclaims: %s\n", leader.Kvs[0].Value)
	if err := again.Resign(ctx); err != nil {
		return err
	}
	err = again.Proclaim(ctx, "late")
	fmt.Println("resigned:", errors.Is(err, concurrency.ErrElectionNotLeader))
	return nil
}
