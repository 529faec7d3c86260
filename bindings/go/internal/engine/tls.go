package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"example.org/pawl/internal/fault"
)

// TLSFiles is the files of certificates, which are read again for each new connection if they have
// changed. Files that cannot be used then change nothing.
type TLSFiles struct {
	// CA is the file of the authorities; Cert and Key are the client's own certificate, or empty.
	CA, Cert, Key string
	// ServerName is the name that the certificate of a node must carry; empty: its host.
	ServerName string
	// Base is a configuration of the program's own, in place of the files; or nil.
	Base *tls.Config

	seen    string
	config  *tls.Config
	problem string
}

func (f *TLSFiles) stamp() string {
	text := ""
	for _, path := range []string{f.CA, f.Cert, f.Key} {
		if info, err := os.Stat(path); err == nil {
			text += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Sys(), ";")
		}
	}
	return text
}

// Load reads the files, if they have changed. The error is that of the first time.
func (f *TLSFiles) Load() error {
	if f.Base != nil {
		f.config = f.Base.Clone()
		f.config.MinVersion = max(f.config.MinVersion, tls.VersionTLS13)
		return nil
	}
	seen := f.stamp()
	if f.config != nil && seen == f.seen {
		return nil
	}
	f.seen = seen
	config, err := f.read()
	if err != nil {
		if f.config == nil {
			return err
		}
		f.problem = "; what was read before is still in use: " + err.Error()
		return nil
	}
	f.config, f.problem = config, ""
	return nil
}

func (f *TLSFiles) read() (*tls.Config, error) {
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: it has no certificate", f.CA)
	}
	if f.Cert == "" && f.Key == "" {
		return config, nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a certificate and its key must be given together: " +
			"WithTLSFiles, or PAWL_CERT and PAWL_CERT_KEY")
	}
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", f.Cert, f.Key, err)
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}

// wrap makes the connection an encrypted one.
func (f *TLSFiles) wrap(ctx context.Context, conn net.Conn, host string) (net.Conn, *fault.Error) {
	config := f.config.Clone()
	if f.ServerName != "" {
		host = f.ServerName
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	secure := tls.Client(conn, config)
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		var network net.Error
		if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
			return nil, fault.New("unreachable", "the handshake took too long")
		}
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "read" {
			return nil, fault.New("unreachable", "%s", err.Error())
		}
		return nil, fault.New("tls", "%s%s", tlsText(err), f.problem)
	}
	_ = conn.SetDeadline(time.Time{})
	return secure, nil
}

const rejected = "the node rejects this client's certificate: the node's log says why"

// alerts has what the alerts of a node mean, by the text that crypto/tls has for each.
var alerts = map[string]string{
	"tls: certificate required": "the node requires a client certificate: give one and its key " +
		"(WithTLSFiles, or PAWL_CERT and PAWL_CERT_KEY)",
	"tls: unknown certificate authority": "this client's certificate is not signed by an authority " +
		"that the node trusts: does it belong to this cluster?",
	"tls: revoked certificate": "the node rejects this client's certificate, which is revoked: use " +
		"another one (pawl cert client NAME)",
	"tls: expired certificate": "this client's certificate has expired: issue a new one (pawl cert " +
		"client NAME), or check the clock of the node",
	"tls: bad certificate":                rejected,
	"tls: unknown certificate":            rejected,
	"tls: unsupported certificate":        rejected,
	"tls: protocol version not supported": "the server there does not speak TLS 1.3",
}

// alertOf returns the alert that the other side has sent, or nil. crypto/tls has no type for it: a
// tls.AlertError is of QUIC only.
func alertOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err
	}
	return nil
}

// tlsText returns a sentence for an error of TLS, which says what to do if that is known.
func tlsText(err error) string {
	if alert := alertOf(err); alert != nil {
		if text := alerts[alert.Error()]; text != "" {
			return text
		}
	}
	if errors.As(err, new(tls.RecordHeaderError)) {
		return "what is there does not speak TLS; for a port without TLS leave out tls://"
	}
	return err.Error()
}
