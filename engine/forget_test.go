package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// in returns the head of a command in a namespace.
func (l *load) in(ns interlock.Namespace, request string) engine.Head {
	h := l.head(interlock.SessionID{})
	h.Namespace, h.RequestID = ns, request
	return h
}

// take acquires k in a namespace for a while, without a session.
func (l *load) take(ns interlock.Namespace, request string, ttl time.Duration) *engine.Effect {
	l.t.Helper()
	return l.step(&engine.Acquire{Head: l.in(ns, request), ID: l.id(), Agent: "a", LeaseRequest: interlock.LeaseRequest{
		Terms: interlock.Terms{TTL: ttl, Grace: engine.NoGrace}, Claims: []interlock.Claim{{Key: "k"}},
	}})
}

// later lets time pass.
func (l *load) later(d time.Duration) {
	l.t.Helper()
	l.now = l.now.Add(d)
	l.step(&engine.Tick{Head: engine.Head{At: l.now}})
}

// TestEmptyNamespacesMakeRoom: at the bound, a new namespace replaces the one that has been
// empty for longest. Fences continue to grow.
func TestEmptyNamespacesMakeRoom(t *testing.T) {
	l := newLoad(t)
	l.e.HoldAtMost(2)
	first := l.take("one", "", 30*time.Second).Lease.Fence
	l.take("two", "", time.Hour)
	if eff := l.take("three", "", time.Minute); eff.Code != interlock.CodeTooManyNamespaces ||
		!strings.Contains(prose.Sentence(eff.Message), "none is empty") {
		t.Fatalf("a third one beside two in use: %s %s", eff.Code, prose.Sentence(eff.Message))
	}
	l.later(time.Minute)
	if eff := l.take("three", "", time.Minute); eff.Code != interlock.CodeTooManyNamespaces ||
		!strings.Contains(prose.Sentence(eff.Message), "can be removed in 10m0s") {
		t.Fatalf("one that has been empty for a moment: %s %s", eff.Code, prose.Sentence(eff.Message))
	}
	l.later(interlock.NamespaceIdle)
	if eff := l.take("three", "", time.Minute); eff.Outcome != engine.Granted {
		t.Fatalf("one that has been empty for long: %s %s", eff.Code, prose.Sentence(eff.Message))
	}
	l.later(time.Minute)
	l.restart()
	l.e.HoldAtMost(2)
	if eff := l.take("one", "", time.Minute); eff.Code != interlock.CodeTooManyNamespaces {
		t.Fatalf("a restart counts as a use: %s", eff.Code)
	}
	l.later(interlock.NamespaceIdle)
	if eff := l.take("one", "", time.Minute); eff.Outcome != engine.Granted || eff.Lease.Fence <= first {
		t.Fatalf("the forgotten one comes back: %s, fence %d after %d", eff.Code, eff.Lease.Fence, first)
	}
	if n := l.e.Counts().Namespaces; n != 2 {
		t.Errorf("%d namespaces", n)
	}
}

// TestWhatKeepsANamespace: nothing that a caller may come back for is forgotten.
func TestWhatKeepsANamespace(t *testing.T) {
	for name, c := range map[string]struct {
		fill  func(*load)
		lasts time.Duration // 0: until it is taken away
	}{
		"request id": {func(l *load) { l.take("one", "r1", 30*time.Second) }, interlock.RequestIDWindow},
		"settings": {func(l *load) {
			l.step(&engine.Configure{Head: l.in("one", ""), Settings: interlock.Settings{Closed: true}})
		}, 0},
		"pattern": {func(l *load) {
			l.step(&engine.SetPattern{Head: l.in("one", ""), Pattern: interlock.Pattern{Name: "p", Shape: "p:{id}"}})
		}, 0},
		"queue": {func(l *load) {
			l.step(&engine.SetQueue{Head: l.in("one", ""), Queue: interlock.TaskQueue{Name: "q"}})
		}, 0},
		"document": {func(l *load) {
			l.step(&engine.Commit{Head: l.in("one", ""), CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{{Key: "d", Op: interlock.Put, Body: []byte("1")}},
			}})
		}, 0},
		"parked lease": {func(l *load) {
			eff := l.take("one", "", time.Hour)
			l.step(&engine.Park{Head: l.in("one", ""), Lease: eff.Lease.ID, For: interlock.MaxPark})
		}, interlock.MaxPark},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t)
			l.e.HoldAtMost(1)
			c.fill(l)
			if n := l.e.Counts().Namespaces; n != 1 {
				t.Fatalf("%d namespaces", n)
			}
			l.later(2 * interlock.NamespaceIdle)
			if eff := l.take("two", "", time.Minute); eff.Code != interlock.CodeTooManyNamespaces {
				t.Fatalf("it was forgotten: %s", eff.Outcome)
			}
			l.later(max(c.lasts, 72*time.Hour) + interlock.NamespaceIdle)
			l.later(interlock.NamespaceIdle)
			eff := l.take("two", "", time.Minute)
			if forgotten := eff.Outcome == engine.Granted; forgotten != (c.lasts > 0) {
				t.Errorf("in the end: %s %s", eff.Outcome, prose.Sentence(eff.Message))
			}
		})
	}
}

// TestVersionsOfADeletedNamespace: a recreated namespace reuses no version and no fence, also
// after a snapshot, and the versions of other namespaces do not change.
func TestVersionsOfADeletedNamespace(t *testing.T) {
	l := newLoad(t)
	write := func(ns interlock.Namespace) interlock.Version {
		t.Helper()
		eff := l.step(&engine.Commit{Head: l.in(ns, ""), CommitRequest: interlock.CommitRequest{
			Writes: []interlock.Write{{Key: "d", Op: interlock.Add, Delta: 1}},
		}})
		if eff.Outcome != engine.Done {
			t.Fatal(eff.Code, prose.Sentence(eff.Message))
		}
		return eff.Version
	}
	write("other")
	var highest interlock.Version
	for range 5 {
		highest = write("one")
	}
	for round := range 3 {
		if eff := l.step(&engine.DeleteNamespace{Head: l.in("one", "")}); eff.Code != interlock.CodeNamespaceInUse {
			t.Fatalf("round %d: %s", round, eff.Outcome)
		}
		if eff := l.step(&engine.DeleteNamespace{Head: l.in("one", ""), Force: true}); eff.Outcome != engine.Done {
			t.Fatalf("round %d: %s", round, eff.Code)
		}
		if round > 0 {
			l.restart()
		}
		// A caller that read a document before the deletion may neither write it, nor acquire
		// as of that version.
		put := interlock.Write{Key: "e", Op: interlock.Put, Body: []byte("1")}
		for name, c := range map[string]*engine.Commit{
			"a document":  {CommitRequest: interlock.CommitRequest{Reads: []interlock.Read{{Key: "d", Version: highest}}}},
			"its absence": {CommitRequest: interlock.CommitRequest{Reads: []interlock.Read{{Key: "e", Version: highest}}}},
			"a moment":    {CommitRequest: interlock.CommitRequest{AsOf: highest}},
		} {
			c.Head, c.Writes = l.in("one", ""), []interlock.Write{put}
			if eff := l.step(c); eff.Code != interlock.CodeStale {
				t.Fatalf("round %d: %s read before the deletion counts: %s %s", round, name, eff.Outcome, eff.Code)
			}
		}
		eff := l.step(&engine.Acquire{
			Head: l.in("one", ""), ID: l.id(), Agent: "a", LeaseRequest: interlock.LeaseRequest{
				Terms:  interlock.Terms{TTL: time.Minute, Grace: engine.NoGrace},
				Claims: []interlock.Claim{{Key: "d"}}, AsOf: highest,
			},
		})
		if eff.Code != interlock.CodeFutureVersion ||
			!strings.Contains(prose.Sentence(eff.Message), "from before the namespace was deleted") {
			t.Fatalf("round %d: a lease as of before the deletion: %s %s", round, eff.Outcome, prose.Sentence(eff.Message))
		}
		if v := write("one"); v <= highest {
			t.Fatalf("round %d: version %d after %d", round, v, highest)
		} else {
			highest = v
		}
	}
	if v := write("other"); v != 2 {
		t.Errorf("the other namespace goes on with version %d", v)
	}
	if again := replayed(t, l); again.Hash() != l.e.Hash() {
		t.Error("the replay has another hash")
	}
}

// replayed makes an engine of the journal, by way of a snapshot of its half.
func replayed(t *testing.T, l *load) *engine.Engine {
	t.Helper()
	e := engine.New()
	for i, entry := range l.log {
		if i == len(l.log)/2 {
			var snap strings.Builder
			if err := e.WriteSnapshot(&snap); err != nil {
				t.Fatal(err)
			}
			short, err := engine.ReadSnapshot(strings.NewReader(snap.String()))
			if err != nil {
				t.Fatal(err)
			}
			e = short
		}
		if err := e.Apply(entry); err != nil {
			t.Fatal(fmt.Errorf("entry %d: %w", i, err))
		}
	}
	return e
}
