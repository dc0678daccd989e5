package shard

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// A follower sees every entry once and in order, old and new ones, however slow
// it is and however fast the shard writes.
func TestFollow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		const n = 500
		for i := range n {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		ctx, cancel := context.WithCancel(r.Context())
		var fast, slow follower
		done := make(chan error, 2)
		go func() { done <- r.follow(ctx, 0, fast.visit) }()
		slow.pace = time.Millisecond
		go func() { done <- r.follow(ctx, 100, slow.visit) }()
		for i := range n {
			r.expect(engine.Granted, acquire(nil, keyNumber(n+i)))
		}
		<-time.After(time.Minute)
		synctest.Wait()
		tail := r.shard.At().Index
		if fast.last != tail || slow.last != tail {
			t.Errorf("they have seen up to %d and %d, want %d", fast.last, slow.last, tail)
		}
		if slow.first != 100 {
			t.Errorf("the slow one began at %d, want 100", slow.first)
		}
		var stored int
		if err := r.shard.journal.Read(ctx, 1, func(e journal.Entry) error {
			if len(e.Data) > 0 {
				stored++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if fast.seen != stored {
			t.Errorf("the fast one saw %d entries, the journal has %d", fast.seen, stored)
		}
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Follow: %v", err)
			}
		}
		for _, f := range []*follower{&fast, &slow} {
			if f.wrong != "" {
				t.Error(f.wrong)
			}
		}
	})
}

type follower struct {
	pace        time.Duration
	first, last interlock.Index
	seen        int
	wrong       string
}

// follow follows the namespace of the rig's commands.
func (r *rig) follow(
	ctx context.Context, from interlock.Index, visit func(interlock.Index, interlock.Epoch, []record.Event) error,
) error {
	return r.shard.Follow(ctx, Follower{Namespace: "test", From: from, Visit: visit})
}

func (f *follower) visit(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
	if f.pace > 0 {
		<-time.After(f.pace)
	}
	switch {
	case f.first == 0:
		f.first = index
	case index != f.last+1:
		f.wrong = "an entry was left out, repeated or came out of order"
	}
	if epoch != 1 {
		f.wrong = "an entry of another epoch"
	}
	if len(events) == 0 {
		f.wrong = "an entry without events"
	}
	f.last = index
	f.seen++
	return nil
}

// A follower may begin above the tail: it waits for that entry.
func TestFollowTheFuture(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		from := r.shard.At().Index + 3
		got := make(chan interlock.Index, 10)
		go r.follow(r.Context(), from, func(i interlock.Index, _ interlock.Epoch, _ []record.Event) error {
			got <- i
			return nil
		})
		for i := range 3 {
			synctest.Wait()
			if len(got) != 0 {
				t.Fatalf("visited %d, and asked from %d", <-got, from)
			}
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		if i := <-got; i != from {
			t.Errorf("visited %d, want %d", i, from)
		}
	})
}

// A follower that has caught up is fed from memory: finding the end of a journal
// can be expensive.
func TestFollowingReadsTheJournalOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var reads atomic.Int32
		r := newRig(t, func(c *Config) { c.Journal = countedReads{c.Journal, &reads} })
		before := reads.Load()
		var f follower
		go r.follow(r.Context(), 0, f.visit)
		synctest.Wait()
		for i := range 100 {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		synctest.Wait()
		if f.last != r.shard.At().Index || f.wrong != "" {
			t.Errorf("followed up to %d of %d %s", f.last, r.shard.At().Index, f.wrong)
		}
		if n := reads.Load() - before; n != 1 {
			t.Errorf("the journal was read %d times, want once", n)
		}
	})
}

// A follower slower than what is kept in memory goes back to the journal.
func TestFollowFarBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		let := make(chan struct{})
		var f follower
		go r.follow(r.Context(), 0, func(i interlock.Index, e interlock.Epoch, events []record.Event) error {
			<-let
			return f.visit(i, e, events)
		})
		synctest.Wait()
		long := strings.Repeat("x", interlock.MaxPurposeBytes)
		for i := 0; r.shard.followers.oldest == nil || r.shard.followers.oldest.first < 100; i++ {
			c := acquire(nil, keyNumber(i))
			c.Purpose = long
			r.expect(engine.Granted, c)
			synctest.Wait()
		}
		close(let)
		synctest.Wait()
		if f.last != r.shard.At().Index || f.wrong != "" {
			t.Errorf("followed up to %d of %d %s", f.last, r.shard.At().Index, f.wrong)
		}
	})
}

// A follower that began with the oldest entry and falls behind what is kept gets the error like any
// other: it must not be led over a gap.
func TestFollowOverGap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 1000, -1 })
		let, done := make(chan struct{}), make(chan error)
		var f follower
		go func() {
			done <- r.follow(r.Context(), 0, func(i interlock.Index, e interlock.Epoch, events []record.Event) error {
				<-let
				return f.visit(i, e, events)
			})
		}()
		synctest.Wait()
		for next := r.shard.At().Index + 1; r.shard.First() <= next || r.shard.followers.feeds["test"].floor <= next; {
			if _, err := r.large(twoPieces); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(let)
		if err := <-done; !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) || f.wrong != "" {
			t.Errorf("Follow: %v after entry %d, the journal begins at %d; %s", err, f.last, r.shard.First(), f.wrong)
		}
	})
}

type countedReads struct {
	journal.Journal
	n *atomic.Int32
}

func (j countedReads) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	j.n.Add(1)
	return j.Journal.Read(ctx, from, visit)
}

func TestFollowEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		stop := errors.New("enough")
		if err := r.follow(
			r.Context(), 0, func(interlock.Index, interlock.Epoch, []record.Event) error { return stop },
		); err != stop {
			t.Errorf("the visitor's error came back as %v", err)
		}
		done := make(chan error)
		nothing := func(interlock.Index, interlock.Epoch, []record.Event) error { return nil }
		go func() { done <- r.follow(r.Context(), 0, nothing) }()
		synctest.Wait()
		go r.shard.Close(r.Context())
		shutting := &interlock.Error{Code: interlock.CodeShuttingDown}
		if err := <-done; !errors.Is(err, shutting) {
			t.Errorf("Follow while the shard closes: %v", err)
		}
		if err := r.follow(r.Context(), 0, nothing); !errors.Is(err, shutting) {
			t.Errorf("Follow of a closed shard: %v", err)
		}
	})
}

func TestFollowTrimmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 1000, -1 })
		for i := range 200 {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		synctest.Wait()
		if r.shard.First() == 1 {
			t.Fatal("nothing was truncated")
		}
		visit := func(interlock.Index, interlock.Epoch, []record.Event) error { return nil }
		if err := r.follow(r.Context(), 1, visit); !errors.Is(err, &interlock.Error{Code: interlock.CodeHistoryTrimmed}) {
			t.Errorf("Follow from 1: %v", err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		var f follower
		if err := r.follow(ctx, 0, f.visit); !errors.Is(err, context.DeadlineExceeded) || f.last != r.shard.At().Index {
			t.Errorf("Follow from what is kept: %v, up to %d", err, f.last)
		}
	})
}
