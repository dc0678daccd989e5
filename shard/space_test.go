package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// When an append finds no space, its callers get the error, nothing of it has happened, and
// commands that return something work afterwards.
func TestNoSpace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		resets := 0
		r.shard.OnReset(func() { resets++ })

		r.store.Inject(memjournal.NoSpace)
		r.refused(interlock.CodeNoSpace, acquire(nil, "b"))
		synctest.Wait()
		if resets != 1 {
			t.Errorf("%d resets, want 1", resets)
		}
		r.refused(interlock.CodeNoSpace, acquire(nil, "c")) // the engine itself refuses now
		r.expect(engine.Granted, &engine.Renew{Head: head(nil), Lease: held.ID})
		r.expect(engine.Done, release(nil, held.ID))

		<-time.After(fullFor) // and then it is tried again
		r.expect(engine.Granted, acquire(nil, "b"))
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Errorf("the live engine is not what the journal says")
		}
	})
}

// A waiter that would have been granted by the group that failed must not hear of
// it. Its place is kept, and it hears when it asks again.
func TestNoSpaceDoesNotTellTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		waiter := newInbox()
		r.submit(queue(waiter, "a"))
		ticket := (<-waiter.c).Ticket.ID
		r.store.Inject(memjournal.NoSpace)
		r.refused(interlock.CodeNoSpace, release(nil, held.ID))
		synctest.Wait()
		if got := waiter.all(); len(got) != 1 {
			t.Fatalf("the waiter was told of a grant that never was: %+v", got[1:])
		}
		r.expect(engine.Queued, &engine.Poll{Head: head(nil), Ticket: ticket})
		again := newInbox()
		r.submit(&engine.Poll{Head: head(again), Ticket: ticket, Attach: true})
		if a := <-again.c; a.Outcome != engine.Queued {
			t.Fatalf("%v, want queued", a.Outcome)
		}
		r.expect(engine.Done, release(nil, held.ID))
		if a := <-again.c; a.Outcome != engine.Granted {
			t.Fatalf("%v, want granted", a.Outcome)
		}
	})
}

// A group that was stepped behind one that failed rests on decisions that were never written:
// it must fail too, although its own append would have found room.
func TestNoSpaceTakesWhatWasSteppedAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := newInbox()
		hold := r.store.Hold()
		r.submit(acquire(in, "a"))
		<-hold.Reached
		r.submit(acquire(in, "a"), acquire(in, "b"), &engine.CheckFence{Head: head(in), Key: "a", Fence: 1})
		synctest.Wait()
		r.store.Inject(memjournal.NoSpace)
		hold.Release()
		synctest.Wait()
		got := in.all()
		if len(got) != 4 {
			t.Fatalf("%d answers, want 4", len(got))
		}
		for i, a := range got {
			if a.Outcome != engine.Refused || a.Code != interlock.CodeNoSpace {
				t.Errorf("answer %d: %v %s, want no_space", i, a.Outcome, a.Code)
			}
		}
		r.refused(interlock.CodeFenced, &engine.CheckFence{Head: head(nil), Key: "a", Fence: 1})
	})
}

// While not even the engine's new beginning finds room, everything is refused and time stands
// still, so no holder loses a lease for not being heard.
func TestParked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		const rounds = 100
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease // ttl 30 s
		r.store.Inject(slices.Repeat([]memjournal.Fault{memjournal.NoSpace}, 1+rounds)...)
		r.refused(interlock.CodeNoSpace, acquire(nil, "b"))
		<-time.After(rounds / 2 * parkedFor)
		r.refused(interlock.CodeNoSpace, &engine.Renew{Head: head(nil), Lease: held.ID})
		if _, err := r.shard.Read(
			r.Context(), "test", func(*engine.Engine, engine.Time) {},
		); !errors.Is(err, &interlock.Error{Code: interlock.CodeNoSpace}) {
			t.Errorf("Read: %v", err)
		}
		<-time.After(rounds/2*parkedFor + time.Second)
		lease := r.expect(engine.Granted, &engine.GetLease{Head: head(nil), Lease: held.ID}).Lease
		if lease.ExpiresIn < 25*time.Second {
			t.Errorf(
				"after %v without space the lease has %v left, want nearly all of its ttl", rounds*parkedFor, lease.ExpiresIn,
			)
		}
		r.expect(engine.Done, release(nil, held.ID))
	})
}

func TestCloseWhileParked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		r.store.Inject(memjournal.NoSpace, memjournal.NoSpace)
		r.refused(interlock.CodeNoSpace, acquire(nil, "b"))
		synctest.Wait()
		if err := r.shard.Close(r.Context()); err == nil {
			t.Error("Close says nothing of what it could not write")
		}
		r.open()
		r.expect(engine.Granted, &engine.GetLease{Head: head(nil), Lease: held.ID})
	})
}

// Low space is reported to the engine before the next command, both ways.
func TestLow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		r.store.SetLow(true)
		r.refused(interlock.CodeNoSpace, acquire(nil, "b"))
		r.expect(engine.Done, release(nil, held.ID))
		r.store.SetLow(false)
		r.expect(engine.Granted, acquire(nil, "b"))
	})
}

// An open that finds no space returns that error and leaves the journal to its caller.
func TestOpenWithoutSpace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := new(memjournal.Store)
		j, err := store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		store.Inject(memjournal.NoSpace)
		if _, err := Open(t.Context(), Config{Journal: j}); !errors.Is(err, journal.ErrNoSpace) {
			t.Errorf("Open: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// fullJournal is a journal of a disk that has room for so many entries. Cut entries make room for
// others.
type fullJournal struct {
	journal.Journal
	room  interlock.Index
	fails atomic.Int32 // snapshots that find no room
}

func (j *fullJournal) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	if j.fails.Add(-1) >= 0 {
		return journal.ErrNoSpace
	}
	return j.Journal.SaveSnapshot(ctx, at, write)
}

func (j *fullJournal) Low() bool { return j.Tail()-j.First() >= j.room }

// pagedJournal has room for entries of at most so many bytes together, as a database has in pages that it has.
type pagedJournal struct {
	journal.Journal
	room  atomic.Int64 // 0: any
	reads atomic.Int32 // replays
}

func (j *pagedJournal) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	n := 0
	for _, e := range entries {
		n += len(e)
	}
	if room := j.room.Load(); room > 0 && int64(n) > room {
		return journal.ErrNoSpace
	}
	return j.Journal.Append(ctx, first, entries)
}

// A journal that has room for the record of a new engine and not for the entries of callers is not replayed for each
// group that it refuses: a few times in twenty seconds, whatever they do. With room again it answers within the
// pause.
func TestFullJournalIsReplayedAFewTimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var paged *pagedJournal
		r := newRig(t, func(c *Config) {
			paged = &pagedJournal{Journal: c.Journal}
			c.Journal = paged
		})
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		r.shard.OnReset(func() { paged.reads.Add(1) })
		paged.room.Store(40)
		for range 100 {
			a, _ := r.do(release(nil, held.ID))
			if a.Code != interlock.CodeNoSpace {
				t.Fatalf("a release: %v %s", a.Outcome, a.Code)
			}
			<-time.After(200 * time.Millisecond)
		}
		if n := paged.reads.Load(); n < 3 || n > 8 {
			t.Errorf("the journal was replayed %d times in 20 s", n)
		}
		paged.room.Store(0)
		<-time.After(parkedMost)
		r.expect(engine.Done, release(nil, held.ID))
		<-time.After(fullFor)
		r.expect(engine.Granted, acquire(nil, "b"))
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Errorf("the live engine is not what the journal says")
		}
		// A later shortage begins anew.
		paged.room.Store(40)
		before := paged.reads.Load()
		r.refused(interlock.CodeNoSpace, acquire(nil, "c"))
		synctest.Wait()
		if n := paged.reads.Load() - before; n != 1 {
			t.Errorf("%d replays at once, want 1", n)
		}
	})
}

// When all leases were released, a journal that was full has room again by itself: a snapshot
// is made because space is low, although little was written since the last one.
func TestLowSpaceMakesASnapshot(t *testing.T) {
	for name, events := range waysToSnapshot {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					j := &fullJournal{Journal: c.Journal, room: 20}
					j.fails.Store(3)
					c.Journal = j
					c.SnapshotBytes, c.PictureEvents, c.KeepBytes = 0, events, -1
				})
				for round := range 3 {
					var held []interlock.LeaseID
					for i := range 100 {
						a, _ := r.do(acquire(nil, keyNumber(i)))
						if a.Outcome == engine.Granted {
							held = append(held, a.Lease.ID)
						} else if a.Code != interlock.CodeNoSpace {
							t.Fatalf("%v %s", a.Outcome, a.Code)
						}
					}
					for _, id := range held {
						r.expect(engine.Done, release(nil, id))
					}
					if len(held) == 0 {
						t.Errorf("round %d: nothing was granted", round)
					}
					for range 4 { // clients do nothing but come again now and then
						<-time.After(pressLater)
						r.do(acquire(nil, "look")) // its lease is over the next time
						synctest.Wait()
					}
					r.expect(engine.Granted, acquire(nil, fmt.Sprint("again ", round)))
				}
			})
		})
	}
}

// Where history is to be kept, nothing is cut for want of space, and the refusal names that reason.
func TestLowSpaceAndHistory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, func(c *Config) {
			c.Journal = &fullJournal{Journal: c.Journal, room: 20}
			c.SnapshotBytes, c.KeepBytes = 0, 1<<30
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		for i := range 25 {
			r.do(acquire(nil, keyNumber(i)))
		}
		synctest.Wait()
		eff := r.expect(engine.Refused, acquire(nil, "again"))
		if eff.Code != interlock.CodeNoSpace || !strings.Contains(prose.Sentence(eff.Message), "keeps less history") {
			t.Errorf("refused with %s %q", eff.Code, prose.Sentence(eff.Message))
		}
		if r.shard.First() != 1 {
			t.Error("history was cut")
		}
		r.close()
		if !strings.Contains(log.String(), "within --keep-bytes") {
			t.Errorf("the log does not say why:\n%s", &log)
		}
	})
}

// Low memory is reported to the engine before the next command, both ways, as low space is.
func TestLowMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var low atomic.Bool
		r := newRig(t, func(c *Config) { c.LowMemory = low.Load })
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		low.Store(true)
		r.refused(interlock.CodeOverloaded, acquire(nil, "b"))
		r.expect(engine.Granted, &engine.Renew{Head: head(nil), Lease: held.ID})
		r.expect(engine.Done, release(nil, held.ID))
		low.Store(false)
		r.expect(engine.Granted, acquire(nil, "b"))
	})
}
