package server

import (
	"sync"

	"github.com/interlockdev/interlock"
)

// streamLimit counts the readers of events of each namespace.
type streamLimit struct {
	max  int
	mu   sync.Mutex
	open map[interlock.Namespace]int
}

// enter takes a place; leave gives it back.
func (l *streamLimit) enter(ns interlock.Namespace) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[ns] >= l.max {
		return nil, false
	}
	if l.open == nil {
		l.open = map[interlock.Namespace]int{}
	}
	l.open[ns]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[ns]--; l.open[ns] == 0 {
			delete(l.open, ns)
		}
	}, true
}
