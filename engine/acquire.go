package engine

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// acquire decides on a request: it is granted as a whole, stands in line as a
// whole, or is refused and leaves nothing behind. It is to start a run, if of says of
// what.
func (e *Engine) acquire(c *Acquire, of run) {
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
			eff.Conflict = &Conflict{Nearest: e.agenda.space.memberLists()}
		}
		return
	}
	if problem := e.noRoomForSpace(); problem != "" {
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
	space := e.agenda.space
	problem = e.strangeMoment(c.AsOf, e.latest())
	if problem == "" && c.AsOf > 0 && c.AsOf < e.begins() {
		problem = fmt.Sprintf("version %d is from before the namespace was deleted: read again", c.AsOf)
	}
	if problem != "" {
		e.refuse(interlock.CodeFutureVersion, problem)
		return
	}
	space.bound(c, sess == nil)
	defer func() {
		eff := &e.out.Effects[e.replied]
		eff.Warnings = append(eff.Warnings, space.warnings(c.Claims)...)
		eff.Warnings = append(eff.Warnings, space.strangers(c.Claims, c.Group)...)
		e.handReused(c, eff)
	}()
	r := e.asked(c, sess)
	if of != (run{}) {
		r.tie().run = &run{of.org, of.workflow}
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
	if e.refuseHopeless(r) {
		return false
	}
	if way := r.freeWay(); way != nil && r.barrier() == nil {
		e.narrow(r, way)
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
		problem = fmt.Sprintf("not all parties of the barrier at %s are there: come to it with waiting", conflict.Key)
	}
	e.refuse(code, problem).Conflict = conflict
}

// heldCode says in one word, and in a sentence, why a request that does not want
// to wait is refused.
func heldCode(c *Conflict) (interlock.Code, string) {
	switch c.Kind {
	case interlock.CapacityUsed:
		if full := c.Capacity; len(full.Groups) > 0 && full.Used < full.Permits {
			if c.Group == "" {
				return interlock.CodeAtCapacity, fmt.Sprintf("the permits of key %s that are left are not for those without a group", c.Key)
			}
			return interlock.CodeAtCapacity, fmt.Sprintf("the permits of key %s that are left are not for group %q", c.Key, c.Group)
		}
		return interlock.CodeAtCapacity, fmt.Sprintf("the permits of key %s are taken", c.Key)
	case interlock.RateUsed:
		return interlock.CodeRateLimited, fmt.Sprintf("key %s has no tokens left for now", c.Key)
	}
	return interlock.CodeHeld, fmt.Sprintf("key %s is held", c.Key)
}

// asked turns a command into a request that is in no list yet.
func (e *Engine) asked(c *Acquire, sess *session) *request {
	r := e.newRequest()
	r.id, r.num = c.ID, e.num+1
	if sess != nil {
		r.join(sess.flow(flowOr(c.Flow)))
	} else {
		r.tie().guest = &guest{c.Agent, c.Actor}
	}
	r.priority, r.any = int8(c.Priority), c.Any
	r.terms = e.space(c.Namespace).agree(withDefaults(c.Terms, sess))
	r.setDetails(details{purpose: c.Purpose, trace: c.Trace, window: window{asOf: c.AsOf}, documents: c.Documents})
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

// flowOr gives the name of a flow, where "" means main.
func flowOr(name string) string {
	if name == "" {
		return "main"
	}
	return name
}

// try has a new request stand as if at the end of the line, so that it can be seen
// what would block it.
func (e *Engine) try(r *request) {
	r.granted = e.now
	e.trial = wait{only: [1]place{{req: r}}}
	r.wait = &e.trial
	r.wait.rank = r.standing()
	e.resolve(r)
	e.objects += len(r.needs())
	r.setScore()
}

func (e *Engine) grant(c *Acquire, r *request) {
	r.wait = nil
	r.seeAtOnce()
	ev := e.describe(EvGranted, r)
	ev.Fence, ev.Actor = e.fence+1, c.Actor
	e.tag(ev, Granted)
	e.emit(ev)
	e.arm(r)
	r.noteGrant(false)
	e.heldMore(r)
	e.settle()
	e.replyGiven(r)
}

// replyGiven answers, once the step has settled, how a request stands that was given
// what it asks for, or has come to its end: a cycle that the grant closed may have cost
// it at once.
func (e *Engine) replyGiven(r *request) {
	if r.isOver() || r.phase == away {
		e.replyOver(r)
		return
	}
	e.describeHanded(r, &e.reply(Granted).Lease)
}

// queue puts a new request in line and answers how that came out. With attach, the
// command's caller listens for what follows. It reports whether there was room in the line. If
// not, the caller discards the request.
func (e *Engine) queue(r *request, how interlock.OnConflict, attach bool) (kept bool) {
	if no := r.lineFull(e.head.Actor); no != nil {
		e.refuseFor(no)
		return false
	}
	r.readAsOf(r.space.docs.version)
	ev := e.describe(EvQueued, r)
	ev.Actor = e.head.Actor
	e.tag(ev, Queued)
	e.emit(ev)
	e.stand(r, how, attach)
	return true
}

// stand does what there is to do for somebody new in line, and answers how that
// came out.
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
	var warnings []string
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
	way := e.soonest(r)
	eff.Ticket = e.ticket(way)
	if i := way.blocker(); i >= 0 {
		eff.Conflict = e.conflict(way, i)
		eff.Conflict.Queue.ETA = eff.Ticket.ETA
	}
	return eff
}

// describe drafts an event with everything about a request.
func (e *Engine) describe(kind EventKind, r *request) *Event {
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
	ev.Blob = appendRun(nil, r.run)
	if r.documents {
		ev.Op = wantsDocuments
	}
	return ev
}

// closedFor reports why nothing new is admitted now, or "".
func (e *Engine) closedFor() (interlock.Code, string) {
	switch {
	case e.draining:
		return interlock.CodeShuttingDown, "the server is shutting down: repeat the request in a moment"
	case e.lowMem:
		return interlock.CodeOverloaded, "the server's memory is nearly full: nothing new is admitted until others have given back what they hold; releases still work"
	case e.lowSpace && e.kept:
		return interlock.CodeNoSpace, "the journal's disk is nearly full: no new leases until an operator makes room or keeps less history (--keep-bytes); releases still work"
	case e.lowSpace:
		return interlock.CodeNoSpace, "the journal's disk is nearly full: no new leases until an operator makes room; releases still work"
	}
	return "", ""
}

// coveredBy gives the lease of r's own flow that already gives all that r wants,
// or nil.
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
				*r.space.agenda.objects++
				if h.req.party == r.party {
					consider(h.req)
				}
			}
		default: // however many others have leases here
			*r.space.agenda.objects += len(f.leases)
			for _, l := range f.leases {
				consider(l)
			}
			return best
		}
	}
	return best
}

// gives reports whether r's claims are as good as those.
func (r *request) gives(claims []interlock.Claim) bool {
	for _, want := range claims {
		good := false
		for _, have := range r.claims() {
			good = good || have.Key == want.Key && r.space.coversClaim(have, want) ||
				keypath.IsBelow(string(want.Key), string(have.Key)) && lockmode.Below(have.Mode) != 0 && lockmode.Covers(lockmode.Below(have.Mode), lockmode.Lock(want.Mode)) && !want.Mode.Counts()
		}
		if !good {
			return false
		}
	}
	return true
}

// coversClaim reports whether who has one claim on a key needs no other of it.
// Tokens are gone once they are taken, so a claim on a rate never covers another.
func (s *space) coversClaim(have, want interlock.Claim) bool {
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

// checkAcquire normalises c and says what is wrong with it, or "".
func checkAcquire(c *Acquire) (interlock.Code, string) {
	if code, problem := checkSize(c); code != "" {
		return code, problem
	}
	c.Any = c.Any && len(c.Claims) > 1 // one alternative is an ordinary claim
	if problem := checkNamespace(c.Namespace); problem != "" {
		return interlock.CodeInvalidNamespace, problem
	}
	if code, problem := checkForm(c.Claims); code != "" {
		return code, problem
	}
	if c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority {
		return interlock.CodeInvalidPriority, fmt.Sprintf("priority %d is not between -%d and %d", c.Priority, interlock.MaxPriority, interlock.MaxPriority)
	}
	if code, problem := checkTexts(
		text{"agent", c.Agent, interlock.MaxNameBytes}, text{"flow", c.Flow, interlock.MaxNameBytes},
		text{"purpose", c.Purpose, interlock.MaxPurposeBytes}, text{"trace", c.Trace, interlock.MaxNameBytes},
		text{"group", c.Group, interlock.MaxNameBytes},
	); code != "" {
		return code, problem
	}
	return checkTimes(c)
}

// checkForm normalises claims and says what is wrong with how they are written, or
// "".
func checkForm(claims []interlock.Claim) (interlock.Code, string) {
	for i := range claims {
		claim := &claims[i]
		if problem := keypath.Problem(string(claim.Key)); problem != "" {
			return interlock.CodeInvalidKey, fmt.Sprintf("key %q %s", keypath.Clip(string(claim.Key), 64), problem)
		}
		if claim.Mode == 0 {
			claim.Mode = interlock.Exclusive
		}
		if claim.Mode > interlock.Member {
			return interlock.CodeInvalidMode, fmt.Sprintf("claim %d on %s has mode %d, which does not exist", i+1, claim.Key, claim.Mode)
		}
		if claim.Mode.Counts() != (claim.Count > 0) || claim.Count > interlock.MaxCount {
			return interlock.CodeInvalidRequest, fmt.Sprintf("claim %d on %s: %s with a count of %d: from 1 to %d with permits, none with a mode", i+1, claim.Key, claim.Mode, claim.Count, interlock.MaxCount)
		}
	}
	if code, problem := checkBarrier(claims); code != "" {
		return code, problem
	}
	if code, problem := checkMember(claims); code != "" {
		return code, problem
	}
	if key, twice := duplicate(claims); twice {
		return interlock.CodeDuplicateClaim, fmt.Sprintf("key %s is claimed twice: claim it once, with the stronger mode", key)
	}
	return "", ""
}

// duplicate gives a key that is claimed twice, if there is one.
func duplicate(claims []interlock.Claim) (key interlock.Key, twice bool) {
	if len(claims) == 1 {
		return "", false
	}
	seen := make(map[interlock.Key]bool, len(claims))
	for _, c := range claims {
		if seen[c.Key] {
			return c.Key, true
		}
		seen[c.Key] = true
	}
	return "", false
}

func checkTimes(c *Acquire) (interlock.Code, string) {
	switch {
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL):
		return interlock.CodeInvalidTTL, fmt.Sprintf("ttl %v is not between %v and %v", c.TTL, interlock.MinTTL, interlock.MaxTTL)
	case c.Grace != NoGrace && (c.Grace < 0 || c.Grace > interlock.MaxGrace):
		return interlock.CodeInvalidTTL, fmt.Sprintf("grace %v is not between 0 and %v", c.Grace, interlock.MaxGrace)
	case c.MaxHold < 0 || c.MaxHold > interlock.MaxMaxHold:
		return interlock.CodeInvalidTTL, fmt.Sprintf("max_hold %v is not between 0 and %v", c.MaxHold, interlock.MaxMaxHold)
	case c.Stall < 0 || c.Stall > interlock.MaxStall:
		return interlock.CodeInvalidTTL, fmt.Sprintf("stall %v is not between 0 and %v", c.Stall, interlock.MaxStall)
	case c.LockDelay < 0 || c.LockDelay > interlock.MaxLockDelay:
		return interlock.CodeInvalidTTL, fmt.Sprintf("lock_delay %v is not between 0 and %v", c.LockDelay, interlock.MaxLockDelay)
	case c.MaxWait < 0 || c.MaxWait > interlock.MaxMaxWait:
		return interlock.CodeInvalidTTL, fmt.Sprintf("max_wait %v is not between 0 and %v", c.MaxWait, interlock.MaxMaxWait)
	}
	return "", ""
}

func badKey(claims []interlock.Claim) interlock.Key {
	for _, claim := range claims {
		if keypath.Problem(string(claim.Key)) != "" {
			return interlock.Key(keypath.Clip(string(claim.Key), 64))
		}
	}
	return ""
}

// text is something that a caller wrote, with its limit.
type text struct {
	name  string
	value string
	limit int
}

func checkTexts(texts ...text) (interlock.Code, string) {
	for i := range texts {
		t := &texts[i]
		if t.value == "" {
			continue
		}
		if len(t.value) > t.limit {
			return interlock.CodeTooLong, fmt.Sprintf("%s has %d bytes: at most %d are kept, so shorten it", t.name, len(t.value), t.limit)
		}
		if !utf8.ValidString(t.value) {
			return interlock.CodeInvalidRequest, t.name + " is not valid UTF-8"
		}
	}
	return "", ""
}

func checkNamespace(ns interlock.Namespace) string {
	if ns == "" || len(ns) > interlock.MaxNamespaceBytes {
		return fmt.Sprintf("namespace %q: a namespace has 1 to %d bytes", keypath.Clip(string(ns), 64), interlock.MaxNamespaceBytes)
	}
	for _, b := range []byte(ns) {
		if b <= ' ' || b >= 0x7f || b == '/' {
			return fmt.Sprintf("namespace %q: a namespace has visible ASCII characters other than '/'", keypath.Clip(string(ns), 64))
		}
	}
	return ""
}

// softAt is the part of a term after which its holder is warned.
func softAt(term time.Duration) time.Duration { return term / 3 * 2 }
