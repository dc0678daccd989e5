package engine_test

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// The objects that a step examines count, so that it leaves the rest to the next.

// TestFewPatternsAreTried: a key is compared only with the patterns that begin as it does.
func TestFewPatternsAreTried(t *testing.T) {
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	for i := range interlock.MaxPatterns {
		l.step(&engine.SetPattern{
			Head: l.head(s), Pattern: interlock.Pattern{Name: fmt.Sprint("p", i), Shape: fmt.Sprintf("s%d/{rest...}", i)},
		})
	}
	keys := make([]string, interlock.MaxClaims)
	for i := range keys {
		keys[i] = fmt.Sprintf("s%d/x", i*15)
	}
	if _, eff := l.acquire(s, "", 0, keys...); eff.Outcome != engine.Granted {
		t.Fatal(prose.Sentence(eff.Message))
	}
	if n := l.e.Objects(); n > interlock.MaxPatterns {
		t.Errorf("%d objects for %d claims", n, len(keys))
	}
}

// TestClassesCount: each bucket of a line counts when a waiter is checked.
func TestClassesCount(t *testing.T) {
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	p := interlock.Pattern{Name: "p", Shape: "p", Capacity: interlock.MaxGroups}
	for i := range interlock.MaxGroups {
		p.Groups = append(p.Groups, interlock.Group{Name: fmt.Sprint("g", i), Min: 1})
	}
	l.step(&engine.SetPattern{Head: l.head(s), Pattern: p})
	for round := range 2 { // each group holds a permit, and has its own bucket of waiters
		for i := range interlock.MaxGroups {
			l.step(&engine.Acquire{
				Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
					Flow: fmt.Sprint(round, i), Terms: interlock.Terms{Group: fmt.Sprint("g", i)}, OnConflict: interlock.Wait,
					Claims: []interlock.Claim{{Key: "p", Mode: interlock.Permits, Count: 1}},
				},
			})
		}
	}
	if c := l.e.Counts(); c.Leases != interlock.MaxGroups || c.Waiters != interlock.MaxGroups {
		t.Fatalf("%+v", c)
	}
	if n := l.e.Objects(); n < interlock.MaxGroups {
		t.Errorf("%d objects of a request behind %d classes", n, interlock.MaxGroups-1)
	}
}

// TestDivisionCounts: the parts of a shared-out key count when they are divided.
func TestDivisionCounts(t *testing.T) {
	for _, how := range []interlock.Division{interlock.ByHash, interlock.ByRange, interlock.ByLoad} {
		l := newLoad(t)
		s := l.open(interlock.MaxTTL)
		for i := range 3 {
			l.step(&engine.Acquire{
				Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
					Flow: fmt.Sprint(i), Terms: interlock.Terms{Division: how},
					Claims: []interlock.Claim{{Key: "parts", Mode: interlock.Member, Count: interlock.MaxParts}},
				},
			})
			if n := l.e.Objects(); n < interlock.MaxParts/16 {
				t.Errorf("division %v: %d objects for %d parts", how, n, interlock.MaxParts)
			}
			l.pass(0)
		}
	}
}
