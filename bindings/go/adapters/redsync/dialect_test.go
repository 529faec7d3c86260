package pawlredsync_test

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/pawl"
	pawlredsync "example.org/pawl/adapters/redsync"
	"example.org/pawl/pawltest"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// startWithRedis starts a node that clients of Redis reach, too, and returns both addresses.
func startWithRedis(t *testing.T) (endpoint, redis string) {
	t.Helper()
	program, err := pawltest.Program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--dev", "--listen", "127.0.0.1:0", "--listen-redis", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); redis == "" && lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "endpoint: "); ok {
			endpoint = address
		}
		if address, ok := strings.CutPrefix(lines.Text(), "clients of Redis: "); ok {
			redis = address
		}
	}
	if endpoint == "" || redis == "" {
		t.Fatalf("pawld --dev did not say where it listens")
	}
	return endpoint, redis
}

// A program may also keep its Redis client, and change only the address.
func TestRedsyncOverARedisClientExcludesThePool(t *testing.T) {
	endpoint, address := startWithRedis(t)
	client, err := pawl.Dial(t.Context(), pawl.WithEndpoints(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	connection := goredislib.NewClient(&goredislib.Options{Addr: address})
	defer connection.Close()
	pools := []*redsync.Redsync{redsync.New(pawlredsync.NewPool(client)), redsync.New(goredis.NewPool(connection))}
	for i, rs := range pools {
		one := rs.NewMutex("m", redsync.WithExpiry(5*time.Second))
		other := pools[1-i].NewMutex("m")
		acquire(t, one)
		var taken *redsync.ErrTaken
		if err := other.TryLockContext(limited(t)); !errors.As(err, &taken) {
			t.Errorf("the second lock: %v", err)
		}
		is(t, "the unlock by another one", false)(other.UnlockContext(limited(t)))
		is(t, "the extension", true)(one.ExtendContext(limited(t)))
		is(t, "valid", true)(one.ValidContext(limited(t)))
		is(t, "the unlock", true)(one.UnlockContext(limited(t)))
		if ok, err := one.UnlockContext(limited(t)); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
			t.Errorf("the second unlock: %v %v", ok, err)
		}
	}
}
