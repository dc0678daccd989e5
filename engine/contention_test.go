package engine_test

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// contention returns the statistics of a pattern or class.
func (s *stand) contention(t *testing.T, name string) interlock.Contention {
	t.Helper()
	for _, k := range s.e.Contention(s.head(interlock.SessionID{}).Namespace) {
		if k.Pattern == name {
			return k
		}
	}
	t.Fatalf("nothing is counted for %q", name)
	return interlock.Contention{}
}

// seen returns the versions that keys have, to commit on.
func (s *stand) seen(keys ...interlock.Key) (reads []interlock.Read) {
	list, _, _ := s.e.Documents(s.head(interlock.SessionID{}).Namespace, keys, false)
	for i := range list {
		reads = append(reads, interlock.Read{Key: list[i].Key, Version: list[i].Version, Absent: list[i].Absent})
	}
	return reads
}

// TestContentionTold: an answer tells how commits fare as soon as there is enough to
// judge from, of several patterns the one in which they meet most.
func TestContentionTold(t *testing.T) {
	s := newStand()
	for range 19 {
		if e := s.commit(put("a:1", nil), s.seen("a:1")...); e.Contention != nil {
			t.Fatalf("after %d commits it is told %+v", e.Version, e.Contention)
		}
	}
	for range 20 {
		s.commit(put("a:1", nil))
	}
	if e := s.commit(put("b:1", nil), s.seen("b:1")...); e.Contention != nil {
		t.Errorf("a commit to another class is told %+v", e.Contention)
	}
	e := s.commit(put("a:1", nil), s.seen("a:1")...)
	if want := (interlock.Contention{Pattern: "a:", Commits: 20}); e.Contention == nil || *e.Contention != want {
		t.Errorf("want %+v told, got %+v", want, e.Contention)
	}
	for range 20 {
		e = s.commit(put("b:1", nil), interlock.Read{Key: "b:1", Version: 1})
	}
	if want := (interlock.Contention{Pattern: "b:", Commits: 1, Conflicts: 20}); e.Code != interlock.CodeStale ||
		e.Contention == nil || *e.Contention != want {
		t.Errorf("want %+v told, got %+v", want, e.Contention)
	}
	e = s.commit(append(put("a:1", nil), put("b:1", nil)...), s.seen("a:1", "b:1")...)
	if e.Contention == nil || e.Contention.Pattern != "b:" {
		t.Errorf("want the pattern in which commits meet, got %+v", e.Contention)
	}
	told, copied := e.Contention, *e.Contention
	s.commit(put("b:1", nil), s.seen("b:1")...)
	if *told != copied {
		t.Error("what was told changes later")
	}
}

// TestContentionRetries: a successful commit after a refusal counts as a retry, once, if it
// comes from the refused caller. The number of remembered callers is bounded.
func TestContentionRetries(t *testing.T) {
	s := newStand()
	s.commit(put("k", nil))
	commit := func(agent, flow string, stale bool) {
		c := &engine.Commit{Head: s.head(interlock.SessionID{}), Agent: agent, CommitRequest: interlock.CommitRequest{
			Flow: flow, Writes: put("k", nil), Reads: s.seen("k"),
		}}
		if stale {
			c.Reads = []interlock.Read{{Key: "k", Absent: true}}
		}
		s.step(c)
	}
	commit("ann", "", true)
	commit("ann", "", true)
	commit("bob", "", false)
	commit("ann", "sub", false)
	if got := s.contention(t, ""); got.Retries != 0 || got.Conflicts != 2 {
		t.Errorf("others than who was refused have tried again: %+v", got)
	}
	commit("ann", "", false)
	commit("ann", "", false)
	if got := s.contention(t, ""); got.Retries != 1 {
		t.Errorf("one has tried again: %+v", got)
	}
	for i := range 100 {
		commit(fmt.Sprint(i), "", true)
	}
	for i := range 100 {
		commit(fmt.Sprint(i), "", false)
	}
	if got := s.contention(t, ""); got.Retries != 1+64 {
		t.Errorf("the last 64 who were refused are remembered: %+v", got)
	}
}

// TestContentionFades: counts are bounded, and older events count for less.
func TestContentionFades(t *testing.T) {
	s := newStand()
	for range 1000 {
		s.commit(put("k", nil), interlock.Read{Key: "k", Version: 0})
	}
	before := s.contention(t, "")
	for range 1 << 16 {
		s.commit(put("k", nil), s.seen("k")...)
	}
	after := s.contention(t, "")
	if before.Conflicts != 999 || after.Conflicts != 499 || after.Commits != (1<<16+1)/2 {
		t.Errorf("%+v has become %+v", before, after)
	}
}

// TestContentionBounded: keys of a thousand classes are counted, and no more.
func TestContentionBounded(t *testing.T) {
	s := newStand()
	for i := range 3000 {
		key := interlock.Key(fmt.Sprintf("class-%04d:key", i))
		s.commit(put(string(key), nil), s.seen(key)...)
	}
	list := s.e.Contention(s.head(interlock.SessionID{}).Namespace)
	if len(list) != 1024 {
		t.Errorf("%d classes are counted", len(list))
	}
	for i := range list {
		if want := fmt.Sprintf("class-%04d:", i); list[i].Pattern != want {
			t.Fatalf("class %d is %q, want %q", i, list[i].Pattern, want)
		}
	}
	if s.commit(put("another:key", nil)).Outcome != engine.Done {
		t.Error("what is not counted is refused")
	}
}
