package fence

import (
	"fmt"
	"net/http"
	"strconv"
)

// TokenHeader is the field of a request that carries the token.
const TokenHeader = "Pawl-Token"

// Handler lets requests pass to the next handler only if their token (Pawl-Token: N) is not below
// that of a newer holder. The name of what the request writes to is up to the resource: `name` returns
// it for each request, usually the key of the lock. Requests that only read (GET, HEAD, OPTIONS) need
// no token. A token that is too old is answered with 412, a missing one with 428, a wrong one with 400,
// and if the store cannot tell with 503; each with a text that says so.
func Handler(store *Store, name func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			next.ServeHTTP(w, r)
			return
		}
		said := r.Header.Values(TokenHeader)
		if len(said) == 0 {
			http.Error(w, "this request needs the token of a lock in the field "+TokenHeader, http.StatusPreconditionRequired)
			return
		}
		token, err := strconv.ParseUint(said[0], 10, 64)
		if err != nil || token == 0 || len(said) > 1 {
			http.Error(w, "the field "+TokenHeader+" must have one token, a decimal number above 0", http.StatusBadRequest)
			return
		}
		what := name(r)
		allowed, highest, err := store.Check(what, token, Exclusive)
		switch {
		case err != nil:
			http.Error(w, "the token cannot be checked: "+err.Error(), http.StatusServiceUnavailable)
		case !allowed:
			http.Error(w, fmt.Sprintf("token %d for %q is too old: a newer holder has been here, with token %d", token, what, highest), http.StatusPreconditionFailed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
