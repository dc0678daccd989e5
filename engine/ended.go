package engine

import (
	"cmp"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// The report of a lease or a ticket that is over: the reason, as a code and in a sentence, and
// the next step.

// goneCode returns the code for how an ended request came to its end.
func goneCode(r *request) interlock.Code {
	switch r.reason {
	case record.ByRelease, record.ByNack, record.ByQuestion:
		return interlock.CodeReleased
	case record.ByRevocation:
		return interlock.CodeRevoked
	case record.ByPattern:
		return interlock.CodeTooManyPermits
	case record.BySession, record.ByTarget:
		return interlock.CodeSessionEnded
	case record.ByDeadlock:
		switch {
		case r.phase == over && r.fence > 0: // it had been granted, and a pattern let it be taken back
			return interlock.CodeRevoked
		case r.phase == over:
			return interlock.CodeDeadlock
		}
	case record.ByBase:
		if r.fence == 0 {
			return interlock.CodeLeft
		}
	case record.ByLeaving, record.ByConversion:
		return interlock.CodeLeft
	case record.ByLapse:
		return interlock.CodeOfferLapsed
	case record.ByWaitLimit:
		return interlock.CodeWaitLimit
	case record.ByFull:
		return interlock.CodeTooManyRuns
	case record.ByPreemption:
		if r.phase == over {
			return interlock.CodePreempted
		}
	case record.ByBreak:
		return interlock.CodeBroken
	}
	if r.fence == 0 {
		return interlock.CodeSessionEnded // a waiter of a dead session
	}
	switch r.phase {
	case inGrace:
		return interlock.CodeInGrace
	case closed:
		return interlock.CodeExpired
	}
	for _, c := range r.claims() {
		if r.ns.heldAgainst(string(c.Key), lockmode.Lock(c.Mode)) || r.ns.permitsTaken(c) {
			return interlock.CodeTaken
		}
	}
	return interlock.CodeExpired
}

// heldAgainst reports whether a holder excludes a mode on a key, which it may do
// at the key, below it or above it.
func (s *namespace) heldAgainst(key string, mode interlock.Mode) bool {
	for {
		if n := s.nodeAt(key); n != nil && n.modes&lockmode.Conflicts[mode] != 0 {
			return true
		}
		parent, ok := keypath.Parent(key)
		if !ok {
			return false
		}
		key, mode = parent, lockmode.Intent(mode)
	}
}

// permitsTaken reports whether a key has not as many permits left as a claim wants.
func (s *namespace) permitsTaken(c interlock.Claim) bool {
	n := s.nodeAt(string(c.Key))
	if c.Mode != interlock.Permits || n == nil || n.pooled == nil {
		return false
	}
	p := n.pool().policy
	return p != nil && p.Capacity > 0 && n.pooled.used+uint64(c.Count) > uint64(p.Capacity)
}

// lostWords describe the loss of a lease, and the next step.
var lostWords = [...]string{
	0:                   "is gone",
	record.ByRelease:    "was released by its holder",
	record.ByTTL:        "expired: no heartbeat came within its ttl",
	record.ByMaxHold:    "ended: it was held for as long as it may be",
	record.ByStall:      "ended: heartbeats came, but no progress",
	record.ByRevocation: "was revoked by an operator",
	record.BySession:    "ended with its session, which was closed",
	record.ByDeath:      "ended: its session sent no heartbeat within its ttl",
	record.ByLapse:      "was offered, but nobody came for it in time",
	record.ByLeaving:    "was given up: its ticket left the line",
	record.ByDeadlock:   "was not granted: waiting for it would have been a deadlock",
	record.ByConversion: "was converted",
	record.ByBase:       "was not converted: it came to its end before",
	record.ByNack:       "was given back by its worker, who failed",
	record.ByQuestion:   "was given back by its worker, who asks a person",
	record.ByPattern:    "was not granted: the key will never have as many permits besides those that your flow has",
	record.ByTarget:     "is over: the session for which it waited has ended",
	record.ByParking:    "ended: it was parked for as long as it may be",
	record.ByWaitLimit:  "was not granted: its request stood in line for as long as it may",
	record.ByFull:       "was not started: no permit came free while its caller waited",
	record.ByBreak:      "was not granted: a party of the barrier died or left before all were there",
	record.ByPreemption: "was taken for a request that asked its holder to yield",
}

// replyOver answers how a request came out that is over: that of a conversion with
// its lease.
func (e *Engine) replyOver(r *request) {
	if e.followBase(r) {
		return
	}
	e.replyGone(r)
	if eff := &e.out.Effects[e.replied]; eff.Code == interlock.CodeRevoked && r.reason == record.ByDeadlock {
		eff.Code = interlock.CodeDeadlock // of a request, which may be made anew
	}
}

// replyGone is refuseGone for the command's caller.
func (e *Engine) replyGone(r *request) {
	e.replied = len(e.out.Effects)
	e.refuseGone(e.head.From, r)
}

// refuseGone tells a caller how a request came to its end.
func (e *Engine) refuseGone(to Caller, r *request) {
	if r.reason == record.ByBase && r.endCause != nil {
		if l := r.ns.request(r.endCause.baseID); l != nil {
			r = l
		}
	}
	if r.isParked() {
		e.refusePutBack(to, r)
		return
	}
	code := goneCode(r)
	eff := e.effect(to, Refused)
	eff.Code, eff.Lease = code, e.lease(r)
	eff.Message = r.endWords() + r.adviceAfter(code)
	if r.reason == record.ByFull {
		eff.Conflict = e.fullAt(r)
	}
	if eff.Conflict == nil {
		eff.Conflict = e.situation(r.ns, r.firstKey())
	}
	if r.endCause != nil {
		eff.Conflict.Cycle = r.endCause.cycle
	}
}

// firstKey is the key that stands for r where there is room for one only; "" for a
// request that claims none.
func (r *request) firstKey() interlock.Key {
	if len(r.claims()) == 0 {
		return ""
	}
	return r.claims()[0].Key
}

// endWords describe the end of a lease.
func (r *request) endWords() string {
	words := lostWords[0]
	if int(r.reason) < len(lostWords) {
		words = lostWords[r.reason]
	}
	switch {
	case r.reason == record.ByBase && r.fence > 0:
		words = "ended with that of its member"
	case r.reason == record.ByDeadlock && r.fence > 0:
		words = "ended: its holder was the victim of a deadlock, and others wait for it"
	case r.reason == record.ByLapse && r.fence == 0:
		words = "was not granted: nobody asked after its ticket in time"
	}
	if end := r.endCause; end != nil && r.reason == record.ByBreak {
		words = fmt.Sprintf("was not granted: the barrier has lost a party, %q (%s)", end.asker, end.words)
	}
	title := r.title()
	if r.reason == record.ByLeaving && r.fence == 0 && len(r.claims()) > 0 { // it may have been for more of a lease, which continues
		title = "the request for " + string(r.claims()[0].Key)
	}
	words = title + " " + words
	if r.phase == closed {
		words += r.closedWords()
	}
	if end := r.endCause; end != nil && (r.reason == record.ByRevocation || r.reason == record.ByPreemption) {
		if by := cmp.Or(end.asker, end.actor); by != "" {
			words += fmt.Sprintf(" (%q)", by)
		}
		if end.words != "" {
			words += fmt.Sprintf(", who wrote: %q", end.words)
		}
	}
	return words
}

// title names r in a sentence.
func (r *request) title() string {
	switch {
	case r.reason == record.ByFull:
		return "the run at " + string(r.claims()[0].Key)
	case len(r.claims()) > 0:
		return "the lease on " + string(r.claims()[0].Key)
	case r.fence > 0:
		return "the lease for the task"
	}
	return "the declared wait"
}

// situation describes a key to a caller that is refused for another reason than a holder.
func (e *Engine) situation(s *namespace, key interlock.Key) *Conflict {
	c := &Conflict{Key: key}
	if s == nil {
		return c
	}
	if n := s.nodeAt(string(key)); n != nil {
		v := viewer{e: e, limit: MaxShownHolders, shares: true}
		v.at(n, ^lockmode.Set(0))
		v.above(n)
		c.Holders, c.More, c.Queue.Length = v.holders(), v.more, n.line.length()
		if len(v.found) > 0 {
			c.Queue.ETA = e.expect(n, v.found, c.Queue.Length)
		}
	}
	return c
}

func (r *request) adviceAfter(code interlock.Code) string {
	if !r.attemptAt().IsZero() && (code == interlock.CodeTaken || code == interlock.CodeExpired) {
		return "; drop what you have of its task, which goes on by itself"
	}
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
