package server

import (
	"sync"

	"github.com/interlockdev/interlock"
)

// fair bounds how much of a kind of work is done at a time. When there is more, the namespaces take
// turns, so that one that asks for much holds up only itself.
type fair struct {
	mu    sync.Mutex
	free  int                                     // free places
	lines map[interlock.Namespace][]chan struct{} // the waiters; none is empty
	next  []interlock.Namespace                   // those of lines, in the order of their turns
}

func newFair(places int) *fair {
	return &fair{free: places, lines: map[interlock.Namespace][]chan struct{}{}}
}

// enter waits for a place. The work is short and has an end, so every turn comes.
func (f *fair) enter(ns interlock.Namespace) {
	f.mu.Lock()
	if f.free > 0 {
		f.free--
		f.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if len(f.lines[ns]) == 0 {
		f.next = append(f.next, ns)
	}
	f.lines[ns] = append(f.lines[ns], turn)
	f.mu.Unlock()
	<-turn
}

// leave hands the place on to the first in the line of the next namespace in turn.
func (f *fair) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) == 0 {
		f.free++
		return
	}
	ns := f.next[0]
	f.next = f.next[1:]
	line := f.lines[ns]
	close(line[0])
	if len(line) == 1 {
		delete(f.lines, ns)
		return
	}
	f.lines[ns] = line[1:]
	f.next = append(f.next, ns)
}
