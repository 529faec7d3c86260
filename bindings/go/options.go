package pawl

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"example.org/pawl/internal/clock"
	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/engine"
)

// An Option sets one thing of a client. What no option sets comes from the environment.
type Option func(*dialOptions)

type dialOptions struct {
	endpoints   []string
	preferFirst bool
	tls         engine.TLSFiles
	owner       string
	label       string
	timeout     time.Duration
	connect     time.Duration
	silence     time.Duration
	trace       string
	logger      *slog.Logger
	hooks       Hooks
	clock       clock.Clock
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
}

// WithEndpoints names the nodes to ask: host:port, tls://host:port, either of them with @address,
// unix:/path, srv:NAME, tls://srv:NAME or file:PATH. Each may be several that are separated by
// commas. Each address of a host is an endpoint of its own. The default is PAWL_ENDPOINTS, or else
// 127.0.0.1:7117.
func WithEndpoints(endpoints ...string) Option {
	return func(o *dialOptions) { o.endpoints = endpoints }
}

// WithPreferFirst begins with the first endpoint, and returns to it after it had to be left. The
// default is to begin with one by chance, or PAWL_PREFER_FIRST.
func WithPreferFirst() Option { return func(o *dialOptions) { o.preferFirst = true } }

// WithTLSFiles names the PEM files for tls:// endpoints: the authorities that may vouch for nodes,
// and the client's own certificate and its key, which may be empty. They are read again for each
// new connection if they have changed. The default is PAWL_CACERT, PAWL_CERT and PAWL_CERT_KEY.
func WithTLSFiles(ca, cert, key string) Option {
	return func(o *dialOptions) { o.tls.CA, o.tls.Cert, o.tls.Key = ca, cert, key }
}

// WithTLSConfig uses this configuration for tls:// endpoints in place of files. It is raised to
// TLS 1.3. An empty ServerName means the host of each endpoint.
func WithTLSConfig(config *tls.Config) Option {
	return func(o *dialOptions) { o.tls.Base = config }
}

// WithServerName sets the name that the certificate of a node must carry, in place of the host of
// its endpoint. The default is PAWL_SERVER_NAME.
func WithServerName(name string) Option { return func(o *dialOptions) { o.tls.ServerName = name } }

// WithOwner sets the owner of locks that name none; others see it. The default is host:pid.
func WithOwner(owner string) Option { return func(o *dialOptions) { o.owner = owner } }

// WithLabel sets the label of locks that name none, a free text of at most 128 bytes.
func WithLabel(label string) Option { return func(o *dialOptions) { o.label = label } }

// WithTimeout sets how long a request may take over all nodes that are tried, beyond the time that
// it may wait. The default is 5 s.
func WithTimeout(d time.Duration) Option { return func(o *dialOptions) { o.timeout = d } }

// WithConnectTimeout sets how long the client tries to connect to one endpoint. The default is 1 s,
// and while locks are held at most a sixth of the shortest lease.
func WithConnectTimeout(d time.Duration) Option { return func(o *dialOptions) { o.connect = d } }

// WithSilence sets how long a node that owes an answer may be silent before the client gives it up.
// The default is 2 s, and while locks are held at most a sixth of the shortest lease. If there are
// several endpoints, a node that answers neither a request nor a ping is left much sooner.
func WithSilence(d time.Duration) Option { return func(o *dialOptions) { o.silence = d } }

// WithTrace sets the traceparent (W3C Trace Context) of the client's requests, which nodes write
// into their logs and audit files. The default is TRACEPARENT.
func WithTrace(traceparent string) Option { return func(o *dialOptions) { o.trace = traceparent } }

// WithLogger sets where the client logs what a program should know and nobody returns to it: that a
// lock was lost, or dropped without a release. The default is slog.Default().
func WithLogger(logger *slog.Logger) Option { return func(o *dialOptions) { o.logger = logger } }

// WithHooks sets functions that are told what the client does.
func WithHooks(hooks Hooks) Option { return func(o *dialOptions) { o.hooks = hooks } }

// WithDialer sets the function that makes connections, in place of a net.Dialer.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(o *dialOptions) { o.dial = dial }
}

// withClock is for tests.
func withClock(c clock.Clock) Option { return func(o *dialOptions) { o.clock = c } }

var traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Hooks are functions that a client calls, for metrics and traces. Each may be nil. They are called
// one at a time for each client, in order, and must not block for long.
type Hooks struct {
	// RequestStarted is called before a request of the program is sent, also for an Extend, a Shorten
	// and a Release, but not for what the client does by itself, such as renewals. It may set the
	// traceparent of the request. The function that it returns, if any, is called with the outcome.
	RequestStarted func(ctx context.Context, r *Request) (ended func(error))
	// Acquired is called when a lock was acquired; waited is how long that took.
	Acquired func(key string, token uint64, waited time.Duration)
	// Lost is called when a lock is lost or is about to be.
	Lost func(*LostError)
	// Connected is called with the endpoint of each new connection.
	Connected func(endpoint string)
}

// Request is a request of the program, as a hook sees it.
type Request struct {
	// Method is that of the client protocol, and Key the key that it is about, the first one if there
	// are several; it may be empty.
	Method, Key string
	// Trace is the traceparent (W3C Trace Context) that the nodes are told. If the hook leaves it empty,
	// or sets something else, it is that of the client (WithTrace).
	Trace string
}

func fromEnvironment() dialOptions {
	o := dialOptions{timeout: 5 * time.Second, connect: time.Second, silence: 2 * time.Second}
	if o.endpoints = []string{os.Getenv("PAWL_ENDPOINTS")}; o.endpoints[0] == "" {
		o.endpoints = []string{"127.0.0.1:7117"}
	}
	o.preferFirst = os.Getenv("PAWL_PREFER_FIRST") != ""
	o.tls.CA, o.tls.Cert = os.Getenv("PAWL_CACERT"), os.Getenv("PAWL_CERT")
	o.tls.Key, o.tls.ServerName = os.Getenv("PAWL_CERT_KEY"), os.Getenv("PAWL_SERVER_NAME")
	if trace := os.Getenv("TRACEPARENT"); traceForm.MatchString(trace) {
		o.trace = trace
	}
	return o
}

// config checks the options, and returns what the engine needs of them.
func (o *dialOptions) config() (engine.Config, error) {
	for _, one := range []struct {
		name string
		d    time.Duration
	}{{"timeout", o.timeout}, {"connect timeout", o.connect}, {"silence", o.silence}} {
		if one.d < time.Millisecond {
			return engine.Config{}, badArgument("the %s must be at least a millisecond", one.name)
		}
	}
	if o.trace != "" && !traceForm.MatchString(o.trace) {
		return engine.Config{}, badArgument("trace: %q is no traceparent", o.trace)
	}
	list, err := endpoint.NewList(o.endpoints, !o.preferFirst)
	if err != nil {
		return engine.Config{}, badArgument("%s", err.Error())
	}
	c := engine.Config{Endpoints: list, PreferFirst: o.preferFirst, ConnectTimeout: o.connect,
		Silence: o.silence, Timeout: o.timeout, Trace: o.trace, Clock: o.clock, Dial: o.dial,
		Logger: o.logger}
	if o.tls.CA != "" || o.tls.Base != nil {
		c.TLS = &o.tls
		if err := c.TLS.Load(); err != nil {
			return engine.Config{}, &Error{Code: "tls", Message: err.Error()}
		}
	} else if list.UsesTLS() {
		return engine.Config{}, &Error{Code: "tls",
			Message: "a tls:// endpoint needs a file of authorities: WithTLSFiles or PAWL_CACERT"}
	}
	return c, nil
}

func hostAndPid() (host, owner string) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	host = strings.ToValidUTF8(host[:min(len(host), 64)], "")
	return host, fmt.Sprintf("%s:%d", host, os.Getpid())
}
