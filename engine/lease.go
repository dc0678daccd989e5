package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// find looks a request up by the id of its ticket or lease. While it lives, another
// session's is as unknown as one that never was.
func (e *Engine) find(id [16]byte, unknown interlock.Code) *store.Request {
	s := e.PendingWork.NS
	if s != nil {
		r := s.Request(id)
		if r != nil && (r.Session() == nil || e.head.Session.IsZero() || r.Session().ID == e.head.Session) {
			if t := r.Timer; t != nil && t.Pos >= 0 && t.At <= e.Clock {
				e.fire(t)
			}
			if sess := r.Session(); sess != nil {
				if e.endOverdue(sess); sess.Dead && r.Phase != store.Over && r.Phase != store.Waiting {
					e.sweepLease(sess, r)
				} else if r.Phase == store.Held && e.Clock >= r.TtlEnd() {
					e.hard(r, r.TtlReason()) // its turn had not come yet
				}
			}
			return r
		}
	}
	e.refuse(unknown, message.New(message.UnknownLease))
	return nil
}

// isTaken refuses a command that chooses the id of a remembered request for its new one. Two
// requests with one id could not be replayed.
func (e *Engine) isTaken(id [16]byte) bool {
	s := e.PendingWork.NS
	if s == nil || !s.Knows(id) {
		return false
	}
	e.refuseFor(idTaken("request"))
	return true
}

func idTaken(what string) *store.Refusal {
	return invalid("", message.New(message.IDTaken, message.Str(what)))
}

// findHeld is find for a lease that is not over; it may be parked, and stand in line
// to be resumed.
func (e *Engine) findHeld(id interlock.LeaseID) *store.Request {
	r := e.find(id, interlock.CodeUnknownLease)
	switch {
	case r == nil:
	case r.Phase == store.Over && r.Reason == record.ByConversion:
		e.refuse(interlock.CodeUnknownLease, message.New(message.ConversionTicket))
		r = nil
	case r.IsOver():
		e.replyGone(r)
		r = nil
	case r.Phase == store.Waiting && !r.GoesBack():
		e.refuse(interlock.CodeUnknownLease, message.New(message.StillInLine)).Ticket = r.SoonestAlternative().Ticket()
		r = nil
	}
	return r
}

// findUsable is findHeld for a lease that is neither in grace, by itself or with its
// member, nor parked.
func (e *Engine) findUsable(id interlock.LeaseID) *store.Request {
	r := e.findHeld(id)
	switch {
	case r == nil:
		return nil
	case r.Phase == store.InGrace:
		e.refuseInGrace(r)
		return nil
	case r.HoldsOn() && r.Share.Member.Phase == store.InGrace:
		e.refuseInGrace(r.Share.Member)
		return nil
	case r.HoldsOn() && r.Share.Member.Phase == store.Closed:
		e.replyGone(r.Share.Member)
		return nil
	case r.IsPutAside():
		e.refuseParked(r)
		return nil
	}
	return r
}

func (c *GetLease) decide(e *Engine) {
	r := e.findHeld(c.Lease)
	if r == nil {
		return
	}
	if c.Sign {
		if no := r.NotSignedFor(c.Principal); no != nil {
			e.refuseFor(no)
			return
		}
	}
	r.DescribeHanded(&e.reply(Granted).Lease)
}

func (c *Renew) decide(e *Engine) {
	if code, problem := checkRenew(c); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findUsable(c.Lease)
	if r == nil || !e.mayTake(r) {
		return
	}
	ttl := r.TTL
	if c.TTL != 0 {
		if r.Share != nil {
			e.refuse(interlock.CodeInvalidRequest, message.New(message.PartTTL, message.Str(r.Claims()[0].Key)))
			return
		}
		ttl = ttlFor(r, c.TTL)
	}
	if ttl != r.TTL && e.lowSpace {
		e.refuse(e.closedFor())
		return
	}
	e.claim(r)
	if ttl != r.TTL {
		ev := e.event(record.TTLChanged, r)
		ev.Fence, ev.TTL, ev.Actor = r.Fence, ttl, c.Actor
		e.tag(ev, Granted)
		e.emit(ev)
	}
	x := r
	if r.HoldsOn() {
		x = r.Share.Member
	}
	if s := r.Session(); s != nil {
		e.beat(s, "")
		e.know(x)
	} else {
		x.Renewed, x.Spared = e.Clock, false
		e.Arm(x)
	}
	r.Report(c.Progress)
	e.Arm(r)
	if e.settle(); r.IsOver() { // it was an offer, and a cycle that this closed has cost it
		e.replyOver(r)
		return
	}
	r.DescribeLease(&e.reply(Granted).Lease)
}

// again renews the lease. Its ttl stays, for another renewal may have changed it since.
func (c *Renew) again(e *Engine, _ *store.StoredAnswer) {
	plain := *c
	plain.TTL = 0
	plain.decide(e)
}

func (e *Engine) refuseInGrace(r *store.Request) {
	eff := e.refuse(interlock.CodeInGrace, pastHardEnd(r))
	eff.Lease, eff.Conflict = r.Lease(), &store.Conflict{Conflict: interlock.Conflict{Key: r.FirstKey()}}
}

// pastHardEnd is the message about a lease in grace.
func pastHardEnd(r *store.Request) *message.Text {
	return message.New(message.PastHardEnd, message.Sub(r.Title()), message.Str(r.Reason.String()))
}

func (c *Release) decide(e *Engine) {
	if code, problem := store.CheckTexts(
		store.Text{Name: "outcome", Value: c.Outcome, Limit: interlock.MaxNameBytes},
		store.Text{Name: "note", Value: c.Note, Limit: interlock.MaxNoteBytes},
	); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findHeld(c.Lease)
	if r == nil {
		return
	}
	if c.Run && !r.IsRun() {
		e.refuse(interlock.CodeUnknownLease, message.New(message.NotARun))
		return
	}
	var caller store.Caller
	if r.Phase == store.Waiting {
		caller = r.Listener()
	}
	ev := e.endCause(r, record.ByRelease)
	ev.Outcome, ev.Note, ev.Actor = c.Outcome, c.Note, c.Actor
	e.tag(ev, Done)
	e.emit(ev)
	e.reply(Done)
	if caller != nil {
		e.refuseGone(caller, r)
	}
}

// EndCause drafts the event for the end of a lease.
func (e *Engine) endCause(r *store.Request, why record.Reason) *record.Event {
	ev := e.event(record.Ended, r)
	ev.Fence, ev.Reason, ev.Held, ev.Purpose, ev.Trace = r.Fence, why, e.Clock.Sub(r.Granted), r.Purpose, r.Trace
	if r.IsParked() || r.Phase == store.Waiting {
		ev.Fence, ev.Held = r.Rare.Parking.Fence, r.Rare.Parking.Held
	}
	if why == record.ByPreemption {
		ev.Actor, ev.Asker = r.Preemptor()
	}
	ev.ByID = r.AttemptAt()
	return ev
}

// end ends a lease without its holder's doing, and tells it.
func (e *Engine) end(r *store.Request, why record.Reason) {
	if r.Closes(why) {
		e.closeLease(r, why)
		return
	}
	if r.Phase == store.Offered && r.GoesBack() {
		e.giveUp(r, e.leaving(r, why))
		return
	}
	sess := r.Session()
	lease := r.Lease()
	e.emit(e.endCause(r, why))
	if sess != nil && why != record.BySession {
		e.lost(sess, r, lease)
	}
}

// lost tells a session that a lease of it is gone, or past its hard end.
func (e *Engine) lost(s *store.Session, r *store.Request, lease interlock.Lease) {
	lease.State, lease.EndedBy, lease.Notes = r.LeaseState(), r.Reason.String(), nil
	if r.IsOver() {
		lease.ExpiresIn, lease.MaxHoldIn, lease.StallIn = 0, 0, 0
	}
	if r.Phase == store.Closed {
		lease.ExpiresIn = r.PhaseEnd().Sub(e.Clock)
	}
	code := endedCode(r)
	s.Note(r, store.Loss{Lease: lease, Code: code, Message: r.Ending(nil)})
	if s.Caller != nil {
		eff := e.effect(s.Caller, Lost)
		eff.Lease, eff.Code, eff.Message = lease, code, r.Ending(nil)
	}
}
