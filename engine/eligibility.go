package engine

import (
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// How a task that waits stands in line.
//
// Tasks of one queue are served in the order of the lines, and by workers that may never come.
// So of the tasks of a queue at a key only the first counts for others, and only as long as
// others are what it waits for. All the rest stand aside: they keep their places, in the order
// among those of their queue, and block no other request. A task that stands aside is checked
// again when what it waits for has changed, and blocks others from then on, if it is the first
// of its queue at all its keys and others block it. So no agent waits for a worker, neither
// directly nor behind another task, and the first task is overtaken only by requests that came
// while it had no worker.
//
// At each key the tasks that stand aside have buckets of their own (kind.aside), so requests
// that they do not block pass them without looking.

// eligibility is how a task that waits stands in line. It is volatile.
type eligibility uint8

const (
	queuedBehindSibling eligibility = iota // a task of its own queue blocks it, or it was not checked yet
	blockedByOthers                        // others do, or it is about to be looked at
	runnable                               // nothing does, and it has not found a worker yet
	idle                                   // nothing did, and it had no worker
)

// isYielding reports whether a task blocks only those of its own queue.
func (s eligibility) isYielding() bool { return s == queuedBehindSibling || s == idle }

// setEligibility has a task that waits stand otherwise. When it steps aside, that is as if it
// left for all but those of its queue.
func (e *Engine) setEligibility(t *task, s eligibility) {
	was := t.eligibility.isYielding()
	t.eligibility = s
	if s.isYielding() == was {
		return
	}
	r := t.request
	for i := range r.wait.entries() {
		r.wait.entries()[i].setAside(s.isYielding())
	}
	if !s.isYielding() {
		return
	}
	r.ns.agenda.relieved(r.party, r)
	for i := range r.needs() {
		for c := range r.needs()[i].facing {
			if c.queue != t.queue {
				e.readyClass(c)
			}
		}
	}
}

// look computes the eligibility of a task that may be blocked, watches it at its blocker, and
// returns the index of that need, or -1 if nothing blocks it. A task that is still blocked
// where it is watched stays there.
func (e *Engine) look(t *task, watched int) int {
	r, s := t.request, queuedBehindSibling
	i := r.firstNeed(watched, (*request).behindAt)
	if i < 0 {
		i, s = r.firstNeed(watched, (*request).blockedAt), blockedByOthers
	}
	if i < 0 {
		return i
	}
	e.setEligibility(t, s)
	if i == watched {
		e.armPool(r.needs()[i].node.pool())
	} else {
		e.watch(r, i)
	}
	return i
}

// lookAgain is look for a task that stood in line before. It returns false when nothing blocks
// it.
func (e *Engine) lookAgain(t *task, watched int) bool {
	r, aside := t.request, t.eligibility.isYielding()
	switch i := e.look(t, watched); {
	case i < 0:
		return false
	case r.hopeless(&r.needs()[i]):
		e.fallBack(t, record.ByPattern)
	case aside && !t.eligibility.isYielding():
		e.suspect(nil, r) // others wait for it from now on
	}
	return true
}

// yieldToTask makes the tasks of its queue that t now stands before step aside.
func (e *Engine) yieldToTask(t *task) {
	r := t.request
	for i := range r.needs() {
		m := &r.needs()[i]
		for w := m.overtaken(); w != nil; w = m.overtaken() {
			w.task.unready()
			e.look(w.task, -1)
		}
	}
}

// overtaken returns a waiter that must step aside for a task that now stands before it at m, or
// nil. Stepping aside may remove the waiter's bucket from the line, so each waiter is searched
// for anew.
func (m *need) overtaken() *request {
	r := m.req
	for c := range m.facing {
		if c.queue != r.task.queue || c.aside || !lockmode.Conflicts[m.mode].Has(c.mode) {
			continue
		}
		if w := c.last().req; before(r, w) {
			return w
		}
	}
	return nil
}

// unready keeps a task from being handed out before it is checked.
func (t *task) unready() {
	if t.eligibility == runnable {
		t.queue.unshelve(t)
	}
}

// behindAt reports whether a task of its own queue blocks a task at one of its needs.
func (r *request) behindAt(m *need) bool {
	for c := range m.facing {
		if c.queue == r.task.queue && before(c.first().req, r) && (lockmode.Conflicts[m.mode].Has(c.mode) || r.short(m) != enough) {
			return true
		}
	}
	return false
}
