package hole

import (
	"net/http"
	"net/http/httptest"

	"example.org/pawl/k8s/internal/elections"
)

// transport takes the requests of a candidate over its path. A renewal is a PUT.
type transport struct {
	path   *elections.Path
	server http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	failed := t.path.Do(r.Context(), r.Method == http.MethodPut, func() error {
		response, err = t.server.RoundTrip(r)
		return err
	})
	if failed != nil && response != nil {
		response.Body.Close()
		response = nil
	}
	return response, failed
}

// memory hands a request to a server of the same process, without a socket.
type memory struct{ http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// redirected sends every request to one address.
type redirected struct{ address string }

func (r redirected) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Host = r.address
	return http.DefaultTransport.RoundTrip(request)
}
