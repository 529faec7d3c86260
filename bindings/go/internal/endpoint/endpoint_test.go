package endpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachFormOfAnEndpointIsRead(t *testing.T) {
	for _, one := range []struct {
		text string
		want Endpoint
	}{
		{"host:7117", Endpoint{Host: "host", Port: "7117"}},
		{"tls://host:7117", Endpoint{Host: "host", Port: "7117", TLS: true}},
		{"127.0.0.1:1", Endpoint{Host: "127.0.0.1", Port: "1", Address: "127.0.0.1"}},
		{"[::1]:7117", Endpoint{Host: "::1", Port: "7117", Address: "::1"}},
		{"tls://host:7117@10.0.0.2", Endpoint{Host: "host", Port: "7117", TLS: true, Address: "10.0.0.2"}},
		{"unix:/run/pawld.sock", Endpoint{Path: "/run/pawld.sock"}},
		{"srv:_pawl._tcp.example.org", Endpoint{Host: "_pawl._tcp.example.org", SRV: true}},
		{"tls://srv:name", Endpoint{Host: "name", SRV: true, TLS: true}},
	} {
		one.want.Text, one.want.Source = one.text, one.text
		if got, err := ParseOne(one.text); err != nil || got != one.want {
			t.Errorf("%s: %+v %v", one.text, got, err)
		}
	}
}

func TestWhatIsNoEndpointIsNamed(t *testing.T) {
	for _, text := range []string{"", "host", "host:0", "host:70000", ":1", "http://host:1", "unix:relative",
		"srv:", "::1:7117", "host:1@name", "a:1 b:2", "tls://unix:/x", "host:1;host:2"} {
		if _, err := ParseOne(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewList([]string{" , "}, false); err == nil {
		t.Error("no endpoint at all is accepted")
	}
	if _, err := NewList([]string{strings.Repeat("h:1,", 64)}, false); err != nil {
		t.Errorf("the same endpoint counts several times: %v", err)
	}
}

func TestAFileIsReadAgainWhenItHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("a:1, b:2 # two\n\n# none\nc:3\n")
	l, err := NewList([]string{"file:" + path}, false)
	if err != nil || len(l.Items) != 3 || l.Items[2].Host != "c" {
		t.Fatalf("%+v %v", l, err)
	}
	write("d:4\nnonsense\n")
	l.ReadAgain()
	if len(l.Items) != 3 || !strings.Contains(l.Problem, "line 2") {
		t.Errorf("%+v %q", l.Items, l.Problem)
	}
	write("d:4\n")
	l.ReadAgain()
	if len(l.Items) != 1 || l.Items[0].Host != "d" || l.Problem != "" {
		t.Errorf("%+v %q", l.Items, l.Problem)
	}
	if _, err := NewList([]string{"file:" + path + ".none"}, false); err == nil {
		t.Error("a missing file is accepted at the start")
	}
}

func TestEachAddressOfANameIsAnEndpoint(t *testing.T) {
	l, err := NewList([]string{"tls://pawl:7117", "other:1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	l.Found("tls://pawl:7117", []Place{{"pawl", "7117", "10.0.0.1", 0}, {"pawl", "7117", "10.0.0.2", 0}, {"pawl", "7117", "::1", 1}})
	if len(l.Items) != 4 || l.Items[2].Address != "::1" || l.Items[3].Host != "other" {
		t.Fatalf("%+v", l.Items)
	}
	for _, item := range l.Items[:2] {
		if item.Text != "tls://pawl:7117@"+item.Address || !item.TLS {
			t.Errorf("%+v", item)
		}
	}
	first := l.Items[0].Address
	l.Found("tls://pawl:7117", []Place{{"pawl", "7117", "10.0.0.9", 0}, {"pawl", "7117", first, 0}})
	if l.Items[0].Address != first || l.Items[1].Address != "10.0.0.9" {
		t.Errorf("what was known does not keep its place: %+v", l.Items)
	}
	many := make([]Place, 100)
	for i := range many {
		many[i] = Place{"pawl", "7117", "10.1.0." + string(rune('0'+i%10)) + string(rune('0'+i/10)), 0}
	}
	l.Found("tls://pawl:7117", many)
	if len(l.Items) != placesMax+1 {
		t.Errorf("%d endpoints", len(l.Items))
	}
}
