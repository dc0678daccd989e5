package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// large is a pattern that takes nearly half a MiB.
func large(name string, capacity int) interlock.Pattern {
	p := interlock.Pattern{Name: name, Shape: name + "/{id}", Capacity: uint32(capacity)}
	for i := range interlock.MaxMembers {
		p.Members = append(p.Members, fmt.Sprintf("%s/%d-%s", name, i, strings.Repeat("x", 490)))
	}
	return p
}

func (s *stand) set(t *testing.T, p interlock.Pattern) {
	t.Helper()
	s.now = s.now.Add(time.Second)
	s.step(&engine.SetPattern{Head: s.head(interlock.SessionID{}), Pattern: p})
	s.want(t, engine.Done)
}

// kept returns the numbers of a pattern's revisions that are remembered, the newest first.
func (s *stand) kept(name string) (numbers []uint64) {
	for _, r := range s.e.Revisions("bench", name) {
		numbers = append(numbers, r.Revision)
	}
	return numbers
}

// TestRevisionsAreBoundedTogether has the oldest revisions of a namespace go first,
// whichever patterns they are of, and present ones never: nor if they alone are too many.
func TestRevisionsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	s := newStand()
	want := func(when, name string, numbers ...uint64) {
		t.Helper()
		if got := s.kept(name); fmt.Sprint(got) != fmt.Sprint(numbers) {
			t.Errorf("%s, revisions %d of %q are remembered, want %d", when, got, name, numbers)
		}
	}
	for i := range 3 { // the names are in another order than the times
		s.set(t, interlock.Pattern{Name: "z", Shape: "z", Capacity: uint32(i + 1)})
	}
	s.set(t, large("y", 1))
	s.step(&engine.DropPattern{Head: s.head(interlock.SessionID{}), Name: "y"})
	s.want(t, engine.Done)
	s.set(t, large("b", 1))
	s.set(t, large("b", 2))
	name := func(i int) string { return fmt.Sprintf("c%d", i) }
	const one = 520 << 10 // more than it takes
	n := 0
	for ; (n+4)*one < interlock.MaxSpaceRevisionBytes; n++ {
		s.set(t, large(name(n), 1))
	}
	want("before there is too much", "z", 3, 2, 1)
	for ; len(s.kept("y")) == 2; n++ {
		s.set(t, large(name(n), 1))
	}
	want("after it", "z", 3)
	want("after it", "y", 2)
	want("after it", "b", 2, 1)
	s.snapshots(t)
	for ; len(s.kept("b")) == 2; n++ {
		s.set(t, large(name(n), 1))
	}
	for range 3 {
		s.set(t, large(name(n), 1))
		n++
	}
	s.set(t, large("b", 3))
	want("with too many present ones", "b", 3)
	want("with too many present ones", name(0), 1)
	want("with too many present ones", "y", 2)
	s.snapshots(t)
	want("in a snapshot", "b", 3)
}
