package pawltusd_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/pawl"
	pawltusd "example.org/pawl/adapters/tusd"
	"example.org/pawl/pawltest"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/exp/slog"
)

var _ handler.Locker = (*pawltusd.Locker)(nil)

const within = 10 * time.Second

// newServer returns the address of a tusd on the store of this directory.
func newServer(t *testing.T, dir string, client *pawl.Client) string {
	t.Helper()
	composer := handler.NewStoreComposer()
	filestore.New(dir).UseIn(composer)
	pawltusd.New(client).UseIn(composer)
	tusd, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer,
		AcquireLockTimeout: within, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix("/files/", tusd))
	t.Cleanup(server.Close)
	return server.URL + "/files/"
}

func request(t *testing.T, method, url string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func patch(t *testing.T, url, offset string, body io.Reader) *http.Response {
	return request(t, http.MethodPatch, url, body, "Upload-Offset", offset,
		"Content-Type", "application/offset+octet-stream")
}

func TestAnInterruptedUploadGoesOnAtAnotherServer(t *testing.T) {
	server := pawltest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	dir := t.TempDir()
	one, other := newServer(t, dir, server.Client(t)), newServer(t, dir, server.Client(t))
	watcher := server.Client(t)
	created := request(t, http.MethodPost, one, nil, "Upload-Length", "10")
	if created.StatusCode != http.StatusCreated {
		t.Fatal(created.Status)
	}
	id := path.Base(created.Header.Get("Location"))

	// The body of the first request never ends, as from a client whose network is gone.
	body, sending := io.Pipe()
	t.Cleanup(func() { _ = sending.Close() })
	stalled := make(chan *http.Response, 1)
	go func() { stalled <- patch(t, one+id, "0", body) }()
	if _, err := sending.Write([]byte("01234")); err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.WaitUntil(ctx, "tusd/"+id, true); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, id)
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		if content, err := os.ReadFile(file); err == nil && len(content) == 5 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("stored: %q %v", content, err)
		}
	}

	if entry, err := watcher.Get(t.Context(), "tusd/"+id, pawl.Quorum()); err != nil || !entry.Held {
		t.Fatalf("during the upload the lock is %+v %v", entry, err)
	}
	head := request(t, http.MethodHead, other+id, nil)
	if head.StatusCode != http.StatusOK || head.Header.Get("Upload-Offset") != "5" {
		t.Fatalf("%s at offset %q", head.Status, head.Header.Get("Upload-Offset"))
	}
	select {
	case answer := <-stalled:
		if text, _ := io.ReadAll(answer.Body); !strings.Contains(string(text), "ERR_UPLOAD_INTERRUPTED") {
			t.Errorf("the stalled request: %s %s", answer.Status, text)
		}
	case <-time.After(within):
		t.Fatal("the stalled request was not interrupted")
	}
	if rest := patch(t, other+id, "5", strings.NewReader("56789")); rest.StatusCode != http.StatusNoContent {
		t.Errorf("the rest: %s", rest.Status)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "0123456789" {
		t.Errorf("%q %v", content, err)
	}
	if _, err := watcher.WaitUntil(ctx, "tusd/"+id, false); err != nil {
		t.Error(err)
	}
}

func newLock(t *testing.T, client *pawl.Client, options ...pawltusd.Option) handler.Lock {
	t.Helper()
	lock, err := pawltusd.New(client, options...).NewLock("a/b")
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func never(t *testing.T) func() {
	return func() { t.Error("nobody has asked for an unlock") }
}

func TestTheEndOfTheContextIsALockTimeout(t *testing.T) {
	server := pawltest.Start(t)
	one, other := newLock(t, server.Client(t)), newLock(t, server.Client(t))
	if err := one.Lock(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := other.Lock(ctx, never(t)); !errors.Is(err, handler.ErrLockTimeout) {
		t.Errorf("%v", err)
	}
	if err := one.Unlock(); err != nil {
		t.Error(err)
	}
	if err := other.Lock(t.Context(), never(t)); err != nil {
		t.Error(err)
	}
	if err := other.Unlock(); err != nil {
		t.Error(err)
	}
}

// Each request that waits asks the holder of its time, not only the one that came first.
func TestSeveralWaitersAreServedOneAfterTheOther(t *testing.T) {
	server := pawltest.Start(t)
	const requests = 4
	outcomes := make(chan error, requests)
	for range requests {
		lock := newLock(t, server.Client(t), pawltusd.With(pawl.Lease(within)))
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			asked := make(chan struct{})
			if err := lock.Lock(ctx, func() { close(asked) }); err != nil {
				outcomes <- err
				return
			}
			outcomes <- nil
			select {
			case <-asked:
			case <-t.Context().Done():
			}
			_ = lock.Unlock()
		}()
	}
	for range requests {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
}

func TestALossIsARequestToUnlock(t *testing.T) {
	server := pawltest.Start(t)
	client := server.Client(t, pawl.WithTimeout(500*time.Millisecond))
	lock := newLock(t, client, pawltusd.With(pawl.Lease(time.Second)))
	asked := make(chan struct{})
	if err := lock.Lock(t.Context(), func() { close(asked) }); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	select {
	case <-asked:
	case <-time.After(within):
		t.Error("the holder was not asked to unlock")
	}
	if err := lock.Unlock(); err == nil {
		t.Error("a lock was released without a node")
	}
}
