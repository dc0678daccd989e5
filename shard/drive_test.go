package shard

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

func (r *rig) execute(cmds ...engine.Command) {
	r.Helper()
	if err := r.shard.Execute(cmds...); err != nil {
		r.Fatal("Execute:", err)
	}
}

// A lone caller has its answers when Execute returns, and no other goroutine had to run for that.
func TestExecuteAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := newInbox()
		for i := range 10 {
			synctest.Wait() // owner and committer stand still
			r.execute(acquire(in, keyNumber(i)), acquire(in, keyNumber(i)))
			got := in.all()
			if len(got) != 2*(i+1) {
				t.Fatalf("%d answers when Execute returned, want %d", len(got), 2*(i+1))
			}
			if a, b := got[2*i], got[2*i+1]; a.Outcome != engine.Granted || b.Outcome != engine.Refused {
				t.Errorf("%v and %v, want granted and refused", a.Outcome, b.Outcome)
			}
		}
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Error("the live engine is not what the journal says")
		}
	})
}

// While one appends for itself, others are not held up by it: they leave their commands to
// the owner, which steps them meanwhile, and the answers keep their order.
func TestExecuteBesideAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := new(appends)
		r := newRig(t, func(c *Config) { c.Observer = seen })
		synctest.Wait()
		in := newInbox()
		hold := r.store.Hold()
		driven := make(chan struct{})
		go func() {
			defer close(driven)
			if err := r.shard.Execute(acquire(in, "a")); err != nil {
				t.Error(err)
			}
		}()
		<-hold.Reached
		r.execute(acquire(in, "b"))
		r.submit(acquire(in, "c"))
		synctest.Wait()
		r.execute(acquire(in, "d"))
		synctest.Wait()
		select {
		case <-driven:
			t.Error("Execute returned before its append")
		default:
		}
		if got := in.all(); len(got) != 0 {
			t.Errorf("delivered before it was durable: %+v", got)
		}
		hold.Release()
		<-driven
		synctest.Wait()
		var keys []interlock.Key
		for _, a := range in.all() {
			keys = append(keys, a.Lease.Claims[0].Key)
		}
		if !slices.Equal(keys, []interlock.Key{"a", "b", "c", "d"}) {
			t.Errorf("answers for %v, want a to d", keys)
		}
		if sizes := seen.list(); !slices.Equal(sizes, []int{1, 1, 3}) {
			t.Errorf("appends of %v entries, want 1 (the term), 1 and 3", sizes)
		}
	})
}

// Execute brings more than a turn: it continues without the caller.
func TestExecuteMuch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := newInbox()
		var cmds []engine.Command
		for i := range 3 * groupCommands {
			cmds = append(cmds, acquire(in, keyNumber(i)))
		}
		synctest.Wait()
		r.execute(cmds...)
		synctest.Wait()
		got := in.all()
		if len(got) != len(cmds) {
			t.Fatalf("%d answers, want %d", len(got), len(cmds))
		}
		for i, a := range got {
			if a.Outcome != engine.Granted || a.Lease.Claims[0].Key != interlock.Key(keyNumber(i)) {
				t.Fatalf("answer %d is %v for %v", i, a.Outcome, a.Lease.Claims)
			}
		}
	})
}

// A lease that a caller has granted itself ends in time although no other caller comes.
func TestExecuteSetsTheAlarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		synctest.Wait()
		in := newInbox()
		short := acquire(in, "a")
		short.TTL = 7 * time.Second
		r.execute(short)
		synctest.Wait()
		r.execute(queue(in, "a"))
		began := time.Now()
		for range 2 {
			<-in.c
		}
		if a := <-in.c; a.Outcome != engine.Granted {
			t.Fatalf("%v, want granted", a.Outcome)
		}
		if waited := time.Since(began); waited < 12*time.Second || waited > 13*time.Second {
			t.Errorf("granted after %v, want 7 s and 5 of grace", waited)
		}
	})
}

// An append that finds no space is the owner's to deal with, no matter which goroutine tried it.
func TestExecuteWithoutSpace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		synctest.Wait()
		in := newInbox()
		r.store.Inject(memjournal.NoSpace)
		r.execute(acquire(in, "a"))
		if a := <-in.c; a.Code != interlock.CodeNoSpace {
			t.Errorf("%v %s, want no_space", a.Outcome, a.Code)
		}
		r.execute(acquire(in, "b")) // the engine is rebuilt, or is about to be
		if a := <-in.c; a.Code != interlock.CodeNoSpace {
			t.Errorf("%v %s, want no_space", a.Outcome, a.Code)
		}
		<-time.After(fullFor)
		synctest.Wait()
		r.execute(acquire(in, "a"))
		if a := <-in.c; a.Outcome != engine.Granted {
			t.Errorf("%v %s, want granted", a.Outcome, a.Code)
		}
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Error("the live engine is not what the journal says")
		}
	})
}

// The commands that the owner has stepped behind a driver's group rest on decisions that were
// never written.
func TestExecuteWithoutSpaceTakesWhatCameBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		synctest.Wait()
		first, behind := newInbox(), newInbox()
		hold := r.store.Hold()
		go func() {
			if err := r.shard.Execute(acquire(first, "a")); err != nil {
				t.Error(err)
			}
		}()
		<-hold.Reached
		r.submit(acquire(behind, "b"))
		synctest.Wait()
		r.store.Inject(memjournal.NoSpace)
		hold.Release()
		for _, in := range []*inbox{first, behind} {
			if a := <-in.c; a.Code != interlock.CodeNoSpace {
				t.Errorf("%v %s, want no_space", a.Outcome, a.Code)
			}
		}
		if live, replayed := r.hash(), replayedHash(t, r.shard.journal); live != replayed {
			t.Error("the live engine is not what the journal says")
		}
	})
}

// A shard is finished for all when its journal fails under a caller.
func TestExecuteFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		synctest.Wait()
		in := newInbox()
		r.store.Inject(memjournal.Lost)
		r.execute(acquire(in, "a"))
		if a := <-in.c; a.Code != interlock.CodeOutcomeUnknown {
			t.Errorf("%v %s, want outcome_unknown", a.Outcome, a.Code)
		}
		<-r.shard.Failed()
		if err := r.shard.Err(); !errors.Is(err, journal.ErrFailed) {
			t.Errorf("Err: %v", err)
		}
		if err := r.shard.Execute(acquire(in, "b")); !errors.Is(err, &interlock.Error{Code: interlock.CodeShuttingDown}) {
			t.Errorf("Execute: %v", err)
		}
		r.shard.Close(r.Context())
	})
}

// Many drive and many do not, in several namespaces, at the same time: each is answered, in its own
// order, and the journal has what was done.
func TestExecuteAmongMany(t *testing.T) {
	j, err := new(memjournal.Store).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Journal: j, SnapshotBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(background)
	var wg sync.WaitGroup
	for a := range 8 {
		wg.Go(func() {
			in, put := newInbox(), s.Execute
			if a%4 == 3 {
				put = s.Submit
			}
			for i := range 500 {
				first, again := acquire(in, fmt.Sprintf("%d:%d", a, i)), acquire(in, fmt.Sprintf("%d:%d", a, i))
				ns := interlock.Namespace(fmt.Sprint("ns", a%3))
				first.Namespace, again.Namespace = ns, ns
				if err := put(first, again); err != nil {
					t.Error(err)
					return
				}
			}
			for i := range 500 {
				one, two := <-in.c, <-in.c
				if one.Outcome != engine.Granted || one.Lease.Claims[0].Key != interlock.Key(fmt.Sprintf("%d:%d", a, i)) ||
					two.Outcome != engine.Refused {
					t.Errorf("caller %d, pair %d: %v for %v, then %v", a, i, one.Outcome, one.Lease.Claims, two.Outcome)
					return
				}
			}
		})
	}
	wg.Wait()
	var live [32]byte
	if _, err := s.Read(t.Context(), "", func(e *engine.Engine, _ engine.Time) { live = e.Hash() }); err != nil {
		t.Fatal(err)
	}
	if live != replayedHash(t, j) {
		t.Error("the live engine is not what the journal says")
	}
}
