package shard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// mailbox is where commands wait for the owner, each namespace's apart from the
// others' (see intake.go).
//
// It also sets the shard's time, because arrival is what counts: a command gets the time of its
// arrival, under the lock that orders the commands. The engine ends what is due in a namespace by
// the time of each command of it that it carries out, so a heartbeat that came before a deadline
// holds, however long it waits here.
type mailbox struct {
	mu       sync.Mutex
	backlogs map[interlock.Namespace]*backlog
	fresh    []*backlog    // listed, and the owner does not know of it yet
	waiting  int           // commands in all backlogs
	came     atomic.Uint64 // how often commands have come
	limit    int
	closed   *interlock.Error

	clock  Clock
	watch  func() time.Time // tells how long something takes, and no more
	skew   time.Duration    // added to the clock's time
	last   engine.Time      // the newest time given out
	frozen bool             // time stands still at last

	// wake has a value when there is something to take. Its one slot makes many
	// commands into one wake-up.
	wake chan struct{}
}

func newMailbox(limit int, clock Clock, watch func() time.Time) *mailbox {
	return &mailbox{
		backlogs: map[interlock.Namespace]*backlog{}, limit: limit, clock: clock, watch: watch, wake: make(chan struct{}, 1),
	}
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

// ring wakes the owner.
func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// close refuses all later commands. The first reason stays.
func (m *mailbox) close(why *interlock.Error) {
	m.mu.Lock()
	if m.closed == nil {
		m.closed = why
	}
	m.mu.Unlock()
	m.ring()
}
