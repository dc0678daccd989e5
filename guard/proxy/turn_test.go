package proxy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns{line: 1}
		first, late := all.enter("k", time.Now()), all.enter("k", time.Now())
		if waited, err := first.take(t.Context(), 5); waited || err != nil {
			t.Fatal(waited, err)
		}
		// Its own calls go beside each other.
		beside := all.enter("k", time.Now())
		if waited, err := beside.take(t.Context(), 5); waited || err != nil {
			t.Fatal(waited, err)
		}
		// Another key is another matter.
		other := all.enter("other", time.Now())
		if waited, err := other.take(t.Context(), 9); waited || err != nil {
			t.Fatal(waited, err)
		}
		type result struct {
			waited bool
			err    error
		}
		take := func(fence interlock.Fence) (*fenceTurn, chan result) {
			turn, took := all.enter("k", time.Now()), make(chan result, 1)
			go func() {
				waited, err := turn.take(t.Context(), fence)
				took <- result{waited, err}
			}()
			synctest.Wait()
			return turn, took
		}
		second, tookSecond := take(6)
		if len(tookSecond) != 0 {
			t.Fatal("it did not wait")
		}
		// There is room for one that waits.
		crowd, tookCrowd := take(6)
		if got := <-tookCrowd; !errors.Is(got.err, errCrowded) {
			t.Error(got)
		}
		crowd.leave(time.Now())
		// A higher fence needs none of the room of those that it passes.
		var passed *passedError
		third, tookThird := take(7)
		if got := <-tookSecond; !errors.As(got.err, &passed) || passed.highest != 7 {
			t.Error(got)
		}
		second.leave(time.Now())
		// One that was held up between Interlock's answer and here.
		if _, err := late.take(t.Context(), 5); !errors.As(err, &passed) || passed.highest != 7 {
			t.Error(err)
		}
		late.leave(time.Now())
		beside.leave(time.Now())
		synctest.Wait()
		if len(tookThird) != 0 {
			t.Fatal("it went while a call of the first was under way")
		}
		first.leave(time.Now())
		if got := <-tookThird; got != (result{true, nil}) {
			t.Error(got)
		}

		// A caller that stops waiting leaves its room to another.
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		fourth := all.enter("k", time.Now())
		if _, err := fourth.take(ctx, 8); !errors.Is(err, gone) {
			t.Error(err)
		}
		fourth.leave(time.Now())
		fifth, tookFifth := take(8)
		if len(tookFifth) != 0 {
			t.Fatal("it did not wait")
		}
		third.leave(time.Now())
		if got := <-tookFifth; got != (result{true, nil}) {
			t.Error(got)
		}
		fifth.leave(time.Now())
		other.leave(time.Now())
		if len(all.keys) != 0 {
			t.Errorf("remembered after all have left: %v", all.keys)
		}
	})
}

// Where signed fences are taken, a key is remembered for as long as one may hold.
func TestTurnsRemember(t *testing.T) {
	all := turns{keep: time.Minute}
	start := time.Now()
	pass := func(key interlock.Key, fence interlock.Fence, at time.Time) error {
		turn := all.enter(key, at)
		defer turn.leave(at)
		_, err := turn.take(t.Context(), fence)
		return err
	}
	if err := pass("k", 6, start); err != nil {
		t.Fatal(err)
	}
	if err := pass("k", 5, start.Add(59*time.Second)); err == nil {
		t.Error("a lower fence went through")
	}
	// A call that showed nothing leaves nothing behind.
	all.enter("nothing", start).leave(start)
	if len(all.keys) != 1 {
		t.Errorf("remembered: %v", all.keys)
	}
	// Ended calls are dropped when there are many.
	for i := range 5 * leastSweep {
		at := start.Add(time.Duration(i) * time.Second)
		if err := pass(interlock.Key(fmt.Sprint(i)), 7, at); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(all.keys); n > leastSweep+1 {
		t.Errorf("%d keys are remembered, of which 60 are not over", n)
	}
	if all.keys["k"] != nil {
		t.Error("it is remembered for ever")
	}
}

// However many keys there are, they are not looked through at every call.
func TestTurnsSweepSeldom(t *testing.T) {
	all := turns{keep: betweenSweep / 4}
	start := time.Now()
	n := 0
	fill := func(count int, at time.Time) {
		t.Helper()
		for range count {
			n++
			turn := all.enter(interlock.Key(fmt.Sprint(n)), at)
			if _, err := turn.take(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
			turn.leave(at)
		}
	}
	fill(4*leastSweep, start)
	fill(1, start.Add(betweenSweep/2))
	if len(all.keys) != n {
		t.Errorf("%d keys of %d are left: they were looked through twice in a second", len(all.keys), n)
	}
	fill(1, start.Add(betweenSweep))
	if len(all.keys) != 1 {
		t.Errorf("%d keys are remembered, of which one is not over", len(all.keys))
	}
}
