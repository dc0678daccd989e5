package journal

import (
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
)

func TestRetainKeepsWhatLeadsToEntries(t *testing.T) {
	saved := []Saved{{10, 1}, {20, 1}, {30, 1}, {40, 1}}
	for _, c := range []struct {
		first interlock.Index
		want  []Saved
	}{
		{1, saved},
		{11, saved}, // the entries behind 10 are all there
		{12, saved[1:]},
		{22, saved[2:]},
		{90, saved[2:]}, // a restart needs these two
	} {
		if got := Retain(saved, c.first, 100); !slices.Equal(got, c.want) {
			t.Errorf("first %d: kept %v, want %v", c.first, got, c.want)
		}
	}
}

// A snapshot every 100 entries leaves 16 with distances that grow with age; the oldest is at most half
// of the history away from its beginning.
func TestRetainThins(t *testing.T) {
	const end = 1_000_000
	var saved []Saved
	for at := interlock.Index(100); at <= end; at += 100 {
		saved = Retain(append(saved, Saved{at, 1}), 1, 100)
		if n := len(saved); n > MaxSnapshots || saved[n-1].Index != at {
			t.Fatalf("after %d there are %d snapshots, the newest at %d", at, n, saved[n-1].Index)
		}
	}
	if len(saved) != MaxSnapshots {
		t.Errorf("%d snapshots stay, want %d", len(saved), MaxSnapshots)
	}
	before := interlock.Index(0)
	for _, s := range saved[:len(saved)-1] {
		gap, age := s.Index-before, end-before
		if gap > age*3/4 {
			t.Errorf("between %d and %d is no snapshot: %v", before, s.Index, saved)
		}
		before = s.Index
	}
}

func TestRetainBoundsBytes(t *testing.T) {
	saved := []Saved{{10, 50}, {20, 50}, {30, 50}, {40, 500}, {50, 500}}
	got := Retain(saved, 1, 100)
	if len(got) != 4 || !slices.Equal(got[2:], saved[3:]) {
		t.Errorf("kept %v, want two of the old ones", got)
	}
}
