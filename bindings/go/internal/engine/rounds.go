package engine

import (
	"math/rand/v2"
	"time"

	"example.org/pawl/internal/endpoint"
	"example.org/pawl/internal/fault"
)

const (
	pauseFirst = 50 * time.Millisecond
	pauseLast  = time.Second
)

// rounds decides which endpoint is next, and when. The endpoints take turns, with a pause after a
// round in which all have failed.
type rounds struct {
	list *endpoint.List
	at   int
	// How many endpoints have failed in this round, and how many of them for reasons that do not
	// pass by themselves.
	failed, failedForGood, roundsFailed int
	// In the last round all have failed for such reasons.
	hopeless bool
}

func newRounds(list *endpoint.List, preferFirst bool) rounds {
	r := rounds{list: list}
	if !preferFirst {
		r.at = rand.IntN(len(list.Items))
	}
	return r
}

func (r *rounds) count() int                 { return len(r.list.Items) }
func (r *rounds) present() endpoint.Endpoint { return r.list.Items[r.at] }

func (r *rounds) readAgain() {
	next := r.present()
	r.list.ReadAgain()
	r.at = r.list.Find(next, r.at)
}

func (r *rounds) found(source string, places []endpoint.Place) {
	next := r.present()
	r.list.Found(source, places)
	r.at = r.list.Find(next, r.at)
}

func (r *rounds) use(e endpoint.Endpoint) { r.at = r.list.Find(e, r.at) }

// others returns all endpoints but the present one, in turn; last comes last.
func (r *rounds) others(present endpoint.Endpoint, last *Link) []endpoint.Endpoint {
	at := r.list.Find(present, r.at)
	var found, end []endpoint.Endpoint
	for i := 1; i <= r.count(); i++ {
		one := r.list.Items[(at+i)%r.count()]
		switch {
		case one.Same(present):
		case last != nil && one.Same(last.endpoint):
			end = append(end, one)
		default:
			found = append(found, one)
		}
	}
	return append(found, end...)
}

// good notes that the present endpoint has answered.
func (r *rounds) good() { r.failed, r.failedForGood, r.roundsFailed = 0, 0, 0 }

// goOn leaves the present endpoint, which is of no use. true: all endpoints have failed in this
// round.
func (r *rounds) goOn(err *fault.Error) bool {
	r.failed++
	if err != nil && (err.Code == "tls" || err.Code == "denied") {
		r.failedForGood++
	}
	r.at = (r.at + 1) % r.count()
	if r.failed < r.count() {
		return false
	}
	r.hopeless = r.failedForGood >= r.count()
	r.failed, r.failedForGood = 0, 0
	return true
}

// pause returns for how long to pause. It is random, so that the clients of a dead node do not all
// come back at the same moment.
func (r *rounds) pause(longest time.Duration) time.Duration {
	pause := min(pauseLast, pauseFirst<<min(r.roundsFailed, 5), longest)
	r.roundsFailed++
	return time.Duration(float64(pause) * (0.5 + rand.Float64()))
}
