package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// A changed pattern comes to the keys under it over several steps.

// permits asks for some permits in the name of a group, with the will to wait.
func (l *load) permits(s interlock.SessionID, key, group string, count int) *engine.Effect {
	id := l.id()
	return l.step(&engine.Acquire{
		Head: l.head(s), ID: id, LeaseRequest: interlock.LeaseRequest{
			Flow: fmt.Sprint("flow ", l.ids), Terms: interlock.Terms{Group: group, TTL: time.Hour}, OnConflict: interlock.Wait,
			Claims: []interlock.Claim{{Key: interlock.Key(key), Mode: interlock.Permits, Count: uint32(count)}},
		},
	})
}

// TestPatternOverManyKeys changes the pattern of very many keys with permits. No step looks
// at all of them. A key to which no step has come yet is under the new pattern all the same.
func TestPatternOverManyKeys(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	for _, x := range []struct {
		name string
		next interlock.Pattern
	}{
		{"capacity", interlock.Pattern{Name: "p", Shape: "k/{n}", Capacity: 3}},
		{
			"groups",
			interlock.Pattern{
				Name: "p", Shape: "k/{n}", Capacity: 5, Groups: []interlock.Group{{Name: "b", Min: 2}, {Name: "a", Max: 2}},
			},
		},
		{"dropped", interlock.Pattern{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLoad(t)
			s := l.open(interlock.MaxTTL)
			l.step(&engine.SetPattern{Head: l.head(s), Pattern: interlock.Pattern{
				Name: "p", Shape: "k/{n}", Capacity: 1, Groups: []interlock.Group{{Name: "a", Max: 1}},
			}})
			for i := range n {
				for range 2 {
					l.permits(s, fmt.Sprint("k/", i), "a", 1)
				}
			}
			if c := l.e.Counts(); c.Leases != n || c.Waiters != n {
				t.Fatalf("%+v", c)
			}
			if x.next.Name == "" {
				l.step(&engine.DropPattern{Head: l.head(s), Name: "p"})
			} else {
				l.step(&engine.SetPattern{Head: l.head(s), Pattern: x.next})
			}
			l.bounded()
			if !l.e.IsUnfinished() {
				t.Error("one step visited all keys")
			}
			if x.name == "capacity" {
				for _, i := range []int{0, n / 2, n - 1} { // one waits for a permit before it, and there are three
					if eff := l.permits(s, fmt.Sprint("k/", i), "b", 1); eff.Outcome != engine.Granted {
						t.Errorf("key %d: %s", i, prose.Sentence(eff.Message))
					}
				}
			}
			l.settleBounded()
			if c := l.e.Counts(); c.Leases < 2*n || c.Waiters != 0 {
				t.Errorf("%d leases and %d waiters, want at least %d and none", c.Leases, c.Waiters, 2*n)
			}
			if err := l.e.CheckPools(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPatternOverALongLine changes the groups of a key with very many holders and waiters. The
// waiters are sorted by the new groups over several steps, while no group has a share.
func TestPatternOverALongLine(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	pattern := interlock.Pattern{Name: "p", Shape: "k", Capacity: n}
	l.step(&engine.SetPattern{Head: l.head(s), Pattern: pattern})
	groups := []string{"", "a", "b", "c"}
	for i := range 2 * n {
		l.permits(s, "k", groups[i%len(groups)], 1)
	}
	if c := l.e.Counts(); c.Leases != n || c.Waiters != n {
		t.Fatalf("%+v", c)
	}
	// Of the permits that are new, half are kept for those of group c.
	pattern.Capacity, pattern.Groups = n+40, []interlock.Group{{Name: "c", Min: n/4 + 20}}
	l.step(&engine.SetPattern{Head: l.head(s), Pattern: pattern})
	l.bounded()
	if !l.e.IsUnfinished() {
		t.Error("one step sorted all in line")
	}
	if eff := l.permits(s, "k", "c", 1); eff.Outcome != engine.Queued {
		t.Errorf("a newcomer passes those in line: %v", eff.Outcome)
	}
	if n := l.e.Objects(); n > 2*engine.StepObjects+5*fewObjects { // the answer described the blockers
		t.Errorf("the step that describes who is in the way looks at %d objects", n)
	}
	l.step(&engine.Tick{Head: engine.Head{At: l.now}})
	l.settleBounded()
	if err := l.e.CheckPools(); err != nil {
		t.Error(err)
	}
	if c := l.e.Counts(); c.Leases != n+40 || c.Waiters != n+1-40 {
		t.Errorf("%d leases and %d waiters, want %d and %d", c.Leases, c.Waiters, n+40, n+1-40)
	}
	view, err := l.e.Key("default", "k")
	if err != nil || view.Capacity == nil || view.Capacity.Groups[0].Used != n/4+20 {
		t.Errorf("%+v, %v", view.Capacity, err)
	}
	l.restart()
	if err := l.e.CheckPools(); err != nil {
		t.Error(err)
	}
}

// TestTooManyChanges: changes of patterns that very many keys have not followed are bounded.
func TestTooManyChanges(t *testing.T) {
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	set := func(capacity int) *engine.Effect {
		return l.step(&engine.SetPattern{
			Head: l.head(s), Pattern: interlock.Pattern{Name: "p", Shape: "k/{n}", Capacity: uint32(capacity)},
		})
	}
	set(1)
	for i := range 3 * engine.StepObjects {
		l.permits(s, fmt.Sprint("k/", i), "", 1)
	}
	l.e.StepAtMost(3)
	refused := false
	for i := range 1000 {
		eff := set(i%2 + 1)
		if refused = eff.Outcome == engine.Refused; refused {
			if eff.Code != interlock.CodeOverloaded {
				t.Fatal(eff.Code, prose.Sentence(eff.Message))
			}
			break
		}
	}
	if !refused {
		t.Error("no change was refused")
	}
	l.e.StepAtMost(engine.StepObjects)
	l.pass(0)
	if eff := set(5); eff.Outcome != engine.Done {
		t.Error(eff.Code, prose.Sentence(eff.Message))
	}
}

// TestPatternsInSlices changes patterns while commands come between the steps that visit the
// keys. A replay, which visits all at once, comes to the same state.
func TestPatternsInSlices(t *testing.T) {
	met := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 62))
		l := newLoad(t)
		l.e.StepAtMost(1 + rng.IntN(12))
		l.e.GatherAtMost(1 + rng.IntN(5))
		s := l.open(interlock.MaxTTL)
		var leases []interlock.LeaseID
		names := []string{"", "a", "b", "c"}
		check := func() {
			t.Helper()
			if err := l.e.CheckPools(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for range 150 {
			switch rng.IntN(8) {
			case 0, 1:
				p := interlock.Pattern{Name: "p", Shape: "k/{n}", Capacity: uint32(1 + rng.IntN(4))}
				if rng.IntN(4) == 0 {
					p.Name, p.Shape = "q", "k/1"
				}
				if rng.IntN(2) == 0 {
					p.Rate, p.Burst, p.Per = uint32(1+rng.IntN(7)), uint32(4+rng.IntN(5)), time.Duration(1+rng.IntN(60))*time.Second
				}
				for _, i := range rng.Perm(len(names))[:rng.IntN(len(names))] {
					p.Groups = append(p.Groups, interlock.Group{Name: names[i], Max: uint32(rng.IntN(int(p.Capacity) + 1))})
				}
				l.step(&engine.SetPattern{Head: l.head(s), Pattern: p})
			case 2:
				l.step(&engine.DropPattern{Head: l.head(s), Name: []string{"p", "q"}[rng.IntN(2)]})
			case 3:
				if len(leases) > 0 {
					i := rng.IntN(len(leases))
					l.step(&engine.Release{Head: l.head(s), Lease: leases[i]})
				}
			case 4:
				l.now = l.now.Add(time.Duration(rng.IntN(5_000)) * time.Millisecond)
				l.step(&engine.Tick{Head: engine.Head{At: l.now}})
			default:
				eff := l.permits(s, fmt.Sprint("k/", rng.IntN(5)), names[rng.IntN(len(names))], 1+rng.IntN(2))
				if eff.Outcome == engine.Granted {
					leases = append(leases, eff.Lease.ID)
				}
			}
			if check(); l.e.IsUnfinished() {
				met++
			}
			if rng.IntN(3) == 0 {
				l.pass(0)
			}
		}
		var live, again bytes.Buffer
		if err := l.e.WriteSnapshot(&live); err != nil {
			t.Fatal(err)
		}
		fresh := engine.New()
		for _, entry := range l.log {
			if err := fresh.Apply(entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := fresh.WriteSnapshot(&again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(live.Bytes(), again.Bytes()) {
			t.Fatalf("seed %d: a replay comes to another state", seed)
		}
		l.pass(0)
		check()
	}
	if met == 0 {
		t.Error("no step left anything over, so this test shows nothing")
	}
}
