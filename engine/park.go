package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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

// parkState is the record of a lease that was put aside.
type parkState struct {
	since, until Time
	reason       string
	writes       uint64          // Engine.writes when it was put aside
	held         time.Duration   // for how long it had been held before
	fence        interlock.Fence // that it had
	asks         bool            // a person; not in journals before approvals of leases
	asker        string          // the principal that parked it; "" without credentials
	kept         bool            // the lease was resumed from it, and had kept its keys; not in older snapshots
}

// isParked reports whether r is put aside.
func (r *request) isParked() bool { return r.phase == parked || r.phase == away }

// isPutAside is isParked also for a lease that stands in line to be resumed.
func (r *request) isPutAside() bool { return r.isParked() || r.phase == waiting && r.goesBack() }

func (c *Park) decide(e *Engine) {
	if code, problem := checkPark(c); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findUsable(c.Lease)
	if r == nil {
		return
	}
	if r.task != nil {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.ParkTaskLease))
		return
	}
	for _, claim := range r.claims() {
		if claim.Mode > interlock.Permits || r.share != nil {
			e.refuse(interlock.CodeInvalidRequest, message.New(message.ParkMode, message.Str(claim.Key), message.Str(claim.Mode.String())))
			return
		}
	}
	free, limit, problem := c.policy(r)
	if problem != nil {
		e.refuse(interlock.CodeInvalidRequest, problem)
		return
	}
	if !free && r.isShared() {
		e.refuse(interlock.CodeHeld, message.New(message.KeptByOwnFlow, message.Str(r.claims()[0].Key))).Conflict = &Conflict{Key: r.claims()[0].Key}
		return
	}
	if !e.mayTake(r) {
		return
	}
	e.claim(r)
	ev := e.event(record.Parked, r)
	ev.Fence, ev.Freed, ev.TTL, ev.Note, ev.Held, ev.Actor = r.fence, free, limit, c.Reason, e.now.Sub(r.granted), c.Actor
	ev.AsOf = r.ns.docs.version
	ev.Op, ev.Blob = asksBy(c.Reason), record.AppendPrincipal(nil, c.Actor)
	e.tag(ev, Done)
	e.emit(ev)
	e.arm(r)
	e.reply(Done).Lease = e.lease(r)
}

// isShared reports whether r's keys are held in modes that r would exclude with another holder:
// by its own flow, now or before.
func (r *request) isShared() bool {
	for i := range r.needs() {
		m := &r.needs()[i]
		for mode := lockmode.IS; mode <= lockmode.X; mode++ {
			others := *m.node.granted.Of(mode)
			if mode == m.mode {
				others--
			}
			if others > 0 && lockmode.Conflicts[m.mode].Has(mode) {
				return true
			}
		}
	}
	return false
}

// policy reports whether the keys of r are freed while it is parked and for how
// long it may be, or why not.
func (c *Park) policy(r *request) (freed bool, limit time.Duration, problem *message.Text) {
	free, keep := c.Free, c.Keep
	var most time.Duration // 0: no pattern has one
	for _, claim := range r.claims() {
		p := r.ns.policyAt(string(claim.Key))
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
func (e *Engine) refuseParked(r *request) {
	why := message.Parked
	if r.asksHuman() {
		why = message.ParkedAsks
	}
	if r.phase == waiting {
		why = message.ParkedInLine
	}
	eff := e.refuse(interlock.CodeParked, message.New(why, message.Str(r.claims()[0].Key)))
	if r.phase == waiting {
		eff.Ticket = e.ticket(r)
	}
	eff.Lease, eff.Conflict = e.lease(r), &Conflict{Key: r.claims()[0].Key}
}

// refuseNotParked tells a caller that there is nothing to resume.
func (e *Engine) refuseNotParked(r *request) {
	why := message.NotParked
	if r.isPutAside() {
		why = message.ResumedAlready
	}
	eff := e.refuse(interlock.CodeNotParked, message.New(why, message.Str(r.firstKey())))
	eff.Lease = e.lease(r)
	if r.isPutAside() {
		eff.Ticket = e.ticket(r)
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
		code, problem = checkTexts(text{"flow", c.Flow, interlock.MaxNameBytes})
	}
	if code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.find(c.Lease, interlock.CodeUnknownLease)
	switch {
	case r == nil:
		return
	case r.isOver():
		e.replyOver(r)
		return
	case !r.isParked():
		e.refuseNotParked(r)
		return
	}
	if no := r.keepsFrom(c.Principal); no != nil {
		e.refuseFor(no)
		return
	}
	if e.awaitsAnswer(c, r) {
		return
	}
	t := e.returning(c, r, sess)
	if no := t.outOfOrder(); no != nil {
		e.refuseFor(no)
		return
	}
	if r.phase == away {
		if no := t.overQuota(c.Actor); no != nil {
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
		if t.blocker() >= 0 {
			e.resumeInLine(c, r, t)
			return
		}
	}
	ev := e.resumed(r, t)
	ev.Fence, ev.Version = e.fence+1, r.movedUpTo()
	e.tag(ev, Granted)
	e.emit(ev)
	e.arm(r)
	e.heldMore(r)
	if p := r.party; p != nil {
		e.objects += len(p.waits)
		for _, w := range p.waits { // which it blocked, as a stranger's
			e.watchAnywhere(w)
		}
	}
	e.settle()
	e.replyGiven(r)
}

// returning is r as it would come back, in no list yet.
func (e *Engine) returning(c *Resume, r *request, sess *session) *request {
	t := *r
	t.wait, t.granted = &e.trial, e.now
	e.trial = wait{only: [1]queueEntry{{req: &t}}}
	if sess != nil {
		t.join(sess.flow(cmp.Or(c.Flow, "main")))
	}
	x := r.terms.Terms
	x.MaxWait = c.MaxWait
	for _, claim := range r.claims() {
		if p := r.ns.policyAt(string(claim.Key)); p != nil {
			x.MaxWait = tighter(x.MaxWait, p.MaxWait)
		}
	}
	t.terms = r.ns.agree(x)
	t.lead = t.leads()
	t.wait.rank = t.standing()
	t.setScore()
	return &t
}

// remembersParking is record.Event.Op of the resumption of a lease that kept its keys: Leave parks it
// again. Without it, as in older journals, Leave ends the lease.
const remembersParking = 1

// resumed drafts the event for r's coming back as t.
func (e *Engine) resumed(r, t *request) *record.Event {
	ev := e.event(record.Resumed, r)
	ev.Agent, ev.Actor, ev.Lead = t.agentName(), e.head.Actor, t.lead
	if f := t.flow(); f != nil {
		ev.Session, ev.Flow = f.sess.num, f.name
	}
	ev.MaxWait = t.MaxWait
	if r.phase == parked {
		ev.Op = remembersParking
	}
	if r.phase == parked && r.MaxHold > 0 {
		ev.MaxHold = max(1, r.keptUntil().Sub(e.now))
	}
	return ev
}

// keptUntil returns when a parked lease that keeps its keys reaches its max_hold: the parked
// period counts, because others wait for its keys all the same. It then ends without a grace,
// since it has no active holder. For other leases it returns Never.
func (r *request) keptUntil() Time {
	if r.phase != parked || r.MaxHold == 0 {
		return record.Never
	}
	p := r.dealings.parking
	return p.since.Add(r.MaxHold - p.held)
}

// resumeInLine enqueues a lease that is away and cannot get its keys at once.
func (e *Engine) resumeInLine(c *Resume, r, t *request) {
	if c.OnConflict != interlock.Wait && c.OnConflict != interlock.Preempt {
		conflict := e.inTheWay(t)
		eff := e.refuse(heldCode(conflict))
		eff.Conflict = conflict
		return
	}
	if no := t.lineFull(c.Actor); no != nil {
		e.refuseFor(no)
		return
	}
	ev := e.resumed(r, t)
	ev.Queued = true
	e.tag(ev, Queued)
	e.emit(ev)
	e.stand(r, c.OnConflict, c.Attach)
}

// evolveParked puts a lease aside, or back. In a snapshot one that is away never
// had its keys.
func (e *State) evolveParked(ev *record.Event, r *request) error {
	if ev.Reason != 0 {
		return e.evolvePutBack(ev, r)
	}
	d := r.deal()
	p := &parkState{since: ev.At, until: ev.At.Add(ev.TTL), reason: ev.Note, held: ev.Held, fence: ev.Fence, asks: ev.Op == asksPerson}
	var err error
	if p.asker, err = record.DecodePrincipal(ev.Blob); err != nil {
		return err
	}
	if ev.Queued { // it was resumed since
		d.parking, p.kept = p, ev.Changed
		return nil
	}
	if r.phase != held && r.phase != away {
		return errUnknown
	}
	if d.arrived == 0 {
		d.arrived = r.granted.Add(-r.waited)
	}
	if r.phase == held {
		e.detachFromSession(r)
		if r.phase = parked; ev.Freed {
			r.unask()
			e.giveBack(r)
			r.goAway()
		}
		r.expectBack()
	}
	d.moved, d.parking, d.decision, p.writes = nil, p, nil, e.writes
	r.ns.putAside(r)
	r.setWindow(window{asOf: ev.AsOf})
	return nil
}

// evolveResumed brings a lease back, into its holder's hands or into the line.
func (e *State) evolveResumed(ev *record.Event, r *request) error {
	if !r.isParked() || ev.Queued && r.phase != away {
		return errUnknown
	}
	if r.phase == parked {
		r.unhold()
	}
	t := r.terms.Terms
	t.MaxWait = ev.MaxWait
	switch { // what is left of it
	case ev.MaxHold > 0:
		t.MaxHold = ev.MaxHold
	case t.MaxHold > 0: // its keys were freed; or in journals of the time when parking did not count
		t.MaxHold = max(1, t.MaxHold-r.dealings.parking.held)
	}
	if ev.Session != 0 {
		s := r.ns.byNum[ev.Session]
		if s == nil {
			return errUnknown
		}
		r.join(s.flow(ev.Flow))
		if t.TTL = min(t.TTL, s.ttl); r.guest != nil {
			r.guest = nil
		}
	} else {
		r.mutableExt().guest = &anonymousCaller{r.agentName(), ev.Actor}
	}
	r.terms = r.ns.agree(t)
	r.reason, r.lead, r.renewed, r.warned, r.spared = 0, ev.Lead, ev.At, false, false
	if r.setEndCause(nil); r.progress != nil {
		r.progress = nil
	}
	r.dealings.moved = r.movedKeys(r.dealings.parking.writes)
	r.changed = len(r.dealings.moved) > 0
	if ev.Queued {
		r.wait, r.granted = e.newWait(), ev.At
		r.setScore()
		e.enqueue(r)
		e.endAbsence(r)
		r.phase, r.fence, r.waited = waiting, 0, 0
		return nil
	}
	was := r.phase
	if was == away || ev.Op == remembersParking {
		e.endAbsence(r) // it goes back if Leave crosses the grant
		r.dealings.parking.kept = was == parked
	}
	r.fence, r.granted = ev.Fence, ev.At
	e.fence = max(e.fence, ev.Fence)
	if was == away {
		r.spend(ev.At)
	} else if ev.Op != remembersParking {
		e.endParking(r)
	}
	r.phase = held
	r.handOver(r, ev.Version)
	r.hold()
	return nil
}

func (r *request) goAway() {
	r.phase = away
	r.ns.away++
}

// expectBack keeps the keys of r, which is put aside, until endAbsence.
func (r *request) expectBack() {
	for i := range r.needs() {
		r.needs()[i].node.expect()
	}
}

// endParking forgets that r was put aside.
func (e *State) endParking(r *request) {
	e.endAbsence(r)
	r.dealings.parking = nil
}

// endAbsence ends that r is put aside.
func (e *State) endAbsence(r *request) {
	e.wake(r)
	if r.phase == away {
		r.ns.away--
	}
	delete(r.ns.aside, r.dealings.parking.fence)
	for i := range r.needs() {
		r.needs()[i].node.expectNoMore()
	}
}

// movedKeys returns the keys of r that others may have written since Engine.writes
// had a value, with those that are known to have been.
func (r *request) movedKeys(since uint64) (moved []interlock.Key) {
	for _, c := range r.claims() {
		n := r.ns.nodeAt(string(c.Key))
		saw := slices.Contains(r.dealings.moved, c.Key) || n.line.wrote > since
		for ; n != nil && !saw; n = n.parent() {
			saw = n.line.wroteAll > since
		}
		if saw {
			moved = append(moved, c.Key)
		}
	}
	return moved
}

// parking describes how a lease is parked, also one that stands in line to be
// resumed; nil for others.
func (e *Engine) parking(r *request) *interlock.ParkStatus {
	if !r.isPutAside() {
		return nil
	}
	p := r.dealings.parking
	return &interlock.ParkStatus{
		Reason: p.reason, Since: e.now.Sub(p.since), Left: max(0, e.endOf(r).Sub(e.now)), Freed: r.phase != parked,
	}
}

// again shows the lease, if it was parked and is still alive.
func (c *Park) again(e *Engine, a *storedAnswer) {
	if a.outcome != Done {
		e.answerAgain(a, false)
	} else if r := e.findHeld(c.Lease); r != nil {
		e.reply(Done).Lease = e.lease(r)
	}
}

// again adds the conflict, if the return was refused.
func (c *Resume) again(e *Engine, a *storedAnswer) {
	eff := e.answerAgain(a, c.Attach)
	if eff == nil {
		return
	}
	if r := e.pendingWork.ns.live(c.Lease); r != nil && r.phase == away {
		eff.Conflict = e.inTheWay(e.returning(c, r, e.scope()))
	}
}
