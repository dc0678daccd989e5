package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// hand is a Manual with a clock that the test advances.
type hand struct {
	*Manual
	t     *testing.T
	store *memjournal.Store
	clock *fakeClock
	now   time.Time
}

func newHand(t *testing.T, store *memjournal.Store, change ...func(*Config)) *hand {
	t.Helper()
	h := &hand{t: t, store: store, clock: newFakeClock(1_000_000_000), now: time.Unix(1, 0)}
	j, err := store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Journal: j, Clock: h.clock, SnapshotBytes: -1}
	for _, c := range change {
		c(&cfg)
	}
	h.Manual, err = OpenManual(t.Context(), cfg, func() time.Time { return h.now })
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// turns runs turns of the owner until it has nothing more to do.
func (h *hand) turns() {
	for h.Turn() {
	}
}

func (h *hand) submit(cmds ...engine.Command) {
	h.t.Helper()
	if err := h.Submit(cmds...); err != nil {
		h.t.Fatal(err)
	}
	h.turns()
}

// Nothing is answered before Answer, and what Append has written is there for the next
// owner, whether it was answered or not.
func TestManualDiesBetweenAppendAndAnswer(t *testing.T) {
	store := new(memjournal.Store)
	h, in := newHand(t, store), newInbox()
	h.submit(acquire(in, "a"))
	if !h.Appending() || len(in.all()) > 0 {
		t.Fatalf("appending %v, answers %v", h.Appending(), in.all())
	}
	h.Append()
	if len(in.all()) > 0 {
		t.Fatal("answered before Answer")
	}
	next := newHand(t, store) // and the first one is gone
	next.submit(acquire(in, "a"))
	next.Append()
	next.Answer()
	if got := in.all(); len(got) != 1 || got[0].Code != interlock.CodeHeld {
		t.Fatalf("the next owner says %+v", got)
	}
	if !next.Settled() || next.Appending() {
		t.Error("something is left to do")
	}
	if err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The next group is filled while one is being written, and an owner that was fenced off meanwhile
// refuses both.
func TestManualIsFenced(t *testing.T) {
	store := new(memjournal.Store)
	h, in := newHand(t, store), newInbox()
	h.submit(acquire(in, "a"))
	h.submit(acquire(in, "b"))
	newHand(t, store)
	h.Append()
	h.turns()
	got := in.all()
	if len(got) != 2 || got[0].Code != interlock.CodeNotOwner || got[1].Code != interlock.CodeNotOwner {
		t.Fatalf("answers: %+v", got)
	}
	if !errors.Is(h.Err(), journal.ErrFenced) || h.Turn() {
		t.Errorf("the shard goes on: %v", h.Err())
	}
}

// A shard without space is parked, refuses commands, and continues when there is room.
func TestManualIsParked(t *testing.T) {
	store := new(memjournal.Store)
	h, in := newHand(t, store), newInbox()
	store.Inject(memjournal.NoSpace, memjournal.NoSpace, memjournal.NoSpace)
	h.submit(acquire(in, "a"))
	h.Append()
	h.turns()
	if !h.Parked() {
		t.Fatal("not parked")
	}
	h.submit(acquire(in, "a"))
	for range 2 {
		h.now = h.now.Add(parkedFor)
		h.turns()
	}
	if h.Parked() {
		t.Fatal("still parked")
	}
	h.now = h.now.Add(fullFor)
	h.clock.advance(fullFor + time.Second)
	h.submit(acquire(in, "a"))
	h.submit() // the limit is lifted in a group of its own
	for h.Appending() {
		h.Append()
		h.Answer()
		h.turns()
	}
	got := in.all()
	if len(got) != 3 || got[0].Code != interlock.CodeNoSpace || got[1].Code != interlock.CodeNoSpace ||
		got[2].Outcome != engine.Granted {
		t.Fatalf("answers: %+v", got)
	}
}
