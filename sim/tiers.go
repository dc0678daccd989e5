package sim

import (
	"time"

	"github.com/interlockdev/interlock/engine"
)

// early checks that a lease does not end before its time.
func (a *audit) early(w *world, r *request, ev *engine.Event) {
	if ev.Kind == engine.EvEnded && (r.phase == grace || r.phase == closed) && ev.Reason == r.reason {
		term := r.grace
		if r.phase == closed {
			term = r.delay
		}
		if ev.At < r.since.Add(term) {
			w.fail("I8", "%v ends at index %d, %v before its %s does", r, a.index, r.since.Add(term).Sub(ev.At), phaseNames[r.phase])
		}
		return
	}
	if r.phase != held {
		return
	}
	switch ev.Reason {
	case engine.ByTTL:
		ttl, heard := r.ttl, r.heard
		if s := a.sessions[r.session]; s != nil {
			ttl, heard = min(ttl, s.ttl), max(heard, s.heard)
		}
		if ev.At < heard.Add(ttl) {
			w.fail("I8", "%v ends at index %d by its ttl of %v, %v after a heartbeat that was acknowledged", r, a.index, ttl, ev.At.Sub(heard))
		}
	case engine.ByMaxHold:
		if !r.returned && ev.At < r.granted.Add(r.maxHold) {
			w.fail("I8", "%v ends at index %d by its max_hold of %v, %v after it was granted", r, a.index, r.maxHold, ev.At.Sub(r.granted))
		}
	}
}

// overstay is called for a lease that is held beyond its max_hold.
func (a *audit) overstay(w *world, r *request) {
	w.fail("I8", "after index %d %v is held for %v, and its max_hold is %v", a.index, r, a.entryTime.Sub(r.granted), r.maxHold)
}

func (a *audit) sessionEnded(w *world, s *space, ev *engine.Event) {
	x := a.sessions[ev.Session]
	if x == nil || x.ended {
		return
	}
	x.ended = true
	s.moved = true
	if ev.Reason == engine.ByDeath && ev.At < x.heard.Add(x.ttl) {
		w.fail("I8", "session %d ends at index %d, %v after a heartbeat that was acknowledged, and its ttl is %v",
			x.num, a.index, ev.At.Sub(x.heard), x.ttl)
	}
}

// hears notes that a heartbeat or a renewal was acknowledged.
func (a *audit) hears(r *receiver, eff *engine.Effect) {
	var at engine.Time
	switch c := r.cmd.(type) {
	case *engine.Heartbeat:
		if eff.Outcome != engine.Done {
			return
		}
		at = c.At
	case *engine.Renew:
		if eff.Outcome != engine.Granted {
			return
		}
		at = c.At
		if s := a.spaces[c.Namespace]; s != nil {
			if x := s.requests[c.Lease]; x != nil && x.phase == held {
				x.heard = max(x.heard, at)
			}
		}
	default:
		return
	}
	h := headOf(r.cmd)
	if s := a.spaces[h.Namespace]; s != nil {
		if x := s.sessions[h.Session]; x != nil {
			x.heard = max(x.heard, at)
		}
	}
}

// bound is how long anything may go on without anybody: the longest ttl, grace, park,
// lock_delay, offer and ticket of the agents, one after the other.
const bound = 10 * time.Minute
