package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// turns keep the order of fences at each key: calls under one fence alone are under way at a
// time, and none under a lower fence goes after one under a higher was there. Interlock's
// answer about the rightful writer holds at the moment of the answer; between that answer and
// the API a call may be held up, and that is what turns are for.
//
// A key is remembered as long as a call for it is in the proxy. That is enough where Interlock
// is asked: a call that comes later asks it after the higher fence was issued. A signed fence
// is good for a while without a question, so where those are taken a key is remembered for so
// long after its last call. Of a restart only the calls under way matter, which ledger.go
// keeps.
type turns struct {
	keep time.Duration // how long a key is remembered after its last call
	line int           // how many calls may wait at a key

	mu    sync.Mutex // guards the fields below
	keys  map[interlock.Key]*order
	sweep int       // how many keys there are when those that are over are looked for
	swept time.Time // when that was last
}

// order is the state of one key.
type order struct {
	calls   int             // in the proxy, for this key
	highest interlock.Fence // that was there; a waiter has it, or has been passed
	running interlock.Fence // of the calls under way
	under   int             // how many there are
	free    chan struct{}   // waiters try again when it is closed; nil: no waiters
	waiting int             // for that
	until   time.Time       // remembered until then, when calls is 0
}

// fenceTurn is one call's place at its key.
type fenceTurn struct {
	all   *turns
	key   interlock.Key
	order *order
	taken bool
}

// Bounds of the remembered state: the number of keys before the first clean-up, the pause
// between clean-ups, because all calls wait for them, and the maximum number of keys.
const (
	leastSweep   = 1024
	betweenSweep = time.Second
	maxKeys      = 1 << 20
)

// enter is called before Interlock is asked, leave when the call is over. It returns
// nil when there is no room for the key.
func (t *turns) enter(key interlock.Key, now time.Time) *fenceTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil {
		t.keys = map[interlock.Key]*order{}
	}
	o := t.keys[key]
	if o == nil {
		if len(t.keys) >= max(t.sweep, leastSweep) && now.Sub(t.swept) >= betweenSweep {
			for k, o := range t.keys {
				if o.calls == 0 && !now.Before(o.until) {
					delete(t.keys, k)
				}
			}
			t.sweep, t.swept = min(2*len(t.keys), maxKeys), now
		}
		if len(t.keys) >= maxKeys {
			return nil
		}
		o = &order{}
		t.keys[key] = o
	}
	o.calls++
	return &fenceTurn{all: t, key: key, order: o}
}

// resume takes a turn for a call that was under way before the proxy began. All of a
// key are under one fence.
func (t *turns) resume(key interlock.Key, fence interlock.Fence, now time.Time) *fenceTurn {
	turn := t.enter(key, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := turn.order
	o.highest, o.running = max(o.highest, fence), max(o.running, fence)
	o.under++
	turn.taken = true
	return turn
}

// passedError reports that a caller with a higher fence was there.
type passedError struct {
	key            interlock.Key
	fence, highest interlock.Fence
}

func (e *passedError) Error() string {
	return fmt.Sprintf("fence %d is stale for %s: fence %d was seen", e.fence, e.key, e.highest)
}

// errCrowded reports that too many calls wait at the key already. They are all of one holder,
// and must leave room in the proxy for the calls of others.
var errCrowded = errors.New("too many calls are waiting at this key")

// take waits until no call under a lower fence is under way, and reports whether
// it had to wait. It returns a *passedError when a higher fence was there, and
// errCrowded when it would be one too many.
func (t *fenceTurn) take(ctx context.Context, fence interlock.Fence) (waited bool, err error) {
	for {
		free, err := t.try(fence)
		if free == nil {
			return waited, err
		}
		waited = true
		select {
		case <-free:
		case <-ctx.Done():
			t.giveUp(free)
			return waited, context.Cause(ctx)
		}
	}
}

// try takes the turn, or returns when to try again.
func (t *fenceTurn) try(fence interlock.Fence) (free <-chan struct{}, err error) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	o := t.order
	if fence < o.highest {
		return nil, &passedError{t.key, fence, o.highest}
	}
	if fence > o.highest {
		o.wake() // the waiters have been passed
	}
	o.highest = fence
	if o.under > 0 && o.running != fence {
		if o.waiting >= t.all.line {
			return nil, errCrowded
		}
		if o.free == nil {
			o.free = make(chan struct{})
		}
		o.waiting++
		return o.free, nil
	}
	if o.under == 0 {
		o.running = fence
	}
	o.under++
	t.taken = true
	return nil, nil
}

// giveUp ends the wait for free.
func (t *fenceTurn) giveUp(free <-chan struct{}) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if t.order.free == free {
		t.order.waiting--
	}
}

// wake makes the waiters try again.
func (o *order) wake() {
	if o.free != nil {
		close(o.free)
	}
	o.free, o.waiting = nil, 0
}

func (t *fenceTurn) leave(now time.Time) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	o := t.order
	if t.taken {
		if o.under--; o.under == 0 {
			o.wake()
		}
	}
	if o.calls--; o.calls > 0 {
		return
	}
	if o.until = now.Add(t.all.keep); t.all.keep == 0 || o.highest == 0 {
		delete(t.all.keys, t.key)
	}
}
