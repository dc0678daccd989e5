package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// endedCode returns the code for how an ended request came to its end.
func endedCode(r *store.Request) interlock.Code {
	switch r.Reason {
	case record.ByRelease, record.ByNack, record.ByQuestion:
		return interlock.CodeReleased
	case record.ByRevocation:
		return interlock.CodeRevoked
	case record.ByPattern:
		return interlock.CodeTooManyPermits
	case record.BySession, record.ByTarget:
		return interlock.CodeSessionEnded
	case record.ByDeadlock:
		switch {
		case r.Phase == store.Over && r.Fence > 0: // it had been granted, and a pattern let it be taken back
			return interlock.CodeRevoked
		case r.Phase == store.Over:
			return interlock.CodeDeadlock
		}
	case record.ByBase:
		if r.Fence == 0 {
			return interlock.CodeLeft
		}
	case record.ByLeaving, record.ByConversion:
		return interlock.CodeLeft
	case record.ByLapse:
		return interlock.CodeOfferLapsed
	case record.ByWaitLimit:
		return interlock.CodeWaitLimit
	case record.ByFull:
		return interlock.CodeTooManyRuns
	case record.ByPreemption:
		if r.Phase == store.Over {
			return interlock.CodePreempted
		}
	case record.ByBreak:
		return interlock.CodeBroken
	case record.ByTakeOver:
		return interlock.CodeTaken
	}
	if r.Fence == 0 {
		return interlock.CodeSessionEnded // a waiter of a dead session
	}
	switch r.Phase {
	case store.InGrace:
		return interlock.CodeInGrace
	case store.Closed:
		return interlock.CodeExpired
	}
	for _, c := range r.Claims() {
		if r.NS.HeldAgainst(string(c.Key), lockmode.Lock(c.Mode)) || r.NS.PermitsTaken(c) {
			return interlock.CodeTaken
		}
	}
	return interlock.CodeExpired
}

// replyOver answers how a request came out that is over: that of a conversion with
// its lease.
func (e *Engine) replyOver(r *store.Request) {
	if e.followBase(r) {
		return
	}
	e.replyGone(r)
	if eff := &e.out.Effects[e.replied]; eff.Code == interlock.CodeRevoked && r.Reason == record.ByDeadlock {
		eff.Code = interlock.CodeDeadlock // of a request, which may be made anew
	}
}

// replyGone is refuseGone for the command's caller.
func (e *Engine) replyGone(r *store.Request) {
	e.replied = len(e.out.Effects)
	e.refuseGone(e.head.From, r)
}

// refuseGone tells a caller how a request came to its end.
func (e *Engine) refuseGone(to store.Caller, r *store.Request) {
	if r.Reason == record.ByBase && r.EndCause != nil {
		if l := r.NS.Request(r.EndCause.BaseID); l != nil {
			r = l
		}
	}
	if r.IsParked() {
		e.refusePutBack(to, r)
		return
	}
	code := endedCode(r)
	eff := e.effect(to, Refused)
	eff.Code, eff.Lease = code, r.Lease()
	eff.Message = r.Ending(r.Aftermath(code))
	if r.Reason == record.ByFull {
		eff.Conflict = e.fullAt(r)
	}
	if eff.Conflict == nil {
		eff.Conflict = r.NS.Situation(r.FirstKey())
	}
	if r.EndCause != nil {
		eff.Conflict.Cycle = r.EndCause.Cycle
	}
}
