// Package endpoint reads the endpoints of nodes as they are written: host:port, tls://host:port,
// either of them with @address, unix:/path, srv:name, tls://srv:name and file:path.
package endpoint

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Max is how many endpoints a client has at most.
const Max = 64

// Endpoint is one address of one node, or a name that has to be looked up first.
type Endpoint struct {
	// Text is how messages name it.
	Text string
	// Source is the text that has led to it.
	Source string
	// Host is what the certificate must carry. Path is that of a Unix socket, without a host.
	Host, Port, Path string
	// TLS: the connection is encrypted.
	TLS bool
	// SRV: Host is the name of SRV records.
	SRV bool
	// Address is that of the host; empty: it must be looked up.
	Address string
}

// IsName returns whether it must be looked up.
func (e Endpoint) IsName() bool { return e.Path == "" && e.Address == "" }

// Dial returns the network and the address to connect to.
func (e Endpoint) Dial() (network, address string) {
	if e.Path != "" {
		return "unix", e.Path
	}
	return "tcp", net.JoinHostPort(e.Address, e.Port)
}

// Hint is the end of an error message about a node that accepted the connection and never sent
// anything.
func (e Endpoint) Hint() string {
	if e.Path != "" || e.TLS {
		return ""
	}
	return ", which has said nothing at all; write tls://" + e.Text + " for a port with TLS"
}

// Same returns whether both stand for the same address of the same source.
func (e Endpoint) Same(o Endpoint) bool {
	return e.Source == o.Source && e.Host == o.Host && e.Port == o.Port && e.Address == o.Address
}

// ParseOne reads one endpoint, which is no file. The error names what is wrong.
func ParseOne(text string) (Endpoint, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			return Endpoint{}, fmt.Errorf("endpoint %q: the path of a Unix socket must begin with /", text)
		}
		return Endpoint{Text: text, Source: text, Path: path}, nil
	}
	e := Endpoint{Text: text, Source: text}
	wrong := fmt.Errorf("endpoint %q is neither host:port, tls://host:port, unix:/path, srv:name nor file:path", text)
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		if scheme != "tls" {
			return Endpoint{}, wrong
		}
		rest, e.TLS = after, true
	}
	if strings.ContainsAny(rest, ";, ") {
		return Endpoint{}, fmt.Errorf("endpoint %q: several endpoints are a list, or separated by commas alone", text)
	}
	if name, ok := strings.CutPrefix(rest, "srv:"); ok {
		if name == "" {
			return Endpoint{}, fmt.Errorf("endpoint %q: the name of SRV records is empty", text)
		}
		e.Host, e.SRV = name, true
		return e, nil
	}
	rest, address, at := strings.Cut(rest, "@")
	if at && !isAddress(address) {
		return Endpoint{}, fmt.Errorf("endpoint %q: what follows @ must be an address", text)
	}
	return e, e.hostAndPort(rest, address, wrong)
}

func (e *Endpoint) hostAndPort(rest, address string, wrong error) error {
	colon := strings.LastIndexByte(rest, ':')
	if colon <= 0 {
		return wrong
	}
	host, port := rest[:colon], rest[colon+1:]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.Contains(host, ":") {
		return fmt.Errorf("endpoint %q: write an IPv6 address in brackets, such as [::1]:7117", e.Text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" {
		return wrong
	}
	e.Host, e.Port, e.Address = host, strconv.FormatUint(number, 10), address
	if address == "" && isAddress(host) {
		e.Address = host
	}
	return nil
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
