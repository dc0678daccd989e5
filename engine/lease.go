package engine

import (
	"fmt"

	"github.com/interlockdev/interlock"
)

// lease describes r as its holder sees it.
func (e *Engine) lease(r *request) interlock.Lease {
	l := interlock.Lease{
		ID: r.id, Fence: r.fence, Claims: r.claims, Agent: r.agentName(), Flow: r.flowName(), Purpose: r.purpose,
		TTL: r.ttl, Grace: r.grace, State: e.stateOf(r), Changed: r.changed,
	}
	if s := r.session(); s != nil {
		l.Session = s.name
	}
	if t := r.terms; t != nil {
		l.LockDelay, l.Group, l.Generation = t.lockDelay, t.group, t.generation
	}
	if r.phase == inGrace || r.isOver() {
		l.EndedBy = r.reason.String()
	}
	if !r.isOver() {
		l.ExpiresIn, l.Parking = max(0, e.endOf(r).Sub(e.now)), e.parking(r)
		if r.maxHold > 0 && r.isRunning() {
			l.MaxHoldIn = max(1, r.granted.Add(r.maxHold).Sub(e.now))
		}
		if d := r.stall(); d > 0 && r.isRunning() {
			l.StallIn = max(1, e.stallSince(r).Add(d).Sub(e.now))
		}
		l.Yield, l.Parts = e.yield(r), e.partsOf(r)
		if d := r.dealings; d != nil && !r.isParked() {
			l.Moved = d.moved
		}
		if r.space.notes.n > 0 {
			l.Notes = e.notesFor(r)
		}
	}
	return l
}

// isRunning reports whether the time of r runs: it was granted, and has not ended.
func (r *request) isRunning() bool { return r.phase == offered || r.phase == held }

// beat is when r's holder was last heard of: at the grant, or by a heartbeat since.
func (r *request) beat() Time {
	if r.holdsOn() {
		return r.share.member.beat()
	}
	if r.flow != nil && r.phase == held {
		return max(r.renewed, r.flow.sess.renewed)
	}
	return r.renewed
}

// endOf is when r's present phase ends if nothing is heard of its holder.
func (e *Engine) endOf(r *request) Time {
	switch r.phase {
	case offered:
		return r.renewed.Add(r.offerTTL())
	case inGrace:
		return r.renewed.Add(r.grace)
	case closed:
		return r.renewed.Add(r.terms.lockDelay)
	case parked, away:
		return r.dealings.parking.until
	}
	if r.holdsOn() {
		return e.endOf(r.share.member)
	}
	return min(r.ttlEnd(), e.timedEnd(r))
}

// ttlEnd is when a held lease ends if no heartbeat comes.
func (r *request) ttlEnd() Time {
	if r.share != nil { // it ends with its member's lease
		return never
	}
	end := r.beat().Add(r.ttl)
	if r.spared && (r.flow == nil || r.flow.sess.spared) {
		num := r.num
		if r.flow != nil {
			num = r.flow.sess.num // all of a session together, so that it is looked through once
		}
		end = end.Add(spread(num, r.ttl))
	}
	return end
}

func (e *Engine) stateOf(r *request) interlock.LeaseState {
	switch {
	case r.isOver():
		return interlock.Ended
	case r.phase == inGrace:
		return interlock.Grace
	case r.isParked():
		return interlock.Parked
	case e.now >= r.beat().Add(softAt(r.ttl)), e.now >= e.timedSoft(r):
		return interlock.Soft
	}
	return interlock.Held
}

// find looks a request up by the id of its ticket or lease. While it lives, another
// session's is as unknown as one that never was.
func (e *Engine) find(id [16]byte, unknown interlock.Code) *request {
	s := e.spaces[e.head.Namespace]
	if s != nil {
		if r := s.requests[id]; r != nil && (r.flow == nil || e.head.Session.IsZero() || r.flow.sess.id == e.head.Session) {
			if t := r.timer; t != nil && t.pos >= 0 && t.at <= e.now {
				e.fire(t)
			}
			if sess := r.session(); sess != nil {
				if e.endOverdue(sess); sess.dead && r.phase != over && r.phase != waiting {
					e.reapLease(sess, r)
				} else if r.phase == held && e.now >= r.ttlEnd() {
					e.hard(r, ByTTL) // its turn had not come yet
				}
			}
			return r
		}
	}
	e.refuse(unknown, "there is none with this id, or it ended long ago: acquire the key again")
	return nil
}

// findHeld is find for a lease that is not over.
func (e *Engine) findHeld(id interlock.LeaseID) *request {
	r := e.find(id, interlock.CodeUnknownLease)
	switch {
	case r == nil:
	case r.phase == over && r.reason == ByConversion:
		e.refuse(interlock.CodeUnknownLease, "this is the ticket of a conversion that was granted: its lease keeps its own id")
		r = nil
	case r.isOver():
		e.replyGone(r)
		r = nil
	case r.phase == waiting:
		e.refuse(interlock.CodeUnknownLease, "this request still stands in line: follow its ticket until it is granted")
		r = nil
	}
	return r
}

// findUsable is findHeld for a lease that is neither in grace nor parked.
func (e *Engine) findUsable(id interlock.LeaseID) *request {
	r := e.findHeld(id)
	switch {
	case r == nil:
		return nil
	case r.phase == inGrace:
		e.refuseInGrace(r)
		return nil
	case r.isParked():
		e.refuseParked(r)
		return nil
	}
	return r
}

func (e *Engine) getLease(c *GetLease) {
	if r := e.findHeld(c.Lease); r != nil {
		e.reply(Granted).Lease = e.lease(r)
	}
}

func (e *Engine) renew(c *Renew) {
	if code, problem := checkTexts(text{"progress", c.Progress, interlock.MaxProgressBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	r := e.findUsable(c.Lease)
	if r == nil {
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
	r.report(c.Progress, e.now)
	e.arm(r)
	e.reply(Granted).Lease = e.lease(r)
}

func (e *Engine) refuseInGrace(r *request) {
	eff := e.refuse(interlock.CodeInGrace, fmt.Sprintf(
		"the lease on %s has passed its hard end (%s): commit and release it, then acquire the key again", r.claims[0].Key, r.reason,
	))
	eff.Lease, eff.Conflict = e.lease(r), &Conflict{Key: r.claims[0].Key}
}

func (e *Engine) release(c *Release) {
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
	ev := e.ending(r, ByRelease)
	ev.Outcome, ev.Note, ev.Actor = c.Outcome, c.Note, c.Actor
	e.tag(ev, Done)
	e.emit(ev)
	e.reply(Done)
}

// ending fills the scratch event for the end of a lease.
func (e *Engine) ending(r *request, why Reason) *Event {
	ev := e.event(EvEnded, r)
	ev.Fence, ev.Reason, ev.Held, ev.Purpose, ev.Trace = r.fence, why, e.now.Sub(r.granted), r.purpose, r.trace
	if r.isParked() {
		ev.Held = r.dealings.parking.held
	}
	if why == ByPreemption {
		ev.Actor = r.preemptor()
	}
	return ev
}

// end ends a lease without its holder's doing, and tells it.
func (e *Engine) end(r *request, why Reason) {
	if r.closes(why) {
		e.shut(r, why)
		return
	}
	sess := r.session()
	lease := e.lease(r)
	e.emit(e.ending(r, why))
	if sess != nil && why != BySession {
		e.lost(sess, r, lease)
	}
}

// lost tells a session that a lease of it is gone, or past its hard end.
func (e *Engine) lost(s *session, r *request, lease interlock.Lease) {
	lease.State, lease.EndedBy, lease.Notes = e.stateOf(r), r.reason.String(), nil
	if r.isOver() {
		lease.ExpiresIn, lease.MaxHoldIn, lease.StallIn = 0, 0, 0
	}
	code := goneCode(r)
	s.note(r, Loss{lease, code, r.endWords()})
	if s.caller != nil {
		eff := e.effect(s.caller, Lost)
		eff.Lease, eff.Code, eff.Message = lease, code, r.endWords()
	}
}

// note keeps what the next heartbeat is told of r.
func (s *session) note(r *request, l Loss) {
	if !r.listed && len(s.losses) < maxLosses {
		r.listed = true
		s.losses = append(s.losses, l)
	}
}

// maxLosses bounds what a session that sends no heartbeat can make us keep.
const maxLosses = 1024

func (e *Engine) revoke(c *Revoke) {
	if code, problem := checkTexts(text{"reason", c.Reason, interlock.MaxReasonBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	_, c.Key = e.spaces[c.Namespace].fit(c.Key)
	r := e.holderOf(c.Key, c.Fence, false)
	if r == nil {
		e.refuseFence(c.Key, c.Fence)
		eff := &e.out.Effects[e.replied]
		if eff.Code == interlock.CodeFenced {
			eff.Message = fmt.Sprintf("no lease on %s has fence %d, so there is nothing to revoke: look up the fence of its present holder", c.Key, c.Fence)
			eff.Conflict.Kind = ""
		}
		return
	}
	sess, lease := r.session(), e.lease(r)
	ev := e.ending(r, ByRevocation)
	ev.Note, ev.Outcome, ev.Actor = "", c.Reason, c.Actor
	e.tag(ev, Done)
	e.emit(ev)
	if sess != nil {
		e.lost(sess, r, lease)
	}
	e.reply(Done)
}

func (e *Engine) checkFence(c *CheckFence) {
	_, c.Key = e.spaces[c.Namespace].fit(c.Key)
	if e.holderOf(c.Key, c.Fence, true) == nil {
		e.refuseFence(c.Key, c.Fence)
		return
	}
	e.reply(Done)
}

// holderOf gives the lease or offer with a fence that claims a key. If writing is
// set, it must be a lease in its holder's hands that may write the key: its claim
// on it, or on an ancestor, is exclusive.
func (e *Engine) holderOf(key interlock.Key, fence interlock.Fence, writing bool) *request {
	s := e.spaces[e.head.Namespace]
	if s == nil {
		return nil
	}
	for at := string(key); ; {
		if n := s.nodes[at]; n != nil {
			for h := n.first; h != nil && h.req.fence <= fence; h = h.next {
				if h.req.fence == fence && (!writing || h.mode == ex && h.req.mayWrite()) {
					return h.req
				}
			}
		}
		parent, ok := parentOf(at)
		if !writing || !ok {
			return nil
		}
		at = parent
	}
}

// mayWrite reports whether a lease is in its holder's hands.
func (r *request) mayWrite() bool { return r.phase == held || r.phase == inGrace }

func (e *Engine) refuseFence(key interlock.Key, fence interlock.Fence) {
	if problem := keyProblem(string(key)); problem != "" {
		e.refuse(interlock.CodeInvalidKey, fmt.Sprintf("key %q %s", clip(string(key), 64), problem))
		return
	}
	eff := e.refuse(interlock.CodeFenced, fmt.Sprintf(
		"fence %d is not that of a live lease that may write %s: do not write; acquire the key, exclusively, and read its state anew", fence, key,
	))
	eff.Conflict = e.situation(e.spaces[e.head.Namespace], key)
	eff.Conflict.Kind = interlock.FencedOff
}

// goneCode says in one word how a request that is over came to its end.
func goneCode(r *request) interlock.Code {
	switch r.reason {
	case ByRelease:
		return interlock.CodeReleased
	case ByRevocation:
		return interlock.CodeRevoked
	case BySession, ByTarget:
		return interlock.CodeSessionEnded
	case ByDeadlock:
		if r.phase == over {
			return interlock.CodeDeadlock
		}
	case ByBase:
		if r.fence == 0 {
			return interlock.CodeLeft
		}
	case ByLeaving, ByConversion:
		return interlock.CodeLeft
	case ByLapse:
		return interlock.CodeOfferLapsed
	case ByWaitLimit:
		return interlock.CodeWaitLimit
	case ByPreemption:
		if r.phase == over {
			return interlock.CodePreempted
		}
	case ByBreak:
		return interlock.CodeBroken
	}
	if r.fence == 0 {
		return interlock.CodeSessionEnded // a waiter whose session died
	}
	switch r.phase {
	case inGrace:
		return interlock.CodeInGrace
	case closed:
		return interlock.CodeExpired
	}
	for _, c := range r.claims {
		if r.space.heldAgainst(string(c.Key), lockOf(c.Mode)) {
			return interlock.CodeTaken
		}
	}
	return interlock.CodeExpired
}

// heldAgainst reports whether a holder excludes a mode on a key, which it may do
// at the key, below it or above it.
func (s *space) heldAgainst(key string, mode interlock.Mode) bool {
	for {
		if n := s.nodes[key]; n != nil && n.modes&conflicts[mode] != 0 {
			return true
		}
		parent, ok := parentOf(key)
		if !ok {
			return false
		}
		key, mode = parent, intent(mode)
	}
}

// lostWords say what happened to a lease, and what to do.
var lostWords = [...]string{
	0:            "is gone",
	ByRelease:    "was released by its holder",
	ByTTL:        "expired: no heartbeat came within its ttl",
	ByMaxHold:    "ended: it was held for as long as it may be",
	ByStall:      "ended: heartbeats came, but no progress",
	ByRevocation: "was revoked by an operator",
	BySession:    "ended with its session, which was closed",
	ByDeath:      "ended: its session sent no heartbeat within its ttl",
	ByLapse:      "was offered, but nobody came for it in time",
	ByLeaving:    "was given up: its ticket left the line",
	ByDeadlock:   "was not granted: waiting for it would have been a deadlock",
	ByConversion: "was converted",
	ByBase:       "was not converted: it came to its end before",
	ByTarget:     "is over: the session for which it waited has ended",
	ByParking:    "ended: it was parked for as long as it may be",
	ByWaitLimit:  "was not granted: its request stood in line for as long as it may",
	ByBreak:      "was not granted: a party of the barrier died or left before all were there",
	ByPreemption: "was taken for a request that asked its holder to yield",
}

// replyOver answers how a request came out that is over: that of a conversion with
// its lease.
func (e *Engine) replyOver(r *request) {
	if !e.followBase(r) {
		e.replyGone(r)
	}
}

// replyGone is refuseGone for the command's caller.
func (e *Engine) replyGone(r *request) {
	e.replied = len(e.out.Effects)
	e.refuseGone(e.head.From, r)
}

// refuseGone tells a caller how a request came to its end.
func (e *Engine) refuseGone(to Caller, r *request) {
	if r.reason == ByBase && r.ending != nil {
		if l := r.space.requests[r.ending.baseID]; l != nil {
			r = l
		}
	}
	code := goneCode(r)
	eff := e.effect(to, Refused)
	eff.Code, eff.Lease = code, e.lease(r)
	eff.Message = r.endWords() + r.adviceAfter(code)
	c := e.situation(r.space, r.firstKey())
	if r.ending != nil {
		c.Cycle = r.ending.cycle
	}
	eff.Conflict = c
}

// firstKey is the key that stands for r where there is room for one only; "" for a
// request that claims none.
func (r *request) firstKey() interlock.Key {
	if len(r.claims) == 0 {
		return ""
	}
	return r.claims[0].Key
}

// endWords say what happened to a lease.
func (r *request) endWords() string {
	words := lostWords[0]
	if int(r.reason) < len(lostWords) {
		words = lostWords[r.reason]
	}
	switch {
	case r.reason == ByBase && r.fence > 0:
		words = "ended with that of its member"
	case r.reason == ByDeadlock && r.fence > 0:
		words = "ended: its holder was the victim of a deadlock, and others wait for it"
	}
	if len(r.claims) == 0 {
		words = "the declared wait " + words
	} else {
		words = "the lease on " + string(r.claims[0].Key) + " " + words
	}
	if r.phase == closed {
		words += r.closedWords()
	}
	if end := r.ending; end != nil && (r.reason == ByRevocation || r.reason == ByPreemption) {
		if end.actor != "" {
			words += fmt.Sprintf(" (%q)", end.actor)
		}
		if end.words != "" {
			words += fmt.Sprintf(", who wrote: %q", end.words)
		}
	}
	return words
}

// situation describes a key to somebody who is told no for another reason than a
// holder in the way.
func (e *Engine) situation(s *space, key interlock.Key) *Conflict {
	c := &Conflict{Key: key}
	if s == nil {
		return c
	}
	if n := s.nodes[string(key)]; n != nil {
		v := viewer{e: e, limit: MaxShownHolders}
		v.at(n, ^modeSet(0))
		v.above(n)
		c.Holders, c.More, c.Queue.Length = v.holders(), v.more, n.line.length()
		if len(v.found) > 0 {
			c.Queue.ETA = e.expect(n, v.found, c.Queue.Length)
		}
	}
	return c
}

func (r *request) adviceAfter(code interlock.Code) string {
	switch code {
	case interlock.CodeTaken:
		return "; the key is held under another fence now, so do not write: acquire it again and read its state anew"
	case interlock.CodeExpired:
		if r.phase == closed {
			return "; do not write: acquire it again, with waiting, and read its state anew"
		}
		return "; the key is free: acquire it again and read its state anew before you write"
	case interlock.CodeDeadlock:
		return "; release what you hold, then acquire all keys in one request"
	case interlock.CodeBroken:
		return "; come to it again to gather anew"
	}
	return ""
}
