package engine_test

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestLongChainIsInherited sends a priority down a chain of flows that each wait for the next,
// in an order that is against that of their names: every wait gets it, and the search is spread
// over several steps.
func TestLongChainIsInherited(t *testing.T) {
	const flows = 2000
	s := newStand()
	id := s.session(t)
	key := func(i int) interlock.Key { return interlock.Key(fmt.Sprintf("k%05d", i)) }
	ask := func(flow string, key interlock.Key, priority int, want interlock.Outcome) {
		t.Helper()
		s.step(&engine.Acquire{
			Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
				Flow: flow, Claims: []interlock.Claim{{Key: key}},
				OnConflict: interlock.Wait, Priority: priority,
			},
			Attach: true,
		})
		s.want(t, want)
	}
	for i := range flows {
		ask(fmt.Sprintf("f%05d", flows-i), key(i), 0, engine.Granted)
	}
	for i := range flows - 1 {
		ask(fmt.Sprintf("f%05d", flows-i), key(i+1), 0, engine.Queued)
	}
	ask("urgent", key(0), 50, engine.Queued)
	steps := 1
	for at, ok := s.e.Due("bench"); ok && at <= s.now; at, ok = s.e.Due("bench") {
		s.step(&engine.Tick{Head: s.head(interlock.SessionID{})})
		if steps++; steps > flows {
			t.Fatalf("after %d steps there is still something to do", steps)
		}
	}
	if steps < 2 {
		t.Errorf("one step searched all of a chain of %d", flows)
	}
	for i := range flows {
		v, err := s.e.Key("bench", key(i))
		if err != nil || len(v.Waiters) != 1 || v.Waiters[0].Priority != 50 {
			t.Fatalf("the waiter at %s: %+v, %v; want it to wait with priority 50", key(i), v.Waiters, err)
		}
	}
}
