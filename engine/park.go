package engine

import (
	"cmp"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Parking: a holder puts its lease aside while a person decides. That may take longer than its
// process lives, so a parked lease belongs to no session; any caller with its id may resume it,
// as a holder of its own.
//
//	held ──► parked: keeps its keys ──────────────► held, under a new fence
//	   └───► away: others may have them ──► waiting ──► held, under a new fence
//	                                   └────────────────▲ free
//
// putback.go has abandoned resumptions.
//
// The resumption of a lease that is away stands in line by its first arrival, ahead of all
// later requests. In both cases the answer lists the keys that others may have written in
// between.

func (c *Park) decide(e *Engine) {
	if code, problem := checkPark(c); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findUsable(c.Lease)
	if r == nil {
		return
	}
	if r.Task != nil {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.ParkTaskLease))
		return
	}
	for _, claim := range r.Claims() {
		if claim.Mode > interlock.Permits || r.Share != nil {
			e.refuse(
				interlock.CodeInvalidRequest,
				message.New(message.ParkMode, message.Str(claim.Key), message.Str(claim.Mode.String())),
			)
			return
		}
	}
	free, limit, problem := c.policy(r)
	if problem != nil {
		e.refuse(interlock.CodeInvalidRequest, problem)
		return
	}
	if !free && r.IsShared() {
		e.refuse(
			interlock.CodeHeld, message.New(message.KeptByOwnFlow, message.Str(r.Claims()[0].Key)),
		).Conflict = &store.Conflict{Conflict: interlock.Conflict{Key: r.Claims()[0].Key}}
		return
	}
	if !e.mayTake(r) {
		return
	}
	e.claim(r)
	ev := e.event(record.Parked, r)
	ev.Fence, ev.Freed, ev.TTL, ev.Note, ev.Held, ev.Actor = r.Fence, free, limit, c.Reason, e.Clock.Sub(r.Granted),
		c.Actor
	ev.AsOf = r.NS.Documents.Version
	ev.Op, ev.Blob = asksBy(c.Reason), record.AppendPrincipal(nil, c.Actor)
	e.tag(ev, Done)
	e.emit(ev)
	e.Arm(r)
	e.reply(Done).Lease = r.Lease()
}

// policy reports whether the keys of r are freed while it is parked and for how
// long it may be, or why not.
func (c *Park) policy(r *store.Request) (freed bool, limit time.Duration, problem *message.Text) {
	free, keep := c.Free, c.Keep
	var most time.Duration // 0: no pattern has one
	for _, claim := range r.Claims() {
		p := r.NS.PolicyAt(string(claim.Key))
		if p == nil {
			continue
		}
		most = tighter(most, p.MaxPark)
		switch p.Park {
		case interlock.ParkNever:
			return false, 0, message.New(message.ParkForbidden, message.Str(p.Name), message.Str(claim.Key))
		case interlock.ParkKeep:
			if c.Free {
				return false, 0, message.New(message.ParkKeeps, message.Str(p.Name), message.Str(claim.Key))
			}
			keep = true
		case interlock.ParkFree:
			if c.Keep {
				return false, 0, message.New(message.ParkFrees, message.Str(p.Name), message.Str(claim.Key))
			}
			free = true
		}
	}
	return free && !keep, tighter(cmp.Or(c.For, most, interlock.DefaultPark), most), nil
}

// refuseParked tells a caller that a lease must be resumed first.
func (e *Engine) refuseParked(r *store.Request) {
	why := message.Parked
	if r.AsksHuman() {
		why = message.ParkedAsks
	}
	if r.Phase == store.Waiting {
		why = message.ParkedInLine
	}
	eff := e.refuse(interlock.CodeParked, message.New(why, message.Str(r.Claims()[0].Key)))
	if r.Phase == store.Waiting {
		eff.Ticket = r.Ticket()
	}
	eff.Lease, eff.Conflict = r.Lease(), &store.Conflict{Conflict: interlock.Conflict{Key: r.Claims()[0].Key}}
}

// refuseNotParked tells a caller that there is nothing to resume.
func (e *Engine) refuseNotParked(r *store.Request) {
	why := message.NotParked
	if r.IsPutAside() {
		why = message.ResumedAlready
	}
	eff := e.refuse(interlock.CodeNotParked, message.New(why, message.Str(r.FirstKey())))
	eff.Lease = r.Lease()
	if r.IsPutAside() {
		eff.Ticket = r.Ticket()
	}
}

func (c *Resume) decide(e *Engine) {
	if e.draining {
		e.refuse(e.closedFor())
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	code, problem := checkMaxWait(c.MaxWait)
	if code == "" {
		code, problem = store.CheckTexts(store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes})
	}
	if code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.find(c.Lease, interlock.CodeUnknownLease)
	switch {
	case r == nil:
		return
	case r.IsOver():
		e.replyOver(r)
		return
	case !r.IsParked():
		e.refuseNotParked(r)
		return
	}
	if no := r.KeepsFrom(c.Principal); no != nil {
		e.refuseFor(no)
		return
	}
	if c.awaitsAnswer(e, r) {
		return
	}
	t := c.newRequest(e, r, sess)
	if no := t.OutOfOrder(); no != nil {
		e.refuseFor(no)
		return
	}
	if r.Phase == store.Away {
		if no := t.OverQuota(c.Actor); no != nil {
			e.refuseFor(no)
			return
		}
		if code, problem := e.closedFor(); code != "" {
			e.refuse(code, problem)
			return
		}
		if e.refuseUnservable(t) {
			return
		}
		if t.Blocker() >= 0 {
			c.enqueue(e, r, t)
			return
		}
	}
	ev := e.resumed(r, t)
	ev.Fence, ev.Version = e.Fence+1, r.MovedUpTo()
	e.tag(ev, Granted)
	e.emit(ev)
	e.Arm(r)
	e.HeldMore(r)
	if p := r.FlowState; p != nil {
		e.Visited += len(p.Waits)
		for _, w := range p.Waits { // which it blocked, as a stranger's
			e.WatchAnywhere(w)
		}
	}
	e.settle()
	e.replyGiven(r)
}

// newRequest returns a copy of r as the command would resume it. It is in no list.
func (c *Resume) newRequest(e *Engine, r *store.Request, sess *store.Session) *store.Request {
	t := *r
	t.Wait, t.Granted = &e.Trial, e.Clock
	e.Trial = store.Wait{Only: [1]store.QueueEntry{{Req: &t}}}
	if sess != nil {
		t.Join(sess.Flow(cmp.Or(c.Flow, "main")))
	}
	x := r.Conditions.Terms
	x.MaxWait = c.MaxWait
	for _, claim := range r.Claims() {
		if p := r.NS.PolicyAt(string(claim.Key)); p != nil {
			x.MaxWait = tighter(x.MaxWait, p.MaxWait)
		}
	}
	t.Conditions = r.NS.Agree(x)
	t.Lead = t.Leads()
	t.Wait.Rank = t.Standing()
	t.SetScore()
	return &t
}

// resumed drafts the event for r's coming back as t.
func (e *Engine) resumed(r, t *store.Request) *record.Event {
	ev := e.event(record.Resumed, r)
	ev.Agent, ev.Actor, ev.Lead = t.AgentName(), e.head.Actor, t.Lead
	if f := t.Flow(); f != nil {
		ev.Session, ev.Flow = f.Sess.Num, f.Name
	}
	ev.MaxWait = t.MaxWait
	if r.Phase == store.Parked {
		ev.Op = store.RemembersParking
	}
	if r.Phase == store.Parked && r.MaxHold > 0 {
		ev.MaxHold = max(1, r.KeptUntil().Sub(e.Clock))
	}
	return ev
}

// enqueue enqueues a lease that is away and cannot get its keys at once.
func (c *Resume) enqueue(e *Engine, r, t *store.Request) {
	if c.OnConflict != interlock.Wait && c.OnConflict != interlock.Preempt {
		conflict := t.Conflict()
		eff := e.refuse(heldCode(conflict))
		eff.Conflict = conflict
		return
	}
	if no := t.LineFull(c.Actor); no != nil {
		e.refuseFor(no)
		return
	}
	ev := e.resumed(r, t)
	ev.Queued = true
	e.tag(ev, Queued)
	e.emit(ev)
	e.stand(r, c.OnConflict, c.Attach)
}

// again shows the lease, if it was parked and is still alive.
func (c *Park) again(e *Engine, a *store.StoredAnswer) {
	if a.Outcome != Done {
		e.answerAgain(a, false)
	} else if r := e.findHeld(c.Lease); r != nil {
		e.reply(Done).Lease = r.Lease()
	}
}

// again adds the conflict, if the return was refused.
func (c *Resume) again(e *Engine, a *store.StoredAnswer) {
	eff := e.answerAgain(a, c.Attach)
	if eff == nil {
		return
	}
	if r := e.PendingWork.NS.Live(c.Lease); r != nil && r.Phase == store.Away {
		eff.Conflict = c.newRequest(e, r, e.scope()).Conflict()
	}
}
