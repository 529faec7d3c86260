// Package pawltest starts a Pawl server for a test:
//
//	server := pawltest.Start(t)
//	client := server.Client(t)
//
// It runs `pawld --dev`, a single node on a free port of 127.0.0.1 that keeps nothing, and ends it
// with the test.
package pawltest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/pawl"
)

const (
	startTime = 20 * time.Second
	stopTime  = 5 * time.Second
)

// Server is a node that a test has started.
type Server struct {
	// Endpoint is where it listens, as in 127.0.0.1:7117.
	Endpoint string
	process  *os.Process
	ended    chan struct{}
	stop     func()
	log      *output
}

// output keeps what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Program returns the pawld that Start runs: PAWL_TEST_PAWLD, or pawld in PATH. The error says what
// to do if there is none.
func Program() (string, error) {
	name := os.Getenv("PAWL_TEST_PAWLD")
	if name == "" {
		name = "pawld"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no pawld to test with (%w): install Pawl, or set PAWL_TEST_PAWLD to the path of pawld", err)
	}
	return path, nil
}

// Start starts a server and waits until it is ready. It fails the test if there is no pawld.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := start(nil)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("what pawld has logged:\n%s", s.log.String())
		}
	})
	return s
}

// Run starts a server without a test, for a TestMain or an Example. Call Stop in the end.
func Run() (*Server, error) { return start(nil) }

// Client returns a client of the server, which is closed with the test.
func (s *Server) Client(t testing.TB, options ...pawl.Option) *pawl.Client {
	t.Helper()
	c, err := pawl.Dial(t.Context(), append([]pawl.Option{pawl.WithEndpoints(s.Endpoint)}, options...)...)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop ends the server. The end of the test does so, too.
func (s *Server) Stop() {
	_ = s.process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		_ = s.process.Kill()
		<-s.ended
	}
	s.stop()
}

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	_ = s.process.Kill()
	<-s.ended
}

func start(more []string) (*Server, error) {
	path, err := Program()
	if err != nil {
		return nil, err
	}
	s := &Server{ended: make(chan struct{}), log: &output{}}
	cmd := exec.Command(path, append([]string{"--dev", "--listen", "127.0.0.1:0"}, more...)...)
	cmd.Stderr = s.log
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started, release := make(chan error), make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(release) })
	go func() {
		// The kernel ends the server when the thread that has started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-release
	}()
	if err := <-started; err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.process = cmd.Process
	endpoints := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if endpoint, ok := strings.CutPrefix(lines.Text(), "endpoint: "); ok && len(endpoints) == 0 {
				endpoints <- endpoint
			}
		}
		_ = cmd.Wait()
		close(s.ended)
	}()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case s.Endpoint = <-endpoints:
		return s, nil
	case <-s.ended:
		err = fmt.Errorf("%s ended at once: %s", path, s.log.String())
	case <-timer.C:
		err = fmt.Errorf("%s did not say within %v where it listens: %s", path, startTime, s.log.String())
	}
	s.Stop()
	return nil, err
}
