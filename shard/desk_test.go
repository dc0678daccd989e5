package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk(2)
		enter := func(ns interlock.Namespace) {
			if err := d.Enter(t.Context(), ns); err != nil {
				t.Error(err)
			}
		}
		enter("a")
		enter("a")
		var came []interlock.Namespace // one at a time, which Leave sees to
		for _, ns := range []interlock.Namespace{"a", "a", "a", "b", "b", "c"} {
			go func() {
				enter(ns)
				came = append(came, ns)
			}()
			synctest.Wait()
		}
		if len(came) != 0 {
			t.Fatalf("%v went although all places were taken", came)
		}
		for range 6 {
			d.Leave()
			synctest.Wait()
		}
		if want := []interlock.Namespace{"a", "b", "c", "a", "b", "a"}; !slices.Equal(came, want) {
			t.Errorf("they came as %v, want %v", came, want)
		}
		d.Leave()
		d.Leave()
		if !d.IsIdle(2) {
			t.Errorf("left behind: %d free, lines %v, next %v", d.free, d.lines, d.next)
		}
	})
}

// A waiter that leaves its line, or ends while its turn comes, takes nothing with it.
func TestDeskLeavers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, random := NewDesk(3), rand.New(rand.NewPCG(1, 2))
		var all sync.WaitGroup
		var inside atomic.Int32
		for range 400 {
			ctx, cancel := context.WithCancel(t.Context())
			ns := interlock.Namespace([]string{"a", "b", "c", "d"}[random.IntN(4)])
			all.Go(func() {
				if d.Enter(ctx, ns) != nil {
					return
				}
				if n := inside.Add(1); n > 3 {
					t.Errorf("%d are at a desk with 3 places", n)
				}
				inside.Add(-1)
				d.Leave()
			})
			if random.IntN(2) == 0 {
				cancel()
			} else {
				t.Cleanup(cancel)
			}
		}
		all.Wait()
		if !d.IsIdle(3) {
			t.Errorf("left behind: %d free, lines %v, next %v", d.free, d.lines, d.next)
		}
	})
}

// However many followers are behind, one visits at a time, and a follower of another namespace does not wait for
// all of them; a follower that may block has no place meanwhile.
func TestFollowersTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		desk := NewDesk(1)
		r := newRig(t, func(c *Config) { c.Desk = desk })
		const entries = 500
		for i := range entries {
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
		}
		end := r.shard.At().Index
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var visiting, visits atomic.Int32
		stuck := make(chan struct{})
		var all sync.WaitGroup
		follow := func(f Follower) {
			f.Reached = func(index interlock.Index) error {
				if index >= end {
					return errSought
				}
				return nil
			}
			visit := f.Visit
			f.Visit = func(index interlock.Index, epoch interlock.Epoch, events []record.Event) error {
				if visiting.Add(1) > 1 {
					t.Error("two followers are at a desk with one place")
				}
				visits.Add(1)
				defer visiting.Add(-1)
				if visit != nil {
					return visit(index, epoch, events)
				}
				return nil
			}
			all.Go(func() { _ = r.shard.Follow(ctx, f) })
		}
		// One blocks for ever in Visited, which costs the others nothing.
		follow(Follower{Namespace: "test", From: 1, Visited: func() error {
			<-ctx.Done()
			close(stuck)
			return ctx.Err()
		}})
		done := make(chan struct{})
		var left atomic.Int32
		left.Store(16)
		for range 16 {
			seen := 0
			follow(Follower{
				Namespace: "test", From: 1,
				Visit: func(interlock.Index, interlock.Epoch, []record.Event) error {
					if seen++; seen == entries && left.Add(-1) == 0 {
						close(done)
					}
					return nil
				},
			})
		}
		<-done
		cancel()
		<-stuck
		all.Wait()
		if !desk.IsIdle(1) {
			t.Error("a follower has ended with a place")
		}
	})
}

// A reader that ends while it waits leaves the places as they are.
func TestDeskWaiterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk(1)
		if err := d.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		enter := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return d.Enter(ctx, "b") == nil
		}
		if first, second := enter(), enter(); first || second {
			t.Error("two readers have one place")
		}
		d.Leave()
		if !enter() {
			t.Error("the place is lost")
		}
	})
}
