package shard

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// Agents work while appends fail for want of space at random. Each answer must agree with the
// journal: a grant is in it at the index of the answer or below, a refusal for want of space has
// left nothing in it, and what is live in the end is what can be replayed.
func TestAnswersAreTrueWhileSpaceRunsOut(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { answersAreTrue(t, seed) })
		})
	}
}

func answersAreTrue(t *testing.T, seed uint64) {
	r := newRig(t, func(c *Config) { c.SnapshotBytes = 5_000 })
	var mu sync.Mutex
	granted := map[[16]byte]interlock.Index{}
	released := map[[16]byte]interlock.Index{}
	never := map[[16]byte]bool{}

	var wg sync.WaitGroup
	for a := range 6 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(a)))
			do := r.do
			if a%2 == 0 {
				do = func(cmd engine.Command) (engine.Effect, interlock.At) {
					in := make(chan answer, 1)
					h := cmd.Header()
					h.From = ReceiverFunc(func(eff *engine.Effect, at interlock.At) { in <- answer{*eff, at} })
					if err := r.shard.Execute(cmd); err != nil {
						t.Error(err)
					}
					got := <-in
					return got.Effect, got.At
				}
			}
			pause := func() { <-time.After(time.Duration(rnd.IntN(1000)) * time.Millisecond) }
			for range 40 {
				pause()
				c := acquire(nil, keyNumber(rnd.IntN(4)))
				eff, at := do(c)
				mu.Lock()
				switch {
				case eff.Outcome == engine.Granted:
					granted[c.ID] = at.Index
				case eff.Code == interlock.CodeNoSpace:
					never[c.ID] = true
				}
				mu.Unlock()
				if eff.Outcome != engine.Granted {
					continue
				}
				for {
					pause()
					done, at := do(release(nil, eff.Lease.ID))
					if done.Outcome == engine.Done {
						mu.Lock()
						released[c.ID] = at.Index
						mu.Unlock()
						break
					}
					if done.Code == interlock.CodeExpired || done.Code == interlock.CodeTaken {
						break // it took too long to get through
					}
					if done.Code != interlock.CodeNoSpace {
						t.Errorf("release: %s %s", done.Code, prose.Sentence(done.Message))
						return
					}
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() {
		rnd := rand.New(rand.NewPCG(seed, 99))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rnd.IntN(8000)) * time.Millisecond):
				for range 1 + rnd.IntN(3) {
					r.store.Inject(memjournal.NoSpace)
				}
			}
		}
	}()
	wg.Wait()
	close(stop)
	synctest.Wait()
	for { // until the last fault is used up and something was written
		<-time.After(fullFor)
		if eff, _ := r.do(acquire(nil, "last")); eff.Outcome == engine.Granted {
			break
		}
	}
	if len(never) == 0 || len(granted) == 0 {
		t.Fatalf("%d grants and %d refusals for want of space: the test tests nothing", len(granted), len(never))
	}
	if r.hash() != replayedHash(t, r.shard.journal) {
		t.Error("what is live is not what the journal says")
	}

	began, ended := map[[16]byte]interlock.Index{}, map[[16]byte]interlock.Index{}
	if err := r.shard.journal.Read(t.Context(), 1, func(e journal.Entry) error {
		if len(e.Data) == 0 {
			return nil
		}
		return record.DecodeEntry(e.Data, func(ev *record.Event) error {
			switch ev.Kind {
			case record.Granted:
				began[ev.ID] = e.Index
			case record.Ended:
				ended[ev.ID] = e.Index
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	for id, at := range granted {
		if i := began[id]; i == 0 || i > at {
			t.Errorf("granted at index %d, and the journal says %d", at, i)
		}
	}
	for id, at := range released {
		if i := ended[id]; i == 0 || i > at {
			t.Errorf("released at index %d, and the journal says %d", at, i)
		}
	}
	for id := range never {
		if i := began[id]; i != 0 {
			t.Errorf("refused for want of space, and granted at index %d", i)
		}
	}
}
