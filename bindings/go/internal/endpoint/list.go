package endpoint

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// placesMax is how many addresses of one name are used.
const placesMax = 32

// Place is where a name leads to. Rank orders the places of a name: chance decides only among those
// of the same rank.
type Place struct {
	Host, Port, Address string
	Rank                int
}

// List is the endpoints of a client. What the program and its files name are the sources; each gives
// one endpoint or several. Look-ups and files change the list while the client runs.
type List struct {
	given   []string
	shuffle bool
	seen    []stamp
	sources []Endpoint
	places  map[string][]Place
	// Items are the endpoints.
	Items []Endpoint
	// Problem says why the files as they are now cannot be used, so that what was read before is
	// still in use; empty if they can.
	Problem string
}

// NewList reads the endpoints, each of which may be several that are separated by commas. shuffle:
// chance decides the order of the addresses of a name.
func NewList(endpoints []string, shuffle bool) (*List, error) {
	l := &List{shuffle: shuffle, places: map[string][]Place{}}
	for _, one := range endpoints {
		l.given = append(l.given, strings.Split(one, ",")...)
	}
	l.seen = stamps(l.given)
	sources, err := parse(l.given)
	if err != nil {
		return nil, err
	}
	l.sources = sources
	l.fill()
	return l, nil
}

// UsesTLS returns whether some endpoint is encrypted.
func (l *List) UsesTLS() bool {
	return slices.ContainsFunc(l.sources, func(e Endpoint) bool { return e.TLS })
}

// fill makes the list. Each source has at least one endpoint, and the last ones of those with many
// are left out if there are too many in all.
func (l *List) fill() {
	var items []Endpoint
	for i, source := range l.sources {
		room := Max - len(items) - (len(l.sources) - 1 - i)
		found := expand(source, l.places[source.Text])
		items = append(items, found[:min(len(found), room)]...)
	}
	l.Items = items
}

// expand returns the endpoints that a source stands for. One address of each family is still the
// address of one node, and is not written.
func expand(given Endpoint, places []Place) []Endpoint {
	if len(places) == 0 {
		return []Endpoint{given}
	}
	var found []Endpoint
	for _, p := range places {
		e := given
		e.Host, e.Port, e.Address, e.SRV = p.Host, p.Port, p.Address, false
		e.Text = p.Host + ":" + p.Port
		if given.TLS {
			e.Text = "tls://" + e.Text
		}
		if severalOfAFamily(places, p) {
			e.Text += "@" + p.Address
		}
		found = append(found, e)
	}
	return found
}

func severalOfAFamily(places []Place, of Place) bool {
	seen := map[bool]int{}
	for _, p := range places {
		if p.Host == of.Host && p.Port == of.Port {
			a, _ := netip.ParseAddr(p.Address)
			seen[a.Unmap().Is4()]++
		}
	}
	return seen[true] > 1 || seen[false] > 1
}

// ReadAgain reads the files again if any has changed. If that fails, the list stays as it is, and
// Problem says why.
func (l *List) ReadAgain() {
	seen := stamps(l.given)
	if slices.EqualFunc(seen, l.seen, stamp.same) {
		return
	}
	l.seen = seen
	sources, err := parse(l.given)
	if err != nil {
		l.Problem = "; what was read before is still in use: " + err.Error()
		return
	}
	l.sources, l.Problem = sources, ""
	l.fill()
}

// Find returns the index of this endpoint; or else that of the first one of the same source; or else
// `otherwise`, or the last index if that is less.
func (l *List) Find(e Endpoint, otherwise int) int {
	first := -1
	for i, item := range l.Items {
		if item.Same(e) {
			return i
		}
		if first < 0 && item.Source == e.Source {
			first = i
		}
	}
	if first >= 0 {
		return first
	}
	return min(otherwise, len(l.Items)-1)
}

// Source returns what has led to the endpoint, as it was written.
func (l *List) Source(e Endpoint) (Endpoint, bool) {
	for _, source := range l.sources {
		if source.Text == e.Source {
			return source, true
		}
	}
	return Endpoint{}, false
}

// Found takes what a look-up has found. Places that were known before keep their order, and new ones
// follow.
func (l *List) Found(source string, places []Place) {
	if len(places) > placesMax {
		places = places[:placesMax]
	}
	var merged []Place
	for _, old := range l.places[source] {
		if i := slices.IndexFunc(places, old.same); i >= 0 {
			merged = append(merged, places[i])
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(places), func(p Place) bool {
		return slices.ContainsFunc(merged, p.same)
	})
	if l.shuffle {
		rand.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	}
	merged = append(merged, fresh...)
	slices.SortStableFunc(merged, func(a, b Place) int { return a.Rank - b.Rank })
	l.places[source] = merged
	l.fill()
}

func (p Place) same(o Place) bool {
	return p.Host == o.Host && p.Port == o.Port && p.Address == o.Address
}
