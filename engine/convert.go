package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Conversions: a lease's claims become others, and it gets a new fence.
//
// A conversion never waits for claims that its lease has already. One that wants nothing else
// is carried out at once. Any other is a request of its own, of the lease's holder, with the
// lease as its base; its needs are those of the claims that the base does not cover, and until
// it is granted the lease stays as it is. Then the lease takes its claims over, and its ticket
// answers with the lease.
//
// A lease has one conversion in line at most. Asking for the same again follows
// it, asking for something else takes its place, and it leaves the line with its
// lease.

func (c *Convert) decide(e *Engine) {
	if code, problem := checkConvert(c); code != "" {
		eff := e.refuse(code, problem)
		if code == interlock.CodeInvalidKey {
			eff.Conflict = &store.Conflict{Conflict: interlock.Conflict{Key: badKey(c.Claims)}}
		}
		return
	}
	l := e.findUsable(c.Lease)
	if l == nil {
		return
	}
	if l.Gathering() != nil || l.Share != nil {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotConvertible, message.Str(l.Claims()[0].Key)))
		return
	}
	if no := e.checkClaims(c.Claims, l.Group, l); no != nil {
		e.refuseFor(no)
		return
	}
	if no := l.KeepsClaimsFrom(c.Principal, c.Claims); no != nil {
		e.refuseFor(no)
		return
	}
	switch {
	case l.Phase != store.Held:
		e.refuse(interlock.CodeUnknownLease, message.New(message.OnlyOffered))
		return
	case l.Conversion != nil && sameClaims(l.Conversion.Claims(), c.Claims):
		e.follow(l.Conversion, c.Attach)
		return
	case sameClaims(l.Claims(), c.Claims):
		e.dropConversion(l, record.ByLeaving)
		eff := e.reply(Granted)
		l.DescribeHanded(&eff.Lease)
		eff.Lease.Reused = true
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	r := c.newRequest(e, l)
	if !c.decideRequest(e, l, r) {
		e.Discard(r)
	}
}

// decideRequest decides on the conversion r of the lease l, which is in no list yet, and
// answers. It reports whether r was queued. If not, the caller discards it.
func (c *Convert) decideRequest(e *Engine, l, r *store.Request) (kept bool) {
	if no := r.OutOfOrder(); no != nil {
		e.refuseFor(no)
		return false
	}
	if len(r.Needs()) > 0 {
		if code, problem := e.closedFor(); code != "" {
			e.refuse(code, problem)
			return false
		}
		if no := r.TooManyKeys(); no != nil {
			e.refuseFor(no)
			return false
		}
	}
	switch {
	case e.refuseUnservable(r):
	case r.Blocker() < 0:
		e.dropConversion(l, record.ByLeaving)
		e.convertNow(l, c.Claims)
	case c.OnConflict == interlock.Fail:
		e.refuseHeld(r)
	default:
		e.dropConversion(l, record.ByLeaving)
		return e.queue(r, c.OnConflict, c.Attach)
	}
	return false
}

// newRequest returns the conversion of lease l, which is in no list yet. The caller discards it unless
// an event folds it into the state.
func (c *Convert) newRequest(e *Engine, l *store.Request) *store.Request {
	r := e.NewRequest()
	r.ID, r.Num = c.ID, e.Num+1
	r.MutableExt().Base, r.FlowState, r.Priority = l, l.AsParty(), l.Priority
	r.SetClaims(c.Claims)
	t := interlock.Terms{TTL: l.TTL, Grace: l.Grace, Group: l.Group, MaxHold: l.MaxHold, MaxWait: c.MaxWait}
	for _, claim := range c.Claims {
		if p := l.NS.PolicyAt(string(claim.Key)); p != nil {
			t.MaxWait = tighter(t.MaxWait, p.MaxWait)
		}
	}
	if l.Session() == nil {
		r.MutableExt().Guest = &store.AnonymousCaller{Agent: l.AgentName(), Owner: e.head.Actor}
	}
	r.Conditions = l.NS.Agree(t)
	r.SetDetails(store.RequestDetail{Purpose: l.Purpose, Trace: l.Trace})
	r.Lead = l.ClaimsAll(c.Claims)
	e.Try(r)
	return r
}

// convertNow replaces the claims of a lease.
func (e *Engine) convertNow(l *store.Request, claims []interlock.Claim) {
	ev := e.event(record.Converted, l)
	ev.Claims, ev.Fence, ev.Actor = claims, e.Fence+1, e.head.Actor
	e.tag(ev, Granted)
	e.emit(ev)
	e.HeldMore(l)
	e.settle()
	e.replyGiven(l)
}

// dropConversion ends the wait of a lease's conversion, if there is one.
func (e *Engine) dropConversion(l *store.Request, why record.Reason) {
	if w := l.Conversion; w != nil {
		e.leaveLine(w, why)
	}
}

// sameClaims reports whether two lists have the same claims, in any order.
func sameClaims(a, b []interlock.Claim) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.Contains(b, c) {
			return false
		}
	}
	return true
}

// followBase answers a ticket for a conversion that was granted, or ended with its lease: with
// the state of the lease. It reports false for other tickets.
func (e *Engine) followBase(r *store.Request) bool {
	if r.Reason != record.ByConversion && r.Reason != record.ByBase || r.EndCause == nil {
		return false
	}
	l := e.find(r.EndCause.BaseID, interlock.CodeUnknownTicket)
	switch {
	case l == nil:
	case r.Reason == record.ByBase && l.Phase == store.InGrace:
		e.refuseInGrace(l)
	default:
		e.follow(l, false)
	}
	return true
}

// again adds the conflict, if the conversion was refused.
func (c *Convert) again(e *Engine, a *store.StoredAnswer) {
	eff := e.answerAgain(a, c.Attach)
	if eff == nil {
		return
	}
	if l := e.PendingWork.NS.Live(c.Lease); l != nil && l.Phase == store.Held && e.respell(c.Claims) {
		r := c.newRequest(e, l)
		defer e.Discard(r)
		eff.Conflict = r.Conflict()
	}
}
