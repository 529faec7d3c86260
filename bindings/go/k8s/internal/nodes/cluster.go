// Package nodes starts three masters of Pawl on loopback for tests that need real ones, and puts
// networks in between that fail.
package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/pawl/pawltest"
)

const patience = 20 * time.Second

// A Cluster is three masters with a directory of their own.
type Cluster struct {
	t       testing.TB
	pawld   string
	folder  string
	peers   []string // host:port, by node
	Clients []string // host:port for clients, by node
	nodes   []*node
}

// node is one pawld.
type node struct {
	process *os.Process
	voting  chan struct{} // closed when it votes
	ended   chan struct{}
	mu      sync.Mutex
	lines   []string
}

// Start starts the cluster and waits until it votes. The cluster ends with the test. Without a
// pawld the test is skipped.
func Start(t testing.TB) *Cluster {
	t.Helper()
	pawld, err := pawltest.Program()
	if err != nil {
		t.Skip(err)
	}
	c := &Cluster{t: t, pawld: pawld, folder: t.TempDir(), nodes: make([]*node, 3)}
	for range c.nodes {
		c.peers = append(c.peers, freePort(t))
		c.Clients = append(c.Clients, freePort(t))
	}
	t.Cleanup(c.end)
	for i := range c.nodes {
		c.start(i)
	}
	for i := range c.nodes {
		c.await(i)
	}
	return c
}

// freePort returns a port of loopback that no other test of this kind gets while this process
// lives. It is below those that the system gives to connections, so that a node that is dead for a
// while finds it free again.
func freePort(t testing.TB) string {
	t.Helper()
	for {
		port := 10000 + rand.N(22768)
		claim, err := net.Listen("unix", fmt.Sprintf("@pawl-test-port-%d", port))
		if err != nil {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		probe, err := net.Listen("tcp", address)
		if err != nil {
			claim.Close()
			continue
		}
		probe.Close()
		t.Cleanup(func() { claim.Close() })
		return address
	}
}

func name(i int) string { return string(rune('a' + i)) }

func (c *Cluster) config(i int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "[node]\nname = %s\nstate_dir = %s\nlisten_peer = %s\nlisten_client = %s\n",
		name(i), filepath.Join(c.folder, "state-"+name(i)), c.peers[i], c.Clients[i])
	text.WriteString("[cluster]\nname = test\n[cluster.masters]\n")
	for j, peer := range c.peers {
		fmt.Fprintf(&text, "%s = %s\n", name(j), peer)
	}
	path := filepath.Join(c.folder, name(i)+".conf")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *Cluster) start(i int) {
	c.t.Helper()
	n := &node{voting: make(chan struct{}), ended: make(chan struct{})}
	cmd := exec.Command(c.pawld, "--config", c.config(i))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		// The kernel ends the node when the thread that has started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-n.ended
	}()
	if err := <-started; err != nil {
		close(n.ended)
		c.t.Fatal(err)
	}
	n.process = cmd.Process
	c.nodes[i] = n
	go func() {
		n.read(out)
		_ = cmd.Wait()
		close(n.ended)
	}()
}

func (n *node) read(out io.Reader) {
	votes := sync.OnceFunc(func() { close(n.voting) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n.mu.Lock()
		n.lines = append(n.lines, lines.Text())
		n.mu.Unlock()
		if strings.Contains(" "+lines.Text()+" ", " voting ") {
			votes()
		}
	}
}

func (n *node) log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

func (c *Cluster) await(i int) {
	c.t.Helper()
	n := c.nodes[i]
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-n.voting:
		return
	case <-n.ended:
	case <-timer.C:
	}
	c.t.Fatalf("node %s does not vote:\n%s", name(i), n.log())
}

// Kill ends a node as a crash does.
func (c *Cluster) Kill(i int) {
	_ = c.nodes[i].process.Kill()
	<-c.nodes[i].ended
}

// Restart starts a node that was killed, and does not wait until it votes.
func (c *Cluster) Restart(i int) { c.start(i) }

// Stop stops a node, which then hangs, until Continue.
func (c *Cluster) Stop(i int) { _ = c.nodes[i].process.Signal(syscall.SIGSTOP) }

// Continue lets a stopped node go on.
func (c *Cluster) Continue(i int) { _ = c.nodes[i].process.Signal(syscall.SIGCONT) }

// Votes waits until a node votes, for up to d.
func (c *Cluster) Votes(i int, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.nodes[i].voting:
		return nil
	case <-timer.C:
		return errors.New("it does not vote: " + c.nodes[i].log())
	}
}

func (c *Cluster) end() {
	for i, n := range c.nodes {
		if n == nil {
			continue
		}
		_ = n.process.Signal(syscall.SIGCONT)
		_ = n.process.Kill()
		<-n.ended
		if c.t.Failed() {
			c.t.Logf("node %s:\n%s", name(i), n.log())
		}
	}
}
