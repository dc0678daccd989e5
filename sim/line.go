package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// plain reports whether a waiter is granted by nothing but modes and permits, in the place in
// line in its event, so that it is certain when it must be.
func (r *request) plain() bool {
	if r.any || r.base != nil || r.part || r.declared || r.returned || r.lead || r.task {
		return false
	}
	for _, c := range r.claims {
		if c.Mode == interlock.Barrier || c.Mode == interlock.Member || strings.HasPrefix(string(c.Key), "rate:") ||
			isShared(c.Key) {
			return false
		}
	}
	return true
}

// The score of a waiter is its arrival less its priority, which may be one that it has
// inherited. These are the bounds between which it surely is.
func (r *request) latest() engine.Time {
	return r.arrived.Add(-time.Duration(r.priority) * interlock.PriorityBoost)
}

func (r *request) earliest(most int) engine.Time {
	rank := r.priority
	if r.session != 0 {
		rank = max(rank, most)
	}
	return r.arrived.Add(-time.Duration(rank) * interlock.PriorityBoost)
}

// mostUrgent returns the highest priority that a request in the space can have inherited.
func (s *space) mostUrgent() (most int) {
	for i, list := range [][]*request{s.waiting, s.holding} {
		for _, r := range list {
			if i == 0 || r.priority > most {
				most = max(most, r.priority)
			}
		}
	}
	return most
}

// stands reports whether holder h blocks r.
func (r *request) stands(h *request) bool {
	return !together(r, h) && anyPair(h.claims, r.claims, apart)
}

// touches reports whether two waiters may be in each other's way. Permits are, also in
// one holder's hands.
func (r *request) touches(o *request) bool {
	same := together(r, o)
	return anyPair(r.claims, o.claims, func(a, b interlock.Claim) bool {
		return !same && apart(a, b) || a.Key == b.Key && a.Mode.Counts() && a.Mode == b.Mode
	})
}

// stepsTime bounds how long a waiter may wait with nothing blocking it. A step of the engine
// looks at a bounded number of objects; the next one, which is due at once, continues.
const stepsTime = time.Second

// lostWaiter looks for a waiter that nothing keeps waiting, for longer than steps take.
func (a *audit) lostWaiter(w *world, s *space) {
	s.stalled = false
	most := s.mostUrgent()
	for _, r := range s.waiting {
		switch {
		case s.blocks(r, most):
			r.free = 0
		case r.free == 0:
			r.free, s.stalled = a.entryTime, true
		case a.entryTime.Sub(r.free) > stepsTime:
			w.fail("I4", "after index %d nothing is in the way of %v, and it waits", a.index, r)
			return
		default:
			s.stalled = true
		}
	}
}

// blocks reports whether a waiter may be blocked. No request has inherited a priority above
// most.
func (s *space) blocks(r *request, most int) bool {
	if !r.plain() || slices.ContainsFunc(s.holding, r.stands) {
		return true
	}
	for _, c := range r.claims {
		if limit := capacity(c.Key); limit > 0 && s.used(c.Key, nil)+c.Count > limit {
			return true
		}
	}
	for _, o := range s.waiting {
		if o == r || o.declared || !r.touches(o) {
			continue
		}
		if !o.plain() || o.earliest(most) <= r.latest() {
			return true // it may be ahead
		}
	}
	return s.taskAhead(r)
}

// taskAhead reports whether a task without a worker may stand in line ahead of r: it has the
// place of its submission, and waits for other keys.
func (s *space) taskAhead(r *request) bool {
	for _, t := range s.tasks {
		if t.state != interlock.TaskRunning && !t.settled() && anyPair(t.claims, r.claims, apart) {
			return true
		}
	}
	return false
}

// overtakes checks that r, about to be granted, does not pass a waiter that surely is ahead of
// it and that it excludes.
func (a *audit) overtakes(w *world, r *request, claims []interlock.Claim) {
	if !r.plain() {
		return
	}
	s := r.space
	first := r.earliest(s.mostUrgent())
	for _, o := range s.waiting {
		if o == r || !o.plain() || together(o, r) || o.latest() >= first {
			continue
		}
		if anyPair(o.claims, claims, apart) {
			w.fail("I5", "at index %d %v is granted ahead of %v", a.index, r, o)
		}
	}
	for _, c := range claims {
		limit := capacity(c.Key)
		if limit == 0 || c.Mode != interlock.Permits {
			continue
		}
		n := s.used(c.Key, r) + c.Count
		for _, o := range s.waiting {
			if o != r && o.plain() && o.latest() < first {
				for _, oc := range o.claims {
					if oc.Key == c.Key && oc.Mode == interlock.Permits {
						n += oc.Count
					}
				}
			}
		}
		if n > limit {
			w.fail("I5", "at index %d %v takes permits of %s that those ahead of it wait for", a.index, r, c.Key)
		}
	}
}
