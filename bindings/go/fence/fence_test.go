package fence

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func want(t *testing.T, s *Store, name string, token uint64, mode Mode, allowed bool) {
	t.Helper()
	got, _, err := s.Check(name, token, mode)
	if err != nil || got != allowed {
		t.Errorf("%s %d: %v %v", name, token, got, err)
	}
}

func TestALowerTokenIsRefused(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "fence")} {
		s := open(t, path)
		want(t, s, "k", 5, Exclusive, true)
		want(t, s, "k", 4, Exclusive, false)
		want(t, s, "k", 5, Exclusive, true)
		want(t, s, "other", 1, Exclusive, true)
		// Readers do not disturb each other; a writer that is older than a reader is refused.
		want(t, s, "r", 10, Exclusive, true)
		want(t, s, "r", 20, Shared, true)
		want(t, s, "r", 15, Shared, true)
		want(t, s, "r", 19, Exclusive, false)
		want(t, s, "r", 9, Permits, false)
		if highest, err := s.Highest("r"); highest != 20 || err != nil {
			t.Errorf("%d %v", highest, err)
		}
		if _, _, err := s.Check("k", 0, Exclusive); err == nil {
			t.Error("token 0 is accepted")
		}
	}
}

func TestAStoreRemembersOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	defer func(least int) { rewriteLeast = least }(rewriteLeast)
	rewriteLeast = 64
	s := open(t, path)
	for token := range uint64(150) { // It is written anew on the way.
		want(t, s, "k"+strconv.Itoa(int(token%7)), token+1, Exclusive, true)
	}
	s.Close()
	if _, _, err := s.Check("k1", 9999, Exclusive); err == nil {
		t.Error("a closed store answers")
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4000 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	again := open(t, path)
	want(t, again, "k1", 100, Exclusive, false)
	want(t, again, "k1", 3001, Exclusive, true)
}

func TestAHalfWrittenRecordIsDroppedAndDamageIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	open(t, path).Check("k", 7, Exclusive)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := appendRecord(nil, "k", mark{9, 9})
	if err := os.WriteFile(path, append(append([]byte{}, good...), next[:len(next)-3]...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if highest, err := s.Highest("k"); highest != 7 || err != nil {
		t.Errorf("%d %v", highest, err)
	}
	bad := append([]byte{}, good...)
	bad[len(header)+5] ^= 1
	if err := os.WriteFile(path, append(bad, next...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte("something else entirely"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("any file is taken for a store")
	}
}

func TestSeveralStoresMayUseOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	var group sync.WaitGroup
	for range 4 {
		s := open(t, path)
		group.Go(func() {
			for token := range uint64(60) {
				if _, _, err := s.Check("k", token+1, Exclusive); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	want(t, open(t, path), "k", 59, Exclusive, false)
}

func TestTheCommandUsesTheSameFile(t *testing.T) {
	pawl := os.Getenv("PAWL_TEST_PAWL")
	if pawl == "" {
		if pawl, _ = exec.LookPath("pawl"); pawl == "" {
			t.Skip("there is no command pawl: set PAWL_TEST_PAWL")
		}
	}
	path := filepath.Join(t.TempDir(), "fence")
	run := func(token uint64, mode ...string) int {
		args := append([]string{"fence", "check", path, "k", strconv.FormatUint(token, 10)}, mode...)
		err := exec.Command(pawl, args...).Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	}
	s := open(t, path)
	want(t, s, "k", 1<<60, Exclusive, true)
	if code := run(1<<60 - 1); code != 1 {
		t.Errorf("status %d for an older token", code)
	}
	if code := run(1<<60 + 5); code != 0 {
		t.Errorf("status %d for a newer token", code)
	}
	want(t, s, "k", 1<<60+4, Exclusive, false)
	want(t, s, "k", 1<<60+5, Exclusive, true)
}

func TestCheckStoresTheHighestToken(t *testing.T) {
	var highest uint64
	if Check(&highest, 0) || !Check(&highest, 3) || Check(&highest, 2) || !Check(&highest, 3) || highest != 3 {
		t.Error(highest)
	}
}

func TestAHandlerRefusesWritesOfOldHolders(t *testing.T) {
	s := open(t, "")
	passed := 0
	h := Handler(s, func(r *http.Request) string { return r.URL.Path }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { passed++ }))
	ask := func(method, path string, tokens ...string) int {
		r := httptest.NewRequest(method, path, nil)
		for _, token := range tokens {
			r.Header.Add(TokenHeader, token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, one := range []struct {
		method, path string
		tokens       []string
		code         int
	}{
		{"GET", "/a", nil, 200}, {"PUT", "/a", nil, 428}, {"PUT", "/a", []string{"9"}, 200}, {"PUT", "/a", []string{"8"}, 412},
		{"DELETE", "/b", []string{"8"}, 200}, {"POST", "/a", []string{"x"}, 400}, {"POST", "/a", []string{"0"}, 400}, {"POST", "/a", []string{"9", "9"}, 400},
	} {
		if code := ask(one.method, one.path, one.tokens...); code != one.code {
			t.Errorf("%s %s %v: %d", one.method, one.path, one.tokens, code)
		}
	}
	if passed != 3 {
		t.Errorf("%d requests have passed", passed)
	}
	s.Close()
	if code := ask("PUT", "/a", "99"); code != 503 {
		t.Errorf("%d when the store cannot tell", code)
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(appendRecord(nil, "name", mark{1, 2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		name, m, size := readRecord(data)
		if size > 0 && string(appendRecord(nil, name, m)) != string(data[:size]) {
			t.Fatalf("%q", data)
		}
	})
}
