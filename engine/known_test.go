package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The leases of a large session are not compared: its heartbeats renew all of them, also one that a list left out
// while the session was small. The answer does not ask for a list, so the client counts on all.
func TestLargeSessionsAreNotCompared(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	first, _ := l.acquire(s, "", time.Minute, "first")
	l.step(&engine.Heartbeat{Head: l.head(s), Known: &interlock.KnownLeases{Listed: true}})
	for i := range interlock.MaxKnown {
		l.acquire(s, "", time.Minute, fmt.Sprint(i))
	}
	for range 3 {
		l.pass(30 * time.Second)
		eff := l.step(&engine.Heartbeat{Head: l.head(s), Known: &interlock.KnownLeases{Count: 1}})
		if eff.WantsList {
			t.Fatal("it asks for a list")
		}
	}
	if eff := l.step(&engine.GetLease{Head: l.head(s), Lease: first}); eff.Lease.State != interlock.Held {
		t.Errorf("the lease that was left out is %v", eff.Lease.State)
	}
}
