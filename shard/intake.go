package shard

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// backlog holds the waiting commands of one namespace. Submitters append to in, and the owner takes
// all of in at once by exchanging slices, so nothing is copied twice. Both are in the order of
// arrival, in before out never: what is in out came first.
//
// The owner visits those that are listed; the others are empty and have nothing
// due.
type backlog struct {
	namespace interlock.Namespace // "" for the whole shard

	// These are guarded by mailbox.mu.
	in     []engine.Command
	since  time.Time // when the oldest of in came
	listed bool

	// These are the owner's while the backlog is listed.
	out    []engine.Command
	next   int           // index in out of the next command
	waited time.Time     // when the oldest of out came
	credit time.Duration // the time that the owner may still spend on it; see turn.go
}

// pop returns the next command that the owner has taken.
func (q *backlog) pop() engine.Command {
	cmd := q.out[q.next]
	q.out[q.next] = nil
	q.next++
	return cmd
}

// unpop puts the command back that pop gave.
func (q *backlog) unpop(cmd engine.Command) {
	q.next--
	q.out[q.next] = cmd
}

// taken counts the commands that the owner has taken and not carried out.
func (q *backlog) taken() int { return len(q.out) - q.next }

const (
	// idleBacklogs is how many backlogs are kept though nothing waits in them, so that a
	// namespace's next command need not make one.
	idleBacklogs = 1024

	// idleCommands is how large one without commands may be.
	idleCommands = 4096
)

// put takes all of cmds, which are of one namespace, or none of them. It reports whether the owner
// must be woken.
//
// There is room for them if they leave at least as much room as their namespace
// then uses. So a namespace that floods the shard is refused at half of the limit,
// or k of them at k/(k+1) together, and others still find room.
func (m *mailbox) put(cmds []engine.Command) (news bool, err error) {
	if len(cmds) == 0 {
		return false, nil
	}
	first := cmds[0].Header()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		err := *m.closed
		return false, &err
	}
	own, all := len(cmds), m.waiting+len(cmds)
	if q := m.backlogs[first.Namespace]; q != nil {
		own += len(q.in)
	}
	if own > m.limit-all {
		return false, &interlock.Error{
			Code:    interlock.CodeOverloaded,
			Message: "this namespace has more pending work than its share of the server: repeat the request in a moment",
		}
	}
	q := m.backlog(first.Namespace)
	if len(q.in) == 0 {
		q.since = m.watch()
	}
	now := m.now()
	for _, cmd := range cmds {
		cmd.Header().At = now
	}
	q.in = append(q.in, cmds...)
	m.came.Add(1)
	m.waiting += len(cmds)
	if !q.listed {
		q.listed = true
		m.fresh = append(m.fresh, q)
		news = len(m.fresh) == 1
	}
	return news, nil
}

// backlog finds or makes that of a namespace. The caller holds mu.
func (m *mailbox) backlog(namespace interlock.Namespace) *backlog {
	q := m.backlogs[namespace]
	if q == nil {
		q = &backlog{namespace: namespace}
		m.backlogs[namespace] = q
	}
	return q
}

// exchange hands the commands in q to the owner, which has none of them left. The caller holds mu.
func (m *mailbox) exchange(q *backlog) {
	m.waiting -= len(q.in)
	q.in, q.out, q.next, q.waited = q.out[:0], q.in, 0, q.since
}

// collect appends to list the backlogs in which something waits and that are not listed yet, and
// takes what is in them. closed means that nothing more can come.
func (m *mailbox) collect(list []*backlog) (_ []*backlog, now engine.Time, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, q := range m.fresh {
		m.exchange(q)
		list = append(list, q)
		m.fresh[i] = nil
	}
	m.fresh = m.fresh[:0]
	return list, m.now(), m.closed != nil
}

// take takes what is in q. The owner has nothing of it left. Every command of the namespace that
// came before now was taken. If nothing was in q, and nothing is due in it by now, the backlog is
// no longer listed and no longer the owner's.
func (m *mailbox) take(q *backlog, due engine.Time) (now engine.Time, listed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.now()
	if len(q.in) > 0 {
		m.exchange(q)
		return now, true
	}
	if due <= now {
		return now, true
	}
	q.listed, q.credit = false, 0
	q.out, q.next = q.out[:0], 0
	if len(m.backlogs) > idleBacklogs {
		delete(m.backlogs, q.namespace)
	} else if cap(q.in)+cap(q.out) > idleCommands {
		q.in, q.out = nil, nil
	}
	return now, false
}

// list lists a namespace's backlog because something is due there; nil if it was.
func (m *mailbox) list(namespace interlock.Namespace) *backlog {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.backlog(namespace)
	if q.listed {
		return nil
	}
	q.listed = true
	return q
}
