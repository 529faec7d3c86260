// Package leak finds goroutines that a test has left behind.
package leak

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// ours is what the stack of a goroutine of the client has in it.
const ours = "example.org/pawl"

func stacks() []string {
	buffer := make([]byte, 1<<20)
	var found []string
	for _, stack := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, ours) && !strings.Contains(stack, "testing.tRunner") &&
			!strings.Contains(stack, "testing.(*M).Run") && !strings.Contains(stack, "internal/leak.stacks") &&
			!strings.Contains(stack, "pawltest.start") {
			found = append(found, stack)
		}
	}
	return found
}

// Check fails the test if goroutines of the client are left at its end. Call it first of all, so that
// it looks after every other cleanup.
func Check(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if left = stacks(); len(left) == 0 {
				return
			}
		}
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}
