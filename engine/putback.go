package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// leaving drafts the event for a waiter's departure from the line, or for another reason to put
// r back.
func (e *Engine) leaving(r *store.Request, why record.Reason) *record.Event {
	if !r.GoesBack() && !r.StaysPut() {
		ev := e.event(record.Left, r)
		ev.Reason, ev.Waited, ev.Trace = why, e.Clock.Sub(r.Arrived()), r.Trace
		return ev
	}
	p := r.Rare.Parking
	ev := e.event(record.Parked, r)
	ev.Reason, ev.Freed, ev.TTL, ev.Note, ev.Fence, ev.Held = why, true, max(
		0, p.Until.Sub(e.Clock),
	), p.Reason, p.Fence, p.Held
	switch {
	case p.Kept: // its max_hold continues from when it was resumed
		ev.Freed, ev.Fence, ev.Held = false, r.Fence, e.Clock.Sub(r.Granted)
	case r.Phase == store.Waiting:
		ev.Waited = e.Clock.Sub(r.Arrived())
	case r.Phase == store.Held:
		ev.Fence, ev.Held = r.Fence, p.Held+e.Clock.Sub(r.Granted)
	default:
		ev.Fence = r.Fence
	}
	return ev
}

// giveUp folds ev, which leaving has drafted, and notifies the listener for r's grant. A task
// does not end with that.
func (e *Engine) giveUp(r *store.Request, ev *record.Event) {
	if r.Task != nil && r.Phase == store.Waiting {
		e.fallBack(r.Task, ev.Reason)
		return
	}
	var caller store.Caller
	if r.Phase == store.Waiting && r != e.asking {
		caller = r.Listener()
	}
	if e.emit(ev); r.IsParked() {
		e.Arm(r)
	}
	if caller != nil {
		e.refuseGone(caller, r)
	}
}

// refusePutBack notifies the listener for the grant of a parked lease why it was put back.
func (e *Engine) refusePutBack(to store.Caller, r *store.Request) {
	eff := e.effect(to, Refused)
	code, words := putBackWords(r.Reason)
	eff.Code, eff.Lease = code, r.Lease()
	eff.Message = message.New(
		message.NotResumed, message.Str(r.FirstKey()), message.Sub(words), message.Dur(max(0, r.PhaseEnd().Sub(e.Clock))),
	)
	eff.Conflict = r.NS.Situation(r.FirstKey())
	if r.EndCause != nil {
		eff.Conflict.Cycle = r.EndCause.Cycle
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
