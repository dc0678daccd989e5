package engine_test

import (
	"bytes"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// TestSettingsOfEarlierVersions replays settings in the form in which the first pattern
// closed a namespace unless its settings kept it open.
func TestSettingsOfEarlierVersions(t *testing.T) {
	const strict, open, nothing = 1 << 1, 2 << 1, 4 << 1 // field numbers, each with the value 1
	for _, c := range []struct {
		name            string
		blob            []byte
		before, closing bool // closed before there is a pattern, and with one
	}{
		{"never set", nil, false, false},
		{"set to the defaults", []byte{nothing, 1}, false, true},
		{"something else set", []byte{strict, 1}, false, true},
		{"kept open", []byte{open, 1}, false, false},
		{"kept open, and something else", []byte{strict, 1, open, 1}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand()
			if c.blob != nil {
				entry := engine.EncodeEntry([]record.Event{{Kind: record.Configured, At: s.now, Namespace: "acme", Blob: c.blob}})
				if err := s.e.Apply(entry); err != nil {
					t.Fatal(err)
				}
			}
			check := func(want bool) {
				t.Helper()
				for range 2 { // the second time from a snapshot
					if got := s.e.Settings("acme").Closed; got != want {
						t.Errorf("closed is %v, want %v", got, want)
					}
					var b bytes.Buffer
					if err := s.e.WriteSnapshot(&b); err != nil {
						t.Fatal(err)
					}
					var err error
					if s.e, err = engine.ReadSnapshot(&b); err != nil {
						t.Fatal(err)
					}
				}
			}
			check(c.before)
			head := engine.Head{At: s.now, Namespace: "acme"}
			s.step(&engine.SetPattern{Head: head, Pattern: interlock.Pattern{Name: "account", Shape: "account:{id}"}})
			check(c.closing)
			s.step(&engine.Configure{Head: head, Settings: interlock.Settings{StrictOrder: true}})
			check(false)
			s.step(&engine.Configure{Head: head, Settings: interlock.Settings{Closed: true}})
			check(true)
		})
	}
}
