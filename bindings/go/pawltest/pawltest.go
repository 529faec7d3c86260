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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	// Redis, Memcached and Admin are where it listens for these clients and for HTTP; empty if this
	// pawld is of a release that does not say it.
	Redis, Memcached, Admin string

	process *os.Process
	ended   chan struct{}
	stop    func()
	log     *output
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

// Start starts a server and waits until it is ready. It fails the test if there is no pawld. The
// arguments are further ones for pawld, such as "--listen-redis", "127.0.0.1:0".
func Start(t testing.TB, arguments ...string) *Server {
	t.Helper()
	s, err := start(arguments)
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
func Run(arguments ...string) (*Server, error) { return start(arguments) }

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

// start tries to start pawld as a node for tests, which ends with the process that has started it, and
// else, if it is of an older release that cannot do that, as a node for a try-out.
func start(more []string) (*Server, error) {
	path, err := Program()
	if err != nil {
		return nil, err
	}
	s, err := startAs(path, append([]string{"--dev", "--print-endpoints"}, more...)...)
	var usage *usageError
	if errors.As(err, &usage) {
		s, err = startAs(path, append([]string{"--dev", "--listen", "127.0.0.1:0"}, more...)...)
	}
	return s, err
}

// usageError says that pawld does not know an option.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func startAs(path string, arguments ...string) (*Server, error) {
	s := &Server{ended: make(chan struct{}), log: &output{}}
	cmd := exec.Command(path, arguments...)
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.process = cmd.Process
	s.stop = sync.OnceFunc(func() { in.Close() })
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if s.Endpoint == "" && s.take(lines.Text()) {
				close(ready)
			}
		}
		_ = cmd.Wait()
		close(s.ended)
	}()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-ready:
		return s, nil
	case <-s.ended:
		if text := fmt.Sprintf("%s has ended: %s", path, s.log.String()); cmd.ProcessState.ExitCode() == 2 {
			err = &usageError{text}
		} else {
			err = errors.New(text)
		}
	case <-timer.C:
		err = fmt.Errorf("%s did not say within %v where it listens: %s", path, startTime, s.log.String())
	}
	s.Stop()
	return nil, err
}

// take reads a line of pawld, and returns whether it says where it listens.
func (s *Server) take(line string) bool {
	if endpoint, ok := strings.CutPrefix(line, "endpoint: "); ok {
		s.Endpoint = endpoint
		return true
	}
	var said struct{ Client, Redis, Memcached, Admin string }
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &said) != nil || said.Client == "" {
		return false
	}
	s.Endpoint, s.Redis, s.Memcached, s.Admin = said.Client, said.Redis, said.Memcached, said.Admin
	return true
}
