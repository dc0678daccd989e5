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
//
// It also gives the shard its time, because arrival is what counts: a command
// gets the time at which it came, under the lock that orders the commands. The
// engine ends what is due by the time of each command it carries out, so a
// heartbeat that came before a deadline holds, however long it waits here.
type mailbox struct {
	mu     sync.Mutex
	queue  []engine.Command
	limit  int
	since  time.Time // when the oldest in the queue came
	closed *interlock.Error

	clock  Clock
	skew   time.Duration // what is added to the clock's time
	last   engine.Time   // the newest time given out
	frozen bool          // time stands still at last

	// wake has a value when there is something to take. Its one slot makes many
	// commands into one wake-up.
	wake chan struct{}
}

func newMailbox(limit int, clock Clock) *mailbox {
	return &mailbox{limit: limit, clock: clock, wake: make(chan struct{}, 1)}
}

// now is the shard's time. The caller holds mu.
func (m *mailbox) now() engine.Time {
	if !m.frozen {
		m.last = max(m.last, m.clock.Now().Add(m.skew))
	}
	return m.last
}

func (m *mailbox) time() engine.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now()
}

// freeze lets time stand still.
func (m *mailbox) freeze() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now()
	m.frozen = true
}

// thaw lets time go on from where it stood, or from floor if that is later.
func (m *mailbox) thaw(floor engine.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = max(m.last, floor)
	m.skew = m.last.Sub(m.clock.Now())
	m.frozen = false
}

// clockTime turns the shard's time into the clock's.
func (m *mailbox) clockTime(at engine.Time) engine.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return at.Add(-m.skew)
}

// put takes all of cmds or none of them.
func (m *mailbox) put(cmds []engine.Command) error {
	if len(cmds) == 0 {
		return nil
	}
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
	now := m.now()
	for _, cmd := range cmds {
		h, _ := headOf(cmd)
		h.At = now
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

// swap leaves the empty slice in the mailbox and takes what was waiting.
func (m *mailbox) swap(empty []engine.Command) (b batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b = batch{cmds: m.queue, since: m.since, now: m.now(), closed: m.closed != nil}
	m.queue = empty
	return b
}

// batch is what one swap takes.
type batch struct {
	cmds   []engine.Command
	since  time.Time   // when the oldest came
	now    engine.Time // every command that came before is in the batch or was in an earlier one
	closed bool        // nothing more can come
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
