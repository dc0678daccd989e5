package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// decide asks for a lease.
func (c *Acquire) decide(e *Engine) { c.decideAs(e, record.Run{}) }

// decideAs decides the command: it grants or enqueues its request as a whole, or refuses it without a
// trace. If of is not zero, the granted lease is that run.
func (c *Acquire) decideAs(e *Engine, of record.Run) {
	if e.draining { // low space is looked at later: what is held already needs none
		e.refuse(e.closedFor())
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	code, problem := c.expand(e)
	if code == "" {
		code, problem = checkAcquire(c)
	}
	if code != "" {
		eff := e.refuse(code, problem)
		switch code {
		case interlock.CodeInvalidKey:
			eff.Conflict = &store.Conflict{Conflict: interlock.Conflict{Key: badKey(c.Claims)}}
		case interlock.CodeUnmatchedKey:
			eff.Conflict = &store.Conflict{Conflict: interlock.Conflict{Nearest: e.PendingWork.NS.MemberLists()}}
		}
		return
	}
	if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
		return
	}
	if no := e.checkClaims(c.Claims, c.Group, nil); no != nil {
		e.refuseFor(no)
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	space := e.PendingWork.NS
	problem = e.ClockAnomaly(c.AsOf, e.Latest())
	if problem == nil && c.AsOf > 0 && c.AsOf < e.Begins() {
		problem = message.New(message.NamespaceDeletedSince, message.Num(c.AsOf))
	}
	if problem != nil {
		e.refuse(interlock.CodeFutureVersion, problem)
		return
	}
	c.bound(space, sess)
	defer func() {
		eff := &e.out.Effects[e.replied]
		eff.Warnings = append(eff.Warnings, space.Warnings(c.Claims)...)
		eff.Warnings = append(eff.Warnings, space.Strangers(c.Claims, c.Group)...)
		c.addDocuments(e, eff)
	}()
	r := c.newRequest(e, sess)
	if of != (record.Run{}) {
		r.MutableExt().Run = &record.Run{Org: of.Org, Workflow: of.Workflow}
	}
	if !c.decideRequest(e, sess, r) {
		e.Discard(r)
	}
}

// decideRequest decides on a request that is in no list yet, and answers. It reports whether
// the request was granted or queued. If not, the caller discards it.
func (c *Acquire) decideRequest(e *Engine, sess *store.Session, r *store.Request) (kept bool) {
	if !r.IsRun() {
		if lease := r.Covered(); lease != nil {
			e.know(lease)
			eff := e.reply(Granted)
			lease.DescribeHanded(&eff.Lease)
			eff.Lease.Reused = true
			return false
		}
	}
	if no := r.OutOfOrder(); no != nil {
		e.refuseFor(no)
		return false
	}
	if l := c.predecessor(e, sess, r); l != nil {
		e.end(l, record.ByTakeOver)
		c.grant(e, r)
		return true
	}
	if c.meet(e, r) {
		return false
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return false
	}
	if no := r.OverQuota(c.Actor); no != nil {
		e.refuseFor(no)
		return false
	}
	if e.refuseUnservable(r) {
		return false
	}
	if way := r.FreeWay(); way != nil && r.Barrier() == nil {
		e.ChooseAlternative(r, way)
		c.grant(e, r)
		return true
	}
	switch {
	case c.OnConflict == interlock.Wait, c.OnConflict == interlock.Preempt, r.Opens():
		if own := sess.OwnAttempt(c.Flow, r.Claims(), r.Any); own != nil {
			e.refuseOwnAttempt(own)
			return false
		}
		if at := r.Position(); c.MaxPosition > 0 && at > c.MaxPosition && r.Barrier() == nil {
			e.refuse(
				interlock.CodeHeld, message.New(message.TooFarBack, message.Num(at), message.Num(c.MaxPosition)),
			).Conflict = r.Conflict()
			return false
		}
		return e.queue(r, c.OnConflict, c.Attach)
	case c.OnConflict == interlock.Skip:
		conflict := r.Conflict()
		e.reply(Skipped).Conflict = conflict
	default:
		e.refuseHeld(r)
	}
	return false
}

// refuseHeld refuses a request that is not to wait.
func (e *Engine) refuseHeld(r *store.Request) {
	conflict := r.Conflict()
	code, problem := heldCode(conflict)
	if r.IsRun() && code == interlock.CodeAtCapacity {
		code = interlock.CodeTooManyRuns
	}
	if r.Barrier() != nil && len(conflict.Holders) == 0 {
		problem = message.New(message.PartiesMissing, message.Str(conflict.Key))
	}
	e.refuse(code, problem).Conflict = conflict
}

// heldCode returns the code and the sentence for refusing a request that does not want to wait.
func heldCode(c *store.Conflict) (interlock.Code, *message.Text) {
	switch c.Kind {
	case interlock.CapacityUsed:
		if full := c.Capacity; len(full.Groups) > 0 && full.Used < full.Permits {
			if c.Group == "" {
				return interlock.CodeAtCapacity, message.New(message.PermitsNotForUngrouped, message.Str(c.Key))
			}
			return interlock.CodeAtCapacity, message.New(message.PermitsNotForGroup, message.Str(c.Key), message.Str(c.Group))
		}
		return interlock.CodeAtCapacity, message.New(message.PermitsTaken, message.Str(c.Key))
	case interlock.RateUsed:
		return interlock.CodeRateLimited, message.New(message.NoTokens, message.Str(c.Key))
	}
	return interlock.CodeHeld, message.New(message.KeyHeld, message.Str(c.Key))
}

// newRequest returns the request of the command, which is in no list yet. The caller discards it unless
// an event folds it into the state.
func (c *Acquire) newRequest(e *Engine, sess *store.Session) *store.Request {
	r := e.NewRequest()
	r.ID, r.Num = c.ID, e.Num+1
	if sess != nil {
		r.Join(sess.Flow(flowOr(c.Flow)))
	} else {
		r.MutableExt().Guest = &store.AnonymousCaller{Agent: c.Agent, Owner: c.Actor}
	}
	r.Priority, r.Any = int8(c.Priority), c.Any
	r.Conditions = e.Namespace(c.Namespace).Agree(withDefaults(c.Terms, sess))
	r.SetDetails(store.RequestDetail{
		Purpose: c.Purpose, Trace: c.Trace, Window: store.Window{AsOf: c.AsOf}, Documents: c.Documents,
	})
	r.SetClaims(c.Claims)
	e.Try(r)
	r.Lead = r.Leads()
	r.SetScore()
	return r
}

// withDefaults returns t with the TTL and the grace period of a request of sess, or of none,
// filled in.
func withDefaults(t interlock.Terms, sess *store.Session) interlock.Terms {
	t.TTL = sess.Cap(cmp.Or(t.TTL, sess.LeaseTTL()))
	if t.Grace == NoGrace {
		t.Grace = 0
	} else {
		t.Grace = cmp.Or(t.Grace, interlock.DefaultGrace)
	}
	return t
}

// flowOr returns the name of a flow, where "" means main.
func flowOr(name string) string {
	if name == "" {
		return "main"
	}
	return name
}

func (c *Acquire) grant(e *Engine, r *store.Request) {
	r.Wait = nil
	r.SeeAtOnce()
	ev := e.describe(record.Granted, r)
	ev.Fence, ev.Actor = e.Fence+1, c.Actor
	e.tag(ev, Granted)
	e.emit(ev)
	e.Arm(r)
	r.NoteGrant(false)
	e.HeldMore(r)
	e.settle()
	e.replyGiven(r)
}

// replyGiven answers, once the step has settled, with the state of a request that was granted,
// or has come to its end: a cycle that the grant closed may have cost it at once.
func (e *Engine) replyGiven(r *store.Request) {
	if r.IsOver() || r.Phase == store.Away {
		e.replyOver(r)
		return
	}
	r.DescribeHanded(&e.reply(Granted).Lease)
}

// queue enqueues a new request and answers with the outcome. With attach, the command's caller
// listens for later answers. It reports whether the line had room; if not, the caller discards
// the request.
func (e *Engine) queue(r *store.Request, how interlock.OnConflict, attach bool) (kept bool) {
	if no := r.LineFull(e.head.Actor); no != nil {
		e.refuseFor(no)
		return false
	}
	r.ReadAsOf(r.NS.Documents.Version)
	ev := e.describe(record.Queued, r)
	ev.Actor = e.head.Actor
	e.tag(ev, Queued)
	e.emit(ev)
	e.stand(r, how, attach)
	return true
}

// stand completes the enqueuing of r and answers with the outcome.
func (e *Engine) stand(r *store.Request, how interlock.OnConflict, attach bool) {
	r.Refile()
	e.WatchAnywhere(r)
	e.Suspect(r.FlowState, r)

	// The wait may close a cycle. Its caller hears how that came out, not that it
	// stands in line; until then it counts as listening.
	e.asking = r
	if r.Barrier() != nil && r.Blocker() < 0 {
		e.open(r)
	}
	e.settle()
	var warnings []*message.Text
	if how == interlock.Preempt && r.Phase == store.Waiting {
		warnings = e.preempt(r)
		e.settle()
	}
	e.asking = nil
	if r.Phase != store.Waiting {
		e.replyGiven(r)
		return
	}
	if attach {
		e.listen(r)
	}
	e.Arm(r)
	e.replyQueued(r).Warnings = warnings
}

// replyQueued tells the caller of its place in line.
func (e *Engine) replyQueued(r *store.Request) *Effect {
	eff := e.reply(Queued)
	way := r.SoonestAlternative()
	eff.Ticket = way.Ticket()
	if i := way.Blocker(); i >= 0 {
		eff.Conflict = way.ConflictAt(i)
		eff.Conflict.Line.ETA = eff.Ticket.ETA
	}
	return eff
}

// describe drafts an event with everything about a request.
func (e *Engine) describe(kind record.Kind, r *store.Request) *record.Event {
	ev := e.event(kind, r)
	ev.Purpose, ev.Terms = r.Purpose, r.Conditions.Terms
	ev.Priority, ev.Lead, ev.Any = int(r.Priority), r.Lead, r.Any
	if r.Target != nil {
		ev.Target, ev.TargetFlow = r.Target.Num, r.TargetFlow
	}
	if r.Encloses {
		ev.Op = store.Encloses
	}
	if r.Guest != nil {
		ev.Actor = r.Guest.Owner
	}
	ev.Trace, ev.Generation = r.Trace, r.Generation
	ev.AsOf, ev.Version = r.Window.AsOf, r.Window.UpTo
	ev.Blob = record.AppendRun(nil, r.Run)
	if r.Documents {
		ev.Op = store.WantsDocuments
	}
	return ev
}

// closedFor reports why nothing new is admitted now, or "".
func (e *Engine) closedFor() (interlock.Code, *message.Text) {
	switch {
	case e.draining:
		return interlock.CodeShuttingDown, message.New(message.ShuttingDown)
	case e.lowMem:
		return interlock.CodeOverloaded, message.New(message.MemoryFull)
	case e.lowSpace && e.kept:
		return interlock.CodeNoSpace, message.New(message.DiskFullKept)
	case e.lowSpace:
		return interlock.CodeNoSpace, message.New(message.DiskFull)
	}
	return "", nil
}

// again adds the conflict, if the request was refused.
func (c *Acquire) again(e *Engine, a *store.StoredAnswer) {
	if e.answerAgain(a, c.Attach) == nil {
		c.addDocuments(e, &e.out.Effects[e.replied])
		return
	}
	c.addConflict(e)
}

// addConflict adds the present blockers of a request to the answer.
func (c *Acquire) addConflict(e *Engine) {
	if code, _ := c.expand(e); code != "" {
		return
	}
	if code, _ := checkAcquire(c); code != "" || !e.respell(c.Claims) {
		return
	}
	r := c.newRequest(e, e.scope())
	defer e.Discard(r)
	conflict := r.Conflict()
	if conflict == nil {
		conflict = &store.Conflict{Conflict: interlock.Conflict{Key: c.Claims[0].Key}}
	}
	e.out.Effects[e.replied].Conflict = conflict
}
