package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// traffic has some agents acquire, wait, heartbeat and release at random, each
// with commands in flight.
func (r *rig) traffic(agents, rounds int) {
	r.Helper()
	var wg sync.WaitGroup
	for a := range agents {
		h := r.openSession(time.Hour)
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(a)))
			in := newInbox()
			h.From = in
			ask := func(cmd engine.Command) answer {
				if err := r.shard.Submit(cmd); err != nil {
					r.Error("Submit:", err)
				}
				return <-in.c
			}
			for range rounds {
				c := acquire(in, fmt.Sprintf("dir:%d/file:%d", rnd.IntN(3), rnd.IntN(4)))
				c.Head, c.Agent = h, ""
				c.OnConflict, c.Attach = interlock.Wait, true
				if rnd.IntN(2) == 0 {
					c.Claims[0].Mode = interlock.Shared
				}
				got := ask(c)
				if got.Outcome == engine.Queued {
					got = <-in.c
				}
				if got.Outcome != engine.Granted {
					r.Errorf("%v %s", got.Outcome, prose.Sentence(got.Message))
					return
				}
				ask(&engine.Heartbeat{Head: h})
				if got := ask(&engine.Release{Head: h, Lease: got.Lease.ID, Note: "from traffic"}); got.Outcome != engine.Done {
					r.Errorf("release: %v %s", got.Outcome, prose.Sentence(got.Message))
					return
				}
			}
		})
	}
	wg.Wait()
}

// A restart restores the state of the journal, which is the one that was live, and no client loses
// a lease or a place in line by it.
func TestRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.traffic(8, 100)
		h := r.openSession(10 * time.Second)
		held := r.expect(engine.Granted, in(h, acquire(nil, "kept"))).Lease
		waiting := r.expect(engine.Queued, queue(nil, "kept")).Ticket
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Fatal("the live engine is not what the journal says")
		}
		<-time.After(9 * time.Second)
		r.close()
		<-time.After(time.Hour) // the server is down for long

		r.open()
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Fatal("after the restart the live engine is not what the journal says")
		}
		<-time.After(9 * time.Second) // a full new ttl
		got := r.expect(engine.Granted, &engine.GetLease{Head: h, Lease: held.ID}).Lease
		if got.Fence != held.Fence {
			t.Errorf("fence %d, was %d", got.Fence, held.Fence)
		}
		if p := r.expect(engine.Queued, &engine.Poll{Head: head(nil), Ticket: waiting.ID}).Ticket.Position; p != 1 {
			t.Errorf("position %d, want 1", p)
		}
		if next := r.expect(engine.Granted, acquire(nil, "new")).Lease; next.Fence <= held.Fence {
			t.Errorf("fence %d after %d", next.Fence, held.Fence)
		}
	})
}

func TestFenceJump(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		first := r.expect(engine.Granted, acquire(nil, "a")).Lease.Fence
		r.close()
		r.open(func(c *Config) { c.FenceJump = 1 << 40 })
		if next := r.expect(engine.Granted, acquire(nil, "b")).Lease.Fence; next <= first+1<<40 {
			t.Errorf("fence %d, want above %d", next, first+1<<40)
		}
	})
}

// Snapshots are made while agents work, and a snapshot with the entries after it
// is the same state as all the entries.
func TestSnapshotsUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SnapshotBytes = 20_000 })
		r.traffic(8, 300)
		synctest.Wait()
		at, snapshot, err := r.shard.journal.Snapshot(r.Context())
		if err != nil || at == 0 {
			t.Fatalf("snapshot at %d: %v", at, err)
		}
		snapshot.Close()
		r.expect(engine.Granted, acquire(nil, "one more"))
		synctest.Wait() // if that called for a snapshot, the next one does not
		r.expect(engine.Granted, acquire(nil, "and one"))
		made, err := r.shard.replay(r.Context(), r.shard.At().Index, ahead, nil)
		if err != nil {
			t.Fatal(err)
		}
		if made.snapshot == 0 || made.entries == 0 {
			t.Errorf("replayed %d entries from a snapshot at %d, want both", made.entries, made.snapshot)
		}
		if made.engine.Hash() != replayedHash(t, r.shard.journal) {
			t.Error("the snapshot and its tail are not what the whole journal says")
		}
		live := r.hash()
		if made.engine.Hash() != live {
			t.Error("the snapshot and its tail are not the live state")
		}
		tail := r.shard.At().Index
		r.close()

		r.open()
		if got := interlock.Index(r.shard.snapshotAt.Load()); got != tail {
			t.Errorf("started from a snapshot at %d, want the last one at %d", got, tail)
		}
	})
}

// A journal that keeps little stays small, and can be opened all the same.
func TestTruncation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		small := func(c *Config) { c.SnapshotBytes, c.KeepBytes = 10_000, 20_000 }
		r := newRig(t, small)
		held := r.expect(engine.Granted, acquire(nil, "kept")).Lease
		for range 1000 {
			lease := r.expect(engine.Granted, acquire(nil, "a")).Lease
			r.expect(engine.Done, release(nil, lease.ID))
			synctest.Wait() // for the snapshot, if it is time for one
		}
		first, tail := r.shard.First(), r.shard.At().Index
		if first < tail/2 {
			t.Errorf("the journal goes from %d to %d", first, tail)
		}
		if mean := r.shard.size.mean(); (tail-first)*interlock.Index(mean) < 20_000/2 {
			t.Errorf("%d entries of %d bytes are kept, want about 20000 bytes", tail-first, mean)
		}
		r.close()
		r.open(small)
		r.expect(engine.Granted, &engine.Renew{Head: head(nil), Lease: held.ID})
	})
}

// The larger the state, the more is appended between two snapshots of it, also when the
// shard was opened anew in between.
func TestSnapshotsOfLargeState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bytes = 5000
		var c costs
		counted := func(cfg *Config) {
			cfg.SnapshotBytes = bytes
			c.Journal, cfg.Journal = cfg.Journal, &c
		}
		r := newRig(t, counted)
		take := func(key string) interlock.LeaseID {
			defer synctest.Wait() // for the snapshot, if it is time for one
			return r.expect(engine.Granted, acquire(nil, key)).Lease.ID
		}
		for i := range 500 {
			take(keyNumber(i))
		}
		for range 2 {
			made := len(c.snapshots)
			for len(c.snapshots) < made+3 {
				r.expect(engine.Done, release(nil, take("a")))
				synctest.Wait()
			}
			for i, x := range c.snapshots[made:] {
				if i += made; i > 0 && x.after < bytes+c.snapshots[i-1].size {
					t.Errorf("snapshot %d was made after %d bytes, the one before has %d", i, x.after, c.snapshots[i-1].size)
				}
			}
			if last := c.snapshots[len(c.snapshots)-1]; last.size < 2*bytes {
				t.Fatalf("a snapshot has %d bytes, which is too little for this test", last.size)
			}
			r.close()
			r.open(counted)
		}
	})
}

// costs notes how large snapshots are, and after how many bytes of entries each was made.
type costs struct {
	journal.Journal
	appended  int
	snapshots []struct{ after, size int }
}

func (c *costs) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	for _, e := range entries {
		c.appended += len(e)
	}
	return c.Journal.Append(ctx, first, entries)
}

func (c *costs) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	var size byteCount
	err := c.Journal.SaveSnapshot(ctx, at, func(w io.Writer) error { return write(io.MultiWriter(w, &size)) })
	c.snapshots = append(c.snapshots, struct{ after, size int }{c.appended, int(size)})
	c.appended = 0
	return err
}

// The observer hears how long each snapshot took, also the last one, which a shard makes when it closes.
func TestSnapshotsAreObserved(t *testing.T) {
	for name, events := range waysToSnapshot {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				seen := new(appends)
				var slow slowSnapshots
				r := newRig(t, func(c *Config) {
					c.SnapshotBytes, c.PictureEvents, c.Observer = 1000, events, seen
					slow.Journal, c.Journal = c.Journal, &slow
				})
				r.traffic(2, 100)
				<-time.After(2 * snapshotPause) // for those that are being made
				r.expect(engine.Granted, acquire(nil, "the last one is of something new"))
				r.close()
				if len(seen.saves) < 2 || len(seen.saves) != slow.made {
					t.Errorf("%d snapshots were made, %d observed", slow.made, len(seen.saves))
				}
				for _, took := range seen.saves {
					if took != snapshotPause {
						t.Errorf("a snapshot took %v, want %v", took, snapshotPause)
					}
				}
			})
		})
	}
}

const snapshotPause = 3 * time.Second

// slowSnapshots takes its time to store a snapshot.
type slowSnapshots struct {
	journal.Journal
	made int
}

func (s *slowSnapshots) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	<-time.After(snapshotPause)
	err := s.Journal.SaveSnapshot(ctx, at, write)
	if err == nil {
		s.made++
	}
	return err
}

// A snapshot that cannot be stored costs nothing but a warning.
func TestSnapshotFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := new(appends)
		r := newRig(t, func(c *Config) {
			c.SnapshotBytes, c.Observer = 1000, seen
			c.Journal = noSnapshots{c.Journal}
		})
		r.traffic(2, 100)
		synctest.Wait()
		r.close()
		if len(seen.saves) != 0 {
			t.Errorf("%d snapshots are observed", len(seen.saves))
		}
		r.open()
		r.expect(engine.Granted, acquire(nil, "a"))
	})
}

type noSnapshots struct{ journal.Journal }

func (noSnapshots) SaveSnapshot(context.Context, interlock.Index, func(io.Writer) error) error {
	return errors.New("no snapshot today")
}

// An entry that cannot be replayed stops the start, with an error that names the place.
func TestUnreadableEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := new(memjournal.Store)
		j, err := store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Append(t.Context(), 2, [][]byte{[]byte("not an entry")}); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), Config{Journal: j})
		if err == nil || !strings.Contains(err.Error(), "entry 2") {
			t.Errorf("Open: %v", err)
		}
	})
}

// Close answers all that was submitted before, and no more.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := newInbox()
		const n = 10_000
		for i := range n {
			r.submit(acquire(in, keyNumber(i)))
		}
		r.close()
		got := in.all()
		if len(got) != n {
			t.Fatalf("%d answers, want %d", len(got), n)
		}
		for _, a := range got {
			if a.Outcome != engine.Granted {
				t.Fatalf("%v %s", a.Outcome, prose.Sentence(a.Message))
			}
		}
		if err := r.shard.Close(r.Context()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		r.open()
		if _, err := r.shard.Read(r.Context(), "test", func(e *engine.Engine, _ engine.Time) {
			if c := e.Counts().Leases; c != n {
				t.Errorf("%d leases after the restart, want %d", c, n)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// A shard that is handed over makes a last snapshot only where its next owner would replay many entries.
func TestHandOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seldom := func(c *Config) { c.SnapshotBytes = 1 << 30 }
		r := newRig(t, seldom)
		end := func() (saved bool) {
			before := r.shard.snapshotAt.Load()
			if err := r.shard.HandOver(r.Context()); err != nil {
				t.Error(err)
			}
			saved = r.shard.snapshotAt.Load() > before
			r.open(seldom)
			return saved
		}
		r.expect(engine.Granted, acquire(nil, "a"))
		if end() {
			t.Error("a few entries were saved as a snapshot")
		}
		for i := range 2 * shortReplay {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		if !end() {
			t.Error("many entries were left to the next owner")
		}
		if r.expect(engine.Granted, acquire(nil, "b")); end() {
			t.Error("one entry behind a snapshot was saved as another one")
		}
		r.close()
	})
}

// A Close that runs out of time leaves no caller without an answer, no matter which goroutine is
// appending.
func TestCloseGivesUp(t *testing.T) {
	for name, put := range map[string]func(*Shard, ...engine.Command) error{
		"the committer": (*Shard).Submit,
		"a driver":      (*Shard).Execute,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				synctest.Wait() // the shard stands still
				in := newInbox()
				hold := r.store.Hold()
				go func() {
					if err := put(r.shard, acquire(in, "a")); err != nil {
						t.Error(err)
					}
				}()
				<-hold.Reached
				if err := put(r.shard, acquire(in, "b")); err != nil {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
				defer cancel()
				if err := r.shard.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v", err)
				}
				synctest.Wait()
				got := in.all()
				if len(got) != 2 {
					t.Fatalf("%d answers, want 2", len(got))
				}
				for _, a := range got {
					if a.Code != interlock.CodeOutcomeUnknown {
						t.Errorf("%v %s, want outcome_unknown", a.Outcome, a.Code)
					}
				}
				hold.Release()
			})
		})
	}
}

// The same on real files: work, restart from the snapshot, and the same without
// one, as after a kill.
func TestOnFiles(t *testing.T) {
	dir := t.TempDir()
	open := func(change func(*Config)) *rig {
		j, err := filejournal.Open(t.Context(), dir, filejournal.Options{SegmentBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Journal: j, SnapshotBytes: 20_000}
		change(&cfg)
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return &rig{T: t, shard: s}
	}
	r := open(func(*Config) {})
	held := r.expect(engine.Granted, acquire(nil, "kept")).Lease
	r.traffic(4, 50)
	r.expect(engine.Granted, acquire(nil, "last")) // so that its time is in the journal
	r.close()

	r = open(func(c *Config) { c.SnapshotBytes = -1 })
	r.traffic(4, 50)
	r.expect(engine.Granted, &engine.Renew{Head: head(nil), Lease: held.ID})
	made, err := r.shard.replay(t.Context(), r.shard.At().Index, inTurn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made.snapshot == 0 || made.engine.Hash() != replayedHash(t, r.shard.journal) {
		t.Errorf("the snapshot at %d and its tail are not what the whole journal says", made.snapshot)
	}
	r.close()

	r = open(func(*Config) {})
	r.expect(engine.Granted, &engine.Renew{Head: head(nil), Lease: held.ID})
	r.close()
}

// A second restore of a backup begins above all that the first one grants in between, at a million a second.
func TestFencesOfASecondRestore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		<-time.After(30 * 365 * 24 * time.Hour) // the bubble begins in 2000
		restored := func() interlock.Fence {
			r := newRig(t)
			r.close()
			r.open(func(c *Config) { c.FenceJump = 1 << 40 })
			defer r.close()
			return r.expect(engine.Granted, acquire(nil, "a")).Lease.Fence
		}
		first := restored()
		<-time.After(24 * time.Hour)
		if next := restored(); next < first+24*3600<<20 || next > 1<<53 {
			t.Errorf("fences begin at %d, and a day later at %d", first, next)
		}
	})
}
