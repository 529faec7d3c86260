package pawlredsync_test

import (
	"errors"
	"testing"
	"time"

	pawlredsync "example.org/pawl/adapters/redsync"
	"example.org/pawl/pawltest"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// A program may also keep its Redis client, and change only the address.
func TestRedsyncOverARedisClientExcludesThePool(t *testing.T) {
	server := pawltest.Start(t, "--listen-redis", "127.0.0.1:0")
	client := server.Client(t)
	connection := goredislib.NewClient(&goredislib.Options{Addr: server.Redis})
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
