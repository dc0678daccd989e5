package shard

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// waysToSnapshot are the two ways in which snapshots are made, as PictureEvents.
var waysToSnapshot = map[string]int{"picture": 0, "beside": -1}

// A process that makes snapshots may die between any two things that it does: what the next one
// starts with is the state of the whole journal, and has all that was answered. And what a dead one
// still does changes nothing.
func TestCrashAroundSnapshots(t *testing.T) {
	for name, events := range waysToSnapshot {
		t.Run(name, func(t *testing.T) {
			most := 0
			for deeds := 0; ; deeds++ {
				store := new(memjournal.Store)
				h := newHand(t, store, func(c *Config) { c.SnapshotBytes, c.PictureEvents = 500, events })
				in := newInbox()
				alive := h.live(in, deeds)
				checkStart(t, store, in)
				if at := snapshotIndex(t, store); h.Snapshotting() {
					h.Snapshot()
					if now := snapshotIndex(t, store); now != at {
						t.Fatalf("after %d deeds: the one that was followed makes a snapshot at %d", deeds, now)
					}
				}
				most = max(most, int(snapshotIndex(t, store)))
				if alive {
					break
				}
			}
			if most < 8 {
				t.Errorf("the last snapshot was at %d: none of the crashes were around one", most)
			}
		})
	}
}

// live makes agents take and release a few keys, until the process has done so many actions of
// its own. It reports whether it is still alive.
func (h *hand) live(in *inbox, deeds int) (alive bool) {
	h.t.Helper()
	do := func(deed func()) bool {
		if deeds--; deeds < 0 {
			return false
		}
		deed()
		return true
	}
	var leases []interlock.LeaseID
	for i := range 12 {
		c := acquire(in, keyNumber(i%5))
		cmds := []engine.Command{c}
		if i >= 5 {
			cmds = []engine.Command{release(in, leases[i-5]), c}
		}
		leases = append(leases, c.ID)
		if err := h.Submit(cmds...); err != nil {
			h.t.Fatal(err)
		}
		for more := true; more; {
			if !do(func() { more = h.Turn() }) {
				return false
			}
			// The group is written while the owner fills the next one, and answered later.
			if h.Appending() && i%3 > 0 && (!do(h.Append) || !do(h.Answer)) {
				return false
			}
			if h.Snapshotting() && i%4 == 0 && !do(h.Snapshot) {
				return false
			}
		}
	}
	return true
}

// checkStart checks what the next process would start with.
func checkStart(t *testing.T, store *memjournal.Store, in *inbox) {
	t.Helper()
	j, err := store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&Shard{journal: j}).replay(t.Context(), j.Tail(), inTurn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.engine.Hash() != replayedHash(t, j) {
		t.Errorf("the snapshot at %d and what follows it are not what the whole journal says", r.snapshot)
	}
	last := j.Tail() - 1 // before the record of this epoch
	for _, a := range in.all() {
		if a.At.Index > last {
			t.Errorf("an answer of index %d left, and the journal ended at %d", a.At.Index, last)
		}
	}
}

// checkSnapshot compares the newest snapshot with the journal up to its index.
func (h *hand) checkSnapshot() {
	h.t.Helper()
	at, snapshot, err := h.s.journal.Snapshot(h.t.Context())
	if err != nil || snapshot == nil {
		return
	}
	defer snapshot.Close()
	state := bufio.NewReader(snapshot)
	if _, err := chain.Read(state, at); err != nil {
		h.t.Fatal(err)
	}
	got, err := engine.ReadSnapshot(state)
	if err != nil {
		h.t.Fatal(err)
	}
	want := engine.New()
	var pieces Joiner
	if err := h.s.journal.Read(h.t.Context(), 1, func(e journal.Entry) error {
		if e.Index > at {
			return nil
		}
		entry, err := pieces.Join(e)
		if entry == nil {
			return err
		}
		return want.Apply(entry)
	}); err != nil {
		h.t.Fatal(err)
	}
	if got.Hash() != want.Hash() {
		h.t.Errorf("the snapshot at %d is not the state that the journal has there", at)
	}
}

func snapshotIndex(t *testing.T, store *memjournal.Store) interlock.Index {
	t.Helper()
	j, err := store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, snapshot, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot != nil {
		snapshot.Close()
	}
	return at
}

// When what a snapshot was to be made of cannot be written, none is made, and the next one
// is tried as soon as there is space; also when there is none for long.
func TestSnapshotOfWhatWasNotWritten(t *testing.T) {
	for name, events := range waysToSnapshot {
		t.Run(name, func(t *testing.T) {
			store := new(memjournal.Store)
			var full bool
			h := newHand(t, store, func(c *Config) {
				c.SnapshotBytes, c.PictureEvents = 1000, events
				c.Journal = tightJournal{c.Journal, &full}
			})
			in := newInbox()
			parked := 0
			for i := range 300 {
				full = i%20 < 5
				if i%10 == 3 {
					for range 1 + i/10%4 {
						store.Inject(memjournal.NoSpace)
					}
				}
				h.submit(acquire(in, keyNumber(i)), acquire(in, keyNumber(i+1000)))
				for h.Appending() || h.Parked() {
					h.Append()
					h.Answer()
					h.turns()
					if h.Snapshotting() && i%3 > 0 {
						h.Snapshot()
						h.checkSnapshot()
					}
					if h.Parked() {
						parked++
						h.now = h.now.Add(parkedFor / 2)
						h.submit(acquire(in, keyNumber(i)))
					}
				}
				if i%10 == 3 {
					h.now = h.now.Add(fullFor)
					h.clock.advance(fullFor + time.Second)
				}
			}
			at, snapshot := h.At().Index, interlock.Index(h.s.snapshotAt.Load())
			due := (1000 + h.s.snapshotSize.Load()) / h.s.size.mean()
			if snapshot == 0 || at > snapshot+interlock.Index(due)+50 || parked == 0 {
				t.Errorf("the last snapshot is at %d of %d; parked %d times", snapshot, at, parked)
			}
			checkStart(t, store, in)
		})
	}
}

// tightJournal is one that has no room for snapshots while it is full.
type tightJournal struct {
	journal.Journal
	full *bool
}

func (j tightJournal) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	if *j.full {
		return journal.ErrNoSpace
	}
	return j.Journal.SaveSnapshot(ctx, at, write)
}
