package remote_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/interlockdev/interlock/internal/simengine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// An engine that goes back to an older state is noticed by the living owner: it stops before the next
// answer, every other owner is fenced, and the next one knows that fences must jump.
func TestLoss(t *testing.T) {
	write := func(j *remote.Journal) error { return j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte("next")}) }
	barrier := func(j *remote.Journal) error { return j.Barrier(t.Context()) }
	for _, c := range []struct {
		name   string
		notice func(*remote.Journal) error
		lose   int  // entries of the owner; -1: also its epoch record
		other  bool // another owner opened the journal meanwhile, and appended as much
	}{
		{"Append", write, 1, false},
		{"Barrier", barrier, 1, false},
		{"AppendEpoch", write, -1, false},
		{"BarrierEpoch", barrier, -1, false},
		{"AppendOther", write, 1, true},
		{"BarrierOther", barrier, 2, true},
		{"BarrierEpochOther", barrier, -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := simengine.New(false)
			s := remote.New(m, 0)
			add(t, own(t, s), "before")
			back := m.Mark()
			j := own(t, s)
			if c.lose > 0 {
				add(t, j, "kept")
				back = m.Mark()
			}
			for range c.lose {
				add(t, j, "lost")
			}
			back(false)
			var other *remote.Journal
			if c.other {
				other = own(t, s)
				for range 3 {
					add(t, other, "other")
				}
			}
			if err := c.notice(j); !errors.Is(err, journal.ErrLost) {
				t.Fatalf("got %v", err)
			}
			if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrLost) {
				t.Errorf("the next call: %v", err)
			}
			if other != nil {
				if err := other.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
					t.Errorf("another owner goes on without the lost entries: %v", err)
				}
			}
			next := own(t, s)
			if !next.Copied() || next.Epoch() <= j.Epoch() {
				t.Errorf("the next owner: copied %v, epoch %d after %d", next.Copied(), next.Epoch(), j.Epoch())
			}
			if err := next.Adopt(); err != nil {
				t.Fatal(err)
			}
			if own(t, s).Copied() {
				t.Error("fences jump twice")
			}
		})
	}
}

// An owner that does not know yet that the log has lost its end names no snapshot above the new end, and removes nothing
// that the next owner needs: neither when the end was lost before a call, nor between any two requests of one.
func TestNoSnapshotAboveALostEnd(t *testing.T) {
	for name, unaware := range map[string]func(*remote.Journal) error{
		"SaveSnapshot": func(j *remote.Journal) error {
			return j.SaveSnapshot(t.Context(), j.Tail(), write("state of lost"))
		},
		"Truncate": func(j *remote.Journal) error { return j.Truncate(t.Context(), 3) },
		"Save":     func(j *remote.Journal) error { return j.Kept("value").Save([]byte("lost")) },
	} {
		for n, more := 1, true; more; n++ { // the end is lost before request n
			m := simengine.New(false)
			s := remote.New(m, 0)
			first := own(t, s)
			add(t, first, "kept")
			if err := first.SaveSnapshot(t.Context(), first.Tail(), write("state of kept")); err != nil {
				t.Fatal(err)
			}
			saved := first.Tail()
			lossy := m.Via(nil)
			j, back := own(t, remote.New(lossy, 0)), m.Mark()
			add(t, j, "lost")
			requests := 0
			lossy.Fault = func(string) simengine.Fault {
				if requests++; requests == n {
					back(false)
				}
				return simengine.None
			}
			err := unaware(j)
			if more = requests >= n; !more {
				if n < 3 {
					t.Errorf("%s made %d requests", name, requests)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil && !errors.Is(err, journal.ErrLost) {
				t.Errorf("%s, lost before request %d: got %v", name, n, err)
			}
			next := own(t, s)
			at, state, err := next.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(state)
			if err != nil || at != saved || string(text) != "state of kept" {
				t.Errorf("%s, lost before request %d: the snapshot at %d is %q, %v", name, n, at, text, err)
			}
			if next.First() > saved+1 {
				t.Errorf("%s, lost before request %d: the log begins at %d", name, n, next.First())
			}
		}
	}
}

// lateHead reads the head, and something happens before its reader sees it.
type lateHead struct {
	*simengine.Driver
	meanwhile func()
}

func (l *lateHead) Head(ctx context.Context) (remote.Head, error) {
	h, err := l.Driver.Head(ctx)
	if then := l.meanwhile; then != nil {
		l.meanwhile = nil
		then()
	}
	return h, err
}

// A head that was read before an append ended is no loss.
func TestAppendDuringSnapshotIsNoLoss(t *testing.T) {
	m := simengine.New(false)
	late := &lateHead{Driver: m}
	j := own(t, remote.New(late, 0))
	puts := 0
	m.Fault = func(method string) simengine.Fault {
		if method != "put" {
			return simengine.None
		}
		if puts++; puts == 2 { // that of the newest snapshot's name, which is then refused
			return simengine.Answered
		}
		return simengine.None
	}
	late.meanwhile = func() { add(t, j, "meanwhile") }
	if err := j.SaveSnapshot(t.Context(), 1, write("state")); err != nil {
		t.Fatal(err)
	}
	if late.meanwhile != nil {
		t.Fatal("no head was read")
	}
	add(t, j, "after")
}

// A former owner with all entries in the log was fenced, and nothing else.
func TestFencedIsNoLoss(t *testing.T) {
	for name, creates := range engines {
		t.Run(name, func(t *testing.T) {
			s := remote.New(simengine.New(creates), 0)
			j := own(t, s)
			add(t, j, "kept")
			next := own(t, s)
			add(t, next, "more")
			if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrLost) {
				t.Fatalf("got %v", err)
			}
			if err := next.Barrier(t.Context()); err != nil || next.Copied() {
				t.Errorf("the owner: %v, copied %v", err, next.Copied())
			}
		})
	}
}
