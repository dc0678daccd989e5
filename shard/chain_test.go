package shard

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// checkHead compares the shard's head with the journal's, computed from each mark that its newest
// snapshot has, and from the beginning if that is still there.
func checkHead(t *testing.T, s *Shard) chain.Link {
	t.Helper()
	head := s.links.record(0).Last()
	if tail := s.journal.Tail(); head.Index != tail {
		t.Fatalf("the chain is at entry %d, the journal at %d", head.Index, tail)
	}
	record := chain.Record{Marks: []chain.Link{chain.Start(0)}}
	at, snapshot, err := s.journal.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot != nil {
		defer snapshot.Close()
		if record, err = chain.Read(bufio.NewReader(snapshot), at); err != nil {
			t.Fatal(err)
		}
	}
	used := 0
	for _, mark := range record.Marks {
		if mark.Index+1 < s.journal.First() {
			continue
		}
		c := chain.From(mark)
		if err := s.journal.Read(t.Context(), mark.Index+1, func(e journal.Entry) error {
			c.Add(e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if c.Last() != head {
			t.Fatalf("from the mark at %d on the journal has link %v, the shard %v", mark.Index, c.Last(), head)
		}
		used++
	}
	if used == 0 {
		t.Fatalf("the snapshot at %d has no mark from which the kept entries can be checked", at)
	}
	return head
}

// The head continues over snapshots, truncations, restarts and epochs, as if there had been
// none: one journal that forgets and one that does not have the same heads.
func TestHead(t *testing.T) {
	for name, events := range waysToSnapshot {
		t.Run(name, func(t *testing.T) {
			short, long := new(memjournal.Store), new(memjournal.Store)
			for round := range 4 {
				a := newHand(t, short, func(c *Config) { c.SnapshotBytes, c.PictureEvents, c.KeepBytes = 1000, events, 20_000 })
				b := newHand(t, long, func(c *Config) { c.KeepBytes = 1 << 40 })
				for _, h := range []*hand{a, b} {
					in := newInbox()
					for i := range 300 {
						c := acquire(in, keyNumber(i%7))
						c.ID = interlock.LeaseID{1, byte(round), byte(i >> 8), byte(i)}
						h.submit(c, release(in, c.ID))
						for h.Appending() {
							h.Append()
							h.Answer()
							h.turns()
						}
						if h.Snapshotting() && i%5 == 0 {
							h.Snapshot()
						}
					}
				}
				if got, want := checkHead(t, a.s), checkHead(t, b.s); got != want {
					t.Fatalf("round %d: link %v with snapshots, %v without", round, got, want)
				}
				if round%2 == 0 { // else the process dies
					if err := errors.Join(a.Close(t.Context()), b.Close(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
			}
			j, err := short.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if j.First() == 1 {
				t.Error("nothing was truncated")
			}
		})
	}
}

// A chain begins behind the snapshot of a journal that has none.
func TestHeadOfOldJournal(t *testing.T) {
	store := new(memjournal.Store)
	h, in := newHand(t, store), newInbox()
	h.submit(acquire(in, "a"))
	h.settle()
	at := h.s.At().Index
	if err := h.s.journal.SaveSnapshot(t.Context(), at, h.Engine().WriteSnapshot); err != nil {
		t.Fatal(err)
	}
	h.submit(acquire(in, "b"))
	h.settle()

	h = newHand(t, store)
	checkHead(t, h.s)
	c := chain.From(chain.Start(at))
	if err := h.s.journal.Read(t.Context(), at+1, func(e journal.Entry) error {
		c.Add(e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := h.s.links.record(0).Last(); got != c.Last() {
		t.Errorf("link %v, want %v: the chain begins behind the snapshot", got, c.Last())
	}
}

// Head covers what was answered before, and is refused where the journal is lost.
func TestHeadCoversAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		before, _, err := r.shard.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			_, at := r.do(acquire(nil, keyNumber(i)))
			head, said, err := r.shard.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if said.Index < at.Index || head == before || !strings.HasPrefix(head, said.Index.String()+":") ||
				said.Epoch != r.shard.epoch {
				t.Fatalf("head %s at %v after an answer at %d; the one before was %s", head, said, at.Index, before)
			}
			before = head
		}
		if _, err := r.store.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if head, _, err := r.shard.Head(t.Context()); err == nil {
			t.Errorf("head %s of a shard that another one has taken over", head)
		}
	})
}
