package server

import "sync"

// broadcast wakes all that listen at that moment.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns the channel that the next call of all closes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// all wakes the listeners. It never blocks.
func (b *broadcast) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
