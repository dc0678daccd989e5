package bench

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// The shares of conflicts and bad submissions come out as they were asked for: a queue returns each of them and lands
// the others, and direct pushes lose a change for each conflict and turn red for each bad pair.
func TestMerge(t *testing.T) {
	m := Merge{Files: 60, Submissions: 24, Conflicts: 0.12, Bad: 0.08, Runners: 4} // 3 conflicts and 2 bad ones
	target := Interlock{Transport: Stream, Binary: launchtest.Binary(t)}
	figures, err := mergeScenario.Run(t.Context(), Config{Merge: m}, []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		load, target   string
		lost, returned float64
		red            bool
		checks         bool
	}{
		{"checks of 0s", "merge queue", 0, 5, false, true},
		{"checks of 0s", "serial queue", 0, 5, false, true},
		{"checks of 0s", "direct pushes", 3, 0, true, false},
		{"no time", "merge queue", 0, 5, false, true},
		{"no time", "boundary alone", 0, 3, true, false},
	} {
		var own []Figure
		for _, f := range figures {
			if strings.Contains(f.Load, c.load) && strings.HasSuffix(f.Target, ", "+c.target) {
				own = append(own, f)
			}
		}
		if red := find(t, own, "red commits").Median; red > 0 != c.red {
			t.Errorf("%s, %s: %v red commits", c.load, c.target, red)
		}
		if lost := find(t, own, "lost changes").Median; lost != c.lost {
			t.Errorf("%s, %s: %v lost changes, want %v", c.load, c.target, lost, c.lost)
		}
		if returned := find(t, own, "returned").Median; returned != c.returned {
			t.Errorf("%s, %s: %v returned, want %v", c.load, c.target, returned, c.returned)
		}
		if checks := find(t, own, "checks each").Median; checks > 0 != c.checks {
			t.Errorf("%s, %s: %v checks for each landing", c.load, c.target, checks)
		}
		if find(t, own, "landings").Median <= 0 {
			t.Errorf("%s, %s: nothing landed", c.load, c.target)
		}
	}
}

// The audit finds a commit with a call that has no definition, and a change that the last tree does not have.
func TestMergeAudit(t *testing.T) {
	w, err := newMergeWork(t.Context(), t.TempDir(), Merge{Files: 8, Submissions: 2, Bad: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, head string
		red, lost  int
	}{
		{"nothing", w.first, 0, 2},
		{"the rename alone", w.list[0].head, 0, 1},
		{"the call alone", w.list[1].head, 0, 1},
	} {
		if _, err := w.repo.Output(t.Context(), "update-ref", mergeRef, c.head); err != nil {
			t.Fatal(err)
		}
		if red, lost, err := w.audit(t.Context(), w.list); err != nil || red != c.red || lost != c.lost {
			t.Errorf("%s: %d red, %d lost, %v, want %d and %d", c.name, red, lost, err, c.red, c.lost)
		}
	}
	if _, err := w.repo.Output(t.Context(), "update-ref", mergeRef, w.first); err != nil {
		t.Fatal(err)
	}
	n, err := w.boundary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if red, lost, err := w.audit(t.Context(), n.landed); err != nil || red != 1 || lost != 0 {
		t.Errorf("both: %d red, %d lost, %v", red, lost, err)
	}
}

func TestMergeLoad(t *testing.T) {
	for _, m := range []Merge{
		{Files: 10, Submissions: 6}, {Conflicts: 0.3, Bad: 0.3}, {Bad: -1}, {Submissions: -1}, {Runners: -1}, {Check: -1},
	} {
		if err := mergeScenario.Check(Config{Merge: m}, nil); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
	if err := mergeScenario.Check(Config{}, nil); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
