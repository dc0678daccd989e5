package engine

import (
	"cmp"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// decide asks for a lease.
func (c *Acquire) decide(e *Engine) { e.acquire(c, record.Run{}) }

// acquire decides a request: it grants or enqueues the request as a whole, or refuses it
// without a trace. A non-zero of makes the granted lease that run.
func (e *Engine) acquire(c *Acquire, of record.Run) {
	if e.draining { // low space is looked at later: what is held already needs none
		e.refuse(e.closedFor())
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	code, problem := e.expand(c)
	if code == "" {
		code, problem = checkAcquire(c)
	}
	if code != "" {
		eff := e.refuse(code, problem)
		switch code {
		case interlock.CodeInvalidKey:
			eff.Conflict = &Conflict{Key: badKey(c.Claims)}
		case interlock.CodeUnknownPattern:
			eff.Conflict = &Conflict{Nearest: e.pendingWork.ns.memberLists()}
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
	space := e.pendingWork.ns
	problem = e.clockAnomaly(c.AsOf, e.latest())
	if problem == nil && c.AsOf > 0 && c.AsOf < e.begins() {
		problem = message.New(message.NamespaceDeletedSince, message.Num(c.AsOf))
	}
	if problem != nil {
		e.refuse(interlock.CodeFutureVersion, problem)
		return
	}
	c.bound(space, sess == nil)
	defer func() {
		eff := &e.out.Effects[e.replied]
		eff.Warnings = append(eff.Warnings, space.warnings(c.Claims)...)
		eff.Warnings = append(eff.Warnings, space.strangers(c.Claims, c.Group)...)
		e.handReused(c, eff)
	}()
	r := e.asked(c, sess)
	if of != (record.Run{}) {
		r.mutableExt().run = &record.Run{Org: of.Org, Workflow: of.Workflow}
	}
	if !e.decideRequest(c, sess, r) {
		e.discard(r)
	}
}

// decideRequest decides on a request that is in no list yet, and answers. It reports whether
// the request was granted or queued. If not, the caller discards it.
func (e *Engine) decideRequest(c *Acquire, sess *session, r *request) (kept bool) {
	if !r.isRun() {
		if lease := r.covered(); lease != nil {
			eff := e.reply(Granted)
			e.describeHanded(lease, &eff.Lease)
			eff.Lease.Reused = true
			return false
		}
	}
	if no := r.outOfOrder(); no != nil {
		e.refuseFor(no)
		return false
	}
	if e.meet(c, r) {
		return false
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return false
	}
	if no := r.overQuota(c.Actor); no != nil {
		e.refuseFor(no)
		return false
	}
	if e.refuseUnservable(r) {
		return false
	}
	if way := r.freeWay(); way != nil && r.barrier() == nil {
		e.chooseAlternative(r, way)
		e.grant(c, r)
		return true
	}
	switch {
	case c.OnConflict == interlock.Wait, c.OnConflict == interlock.Preempt, r.opens():
		if own := sess.ownAttempt(c.Flow, r.claims(), r.any); own != nil {
			e.refuseOwnAttempt(own)
			return false
		}
		return e.queue(r, c.OnConflict, c.Attach)
	case c.OnConflict == interlock.Skip:
		conflict := e.inTheWay(r)
		e.reply(Skipped).Conflict = conflict
	default:
		e.refuseHeld(r)
	}
	return false
}

// refuseHeld refuses a request that is not to wait.
func (e *Engine) refuseHeld(r *request) {
	conflict := e.inTheWay(r)
	code, problem := heldCode(conflict)
	if r.isRun() && code == interlock.CodeAtCapacity {
		code = interlock.CodeTooManyRuns
	}
	if r.barrier() != nil && len(conflict.Holders) == 0 {
		problem = message.New(message.PartiesMissing, message.Str(conflict.Key))
	}
	e.refuse(code, problem).Conflict = conflict
}

// heldCode returns the code and the sentence for refusing a request that does not want to wait.
func heldCode(c *Conflict) (interlock.Code, *message.Text) {
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

// asked turns a command into a request that is in no list yet.
func (e *Engine) asked(c *Acquire, sess *session) *request {
	r := e.newRequest()
	r.id, r.num = c.ID, e.num+1
	if sess != nil {
		r.join(sess.flow(flowOr(c.Flow)))
	} else {
		r.mutableExt().guest = &anonymousCaller{c.Agent, c.Actor}
	}
	r.priority, r.any = int8(c.Priority), c.Any
	r.terms = e.ns(c.Namespace).agree(withDefaults(c.Terms, sess))
	r.setDetails(requestDetail{purpose: c.Purpose, trace: c.Trace, window: window{asOf: c.AsOf}, documents: c.Documents})
	r.setClaims(c.Claims)
	e.try(r)
	r.lead = r.leads()
	r.setScore()
	return r
}

// withDefaults returns t with the TTL and the grace period of a request of sess, or of none,
// filled in.
func withDefaults(t interlock.Terms, sess *session) interlock.Terms {
	if sess != nil && (t.TTL == 0 || t.TTL > sess.ttl) {
		t.TTL = sess.ttl // it ends with its session at the latest
	}
	t.TTL = cmp.Or(t.TTL, interlock.DefaultTTL)
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

// try enqueues r tentatively, without journaling, so that callers can compute its blockers.
func (e *Engine) try(r *request) {
	r.granted = e.now
	e.trial = wait{only: [1]queueEntry{{req: r}}}
	r.wait = &e.trial
	r.wait.rank = r.standing()
	e.resolve(r)
	e.objects += len(r.needs())
	r.setScore()
}

func (e *Engine) grant(c *Acquire, r *request) {
	r.wait = nil
	r.seeAtOnce()
	ev := e.describe(record.Granted, r)
	ev.Fence, ev.Actor = e.fence+1, c.Actor
	e.tag(ev, Granted)
	e.emit(ev)
	e.arm(r)
	r.noteGrant(false)
	e.heldMore(r)
	e.settle()
	e.replyGiven(r)
}

// replyGiven answers, once the step has settled, with the state of a request that was granted,
// or has come to its end: a cycle that the grant closed may have cost it at once.
func (e *Engine) replyGiven(r *request) {
	if r.isOver() || r.phase == away {
		e.replyOver(r)
		return
	}
	e.describeHanded(r, &e.reply(Granted).Lease)
}

// queue enqueues a new request and answers with the outcome. With attach, the command's caller
// listens for later answers. It reports whether the line had room; if not, the caller discards
// the request.
func (e *Engine) queue(r *request, how interlock.OnConflict, attach bool) (kept bool) {
	if no := r.lineFull(e.head.Actor); no != nil {
		e.refuseFor(no)
		return false
	}
	r.readAsOf(r.ns.docs.version)
	ev := e.describe(record.Queued, r)
	ev.Actor = e.head.Actor
	e.tag(ev, Queued)
	e.emit(ev)
	e.stand(r, how, attach)
	return true
}

// stand completes the enqueuing of r and answers with the outcome.
func (e *Engine) stand(r *request, how interlock.OnConflict, attach bool) {
	r.refile()
	e.watchAnywhere(r)
	e.suspect(r.party, r)

	// The wait may close a cycle. Its caller hears how that came out, not that it
	// stands in line; until then it counts as listening.
	e.asking = r
	if r.barrier() != nil && r.blocker() < 0 {
		e.open(r)
	}
	e.settle()
	var warnings []*message.Text
	if how == interlock.Preempt && r.phase == waiting {
		warnings = e.preempt(r)
		e.settle()
	}
	e.asking = nil
	if r.phase != waiting {
		e.replyGiven(r)
		return
	}
	if attach {
		e.listen(r)
	}
	e.arm(r)
	e.replyQueued(r).Warnings = warnings
}

// replyQueued tells the caller of its place in line.
func (e *Engine) replyQueued(r *request) *Effect {
	eff := e.reply(Queued)
	way := e.soonestAlternative(r)
	eff.Ticket = e.ticket(way)
	if i := way.blocker(); i >= 0 {
		eff.Conflict = e.conflict(way, i)
		eff.Conflict.Queue.ETA = eff.Ticket.ETA
	}
	return eff
}

// describe drafts an event with everything about a request.
func (e *Engine) describe(kind record.Kind, r *request) *record.Event {
	ev := e.event(kind, r)
	ev.Purpose, ev.Terms = r.purpose, r.terms.Terms
	ev.Priority, ev.Lead, ev.Any = int(r.priority), r.lead, r.any
	if r.target != nil {
		ev.Target, ev.TargetFlow = r.target.num, r.targetFlow
	}
	if r.guest != nil {
		ev.Actor = r.guest.owner
	}
	ev.Trace, ev.Generation = r.trace, r.generation
	ev.AsOf, ev.Version = r.window.asOf, r.window.upTo
	ev.Blob = record.AppendRun(nil, r.run)
	if r.documents {
		ev.Op = wantsDocuments
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

// coveredBy returns the lease of r's own flow that already covers all of r's claims, or nil.
func (r *request) coveredBy() *request {
	f := r.flow()
	if f == nil || len(f.leases) == 0 {
		return nil
	}
	var best *request
	consider := func(l *request) {
		if l.phase == held && l.share == nil && l.gives(r.claims()) && (best == nil || l.num < best.num) {
			best = l
		}
	}
	for i := range r.needs() {
		n := r.needs()[i].node
		switch {
		case n.first == nil || !r.party.at(n).holds():
		case n.hands == r.party || n.holders() < len(f.leases): // however many leases it has elsewhere
			for h := n.first; h != nil; h = h.next {
				*r.ns.agenda.objects++
				if h.req.party == r.party {
					consider(h.req)
				}
			}
		default: // however many others have leases here
			*r.ns.agenda.objects += len(f.leases)
			for _, l := range f.leases {
				consider(l)
			}
			return best
		}
	}
	return best
}

// gives reports whether r's claims cover the given ones.
func (r *request) gives(claims []interlock.Claim) bool {
	for _, want := range claims {
		good := false
		for _, have := range r.claims() {
			good = good || have.Key == want.Key && r.ns.coversClaim(have, want) ||
				keypath.IsBelow(string(want.Key), string(have.Key)) && lockmode.Below(have.Mode) != 0 && lockmode.Covers(lockmode.Below(have.Mode), lockmode.Lock(want.Mode)) && !want.Mode.Counts()
		}
		if !good {
			return false
		}
	}
	return true
}

// coversClaim reports whether a holder of have does not need want, a claim on the same key. A
// grant consumes tokens, so a claim on a rate never covers another.
func (s *namespace) coversClaim(have, want interlock.Claim) bool {
	switch {
	case !want.Mode.Counts():
		return lockmode.Covers(lockmode.Lock(have.Mode), want.Mode)
	case have.Mode != want.Mode || want.Mode == interlock.Barrier:
		return false
	case want.Mode == interlock.Permits:
		p := s.policyAt(string(want.Key))
		return have.Count >= want.Count && (p == nil || p.Rate == 0)
	}
	return have.Count == want.Count
}

// softAt is the part of a term after which its holder is warned.
func softAt(term time.Duration) time.Duration { return term / 3 * 2 }

// again adds the conflict, if the request was refused.
func (c *Acquire) again(e *Engine, a *storedAnswer) {
	if e.answerAgain(a, c.Attach) == nil {
		e.handReused(c, &e.out.Effects[e.replied])
		return
	}
	e.addConflict(c)
}

// addConflict adds the present blockers of a request to the answer.
func (e *Engine) addConflict(c *Acquire) {
	if code, _ := e.expand(c); code != "" {
		return
	}
	if code, _ := checkAcquire(c); code != "" || !e.respell(c.Claims) {
		return
	}
	r := e.asked(c, e.scope())
	conflict := e.inTheWay(r)
	if conflict == nil {
		conflict = &Conflict{Key: c.Claims[0].Key}
	}
	e.discard(r)
	e.out.Effects[e.replied].Conflict = conflict
}
