package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// The largest generation opens, and breaks, in one step, with the longest names
// that there are.
func TestGenerationIsOneEntry(t *testing.T) {
	long := strings.Repeat("n", interlock.MaxNameBytes)
	key := interlock.Key(strings.Repeat("k", interlock.MaxKeyBytes))
	count := func(l *load, kind record.Kind) (n int) {
		for i := range l.out.Events {
			if l.out.Events[i].Kind == kind {
				n++
			}
		}
		return n
	}
	l := newLoad(t)
	gather := func(parties int) (ids []interlock.LeaseID) {
		for range parties {
			c := &engine.Acquire{
				Head: l.head(interlock.SessionID{}), ID: l.id(), Agent: long, LeaseRequest: interlock.LeaseRequest{
					Terms: interlock.Terms{TTL: time.Hour}, OnConflict: interlock.Wait,
					Claims: []interlock.Claim{{Key: key, Mode: interlock.Barrier, Count: interlock.MaxParties}},
				}, Attach: true,
			}
			l.step(c)
			ids = append(ids, c.ID)
		}
		return ids
	}
	set := gather(interlock.MaxParties)
	if n := count(l, record.Admitted); n != interlock.MaxParties {
		t.Fatalf("%d parties are admitted in the last step, want %d", n, interlock.MaxParties)
	}
	for _, id := range set {
		l.step(&engine.Arrive{Head: l.head(interlock.SessionID{}), Lease: id, ID: l.id(), Attach: true})
	}
	if n := count(l, record.Admitted); n != interlock.MaxParties {
		t.Fatalf("%d parties come to the second generation in the last step, want %d", n, interlock.MaxParties)
	}
	for _, id := range set[1:] {
		l.step(&engine.Arrive{Head: l.head(interlock.SessionID{}), Lease: id, ID: l.id(), Attach: true})
	}
	l.step(&engine.Release{Head: l.head(interlock.SessionID{}), Lease: set[0]})
	if n := count(l, record.Left); n != interlock.MaxParties-1 {
		t.Fatalf("%d parties are told in the step in which one leaves, want %d", n, interlock.MaxParties-1)
	}
}
