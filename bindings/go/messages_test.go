package pawl_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/pawl"
	"example.org/pawl/pawltest"
)

// authority makes a certificate of 127.0.0.1 that signs itself, and returns its file as well.
func authority(t *testing.T) (own tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// saying listens, and says these bytes to each that has connected and said something.
func saying(t *testing.T, bytes string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve(l, func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			_, _ = io.WriteString(c, bytes)
		}
	})
	return l.Addr().String()
}

func serve(l net.Listener, one func(net.Conn)) {
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				one(c)
			}()
		}
	}()
}

// refused tries to connect, and wants this error with this text, and not the other one.
func refused(t *testing.T, want error, text, not string, options ...pawl.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := pawl.Dial(ctx, append(options, pawl.WithTimeout(time.Second))...)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || not != "" && strings.Contains(err.Error(), not) {
		t.Errorf("%v: it has to be %v with %q, and without %q", err, want, text, not)
	}
}

func TestErrorsOfTLSSayWhatToDo(t *testing.T) {
	own, ca := authority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve(l, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	node := l.Addr().String()
	refused(t, pawl.ErrTLS, "requires a client certificate: give one", "",
		pawl.WithEndpoints("tls://"+node), pawl.WithTLSFiles(ca, "", ""))
	refused(t, pawl.ErrTLS, "must be given together", "",
		pawl.WithEndpoints("tls://"+node), pawl.WithTLSFiles(ca, ca, ""))
	refused(t, pawl.ErrTLS, "leave out tls://", "",
		pawl.WithEndpoints("tls://"+saying(t, "no TLS here")), pawl.WithTLSFiles(ca, "", ""))
	const alert = "\x15\x03\x03\x00\x02\x02\x46"
	refused(t, pawl.ErrTLS, "write tls:// before the host", "", pawl.WithEndpoints(saying(t, alert)))
}

func TestAnAnswerThatIsNotOfPawlIsNoSilence(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "-ERR unknown command\r\n"} {
		refused(t, pawl.ErrProtocol, "is this the client port", "said nothing", pawl.WithEndpoints(saying(t, answer)))
	}
}

func TestErrorsNameTheFieldAndTheLimit(t *testing.T) {
	client := pawltest.Start(t).Client(t)
	for _, c := range []struct {
		key   string
		lease time.Duration
		text  string
	}{
		{"", time.Second, "pawl: bad_request: must not be empty (key)"},
		{"k", time.Hour, "pawl: too_long: the lease is longer than the cluster allows (lease_ms); at most 1m0s"},
		{"k", time.Millisecond, "(lease_ms); at least 100ms"},
	} {
		if _, err := client.Lock(t.Context(), c.key, pawl.Lease(c.lease)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: it has to say %q", err, c.text)
		}
	}
}
