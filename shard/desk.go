package shard

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Desk bounds how much of a kind of work is done at a time, in all shards of a process. When there is more, the
// namespaces take turns, so that one that asks for much holds up only itself.
//
// The readers of the journal take turns of readTurn at a desk: a follower that is behind, and what is computed from
// the past. The desk has a place for every second processor, so commands always find one, however many read:
//
//	64 followers of acme, all behind ─┐
//	2 reports of globex ──────────────┼─► one place for two processors, 1 ms at a time: acme, globex, acme, ...
//	1 timeline of initech ────────────┘
type Desk struct {
	mu    sync.Mutex
	free  int                                     // free places
	lines map[interlock.Namespace][]chan struct{} // the waiters; none is empty
	next  []interlock.Namespace                   // those of lines, in the order of their turns
}

// readTurn is how long a reader of the journal works before others have their turns.
const readTurn = time.Millisecond

// NewDesk makes one with a number of places; 0 means one for every second processor.
func NewDesk(places int) *Desk {
	if places <= 0 {
		places = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return &Desk{free: places, lines: map[interlock.Namespace][]chan struct{}{}}
}

// Enter waits for a place, or returns the error of a context that ends before.
func (d *Desk) Enter(ctx context.Context, ns interlock.Namespace) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	if d.free > 0 {
		d.free--
		d.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(d.lines[ns]) == 0 {
		d.next = append(d.next, ns)
	}
	d.lines[ns] = append(d.lines[ns], turn)
	d.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !d.forget(ns, turn) {
		d.Leave() // the turn came at the same moment
	}
	return ctx.Err()
}

// forget takes a waiter out of its line. It reports whether the waiter was still there.
func (d *Desk) forget(ns interlock.Namespace, turn chan struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := d.lines[ns]
	for i := range line {
		if line[i] != turn {
			continue
		}
		if line = append(line[:i:i], line[i+1:]...); len(line) > 0 {
			d.lines[ns] = line
			return true
		}
		delete(d.lines, ns)
		for k := range d.next {
			if d.next[k] == ns {
				d.next = append(d.next[:k:k], d.next[k+1:]...)
				break
			}
		}
		return true
	}
	return false
}

// Leave hands the place on to the first in the line of the next namespace in turn.
func (d *Desk) Leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.next) == 0 {
		d.free++
		return
	}
	ns := d.next[0]
	d.next = d.next[1:]
	line := d.lines[ns]
	close(line[0])
	if len(line) == 1 {
		delete(d.lines, ns)
		return
	}
	d.lines[ns] = line[1:]
	d.next = append(d.next, ns)
}

// IsIdle reports whether no work is done or waited for, of so many places.
func (d *Desk) IsIdle(places int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free == places && len(d.lines)+len(d.next) == 0
}

// turns are those of one reader at a desk. It is for one goroutine.
type turns struct {
	desk   *Desk // nil: it never waits
	ns     interlock.Namespace
	seated bool
	since  time.Time
	steps  int
}

// work returns when the reader may do its next step, which is short. It has its place until rest, and leaves it to
// others now and then.
func (t *turns) work(ctx context.Context) error {
	if t.desk == nil {
		return nil
	}
	if t.seated {
		const between = 32 // steps between two looks at the clock
		if t.steps++; t.steps%between != 0 || time.Since(t.since) < readTurn {
			return nil
		}
		t.rest()
		runtime.Gosched() // what has just become able to run goes first
	}
	if err := t.desk.Enter(ctx, t.ns); err != nil {
		return err
	}
	t.seated, t.since = true, time.Now()
	return nil
}

// rest leaves the place, if the reader has it.
func (t *turns) rest() {
	if t.seated {
		t.seated = false
		t.desk.Leave()
	}
}
