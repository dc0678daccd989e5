package sim

import (
	"time"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// early checks that a lease does not end before its time.
func (a *audit) early(w *world, r *request, ev *record.Event) {
	if ev.Kind == record.Ended && (r.phase == grace || r.phase == closed) && ev.Reason == r.reason {
		term := r.grace
		if r.phase == closed {
			term = r.delay
		}
		taken := ev.Reason == record.ByPreemption || ev.Reason == record.ByDeadlock
		if r.phase == grace && taken && r.maxHold > 0 && (r.returned || ev.At >= r.granted.Add(r.maxHold)) {
			return // max_hold would have ended it by now; of one that was parked, what is left of it is not known here
		}
		if ev.At < r.since.Add(term) {
			w.fail(
				"I8", "%v ends at index %d, %v before its %s does", r, a.index, r.since.Add(term).Sub(ev.At), phaseNames[r.phase],
			)
		}
		return
	}
	if r.phase != held {
		return
	}
	switch ev.Reason {
	case record.ByTTL:
		ttl, heard := r.ttl(), r.heard
		if s := a.sessions[r.session]; s != nil {
			ttl, heard = min(ttl, s.ttl), max(heard, s.heard)
		}
		if ev.At < heard.Add(ttl) {
			w.fail(
				"I8", "%v ends at index %d by its ttl of %v, %v after a heartbeat that was acknowledged", r, a.index, ttl,
				ev.At.Sub(heard),
			)
		}
	case record.ByForgetting:
		if ev.At < r.heard.Add(r.ttl()) {
			w.fail(
				"I8", "%v ends at index %d as forgotten, %v after it was granted, renewed or listed, with a ttl of %v", r, a.index,
				ev.At.Sub(r.heard), r.ttl(),
			)
		}
	case record.ByMaxHold:
		if !r.returned && ev.At < r.granted.Add(r.maxHold) {
			w.fail(
				"I8", "%v ends at index %d by its max_hold of %v, %v after it was granted", r, a.index, r.maxHold,
				ev.At.Sub(r.granted),
			)
		}
	}
}

// dueWork bounds the time that an owner needs for all that is due at once, such as when its term
// begins: a step ends a bounded number of things.
const dueWork = time.Second

// overstay checks that a lease is not held beyond its max_hold.
func (a *audit) overstay(w *world, r *request) {
	if a.term || r.phase != held || r.offer || r.returned || r.maxHold == 0 || a.entryTime < r.granted.Add(r.maxHold) {
		r.late = 0
		return
	}
	if r.late == 0 {
		r.late = a.entryTime
	}
	if a.entryTime < r.late.Add(dueWork) {
		return
	}
	w.fail(
		"I8", "after index %d %v is held for %v, and its max_hold is %v", a.index, r, a.entryTime.Sub(r.granted), r.maxHold,
	)
}

// retimed folds a change of a lease's ttl, which a renewal made.
func (a *audit) retimed(w *world, r *request, ev *record.Event) {
	s := a.sessions[r.session]
	if r.phase != held || r.offer || ev.TTL == r.ttl() || s != nil && ev.TTL > s.ttl {
		w.fail("I8", "the ttl of %v becomes %v at index %d, and was %v", r, ev.TTL, a.index, r.ttl())
	}
	r.ttls, r.heard = append(r.ttls, ttlAt{a.index, ev.TTL}), ev.At
	if s != nil {
		s.heard = max(s.heard, ev.At)
	}
}

func (a *audit) sessionEnded(w *world, s *space, ev *record.Event) {
	x := a.sessions[ev.Session]
	if x == nil || x.ended {
		return
	}
	x.ended = true
	s.moved = true
	if ev.Reason == record.ByDeath && ev.At < x.heard.Add(x.ttl) {
		w.fail("I8", "session %d ends at index %d, %v after a heartbeat that was acknowledged, and its ttl is %v",
			x.num, a.index, ev.At.Sub(x.heard), x.ttl)
	}
}

// hears notes that a heartbeat or a renewal was acknowledged. A renewal counts for the
// session of the lease, whichever session sends it.
func (a *audit) hears(r *receiver, eff *engine.Effect) {
	switch c := r.cmd.(type) {
	case *engine.Heartbeat:
		s := a.spaces[c.Namespace]
		if s == nil || eff.Outcome != engine.Done {
			return
		}
		y := s.sessions[c.Session]
		if y == nil {
			return
		}
		y.heard = max(y.heard, c.At)
		if c.Known != nil {
			for _, id := range c.Known.Leases {
				if x := s.requests[id]; x != nil && x.phase == held && x.session == y.num {
					x.heard = max(x.heard, c.At)
				}
			}
		}
	case *engine.Renew:
		s := a.spaces[c.Namespace]
		if s == nil || eff.Outcome != engine.Granted {
			return
		}
		if x := s.requests[c.Lease]; x != nil && x.phase == held {
			x.heard = max(x.heard, c.At)
			if y := a.sessions[x.session]; y != nil {
				y.heard = max(y.heard, c.At)
			}
		}
	}
}

// bound is how long anything may go on by itself: the longest ttl, grace, park, lock_delay,
// offer and ticket of the agents, one after the other.
const bound = 10 * time.Minute
