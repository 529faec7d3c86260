// Package agree compares the package with etcd's. It is a module of its own so that nobody else
// downloads etcd's client.
package agree

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	concurrency "example.org/pawl/adapters/etcd"
	"example.org/pawl/pawltest"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcd "go.etcd.io/etcd/client/v3/concurrency"
)

// differences are the methods whose signatures differ, and what ours are. (Types of packages are
// compared by their names.)
var differences = map[string]string{
	"Session.Lease": "", // There is no lease of a session.
	"Mutex.IsOwner": "func(*Mutex) bool",
}

// packages are those of a type's name.
var packages = regexp.MustCompile(`\b[a-z0-9]+\.([A-Z])`)

func signature(t reflect.Type) string { return packages.ReplaceAllString(t.String(), "$1") }

func methods(t reflect.Type) map[string]string {
	found := map[string]string{}
	for i := range t.NumMethod() {
		found[t.Method(i).Name] = signature(t.Method(i).Type)
	}
	return found
}

func TestTheMethodsAreThoseOfEtcd(t *testing.T) {
	for _, pair := range [][2]any{
		{(*concurrency.Session)(nil), (*etcd.Session)(nil)},
		{(*concurrency.Mutex)(nil), (*etcd.Mutex)(nil)},
		{(*concurrency.Election)(nil), (*etcd.Election)(nil)},
	} {
		ours, theirs := methods(reflect.TypeOf(pair[0])), methods(reflect.TypeOf(pair[1]))
		name := reflect.TypeOf(pair[1]).Elem().Name()
		for method, want := range theirs {
			if other, ok := differences[name+"."+method]; ok {
				want = other
			}
			want = strings.Replace(want, "context.Context", "Context", 1)
			if got := ours[method]; got != want {
				t.Errorf("%s.%s is %q and not %q", name, method, got, want)
			}
		}
		for method := range ours {
			if _, ok := theirs[method]; !ok {
				t.Errorf("etcd has no %s.%s", name, method)
			}
		}
	}
}

func TestTheFunctionsAreThoseOfEtcd(t *testing.T) {
	for name, pair := range map[string][2]any{
		"NewSession":     {concurrency.NewSession, etcd.NewSession},
		"NewMutex":       {concurrency.NewMutex, etcd.NewMutex},
		"NewLocker":      {concurrency.NewLocker, etcd.NewLocker},
		"NewElection":    {concurrency.NewElection, etcd.NewElection},
		"ResumeElection": {concurrency.ResumeElection, etcd.ResumeElection},
		"WithTTL":        {concurrency.WithTTL, etcd.WithTTL},
		"WithContext":    {concurrency.WithContext, etcd.WithContext},
	} {
		ours, theirs := signature(reflect.TypeOf(pair[0])), signature(reflect.TypeOf(pair[1]))
		if ours != theirs {
			t.Errorf("%s is %q and not %q", name, ours, theirs)
		}
	}
}

func TestTheErrorsAreThoseOfEtcd(t *testing.T) {
	for _, pair := range [][2]error{
		{concurrency.ErrLocked, etcd.ErrLocked},
		{concurrency.ErrSessionExpired, etcd.ErrSessionExpired},
		{concurrency.ErrLockReleased, etcd.ErrLockReleased},
		{concurrency.ErrElectionNotLeader, etcd.ErrElectionNotLeader},
		{concurrency.ErrElectionNoLeader, etcd.ErrElectionNoLeader},
	} {
		if pair[0].Error() != pair[1].Error() {
			t.Errorf("%q and not %q", pair[0], pair[1])
		}
	}
}

func TestTheSameProgramCompilesWithBothAndRuns(t *testing.T) {
	_ = clientv3.Config{}
	text, err := os.ReadFile("program/main.go")
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.NewReplacer(
		`"example.org/pawl"`, `pawl "go.etcd.io/etcd/client/v3"`,
		`concurrency "example.org/pawl/adapters/etcd"`, `"go.etcd.io/etcd/client/v3/concurrency"`,
		`pawl.Dial(ctx)`, `pawl.New(pawl.Config{})`).Replace(string(text))
	if strings.Contains(theirs, "example.org") {
		t.Fatal("an import is left")
	}
	dir := t.TempDir()
	program, err := filepath.Abs("program/main.go")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "main.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {program: other}})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{other: []byte(theirs), filepath.Join(dir, "overlay"): overlay} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "go", "build", "-overlay", filepath.Join(dir, "overlay"), "-o", os.DevNull, "./program")
	run(t, "go", "build", "-o", filepath.Join(dir, "program"), "./program")
	t.Setenv("PAWL_ENDPOINTS", pawltest.Start(t).Endpoint)
	said := run(t, filepath.Join(dir, "program"))
	want := "refused: true\nrevision: true true\nreleased: true\n" +
		"leads: at host a, me: true true\nproclaims: at host b\nresigned: true\n"
	if said != want {
		t.Errorf("it said:\n%s", said)
	}
}

func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, said)
	}
	return string(said)
}
