package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Abandoned resumptions. A caller that leaves the line for a parked lease, or dies there,
// abandons the resumption and not the lease, which a person may have approved by then. The
// lease is put back as it was: away, with the rest of its time, its first arrival, and what
// others may have written since.
//
//	away ──► waiting ──► offered ──► held     or away ──► held at once
//	 ▲          │           │          │
//	 └──────────┴───────────┴──────────┘ Leave; and of the first two a lapse, the end
//	                                     of the session, a deadlock, the wait limit
//
// Leave alone puts back what is held: it may have crossed the grant. So it does with a lease
// that kept its keys while it was parked, which never stands in line:
//
//	parked ──► held at once
//	   └─────────┘ Leave: its keys are kept all the time

// goesBack reports whether r was away and is being resumed, so that it is put back
// when that is given up.
func (r *request) goesBack() bool {
	switch r.phase {
	case waiting, offered, held:
		return r.dealings != nil && r.dealings.parking != nil && !r.dealings.parking.kept
	}
	return false
}

// staysPut reports whether r was parked with its keys and is held again, so that Leave parks
// it with them.
func (r *request) staysPut() bool {
	return r.phase == held && r.dealings != nil && r.dealings.parking != nil && r.dealings.parking.kept
}

// leaving drafts the event for a waiter's departure from the line, or for another reason to put
// r back.
func (e *Engine) leaving(r *request, why record.Reason) *record.Event {
	if !r.goesBack() && !r.staysPut() {
		ev := e.event(record.Left, r)
		ev.Reason, ev.Waited = why, e.now.Sub(r.arrived())
		return ev
	}
	p := r.dealings.parking
	ev := e.event(record.Parked, r)
	ev.Reason, ev.Freed, ev.TTL, ev.Note, ev.Fence, ev.Held = why, true, max(0, p.until.Sub(e.now)), p.reason, p.fence, p.held
	switch {
	case p.kept: // its max_hold continues from when it was resumed
		ev.Freed, ev.Fence, ev.Held = false, r.fence, e.now.Sub(r.granted)
	case r.phase == waiting:
		ev.Waited = e.now.Sub(r.arrived())
	case r.phase == held:
		ev.Fence, ev.Held = r.fence, p.held+e.now.Sub(r.granted)
	default:
		ev.Fence = r.fence
	}
	return ev
}

// giveUp folds ev, which leaving has drafted, and notifies the listener for r's grant. A task
// does not end with that.
func (e *Engine) giveUp(r *request, ev *record.Event) {
	if r.task != nil && r.phase == waiting {
		e.fallBack(r.task, ev.Reason)
		return
	}
	var caller Caller
	if r.phase == waiting && r != e.asking {
		caller = r.listener()
	}
	if e.emit(ev); r.isParked() {
		e.arm(r)
	}
	if caller != nil {
		e.refuseGone(caller, r)
	}
}

// evolvePutBack folds that a resumption was given up.
func (e *State) evolvePutBack(ev *record.Event, r *request) error {
	if !ev.Freed && r.staysPut() {
		e.putBackKept(ev, r)
		return nil
	}
	if !r.goesBack() {
		return errUnknown
	}
	d := r.dealings
	p := d.parking
	for i := range r.needs() {
		r.needs()[i].node.expect()
	}
	if r.phase == waiting {
		d.moved = r.movedKeys(r.wait.writes)
		r.unline()
		e.changed(r)
		e.clearSession(r)
	} else {
		e.detachFromSession(r)
		e.giveBack(r)
	}
	r.unask()
	if r.MaxHold > 0 { // resuming takes it off again
		t := r.terms.Terms
		t.MaxHold += p.held
		r.terms = r.ns.agree(t)
	}
	p.held, p.fence, p.writes = ev.Held, ev.Fence, e.writes
	r.wait, r.fence, r.reason, r.changed = nil, ev.Fence, ev.Reason, false
	r.setEndCause(endingOf(ev))
	r.setWindow(window{asOf: r.window.asOf})
	r.ns.putAside(r)
	r.goAway()
	return nil
}

// putBackKept is evolvePutBack of a lease that keeps its keys.
func (e *State) putBackKept(ev *record.Event, r *request) {
	p := r.dealings.parking
	e.detachFromSession(r)
	r.phase = parked
	r.expectBack()
	p.since, p.until, p.held, p.fence, p.writes, p.kept = ev.At, ev.At.Add(ev.TTL), ev.Held, ev.Fence, e.writes, false
	r.fence, r.reason, r.changed = ev.Fence, ev.Reason, false
	r.setEndCause(endingOf(ev))
	r.setWindow(window{asOf: r.window.asOf})
	r.ns.putAside(r)
}

// refusePutBack notifies the listener for the grant of a parked lease why it was put back.
func (e *Engine) refusePutBack(to Caller, r *request) {
	eff := e.effect(to, Refused)
	code, words := putBackWords(r.reason)
	eff.Code, eff.Lease = code, e.lease(r)
	eff.Message = message.New(message.NotResumed, message.Str(r.firstKey()), message.Sub(words), message.Dur(max(0, e.endOf(r).Sub(e.now))))
	eff.Conflict = e.situation(r.ns, r.firstKey())
	if r.endCause != nil {
		eff.Conflict.Cycle = r.endCause.cycle
	}
}

// putBackWords returns why a parked lease was not resumed.
func putBackWords(why record.Reason) (interlock.Code, *message.Text) {
	switch why {
	case record.BySession:
		return interlock.CodeSessionEnded, message.New(message.WaiterSessionClosed)
	case record.ByDeath:
		return interlock.CodeSessionEnded, message.New(message.WaiterSessionDied)
	case record.ByLapse:
		return interlock.CodeOfferLapsed, message.New(message.WaiterSilent)
	case record.ByDeadlock:
		return interlock.CodeDeadlock, message.New(message.WaiterWouldDeadlock)
	case record.ByWaitLimit, record.ByFull: // the latter in journals of the time when runs were not told apart
		return interlock.CodeWaitLimit, message.New(message.WaiterTooLong)
	case record.ByPattern:
		return interlock.CodeTooManyPermits, message.New(message.WaiterPermitsGone)
	}
	return interlock.CodeLeft, message.New(message.WaiterLeft)
}
