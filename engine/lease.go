package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// lease describes r as its holder sees it.
func (e *Engine) lease(r *request) (l interlock.Lease) {
	e.describeLease(r, &l)
	return l
}

// describeLease is lease for one that is still empty. A lease is large, so the answers
// that most callers get are written where they are to stand.
func (e *Engine) describeLease(r *request, l *interlock.Lease) {
	l.ID, l.Fence, l.Claims, l.Purpose = r.id, r.fence, r.claims(), r.purpose
	l.TTL, l.Grace, l.LockDelay, l.Group, l.Generation = r.TTL, r.Grace, r.LockDelay, r.Group, r.generation
	l.State, l.Changed = e.stateOf(r), r.changed
	if f := r.flow(); f != nil {
		l.Agent, l.Session, l.Flow = f.sess.agent, f.sess.name, f.name
	} else {
		l.Agent = r.agentName()
	}
	if r.phase == inGrace || r.isOver() {
		l.EndedBy = r.reason.String()
	}
	if r.phase != over {
		l.ExpiresIn = max(0, e.endOf(r).Sub(e.now))
	}
	if !r.isOver() {
		l.Parking = e.parking(r)
		if d := r.dealings; d != nil {
			l.Decision = d.decision
		}
		if r.MaxHold > 0 && r.isRunning() {
			l.MaxHoldIn = max(1, r.granted.Add(r.MaxHold).Sub(e.now))
		}
		if d := r.Stall; d > 0 && r.isRunning() {
			l.StallIn = max(1, e.stallSince(r).Add(d).Sub(e.now))
		}
		l.Yield, l.Parts = e.yield(r), e.partsOf(r)
		if d := r.dealings; d != nil && !r.isPutAside() {
			l.Moved = d.moved
		}
		if r.phase == waiting && r.goesBack() {
			l.Fence = r.dealings.parking.fence
		}
		if r.ns.notes.Len() > 0 {
			l.Notes = e.notesFor(r)
		}
	}
}

// isRunning reports whether the time of r runs: it was granted, and has not ended.
func (r *request) isRunning() bool { return r.phase == offered || r.phase == held }

// beat is when r's holder was last heard of: at the grant, or by a heartbeat since.
func (r *request) beat() Time {
	if r.holdsOn() {
		return r.share.member.beat()
	}
	if sess := r.session(); sess != nil && r.phase == held {
		return max(r.renewed, sess.renewed)
	}
	return r.renewed
}

// endOf is when r's present phase ends if nothing is heard of its holder.
func (e *Engine) endOf(r *request) Time {
	switch r.phase {
	case offered:
		return r.renewed.Add(r.offerTTL())
	case inGrace:
		end := r.renewed.Add(r.Grace)
		if r.MaxHold > 0 && (r.reason == record.ByPreemption || r.reason == record.ByDeadlock) {
			end = min(end, r.granted.Add(r.MaxHold)) // taking a lease away does not lengthen it
		}
		return end
	case closed:
		return r.renewed.Add(r.LockDelay)
	}
	if r.isPutAside() {
		return min(r.dealings.parking.until, r.keptUntil())
	}
	if r.holdsOn() {
		return e.endOf(r.share.member)
	}
	end := min(r.ttlEnd(), e.timedEnd(r))
	if sess := r.session(); sess != nil { // it takes its leases along
		end = min(end, sess.end())
	}
	return end
}

// ttlEnd is when a held lease ends if no heartbeat comes.
func (r *request) ttlEnd() Time {
	if r.share != nil { // it ends with its member's lease
		return record.Never
	}
	end := r.beat().Add(r.TTL)
	if sess := r.session(); r.spared && (sess == nil || sess.spared) {
		num := r.num
		if sess != nil {
			num = sess.num // all of a session together, so that it is looked through once
		}
		end = end.Add(spread(num, r.TTL))
	}
	return end
}

func (e *Engine) stateOf(r *request) interlock.LeaseState {
	switch {
	case r.isOver():
		return interlock.Ended
	case r.phase == inGrace:
		return interlock.Grace
	case r.isPutAside():
		return interlock.Parked
	case e.now >= r.beat().Add(softAt(r.TTL)), e.now >= e.timedSoft(r):
		return interlock.Soft
	}
	return interlock.Held
}

// find looks a request up by the id of its ticket or lease. While it lives, another
// session's is as unknown as one that never was.
func (e *Engine) find(id [16]byte, unknown interlock.Code) *request {
	s := e.pendingWork.ns
	if s != nil {
		if r := s.request(id); r != nil && (r.session() == nil || e.head.Session.IsZero() || r.session().id == e.head.Session) {
			if t := r.timer; t != nil && t.pos >= 0 && t.at <= e.now {
				e.fire(t)
			}
			if sess := r.session(); sess != nil {
				if e.endOverdue(sess); sess.dead && r.phase != over && r.phase != waiting {
					e.sweepLease(sess, r)
				} else if r.phase == held && e.now >= r.ttlEnd() {
					e.hard(r, record.ByTTL) // its turn had not come yet
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
	s := e.pendingWork.ns
	if s == nil || !s.knows(id) {
		return false
	}
	e.refuseFor(idTaken("request"))
	return true
}

func idTaken(what string) *refusal {
	return invalid("", message.New(message.IDTaken, message.Str(what)))
}

// findHeld is find for a lease that is not over; it may be parked, and stand in line
// to be resumed.
func (e *Engine) findHeld(id interlock.LeaseID) *request {
	r := e.find(id, interlock.CodeUnknownLease)
	switch {
	case r == nil:
	case r.phase == over && r.reason == record.ByConversion:
		e.refuse(interlock.CodeUnknownLease, message.New(message.ConversionTicket))
		r = nil
	case r.isOver():
		e.replyGone(r)
		r = nil
	case r.phase == waiting && !r.goesBack():
		e.refuse(interlock.CodeUnknownLease, message.New(message.StillInLine)).Ticket = e.ticket(e.soonestAlternative(r))
		r = nil
	}
	return r
}

// findUsable is findHeld for a lease that is neither in grace, by itself or with its
// member, nor parked.
func (e *Engine) findUsable(id interlock.LeaseID) *request {
	r := e.findHeld(id)
	switch {
	case r == nil:
		return nil
	case r.phase == inGrace:
		e.refuseInGrace(r)
		return nil
	case r.holdsOn() && r.share.member.phase == inGrace:
		e.refuseInGrace(r.share.member)
		return nil
	case r.holdsOn() && r.share.member.phase == closed:
		e.replyGone(r.share.member)
		return nil
	case r.isPutAside():
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
		if no := r.notSignedFor(c.Principal); no != nil {
			e.refuseFor(no)
			return
		}
	}
	e.describeHanded(r, &e.reply(Granted).Lease)
}

func (c *Renew) decide(e *Engine) {
	if code, problem := checkTexts(text{"progress", c.Progress, interlock.MaxProgressBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findUsable(c.Lease)
	if r == nil || !e.mayTake(r) {
		return
	}
	e.claim(r)
	if s := r.session(); s != nil {
		e.beat(s, "")
	} else {
		x := r
		if r.holdsOn() {
			x = r.share.member
		}
		x.renewed, x.spared = e.now, false
		e.arm(x)
	}
	e.reportOf(r, c.Progress)
	e.arm(r)
	if e.settle(); r.isOver() { // it was an offer, and a cycle that this closed has cost it
		e.replyOver(r)
		return
	}
	e.describeLease(r, &e.reply(Granted).Lease)
}

func (e *Engine) refuseInGrace(r *request) {
	eff := e.refuse(interlock.CodeInGrace, message.New(message.PastHardEnd, message.Sub(r.title()), message.Str(r.reason.String())))
	eff.Lease, eff.Conflict = e.lease(r), &Conflict{Key: r.firstKey()}
}

func (c *Release) decide(e *Engine) {
	if code, problem := checkTexts(
		text{"outcome", c.Outcome, interlock.MaxNameBytes}, text{"note", c.Note, interlock.MaxNoteBytes},
	); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findHeld(c.Lease)
	if r == nil {
		return
	}
	if c.Run && !r.isRun() {
		e.refuse(interlock.CodeUnknownLease, message.New(message.NotARun))
		return
	}
	var caller Caller
	if r.phase == waiting {
		caller = r.listener()
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

// endCause drafts the event for the end of a lease.
func (e *Engine) endCause(r *request, why record.Reason) *record.Event {
	ev := e.event(record.Ended, r)
	ev.Fence, ev.Reason, ev.Held, ev.Purpose, ev.Trace = r.fence, why, e.now.Sub(r.granted), r.purpose, r.trace
	if r.isParked() || r.phase == waiting {
		ev.Fence, ev.Held = r.dealings.parking.fence, r.dealings.parking.held
	}
	if why == record.ByPreemption {
		ev.Actor, ev.Asker = r.preemptor()
	}
	ev.ByID = r.attemptAt()
	return ev
}

// end ends a lease without its holder's doing, and tells it.
func (e *Engine) end(r *request, why record.Reason) {
	if r.closes(why) {
		e.closeLease(r, why)
		return
	}
	if r.phase == offered && r.goesBack() {
		e.giveUp(r, e.leaving(r, why))
		return
	}
	sess := r.session()
	lease := e.lease(r)
	e.emit(e.endCause(r, why))
	if sess != nil && why != record.BySession {
		e.lost(sess, r, lease)
	}
}

// lost tells a session that a lease of it is gone, or past its hard end.
func (e *Engine) lost(s *session, r *request, lease interlock.Lease) {
	lease.State, lease.EndedBy, lease.Notes = e.stateOf(r), r.reason.String(), nil
	if r.isOver() {
		lease.ExpiresIn, lease.MaxHoldIn, lease.StallIn = 0, 0, 0
	}
	if r.phase == closed {
		lease.ExpiresIn = e.endOf(r).Sub(e.now)
	}
	code := endedCode(r)
	s.note(r, Loss{lease, code, r.ending(nil)})
	if s.caller != nil {
		eff := e.effect(s.caller, Lost)
		eff.Lease, eff.Code, eff.Message = lease, code, r.ending(nil)
	}
}

// note sets what the next heartbeat reports of r, in place of an earlier report.
func (s *session) note(r *request, l Loss) {
	switch i := s.noted(r); {
	case i >= 0:
		s.losses[i] = l
	case len(s.losses) < maxLosses:
		r.listed = true
		s.losses = append(s.losses, l)
	}
}

// noted returns the index of the next heartbeat's report of r, -1 for nothing.
func (s *session) noted(r *request) int {
	if !r.listed {
		return -1
	}
	return slices.IndexFunc(s.losses, func(l Loss) bool { return l.Lease.ID == r.id })
}

// maxLosses bounds what a session that sends no heartbeat can make us keep.
const maxLosses = 1024
