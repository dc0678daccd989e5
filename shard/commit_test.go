package shard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// No answer may leave before the entries of its step and all before it are
// durable: not a grant, not a refusal that changed nothing, not a read.
func TestNothingBeforeDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		before := r.shard.At().Index
		hold := r.store.Hold()
		in := newInbox()
		r.submit(acquire(in, "a"))
		<-hold.Reached
		r.submit(acquire(in, "a"), // refused: held by the grant that is not durable yet
			&engine.GetLease{Head: head(in), Lease: newID()},
			&engine.CheckFence{Head: head(in), Key: "a", Fence: 1})
		var read interlock.At
		done := make(chan struct{})
		go func() {
			defer close(done)
			var err error
			if read, err = r.shard.Read(r.Context(), "test", func(e *engine.Engine, _ engine.Time) {}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if got := in.all(); len(got) != 0 {
			t.Fatalf("delivered before it was durable: %+v", got)
		}
		select {
		case <-done:
			t.Fatal("Read returned before what it saw was durable")
		default:
		}
		hold.Release()
		<-done
		got := in.all()
		want := []interlock.Outcome{engine.Granted, engine.Refused, engine.Refused, engine.Done}
		if len(got) != len(want) {
			t.Fatalf("%d answers, want %d", len(got), len(want))
		}
		for i, a := range got {
			if a.Outcome != want[i] {
				t.Errorf("answer %d: %v, want %v", i, a.Outcome, want[i])
			}
			if at := (interlock.At{Shard: 7, Epoch: 1, Index: before + 1}); a.At != at {
				t.Errorf("answer %d is at %+v, want %+v", i, a.At, at)
			}
		}
		if read.Index != before+1 {
			t.Errorf("Read is at %d, want %d", read.Index, before+1)
		}
	})
}

// Answers come in the order of the commands, each with the index as of its own
// step, and group commit turns what waits into one append.
func TestGroupCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := new(appends)
		r := newRig(t, func(c *Config) { c.Observer = seen })
		before := r.shard.At().Index
		hold := r.store.Hold()
		in := newInbox()
		r.submit(acquire(in, keyNumber(0)))
		<-hold.Reached
		for i := 1; i < 100; i++ {
			r.submit(acquire(in, keyNumber(i)))
		}
		synctest.Wait()
		hold.Release()
		synctest.Wait()
		got := in.all()
		if len(got) != 100 {
			t.Fatalf("%d answers, want 100", len(got))
		}
		for i, a := range got {
			if a.Outcome != engine.Granted || a.Lease.Claims[0].Key != interlock.Key(keyNumber(i)) {
				t.Fatalf("answer %d is %v for %v", i, a.Outcome, a.Lease.Claims)
			}
			if want := before + 1 + interlock.Index(i); a.At.Index != want {
				t.Fatalf("answer %d is at index %d, want %d", i, a.At.Index, want)
			}
		}
		if sizes := seen.list(); !slices.Equal(sizes, []int{1, 1, 99}) {
			t.Errorf("appends of %v entries, want 1 (the term), 1 and 99", sizes)
		}
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if seen.events < 101 {
			t.Errorf("the observer saw %d events, want at least 101", seen.events)
		}
	})
}

// Events that no metric counts are not reported to the observer, also after a start from the
// journal.
func TestUnattributed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, without := range []bool{false, true} {
			seen := new(appends)
			r := newRig(t, func(c *Config) { c.Observer, c.Unattributed = seen, without })
			r.expect(engine.Granted, acquire(nil, "a"))
			r.close()
			r.open(func(c *Config) { c.Observer, c.Unattributed = seen, without })
			r.expect(engine.Granted, acquire(nil, "b"))
			want := 2
			if without {
				want = 0
			}
			seen.mu.Lock()
			if seen.named != want || seen.events == 0 {
				t.Errorf("unattributed %v: %d of %d events say patterns, want %d", without, seen.named, seen.events, want)
			}
			seen.mu.Unlock()
			r.close()
		}
	})
}

// A large burst is cut into groups, none of them larger than an append may be.
func TestBurst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := new(appends)
		r := newRig(t, func(c *Config) { c.Observer = seen })
		in := newInbox()
		const n = 20_000
		cmds := make([]engine.Command, n)
		for i := range cmds {
			cmds[i] = acquire(in, keyNumber(i))
		}
		r.submit(cmds...)
		for i := range n {
			a := <-in.c
			if a.Outcome != engine.Granted || a.Lease.Claims[0].Key != interlock.Key(keyNumber(i)) {
				t.Fatalf("answer %d is %v for %v", i, a.Outcome, a.Lease.Claims)
			}
		}
		for _, size := range seen.list() {
			if size > groupCommands {
				t.Errorf("an append of %d entries, at most %d", size, groupCommands)
			}
		}
	})
}

func TestFenced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		lease := r.expect(engine.Granted, acquire(nil, "a")).Lease
		if _, err := r.store.Open(r.Context()); err != nil { // another owner
			t.Fatal(err)
		}
		// A renewal changes nothing in the journal, and may not be acknowledged
		// all the same.
		r.refused(interlock.CodeNotOwner, &engine.Renew{Head: head(nil), Lease: lease.ID})
		<-r.shard.Failed()
		if err := r.shard.Err(); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("Err: %v", err)
		}
		notOwner := &interlock.Error{Code: interlock.CodeNotOwner}
		if err := r.shard.Submit(acquire(nil, "b")); !errors.Is(err, notOwner) {
			t.Errorf("Submit: %v", err)
		}
		if _, err := r.shard.Read(r.Context(), "test", func(*engine.Engine, engine.Time) {}); !errors.Is(err, notOwner) {
			t.Errorf("Read: %v", err)
		}
		if err := r.follow(r.Context(), 0, nil); !errors.Is(err, notOwner) {
			t.Errorf("Follow: %v", err)
		}
		if err := r.shard.Close(r.Context()); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("Close: %v", err)
		}
	})
}

// Commands in an append when another owner comes are refused with all that were stepped behind
// them, and so are those that were not stepped.
func TestFencedUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := newInbox()
		hold := r.store.Hold()
		r.submit(acquire(in, "a"))
		<-hold.Reached
		r.submit(acquire(in, "b"), &engine.GetLease{Head: head(in), Lease: newID()})
		synctest.Wait()
		if _, err := r.store.Open(r.Context()); err != nil {
			t.Fatal(err)
		}
		hold.Release()
		<-r.shard.Failed()
		synctest.Wait()
		got := in.all()
		if len(got) != 3 {
			t.Fatalf("%d answers, want 3", len(got))
		}
		for _, a := range got {
			if a.Outcome != engine.Refused || a.Code != interlock.CodeNotOwner {
				t.Errorf("%v %s, want not_owner", a.Outcome, a.Code)
			}
		}
	})
}

// When the storage fails, it is unknown whether the last group is in the journal. Its callers learn
// so, and the same request id finds out later.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  memjournal.Fault
		stored bool
	}{
		{"lost", memjournal.Lost, false},
		{"stored", memjournal.Stored, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				held := r.expect(engine.Granted, acquire(nil, "held")).Lease
				waiter := newInbox()
				r.submit(queue(waiter, "held"))
				if a := <-waiter.c; a.Outcome != engine.Queued {
					t.Fatalf("%v, want queued", a.Outcome)
				}
				r.store.Inject(c.fault)
				r.refused(interlock.CodeOutcomeUnknown, release(nil, held.ID))
				<-r.shard.Failed()
				synctest.Wait()
				if got := waiter.all(); len(got) != 1 {
					t.Errorf("the waiter was told of a grant that may never have been: %+v", got[1:])
				}
				if err := r.shard.Err(); !errors.Is(err, journal.ErrFailed) {
					t.Errorf("Err: %v", err)
				}
				if err := r.shard.Submit(acquire(nil, "b")); !errors.Is(err, &interlock.Error{Code: interlock.CodeShuttingDown}) {
					t.Errorf("Submit: %v", err)
				}
				if err := r.shard.Close(r.Context()); !errors.Is(err, journal.ErrFailed) {
					t.Errorf("Close: %v", err)
				}

				r.open()
				eff, _ := r.do(&engine.GetLease{Head: head(nil), Lease: held.ID})
				if stored := eff.Outcome == engine.Refused && eff.Code != interlock.CodeUnknownLease; stored != c.stored {
					t.Errorf("after the restart the lease is %v %s", eff.Outcome, eff.Code)
				}
			})
		})
	}
}

// A caller that repeats after "outcome unknown" with the same request id gets the
// lease that it was granted, not a second one and not a conflict with itself.
func TestRepeatAfterUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		ask := func() *engine.Acquire {
			c := acquire(nil, "a")
			c.RequestID = "r1"
			return c
		}
		first := ask()
		r.store.Inject(memjournal.Stored)
		r.refused(interlock.CodeOutcomeUnknown, first)
		r.open()
		got := r.expect(engine.Granted, ask()).Lease
		if got.ID != interlock.LeaseID(first.ID) {
			t.Errorf("lease %v, want the first one's %v", got.ID, first.ID)
		}
	})
}

// A caller that stops waiting gets its goroutine back at once, and its query is not run behind
// its back.
func TestGivingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		hold := r.store.Hold()
		r.submit(acquire(nil, "a"))
		<-hold.Reached
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if _, _, err := r.shard.Do(ctx, acquire(nil, "b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do: %v", err)
		}
		ran := false
		if _, err := r.shard.Read(
			ctx, "test", func(*engine.Engine, engine.Time) { ran = true },
		); !errors.Is(err, context.DeadlineExceeded) ||
			ran {
			t.Errorf("Read with a context that has ended: %v, query run: %v", err, ran)
		}
		hold.Release()
		r.refused(interlock.CodeHeld, acquire(nil, "b")) // the abandoned command went through
	})
}

func TestEntryTooLargeIsOurMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an entry that no append can take went through")
		}
	}()
	g := new(group)
	g.begin(1, 1)
	g.out.Entry = make([]byte, maxEntry+1)
	g.mark(&engine.Tick{}, 0)
}

// TestOtherGroup takes and puts groups: the wake-up is there only while a group is spare, so
// what waits for a commit is not woken by the one before.
func TestOtherGroup(t *testing.T) {
	x, a, b := newOtherGroup(), new(group), new(group)
	for range 3 {
		x.put(a)
		if !x.isSpare() || len(x.back) != 1 {
			t.Fatalf("after put: spare %v, %d wake-ups", x.isSpare(), len(x.back))
		}
		if got := x.offer(b); got != a || <-x.work != b {
			t.Fatal("offer does not exchange the groups")
		}
		if x.isSpare() || len(x.back) != 0 {
			t.Fatalf("after offer: spare %v, %d wake-ups", x.isSpare(), len(x.back))
		}
		if x.offer(a) != nil {
			t.Fatal("a third group is handed over")
		}
	}
	go x.put(b)
	if x.quiesce(); !x.isSpare() {
		t.Error("quiesce returned while a group is in use")
	}
}
