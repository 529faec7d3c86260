package pawl_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
)

func TestAClientReachesANodeByItsSocket(t *testing.T) {
	leak.Check(t)
	path := "unix:" + filepath.Join(t.TempDir(), "pawld.sock")
	server := pawltest.Start(t, "--listen", path)
	if server.Endpoint != path {
		t.Errorf("it listens at %s", server.Endpoint)
	}
	if _, err := server.Client(t).Lock(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// answer answers a question of a resolver: a SRV record of _pawl._tcp.test leads to the port of
// node.test, whose only address is 127.0.0.1.
func answer(question []byte, port uint16) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	var data []byte
	switch kind {
	case 1: // A
		data = []byte{127, 0, 0, 1}
	case 33: // SRV
		data = binary.BigEndian.AppendUint16([]byte{0, 0, 0, 0}, port)
		data = append(data, "\x04node\x04test\x00"...)
	}
	reply := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end+5]...)
	if data != nil {
		reply[7] = 1
		reply = append(reply, 0xc0, 12)
		reply = binary.BigEndian.AppendUint16(reply, kind)
		reply = append(reply, 0, 1, 0, 0, 0, 60)
		reply = binary.BigEndian.AppendUint16(reply, uint16(len(data)))
		reply = append(reply, data...)
	}
	return reply
}

// resolve serves the questions that come over a connection, in the form that DNS has over TCP.
func resolve(conn net.Conn, port uint16) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		reply := answer(question, port)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func TestAClientReachesNodesBySRVRecords(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	_, text, _ := net.SplitHostPort(server.Endpoint)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	usual := net.DefaultResolver
	defer func() { net.DefaultResolver = usual }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go resolve(there, uint16(port))
		return here, nil
	}}
	c, err := pawl.Dial(t.Context(), pawl.WithEndpoints("srv:_pawl._tcp.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if want := "node.test:" + text; c.Node() != want {
		t.Errorf("the client is at %s and not at %s", c.Node(), want)
	}
	if _, err := c.Lock(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// certificate makes a certificate for localhost that vouches for itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// encrypted listens with TLS, and carries what comes to the server.
func encrypted(t *testing.T, server *pawltest.Server, config *tls.Config) (endpoint string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { listener.Close(); all.Wait() })
	carry := func(to, from net.Conn) {
		defer to.Close()
		_, _ = io.Copy(to, from)
	}
	all.Go(func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", server.Endpoint)
			if err != nil {
				here.Close()
				continue
			}
			all.Go(func() { carry(there, here) })
			all.Go(func() { carry(here, there) })
		}
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return "tls://localhost:" + port + "@127.0.0.1"
}

func TestAClientUsesTheTLSConfigurationOfTheProgram(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	own, trusted := certificate(t)
	serving := &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	endpoint := encrypted(t, server, serving)
	old := serving.Clone()
	old.MaxVersion = tls.VersionTLS12
	good := &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}}
	stranger := good.Clone()
	stranger.RootCAs = x509.NewCertPool()
	named := good.Clone()
	named.ServerName = "elsewhere"
	for _, one := range []struct {
		what     string
		endpoint string
		config   *tls.Config
		ok       bool
	}{
		{"its own", endpoint, good, true}, {"no authority", endpoint, stranger, false},
		{"another name", endpoint, named, false}, {"TLS 1.2", encrypted(t, server, old), good, false},
	} {
		c, err := pawl.Dial(t.Context(), pawl.WithEndpoints(one.endpoint), pawl.WithTLSConfig(one.config))
		if one.ok != (err == nil) || !one.ok && !errors.Is(err, pawl.ErrTLS) {
			t.Errorf("%s: %v", one.what, err)
		}
		if err == nil {
			if _, err := c.Lock(t.Context(), "k"); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	}
}

func panics(f func()) (why any) {
	defer func() { why = recover() }()
	f()
	return nil
}

func TestALockerExcludesAndSaysMistakesByPanics(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	inside := 0
	var all sync.WaitGroup
	for range 3 {
		c, err := pawl.Dial(t.Context(), pawl.WithEndpoints(server.Endpoint))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		k := c.Locker("k", pawl.Lease(time.Minute))
		for range 2 {
			all.Go(func() {
				for range 5 {
					k.Lock()
					if inside++; inside != 1 {
						t.Errorf("%d are inside", inside)
					}
					inside--
					k.Unlock()
				}
			})
		}
	}
	all.Wait()
	c := server.Client(t)
	k := c.Locker("k")
	if why, _ := panics(k.Unlock).(string); !strings.Contains(why, "not locked") {
		t.Errorf("an Unlock too many: %q", why)
	}
	c.Close()
	if why, _ := panics(k.Lock).(error); !errors.Is(why, pawl.ErrClosed) {
		t.Errorf("a closed client: %v", why)
	}
}

func TestAReleaseMayKeepTheKeyClosed(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, other := server.Client(t), server.Client(t)
	l, err := c.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ReleaseAndClose(t.Context(), -1); !errors.Is(err, pawl.ErrBadArgument) || l.Err() != nil {
		t.Errorf("%v %v", err, l.Err())
	}
	began := time.Now()
	if err := l.ReleaseAndClose(t.Context(), 400*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if entry, err := other.Get(t.Context(), "k", pawl.Quorum()); err != nil || entry.Held || !entry.Closing {
		t.Errorf("%+v %v", entry, err)
	}
	if _, err := other.Lock(t.Context(), "k", pawl.Wait(10*time.Second)); err != nil || time.Since(began) < 400*time.Millisecond {
		t.Errorf("the next one has it after %v: %v", time.Since(began), err)
	}
}

func TestTheNodesHearOfAShorterLease(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	other := server.Client(t)
	for _, options := range [][]pawl.LockOption{nil, {pawl.Permits(2, 3)}, {pawl.ReleaseOnDisconnect()}} {
		c := server.Client(t)
		l, err := c.Lock(t.Context(), "k", append(options, pawl.Lease(time.Minute))...)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Shorten(t.Context(), 2*time.Second); err != nil {
			t.Fatal(err)
		}
		entry, err := other.Get(t.Context(), "k", pawl.Quorum())
		if err != nil || entry.Holder.HeldAtMost > 3*time.Second || l.Valid() > 2*time.Second || l.Valid() < time.Second {
			t.Errorf("%v: %+v %v", l.Valid(), entry, err)
		}
		if err := l.Extend(t.Context(), time.Minute); err != nil || l.Valid() < 50*time.Second {
			t.Errorf("extended: %v %v", l.Valid(), err)
		}
		c.Close()
	}
	set, err := other.Locks(t.Context(), []string{"a", "b"}, pawl.Lease(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Shorten(t.Context(), 2*time.Second); err != nil || set.Valid() > 2*time.Second || set.Valid() == 0 {
		t.Errorf("%v %v", set.Valid(), err)
	}
	if err := set.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAShortenedLockEndsWithItsConnectionAllTheSame(t *testing.T) {
	leak.Check(t)
	server := pawltest.Start(t)
	c, other := server.Client(t), server.Client(t)
	l, err := c.Lock(t.Context(), "k", pawl.Lease(time.Minute), pawl.ReleaseOnDisconnect())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Shorten(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	c.Abandon() // The connection is closed, and nothing is released.
	if _, err := other.Lock(t.Context(), "k", pawl.Wait(10*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestDoHandsOnItsLock(t *testing.T) {
	leak.Check(t)
	c := pawltest.Start(t).Client(t)
	if pawl.FromContext(t.Context()) != nil {
		t.Error("a lock out of nothing")
	}
	err := c.Do(t.Context(), "k", func(ctx context.Context, token uint64) error {
		l := pawl.FromContext(ctx)
		gated, valid, err := l.Gate(time.Second)
		if gated != token || valid < time.Second || err != nil {
			t.Errorf("%d %v %v", gated, valid, err)
		}
		_, _, err = l.Gate(time.Hour)
		var lost *pawl.LostError
		if !errors.As(err, &lost) || lost.Left == 0 || l.Err() != nil {
			t.Errorf("a write that takes too long: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
