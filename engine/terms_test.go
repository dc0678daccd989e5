package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// eachTerm calls check with the name of each field, and terms that have this field alone set.
func eachTerm(t *testing.T, check func(t *testing.T, name string, terms interlock.Terms)) {
	for i := range reflect.TypeFor[interlock.Terms]().NumField() {
		var terms interlock.Terms
		name := reflect.TypeOf(terms).Field(i).Name
		switch field := reflect.ValueOf(&terms).Elem().Field(i); field.Kind() {
		case reflect.Int64:
			field.SetInt(int64(2 * time.Second))
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.String:
			field.SetString("batch")
		default:
			t.Fatalf("interlock.Terms.%s is of a kind that this test does not know: teach it", name)
		}
		t.Run(name, func(t *testing.T) { check(t, name, terms) })
	}
}

// A new field of interlock.Terms must reach the journal, and the engine that replays it.
func TestTermsReachTheJournal(t *testing.T) {
	eachTerm(t, func(t *testing.T, _ string, terms interlock.Terms) {
		entry := engine.EncodeEntry([]record.Event{{Kind: record.Granted, At: begin, Namespace: "default", Terms: terms}})
		err := record.DecodeEntry(entry, func(ev *record.Event) error {
			if ev.Terms != terms {
				return fmt.Errorf("journaled %+v, read %+v", terms, ev.Terms)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The engine keeps the terms that it was asked for, and its snapshot does.
func TestTermsOutliveASnapshot(t *testing.T) {
	eachTerm(t, func(t *testing.T, name string, terms interlock.Terms) {
		s := newStand()
		want := terms
		want.TTL = cmp.Or(want.TTL, interlock.DefaultTTL)
		if terms.Grace == 0 {
			terms.Grace = engine.NoGrace
		}
		c := &engine.Acquire{Head: s.head(interlock.SessionID{}), ID: s.id(), Agent: "a"}
		c.Terms, c.Claims = terms, []interlock.Claim{{Key: "k"}}
		if name == "Division" {
			c.Claims[0].Mode, c.Claims[0].Count = interlock.Member, 4
		}
		s.step(c)
		for range 2 {
			if got := s.e.TermsOf("bench", c.ID); got != want {
				t.Errorf("asked for %+v, the engine keeps %+v", want, got)
			}
			var b bytes.Buffer
			err := s.e.WriteSnapshot(&b)
			if err != nil {
				t.Fatal(err)
			}
			if s.e, err = engine.ReadSnapshot(&b); err != nil {
				t.Fatal(err)
			}
		}
	})
}
