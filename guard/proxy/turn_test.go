package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		first, late := all.enter("k"), all.enter("k")
		if waited, err := first.take(t.Context(), 5); waited || err != nil {
			t.Fatal(waited, err)
		}
		// Its own calls go beside each other.
		beside := all.enter("k")
		if waited, err := beside.take(t.Context(), 5); waited || err != nil {
			t.Fatal(waited, err)
		}
		// Another key is another matter.
		other := all.enter("other")
		if waited, err := other.take(t.Context(), 9); waited || err != nil {
			t.Fatal(waited, err)
		}
		type result struct {
			waited bool
			err    error
		}
		take := func(fence interlock.Fence) (*turn, chan result) {
			turn, took := all.enter("k"), make(chan result, 1)
			go func() {
				waited, err := turn.take(t.Context(), fence)
				took <- result{waited, err}
			}()
			synctest.Wait()
			return turn, took
		}
		second, tookSecond := take(6)
		third, tookThird := take(7)
		if len(tookSecond)+len(tookThird) != 0 {
			t.Fatal("they did not wait")
		}
		// One that was held up between Interlock's answer and here.
		var passed *passedError
		if _, err := late.take(t.Context(), 5); !errors.As(err, &passed) || passed.highest != 7 {
			t.Error(err)
		}
		late.leave()
		beside.leave()
		synctest.Wait()
		if len(tookSecond)+len(tookThird) != 0 {
			t.Fatal("they went while a call of the first was under way")
		}
		first.leave()
		if got := <-tookThird; got != (result{true, nil}) {
			t.Error(got)
		}
		if got := <-tookSecond; !errors.As(got.err, &passed) {
			t.Error(got)
		}
		second.leave()

		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		fourth := all.enter("k")
		if _, err := fourth.take(ctx, 8); !errors.Is(err, gone) {
			t.Error(err)
		}
		fourth.leave()
		third.leave()
		other.leave()
		if len(all.keys) != 0 {
			t.Errorf("remembered after all have left: %v", all.keys)
		}
	})
}
