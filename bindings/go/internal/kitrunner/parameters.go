package main

import (
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"example.org/pawl"
)

func (c command) has(name string) bool { _, ok := c[name]; return ok }

func (c command) null(name string) bool { return string(c[name]) == "null" }

func (c command) text(name string) string {
	var text string
	_ = json.Unmarshal(c[name], &text)
	return text
}

func (c command) number(name string, otherwise int) int {
	n := otherwise
	if c.has(name) {
		_ = json.Unmarshal(c[name], &n)
	}
	return n
}

func (c command) yes(name string) bool { return string(c[name]) == "true" }

func (c command) ms(name string) time.Duration {
	return time.Duration(c.number(name, 0)) * time.Millisecond
}

func dataOf(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var other struct {
		Hex string `json:"hex"`
	}
	_ = json.Unmarshal(raw, &other)
	data, _ := hex.DecodeString(other.Hex)
	return data
}

// data returns the bytes that a parameter stands for.
func (c command) data(name string) []byte { return dataOf(c[name]) }

func (c command) list(name string) []string {
	var raw []json.RawMessage
	_ = json.Unmarshal(c[name], &raw)
	var found []string
	for _, one := range raw {
		found = append(found, string(dataOf(one)))
	}
	return found
}

// saidOf returns how bytes are printed.
func saidOf(data []byte) any {
	if utf8.Valid(data) {
		return string(data)
	}
	return told{"hex": hex.EncodeToString(data)}
}

// options returns the options of a lock that the command names.
func (c command) options() []pawl.LockOption {
	var o []pawl.LockOption
	add := func(name string, option func() pawl.LockOption) {
		if c.has(name) {
			o = append(o, option())
		}
	}
	add("lease_ms", func() pawl.LockOption { return pawl.Lease(c.ms("lease_ms")) })
	add("wait_ms", func() pawl.LockOption {
		if c.null("wait_ms") {
			return pawl.Wait(pawl.Forever)
		}
		return pawl.Wait(c.ms("wait_ms"))
	})
	add("owner", func() pawl.LockOption { return pawl.Owner(string(c.data("owner"))) })
	add("candidate", func() pawl.LockOption { return pawl.Owner(string(c.data("candidate"))) })
	add("value", func() pawl.LockOption { return pawl.Value(c.data("value")) })
	if c.text("mode") == "shared" {
		o = append(o, pawl.Shared())
	}
	add("permits", func() pawl.LockOption { return pawl.Permits(c.number("permits", 0), c.number("of", 0)) })
	add("priority", func() pawl.LockOption { return pawl.Priority(int32(c.number("priority", 0))) })
	add("lock_delay_ms", func() pawl.LockOption { return pawl.LockDelay(c.ms("lock_delay_ms")) })
	if c.yes("release_on_disconnect") {
		o = append(o, pawl.ReleaseOnDisconnect())
	}
	add("party", func() pawl.LockOption {
		var id [16]byte
		data, _ := hex.DecodeString(c.text("party"))
		copy(id[:], data)
		return pawl.Party(id)
	})
	add("label", func() pawl.LockOption { return pawl.Label(c.text("label")) })
	return o
}
