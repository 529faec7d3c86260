package nodes

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Network is what lies between one client and all nodes: a proxy for each node.
type Network struct {
	endpoints []string
	listeners []net.Listener

	mu    sync.Mutex
	late  time.Duration
	drawn bool
	open  chan struct{} // closed while it is not cut
	conns map[net.Conn]struct{}
	over  bool
	wait  sync.WaitGroup
}

// Network returns a network of its own for a client. It ends with the test.
func (c *Cluster) Network(t testing.TB) *Network {
	t.Helper()
	n := &Network{conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(n.open)
	for _, address := range c.Clients {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.listeners = append(n.listeners, l)
		n.endpoints = append(n.endpoints, l.Addr().String())
		n.wait.Go(func() { n.accept(l, address) })
	}
	t.Cleanup(n.end)
	return n
}

// Endpoints returns the endpoints for a client that goes through this network.
func (n *Network) Endpoints() string { return strings.Join(n.endpoints, ",") }

// Late makes each answer late by d, in order; with 0 they come at once again.
func (n *Network) Late(d time.Duration) { n.delay(d, false) }

// Slow makes each answer late by a time drawn from 0 to most.
func (n *Network) Slow(most time.Duration) { n.delay(most, true) }

func (n *Network) delay(d time.Duration, drawn bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late, n.drawn = d, drawn
}

// Cut stops everything in both directions while it is true, and closes nothing. What came meanwhile
// arrives afterwards.
func (n *Network) Cut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.open:
		if cut {
			n.open = make(chan struct{})
		}
	default:
		if !cut {
			close(n.open)
		}
	}
}

func (n *Network) end() {
	n.Cut(false)
	n.mu.Lock()
	n.over = true
	for _, l := range n.listeners {
		l.Close()
	}
	for c := range n.conns {
		c.Close()
	}
	n.mu.Unlock()
	n.wait.Wait()
}

func (n *Network) accept(l net.Listener, address string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		if !n.keep(from) {
			return
		}
		n.wait.Go(func() {
			n.pass()
			to, err := net.Dial("tcp", address)
			if err != nil || !n.keep(to) {
				n.drop(from)
				return
			}
			n.wait.Go(func() { n.carry(from, to, false) })
			n.carry(to, from, true)
		})
	}
}

func (n *Network) keep(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		c.Close()
		return false
	}
	n.conns[c] = struct{}{}
	return true
}

func (n *Network) drop(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.Close()
	delete(n.conns, c)
}

// pass waits while the network is cut.
func (n *Network) pass() {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	<-open
}

func (n *Network) lateness() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drawn && n.late > 0 {
		return rand.N(n.late)
	}
	return n.late
}

type piece struct {
	data []byte
	due  time.Time
}

// carry takes what comes to the other side, in order; answers may be late.
func (n *Network) carry(from, to net.Conn, answers bool) {
	pieces := make(chan piece, 1024)
	n.wait.Go(func() {
		defer n.drop(to)
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			n.pass()
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		for range pieces {
		}
	})
	defer close(pieces)
	defer n.drop(from)
	buffer := make([]byte, 64<<10)
	for {
		size, err := from.Read(buffer)
		if err != nil {
			return
		}
		p := piece{data: append([]byte(nil), buffer[:size]...), due: time.Now()}
		if answers {
			p.due = p.due.Add(n.lateness())
		}
		pieces <- p
	}
}
