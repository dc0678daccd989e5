package oncejournal

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// server is one of several over the same store. It acts on what it has seen last, as one that stood still does.
type server struct {
	*testing.T
	*driver
	me   remote.Owner
	tail remote.Position
}

func (m *memory) server(t *testing.T, epoch interlock.Epoch) *server {
	return &server{T: t, driver: newDriver(m, 0), me: remote.Owner{Epoch: epoch, Word: fmt.Sprint("w", epoch)}}
}

// look reads the head.
func (s *server) look() remote.Head {
	s.Helper()
	h, err := s.Head(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// fence makes it the owner after the one that it has seen.
func (s *server) fence(was remote.Head) bool {
	s.Helper()
	done, err := s.Fence(s.Context(), was.Owner, s.me, false)
	if s.tail = was.Tail; err != nil {
		s.Logf("fence of epoch %d: %v", s.me.Epoch, err)
	}
	return done && err == nil
}

func (s *server) append(n int) bool {
	s.Helper()
	for range n {
		next := remote.Position{Index: s.tail.Index + 1, Chain: s.tail.Chain + 1}
		done, err := s.Append(s.Context(), s.me, s.tail, next, []byte("frame"))
		if err != nil {
			s.Fatal(err)
		}
		if !done {
			return false
		}
		s.tail = next
	}
	return true
}

// head is what the server knows of the log.
func (s *server) head() remote.Head { return remote.Head{Owner: s.me, Tail: s.tail} }

// truncate deletes all that it may.
func (s *server) truncate() {
	s.Helper()
	for {
		dropped, done, err := s.Drop(s.Context(), s.head(), s.tail.Index)
		if err != nil || dropped > 0 && !done {
			s.Fatalf("drop: %d, %t, %v", dropped, done, err)
		}
		if dropped == 0 {
			return
		}
	}
}

func (s *server) confirmed() bool {
	s.Helper()
	ok, err := s.Confirm(s.Context(), s.head())
	if err != nil {
		s.Fatal(err)
	}
	return ok
}

// The name that an owner wants next is taken for ever once another one has followed, also when the log behind
// that is long gone.
func TestLateOwner(t *testing.T) {
	m := newMemory()
	old, next := m.server(t, 1), m.server(t, 2)
	if !old.fence(old.look()) || !old.append(3) {
		t.Fatal("the first owner is none")
	}
	if !next.fence(next.look()) || !next.append(150) {
		t.Fatal("the second owner is none")
	}
	next.truncate()
	next.append(1)
	if got := m.count("log/"); got != 4 {
		t.Errorf("%d records are left, want two that begin an ownership and the last two appends", got)
	}
	if old.append(1) {
		t.Error("a late append was stored")
	}
	if old.confirmed() {
		t.Error("a late barrier was passed")
	}
	late := m.server(t, 1)
	late.newest = old.newest
	if _, done, err := late.Put(t.Context(), late.head(), "state", []byte("late"), ""); done || err != nil {
		t.Errorf("a late value was stored: %t, %v", done, err)
	}
	if done, err := late.Remove(t.Context(), late.head(), "a", "z"); done || err != nil {
		t.Errorf("values were removed late: %t, %v", done, err)
	}
	if !next.confirmed() || !next.append(1) {
		t.Error("the second owner is disturbed")
	}
}

// A server that wanted to be the owner long ago, of a log that has been truncated since, is none.
func TestLateTakeOver(t *testing.T) {
	for _, before := range []int{0, 10} { // 0: the record before stays, as it begins the ownership
		m := newMemory()
		owner, late, stale := m.server(t, 1), m.server(t, 2), m.server(t, 3)
		owner.fence(owner.look())
		owner.append(before)
		seen := late.look()
		stale.look()
		owner.append(150)
		owner.truncate()
		if late.fence(seen) {
			t.Fatal("a late take-over succeeded")
		}
		for _, s := range []*server{late, stale, m.server(t, 4), owner} {
			if h := s.look(); h.Owner != owner.me || h.Tail != owner.tail {
				t.Errorf("server %d sees %+v", s.me.Epoch, h)
			}
		}
		if !owner.confirmed() || !owner.append(1) {
			t.Error("the owner is disturbed")
		}
		if !late.fence(late.look()) || owner.append(1) {
			t.Error("a take-over in time did not succeed")
		}
	}
}

// A server that dies while it deletes leaves nothing behind for ever.
func TestSweep(t *testing.T) {
	m := newMemory()
	owner, next := m.server(t, 1), m.server(t, 2)
	owner.fence(owner.look())
	owner.append(50)
	kept := maps.Clone(m.all)
	owner.truncate()
	for name, o := range kept { // as if it had moved the begin and deleted nothing
		if _, ok := m.all[name]; !ok {
			m.all[name] = o
		}
	}
	next.fence(next.look())
	next.append(5)
	next.truncate()
	if got := m.count("log/"); got != 3 {
		t.Errorf("%d records are left, want two that begin an ownership and the last append", got)
	}
}

// An owner notices that the store has gone back to an older state, and the next one lets fences jump.
func TestLostTail(t *testing.T) {
	m := newMemory()
	s := m.store()
	j := remotetest.Own(t, s)
	remotetest.Add(t, j, "kept")
	before := maps.Clone(m.all)
	remotetest.Add(t, j, "lost")
	m.all = before
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrLost) {
		t.Fatalf("got %v", err)
	}
	next := remotetest.Own(t, s)
	if !next.Copied() {
		t.Error("fences do not jump")
	}
	if got := remotetest.Texts(t, next); got != " kept " {
		t.Errorf("the journal holds %q", got)
	}
}

// Barriers that come in a row begin at least so far apart.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := m.server(t, 1)
		s.gather = 50 * time.Millisecond
		s.fence(s.look())
		time.Sleep(time.Second)
		began := time.Now()
		for range 5 {
			s.confirmed()
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("five barriers took %v", took)
		}
	})
}
