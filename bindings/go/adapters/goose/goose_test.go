package pawlgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"example.org/pawl"
	pawlgoose "example.org/pawl/adapters/goose"
	"example.org/pawl/pawltest"
	_ "github.com/glebarez/go-sqlite"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

var (
	_ lock.Locker        = (*pawlgoose.Locker)(nil)
	_ lock.SessionLocker = (*pawlgoose.Locker)(nil)
)

const (
	key    = "migrate/shop"
	within = 10 * time.Second
)

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// open opens the database as another process does.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// migrations are two; the first one goes on when another provider waits for the lock.
func migrations(client *pawl.Client) []*goose.Migration {
	until := func(ctx context.Context) error {
		for ; ; time.Sleep(time.Millisecond) {
			waiters, _, err := client.Waiters(ctx, key)
			if err != nil || len(waiters) == 1 {
				return err
			}
		}
	}
	return []*goose.Migration{
		goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			if err := until(ctx); err != nil {
				return err
			}
			_, err := db.ExecContext(ctx, "CREATE TABLE applied (version INTEGER)")
			if err == nil {
				_, err = db.ExecContext(ctx, "INSERT INTO applied VALUES (1)")
			}
			return err
		}}, nil),
		goose.NewGoMigration(2, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO applied VALUES (2)")
			return err
		}}, nil),
	}
}

// migrate lets two providers migrate one database at the same time.
func migrate(t *testing.T, option func(*pawlgoose.Locker) goose.ProviderOption) {
	t.Helper()
	server, ctx := pawltest.Start(t), limited(t)
	watcher := server.Client(t)
	path := filepath.Join(t.TempDir(), "shop.db")
	type outcome struct {
		results []*goose.MigrationResult
		err     error
	}
	outcomes := make(chan outcome, 2)
	for range cap(outcomes) {
		provider, err := goose.NewProvider(goose.DialectSQLite3, open(t, path), nil,
			goose.WithGoMigrations(migrations(watcher)...), goose.WithDisableGlobalRegistry(true),
			option(pawlgoose.New(server.Client(t), key)))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			results, err := provider.Up(ctx)
			outcomes <- outcome{results, err}
		}()
	}
	ran := 0
	for range cap(outcomes) {
		o := <-outcomes
		if o.err != nil {
			t.Error(o.err)
		}
		ran += len(o.results)
	}
	if ran != 2 {
		t.Errorf("%d migrations have run", ran)
	}
	var applied int
	if err := open(t, path).QueryRowContext(ctx, "SELECT count(*) FROM applied").Scan(&applied); err != nil || applied != 2 {
		t.Errorf("%d migrations have left something: %v", applied, err)
	}
	if entry, err := watcher.Get(ctx, key, pawl.Quorum()); err != nil || entry.Held {
		t.Errorf("in the end the lock is %+v %v", entry, err)
	}
}

func TestTwoProvidersRunEachMigrationOnce(t *testing.T) {
	migrate(t, func(l *pawlgoose.Locker) goose.ProviderOption { return goose.WithLocker(l) })
}

func TestTwoProvidersWithSessionLocksRunEachMigrationOnce(t *testing.T) {
	migrate(t, func(l *pawlgoose.Locker) goose.ProviderOption { return goose.WithSessionLocker(l) })
}

func TestProvidersThatShareALockerTakeTurns(t *testing.T) {
	server, ctx := pawltest.Start(t), limited(t)
	l := pawlgoose.New(server.Client(t), key)
	if err := l.Lock(ctx, nil); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := l.SessionLock(soon, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second lock: %v", err)
	}
	if err := l.Unlock(ctx, nil); err != nil {
		t.Error(err)
	}
	if err := l.Unlock(ctx, nil); err == nil {
		t.Error("one unlock more than locks")
	}
	if err := l.SessionLock(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.SessionUnlock(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestALockThatWasNotHadCanBeTriedAgain(t *testing.T) {
	server, ctx := pawltest.Start(t), limited(t)
	holder, l := server.Client(t), pawlgoose.New(server.Client(t), key, pawl.Wait(0))
	held, err := holder.Lock(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Lock(ctx, nil); !errors.Is(err, pawl.ErrHeld) {
			t.Errorf("%v", err)
		}
	}
	if err := held.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Lock(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestALossIsToldAtTheUnlock(t *testing.T) {
	server, ctx := pawltest.Start(t), limited(t)
	l := pawlgoose.New(server.Client(t), key)
	if err := l.Lock(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Client(t).Call(ctx, "break", map[string]any{"key": key, "now": true}); err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(ctx, nil); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("%v", err)
	}
}
