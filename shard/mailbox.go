package shard

import (
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// mailbox is where commands wait for the owner. The owner takes all of them at
// once by exchanging slices, so a lock is taken once per Submit and once per
// round, and nothing is copied twice.
type mailbox struct {
	mu     sync.Mutex
	queue  []engine.Command
	limit  int
	since  time.Time // when the oldest in the queue came
	closed *interlock.Error

	// wake has a value when there is something to take. Its one slot makes many
	// commands into one wake-up.
	wake chan struct{}
}

func newMailbox(limit int) *mailbox {
	return &mailbox{limit: limit, wake: make(chan struct{}, 1)}
}

// put takes all of cmds or none of them.
func (m *mailbox) put(cmds []engine.Command) error {
	m.mu.Lock()
	if m.closed != nil {
		err := *m.closed
		m.mu.Unlock()
		return &err
	}
	n := len(m.queue)
	if n+len(cmds) > m.limit {
		m.mu.Unlock()
		return &interlock.Error{
			Code:    interlock.CodeOverloaded,
			Message: "the server has more waiting work than it accepts; repeat the request in a moment",
		}
	}
	if n == 0 {
		m.since = time.Now()
	}
	m.queue = append(m.queue, cmds...)
	m.mu.Unlock()
	if n == 0 {
		m.ring()
	}
	return nil
}

// ring wakes the owner.
func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// swap leaves the empty slice in the mailbox and returns what was waiting, since
// when, and whether nothing more can come.
func (m *mailbox) swap(empty []engine.Command) (waiting []engine.Command, since time.Time, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting, m.queue = m.queue, empty
	return waiting, m.since, m.closed != nil
}

// close refuses what comes from now on. The first reason stays.
func (m *mailbox) close(why *interlock.Error) {
	m.mu.Lock()
	if m.closed == nil {
		m.closed = why
	}
	m.mu.Unlock()
	m.ring()
}
