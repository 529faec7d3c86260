package hole

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// A path is the network between one candidate and the API server. Requests and answers take a few
// milliseconds each, until fail is called.
type path struct {
	server http.RoundTripper

	mu      sync.Mutex
	armed   bool
	late    time.Duration
	cut     bool
	renewed chan struct{} // closed when the renewal whose answer is late has been committed
}

func newPath(server http.RoundTripper) *path {
	return &path{server: server, renewed: make(chan struct{})}
}

// fail makes the answer of the next renewal late, and lets nothing through afterwards. With 0 the
// answer comes as it always did.
func (p *path) fail(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.late = true, late
}

func (p *path) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	cut := p.cut
	late := time.Duration(0)
	last := p.armed && !cut && r.Method == http.MethodPut
	if last {
		p.cut, late = true, p.late
	}
	p.mu.Unlock()
	if cut {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := pass(r.Context(), some()); err != nil {
		return nil, err
	}
	response, err := p.server.RoundTrip(r)
	if last {
		close(p.renewed)
	}
	if err != nil {
		return nil, err
	}
	if err := pass(r.Context(), some()+late); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

func some() time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) }

// pass waits, or returns the error of the context if that ends before.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// memory hands a request to a server of the same process, without a socket.
type memory struct{ http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}
