package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
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

// setEligibility has a task that waits stand otherwise. When it steps aside, that is as if it
// left for all but those of its queue.
func (e *Engine) setEligibility(t *store.Task, s store.Eligibility) {
	was := t.Eligibility.IsYielding()
	t.Eligibility = s
	if s.IsYielding() == was {
		return
	}
	r := t.Request
	for i := range r.Wait.Entries() {
		r.Wait.Entries()[i].SetAside(s.IsYielding())
	}
	if !s.IsYielding() {
		return
	}
	r.NS.Agenda.Relieved(r.FlowState, r)
	for i := range r.Needs() {
		for c := range r.Needs()[i].Facing {
			if c.Queue != t.Queue {
				e.ReadyClass(c)
			}
		}
	}
}

// look computes the eligibility of a task that may be blocked, watches it at its blocker, and
// returns the index of that need, or -1 if nothing blocks it. A task that is still blocked
// where it is watched stays there.
func (e *Engine) look(t *store.Task, watched int) int {
	r, s := t.Request, store.QueuedBehindSibling
	i := r.FirstNeed(watched, (*store.Request).BehindAt)
	if i < 0 {
		i, s = r.FirstNeed(watched, (*store.Request).BlockedAt), store.BlockedByOthers
	}
	if i < 0 {
		return i
	}
	e.setEligibility(t, s)
	if i == watched {
		e.armPool(r.Needs()[i].Node.Pool())
	} else {
		e.watch(r, i)
	}
	return i
}

// lookAgain is look for a task that stood in line before. It returns false when nothing blocks
// it.
func (e *Engine) lookAgain(t *store.Task, watched int) bool {
	r, aside := t.Request, t.Eligibility.IsYielding()
	switch i := e.look(t, watched); {
	case i < 0:
		return false
	case r.Hopeless(&r.Needs()[i]):
		e.fallBack(t, record.ByPattern)
	case aside && !t.Eligibility.IsYielding():
		e.Suspect(nil, r) // others wait for it from now on
	}
	return true
}

// yieldToTask makes the tasks of its queue that t now stands before step aside.
func (e *Engine) yieldToTask(t *store.Task) {
	r := t.Request
	for i := range r.Needs() {
		m := &r.Needs()[i]
		for w := m.Overtaken(); w != nil; w = m.Overtaken() {
			w.Task.Unready()
			e.look(w.Task, -1)
		}
	}
}
