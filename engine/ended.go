package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The report of a lease or a ticket that is over: the reason, as a code and in a sentence, and
// the next step.

// endedCode returns the code for how an ended request came to its end.
func endedCode(r *request) interlock.Code {
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

// endings are the descriptions of the end of a lease, by its reason.
var endings = [...]message.ID{
	0:                   message.LeaseGone,
	record.ByRelease:    message.LeaseReleased,
	record.ByTTL:        message.LeaseExpired,
	record.ByMaxHold:    message.LeaseHeldTooLong,
	record.ByStall:      message.LeaseStalled,
	record.ByRevocation: message.LeaseRevoked,
	record.BySession:    message.LeaseSessionClosed,
	record.ByDeath:      message.LeaseSessionDied,
	record.ByLapse:      message.OfferLapsed,
	record.ByLeaving:    message.LineLeft,
	record.ByDeadlock:   message.WouldDeadlock,
	record.ByConversion: message.LeaseConverted,
	record.ByBase:       message.LeaseNotConverted,
	record.ByNack:       message.WorkerFailed,
	record.ByQuestion:   message.WorkerAsks,
	record.ByPattern:    message.PermitsGone,
	record.ByTarget:     message.TargetOver,
	record.ByParking:    message.ParkedTooLong,
	record.ByWaitLimit:  message.WaitedTooLong,
	record.ByFull:       message.RunNotStarted,
	record.ByBreak:      message.PartyLeft,
	record.ByPreemption: message.LeasePreempted,
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
	code := endedCode(r)
	eff := e.effect(to, Refused)
	eff.Code, eff.Lease = code, e.lease(r)
	eff.Message = r.ending(r.adviceAfter(code))
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
func (r *request) ending(next *message.Text) *message.Text {
	id := endings[0]
	if int(r.reason) < len(endings) {
		id = endings[r.reason]
	}
	switch {
	case r.reason == record.ByBase && r.fence > 0:
		id = message.MemberOver
	case r.reason == record.ByDeadlock && r.fence > 0:
		id = message.DeadlockVictim
	case r.reason == record.ByLapse && r.fence == 0:
		id = message.NobodyAsked
	}
	what := message.New(id)
	if end := r.endCause; end != nil && r.reason == record.ByBreak {
		what = message.New(message.PartyLeftNamed, message.Str(end.asker), message.Str(end.words))
	}
	title := r.title()
	if r.reason == record.ByLeaving && r.fence == 0 && len(r.claims()) > 0 { // it may have been for more of a lease, which goes on
		title = message.New(message.TheRequest, message.Str(r.claims()[0].Key))
	}
	var delay, who, wrote *message.Text
	if r.phase == closed {
		delay = message.New(message.KeysStayClosed, message.Dur(r.LockDelay))
	}
	if end := r.endCause; end != nil && (r.reason == record.ByRevocation || r.reason == record.ByPreemption) {
		if by := cmp.Or(end.asker, end.actor); by != "" {
			who = message.New(message.EndedBy, message.Str(by))
		}
		if end.words != "" {
			wrote = message.New(message.WhoWrote, message.Str(end.words))
		}
	}
	return message.New(message.LeaseOver, message.Sub(title), message.Sub(what), message.Sub(delay), message.Sub(who), message.Sub(wrote), message.Sub(next))
}

// title names r in a sentence.
func (r *request) title() *message.Text {
	switch {
	case r.reason == record.ByFull:
		return message.New(message.TheRun, message.Str(r.claims()[0].Key))
	case len(r.claims()) > 0:
		return message.New(message.TheLease, message.Str(r.claims()[0].Key))
	case r.fence > 0:
		return message.New(message.TheTaskLease)
	}
	return message.New(message.TheDeclaredWait)
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

// adviceAfter returns what to do next after a lease has ended with a code, nil for nothing.
func (r *request) adviceAfter(code interlock.Code) *message.Text {
	if !r.attemptAt().IsZero() && (code == interlock.CodeTaken || code == interlock.CodeExpired) {
		return message.New(message.DropTask)
	}
	switch code {
	case interlock.CodeTaken:
		return message.New(message.KeyTaken)
	case interlock.CodeExpired:
		if r.phase == closed {
			return message.New(message.KeyClosed)
		}
		return message.New(message.KeyFree)
	case interlock.CodeDeadlock:
		return message.New(message.ReleaseAndAcquireAll)
	case interlock.CodeBroken:
		return message.New(message.GatherAgain)
	}
	return nil
}
