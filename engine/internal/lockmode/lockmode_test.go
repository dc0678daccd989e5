package lockmode

import (
	"testing"

	"github.com/interlockdev/interlock"
)

var all = []interlock.Mode{IS, IX, S, SIX, X}

// TestConflicts derives all modes that exclude each other from one fact: what a mode reads and
// writes on the key, and what its intents read and write below it.
func TestConflicts(t *testing.T) {
	type reach struct{ reads, writes, readsBelow, writesBelow bool }
	of := map[interlock.Mode]reach{
		IS:  {readsBelow: true},
		IX:  {readsBelow: true, writesBelow: true},
		S:   {reads: true},
		SIX: {reads: true, readsBelow: true, writesBelow: true},
		X:   {reads: true, writes: true},
	}
	// A mode on the key itself is one on everything below it.
	excludes := func(a, b reach) bool {
		return a.writes && (b.reads || b.readsBelow) || a.reads && (b.writes || b.writesBelow)
	}
	for _, a := range all {
		for _, b := range all {
			want := excludes(of[a], of[b]) || excludes(of[b], of[a])
			if got := Conflicts[a].Has(b); got != want {
				t.Errorf("%v excludes %v: %v, want %v", a, b, got, want)
			}
		}
	}
}

// TestCovers compares modes by their exclusions: a mode covers another if it excludes at least
// as much.
func TestCovers(t *testing.T) {
	for _, a := range all {
		if Join(a, a) != a || Lock(a) != a {
			t.Errorf("Join or Lock changes %v", a)
		}
		for _, b := range all {
			if want := Conflicts[a]&Conflicts[b] == Conflicts[b]; Covers(a, b) != want {
				t.Errorf("Covers(%v, %v) is %v", a, b, !want)
			}
			j := Join(a, b)
			if j != Join(b, a) || !Covers(j, a) || !Covers(j, b) {
				t.Errorf("Join(%v, %v) is %v", a, b, j)
			}
			for _, m := range all {
				if Covers(m, a) && Covers(m, b) && !Covers(m, j) {
					t.Errorf("Join(%v, %v) is %v, and %v is weaker", a, b, j, m)
				}
			}
		}
	}
}

func TestHierarchy(t *testing.T) {
	for m, want := range map[interlock.Mode][2]interlock.Mode{
		IS:                {IS, 0},
		IX:                {IX, 0},
		S:                 {IS, S},
		SIX:               {IX, S},
		X:                 {IX, X},
		interlock.Permits: {IX, 0},
	} {
		if Intent(m) != want[0] || Below(m) != want[1] {
			t.Errorf("%v needs %v on ancestors and has %v below, want %v", m, Intent(m), Below(m), want)
		}
	}
}

func TestCounts(t *testing.T) {
	var c Counts
	for i, m := range all {
		*c.Of(m) += uint32(i + 1)
	}
	if c != (Counts{1, 2, 3, 4, 5}) {
		t.Error(c)
	}
}
