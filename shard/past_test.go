package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// pastHash is that of the state after an index, by p.
func (r *rig) pastHash(p *Past, index interlock.Index) (h [32]byte, err error) {
	r.Helper()
	at, err := r.shard.LookBack(r.Context(), p, index, 0, func(e *engine.Engine, _ engine.Time) bool {
		h = e.Hash()
		return true
	})
	if err == nil && (at.Index != index || at.Shard != 7) {
		r.Errorf("an answer about index %d is of %+v", index, at)
	}
	return h, err
}

// Each state of the past is the one that the live engine had, as far back as Oldest, with snapshots that come
// and go, and a journal that is cut.
func TestPastIsWhatWasLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 2000, 10_000 })
		chance := rand.New(rand.NewPCG(1, 2))
		live := map[interlock.Index][32]byte{}
		var held []interlock.LeaseID
		for i := range 1500 {
			<-time.After(time.Millisecond)
			if len(held) > 5 {
				n := chance.IntN(len(held))
				r.do(release(nil, held[n]))
				held = append(held[:n], held[n+1:]...)
			} else {
				c := queue(nil, fmt.Sprint("key:", chance.IntN(9)))
				r.do(c)
				held = append(held, c.ID)
			}
			synctest.Wait()
			live[r.shard.At().Index] = r.hash()
			if i%500 == 250 {
				r.close()
				r.open(func(c *Config) { c.SnapshotBytes, c.KeepBytes = 2000, 10_000 })
			}
		}
		oldest, err := r.shard.Oldest(t.Context())
		if err != nil || oldest < 100 || oldest > 1000 {
			t.Fatalf("the past begins at %d, %v", oldest, err)
		}
		p := NewPast()
		asked := 0
		for range 400 {
			index := 1 + interlock.Index(chance.IntN(int(r.shard.At().Index)))
			want, known := live[index]
			got, err := r.pastHash(p, index)
			switch {
			case index < oldest:
				if !errors.Is(err, ErrTooOld) {
					t.Fatalf("index %d, before the oldest %d: %v", index, oldest, err)
				}
			case err != nil:
				t.Fatalf("index %d: %v", index, err)
			case known && got != want:
				t.Fatalf("the state after %d is not what it was", index)
			case known:
				asked++
			}
		}
		if asked < 40 {
			t.Errorf("only %d states were compared", asked)
		}
		if got, err := r.pastHash(p, r.shard.At().Index); err != nil || got != r.hash() {
			t.Errorf("the newest state is not the live one: %v", err)
		}
	})
}

// IndexAt finds the last entry up to a time.
func TestIndexAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		before := r.shard.clock.Now()
		var index []interlock.Index
		var times []engine.Time
		for i := range 50 {
			<-time.After(time.Second)
			_, at := r.do(acquire(nil, fmt.Sprint("key:", i)))
			index, times = append(index, at.Index), append(times, r.shard.clock.Now())
		}
		for i, at := range times {
			for _, after := range []time.Duration{0, time.Second - 1} {
				got, err := r.shard.IndexAt(t.Context(), at.Add(after), time.Minute)
				if err != nil || got != index[i] {
					t.Errorf("%v after entry %d: %d, %v", after, index[i], got, err)
				}
			}
		}
		if got, err := r.shard.IndexAt(t.Context(), before.Add(-time.Hour), time.Minute); err != nil || got != 0 {
			t.Errorf("before the first entry: %d, %v", got, err)
		}
	})
}

// A state or a replay that is too large is refused, and another question is answered.
func TestPastIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 100 {
			r.do(acquire(nil, fmt.Sprint("key:", i)))
		}
		x := pastState{of: r.shard}
		x.bytes = pastBytes
		p := NewPast()
		for i := range 2 * pastKept {
			if _, err := r.pastHash(p, interlock.Index(2+i)); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.kept) != pastKept {
			t.Errorf("%d states are kept, want %d", len(p.kept), pastKept)
		}
		p.keep(&x)
		if len(p.kept) != 1 {
			t.Errorf("beside a state with all the memory there are %d", len(p.kept)-1)
		}
		p.room = 50 * objectBytes
		if _, err := r.pastHash(p, r.shard.At().Index); !errors.Is(err, ErrTooLarge) {
			t.Errorf("100 leases, and room for fewer objects: %v", err)
		}
		if _, err := r.pastHash(p, 5); err != nil {
			t.Errorf("a small state after that: %v", err)
		}
	})
}

// Two states are compared at once, each is the one that was asked for, and both together have the memory of one
// question.
func TestCompareTwoStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 100 {
			r.do(acquire(nil, fmt.Sprint("key:", i)))
		}
		p, newest := NewPast(), r.shard.At().Index
		compare := func(first, second interlock.Index) (leases [2]int, failed interlock.Index, err error) {
			at, failed, err := r.shard.Compare(
				r.Context(), p, Moment{Index: first}, Moment{Index: second}, func(a, b *engine.Engine) bool {
					leases = [2]int{a.Counts().Leases, b.Counts().Leases}
					return true
				},
			)
			if err == nil && at.Index != second {
				t.Errorf("the answer is of %d, want %d", at.Index, second)
			}
			return leases, failed, err
		}
		for range 2 { // the second time both are kept
			if got, _, err := compare(newest-60, newest); got != [2]int{40, 100} || err != nil {
				t.Errorf("%v leases, %v; want 40 and 100", got, err)
			}
		}
		if got, _, err := compare(newest, newest); got != [2]int{100, 100} || err != nil {
			t.Errorf("a state with itself: %v leases, %v", got, err)
		}
		p = NewPast()
		p.room = 300 * objectBytes // for 100 leases with their keys, and for no second such state
		if _, failed, err := compare(newest-1, newest); !errors.Is(err, ErrTooLarge) || failed != newest {
			t.Errorf("both need more memory than there is: %v about entry %d", err, failed)
		}
		if _, err := r.pastHash(p, newest); err != nil {
			t.Errorf("one of them, after that: %v", err)
		}
		if got, _, err := compare(3, newest); err != nil || got[1] != 100 {
			t.Errorf("a small one and a large one: %v, %v", got, err)
		}
	})
}
