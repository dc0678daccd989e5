package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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
			eff.Conflict = &Conflict{Key: badKey(c.Claims)}
		}
		return
	}
	l := e.findUsable(c.Lease)
	if l == nil {
		return
	}
	if l.gathering() != nil || l.share != nil {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotConvertible, message.Str(l.claims()[0].Key)))
		return
	}
	if no := e.checkClaims(c.Claims, l.Group, l); no != nil {
		e.refuseFor(no)
		return
	}
	if no := l.keepsClaimsFrom(c.Principal, c.Claims); no != nil {
		e.refuseFor(no)
		return
	}
	switch {
	case l.phase != held:
		e.refuse(interlock.CodeUnknownLease, message.New(message.OnlyOffered))
		return
	case l.conversion != nil && sameClaims(l.conversion.claims(), c.Claims):
		e.follow(l.conversion, c.Attach)
		return
	case sameClaims(l.claims(), c.Claims):
		e.dropConversion(l, record.ByLeaving)
		eff := e.reply(Granted)
		e.describeHanded(l, &eff.Lease)
		eff.Lease.Reused = true
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	r := e.conversion(c, l)
	if !e.decideConversion(c, l, r) {
		e.discard(r)
	}
}

// decideConversion decides on the conversion r of the lease l, which is in no list yet, and
// answers. It reports whether r was queued. If not, the caller discards it.
func (e *Engine) decideConversion(c *Convert, l, r *request) (kept bool) {
	if no := r.outOfOrder(); no != nil {
		e.refuseFor(no)
		return false
	}
	if len(r.needs()) > 0 {
		if code, problem := e.closedFor(); code != "" {
			e.refuse(code, problem)
			return false
		}
		if no := r.tooManyKeys(); no != nil {
			e.refuseFor(no)
			return false
		}
	}
	switch {
	case e.refuseUnservable(r):
	case r.blocker() < 0:
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

// conversion turns a command into a request that is in no list yet.
func (e *Engine) conversion(c *Convert, l *request) *request {
	r := e.newRequest()
	r.id, r.num = c.ID, e.num+1
	r.mutableExt().base, r.party, r.priority = l, l.asParty(), l.priority
	r.setClaims(c.Claims)
	t := interlock.Terms{TTL: l.TTL, Grace: l.Grace, Group: l.Group, MaxHold: l.MaxHold, MaxWait: c.MaxWait}
	for _, claim := range c.Claims {
		if p := l.ns.policyAt(string(claim.Key)); p != nil {
			t.MaxWait = tighter(t.MaxWait, p.MaxWait)
		}
	}
	if l.session() == nil {
		r.mutableExt().guest = &anonymousCaller{l.agentName(), e.head.Actor}
	}
	r.terms = l.ns.agree(t)
	r.setDetails(requestDetail{purpose: l.purpose, trace: l.trace})
	r.lead = l.claimsAll(c.Claims)
	e.try(r)
	return r
}

// becomes returns the lease that r is when it is granted.
func (r *request) becomes() *request {
	if r.base != nil {
		return r.base
	}
	return r
}

// convertNow replaces the claims of a lease.
func (e *Engine) convertNow(l *request, claims []interlock.Claim) {
	ev := e.event(record.Converted, l)
	ev.Claims, ev.Fence, ev.Actor = claims, e.fence+1, e.head.Actor
	e.tag(ev, Granted)
	e.emit(ev)
	e.heldMore(l)
	e.settle()
	e.replyGiven(l)
}

// dropConversion ends the wait of a lease's conversion, if there is one.
func (e *Engine) dropConversion(l *request, why record.Reason) {
	if w := l.conversion; w != nil {
		e.leaveLine(w, why)
	}
}

// endOfConversion returns the reason for ending the conversion of a lease that is no longer
// held. Parking a lease abandons its conversion.
func (r *request) endOfConversion() record.Reason {
	if r.isParked() {
		return record.ByLeaving
	}
	return record.ByBase
}

// has reports whether one claim is among what a lease's claims give. Of permits it
// has those that it took, and no tokens are taken for them again.
func (r *request) has(want interlock.Claim) bool {
	if want.Mode.Counts() {
		return countIn(r.claims(), want) >= want.Count
	}
	return r.gives([]interlock.Claim{want})
}

// countIn is the count of the claim on the same key in the same mode, 0 for none.
func countIn(claims []interlock.Claim, want interlock.Claim) uint32 {
	for _, have := range claims {
		if have.Key == want.Key && have.Mode == want.Mode {
			return have.Count
		}
	}
	return 0
}

// claimsAll reports whether r claims all these keys, in any mode.
func (r *request) claimsAll(claims []interlock.Claim) bool {
	for _, want := range claims {
		if !slices.ContainsFunc(r.claims(), func(have interlock.Claim) bool { return have.Key == want.Key }) {
			return false
		}
	}
	return true
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

// changeClaims sets the claims and the fence of a lease to those of ev, and passes the dropped
// keys on.
func (e *State) changeClaims(r *request, ev *record.Event, changed bool) {
	e.fence = max(e.fence, ev.Fence)
	if t := r.task; t != nil && t.request == r {
		t.going.fence = ev.Fence
	}
	indexed := r.party != nil && r.party.index != nil
	if indexed {
		r.party.add(r, false, ^uint32(0))
	}
	r.ns.disturb()
	r.ns.agenda.relieved(r.party, r)
	r.letGo()
	r.fence, r.changed = ev.Fence, changed
	gone, before := slices.Clone(r.needs()), r.claims()
	r.forgetNeeds()
	r.setClaims(ev.Claims)
	r.need()
	r.take()
	if indexed {
		r.party.add(r, false, 1)
	}
	for i := range r.needs() {
		if m := &r.needs()[i]; m.counts == interlock.Permits {
			if now, had := r.countOf(m), countIn(before, r.claims()[m.claim]); now > had {
				m.node.pooled.spend(ev.At, uint64(now-had))
			}
		}
	}
	e.wroteAndLeft(r.ns, slices.DeleteFunc(slices.Clone(before), r.has))
	e.changedAt(gone)
	for i := len(gone) - 1; i >= 0; i-- {
		gone[i].node.drop()
	}
}

// wroteAndLeft records, for the waiters on the claims, that a possible writer is gone.
func (e *State) wroteAndLeft(s *namespace, claims []interlock.Claim) {
	claims = slices.DeleteFunc(claims, func(c interlock.Claim) bool { return !lockmode.Writing.Has(c.Mode) })
	if len(claims) == 0 {
		return
	}
	e.writes++
	for _, c := range claims {
		for key, ok := string(c.Key), true; ok; key, ok = keypath.Parent(key) {
			if n := s.nodeAt(key); n != nil && n.line != nil {
				n.line.wrote = e.writes
			}
		}
		if n := s.nodeAt(string(c.Key)); c.Mode == lockmode.X && n.line != nil {
			n.line.wroteAll = e.writes
		}
	}
}

// evolveConversion moves the claims of a granted conversion to its lease.
func (e *State) evolveConversion(ev *record.Event, r *request) error {
	l := r.base
	if l.phase != held || l.conversion != r {
		return errUnknown
	}
	changed := r.sawWrites()
	r.unline()
	l.mutableExt().conversion = nil
	l.setGeneration(ev.Generation)
	l.handOver(r, ev.Version)
	e.changeClaims(l, ev, changed)
	r.fence, r.mutableExt().endCause = ev.Fence, &endCause{base: l.num, baseID: l.id}
	e.archive(r, record.ByConversion)
	return nil
}

// converts makes r, which an event tells of, the conversion of a lease.
func (r *request) converts(ev *record.Event) error {
	l := r.ns.live(ev.BaseID)
	if ev.Kind != record.Queued || l == nil || l.num != ev.Base || l.phase != held || l.conversion != nil || l.flow() != r.flow() {
		return errUnknown
	}
	r.mutableExt().base, r.party = l, l.asParty()
	return nil
}

// followBase answers a ticket for a conversion that was granted, or ended with its lease: with
// the state of the lease. It reports false for other tickets.
func (e *Engine) followBase(r *request) bool {
	if r.reason != record.ByConversion && r.reason != record.ByBase || r.endCause == nil {
		return false
	}
	l := e.find(r.endCause.baseID, interlock.CodeUnknownTicket)
	switch {
	case l == nil:
	case r.reason == record.ByBase && l.phase == inGrace:
		e.refuseInGrace(l)
	default:
		e.follow(l, false)
	}
	return true
}

// again adds the conflict, if the conversion was refused.
func (c *Convert) again(e *Engine, a *storedAnswer) {
	eff := e.answerAgain(a, c.Attach)
	if eff == nil {
		return
	}
	if l := e.pendingWork.ns.live(c.Lease); l != nil && l.phase == held && e.respell(c.Claims) {
		r := e.conversion(c, l)
		defer e.discard(r)
		eff.Conflict = e.inTheWay(r)
	}
}
