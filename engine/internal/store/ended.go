package store

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

// HeldAgainst reports whether a holder excludes a mode on a key, which it may do
// at the key, below it or above it.
func (s *Namespace) HeldAgainst(key string, mode interlock.Mode) bool {
	for {
		if n := s.NodeAt(key); n != nil && n.Modes&lockmode.Conflicts[mode] != 0 {
			return true
		}
		parent, ok := keypath.Parent(key)
		if !ok {
			return false
		}
		key, mode = parent, lockmode.Intent(mode)
	}
}

// PermitsTaken reports whether a key has not as many permits left as a claim wants.
func (s *Namespace) PermitsTaken(c interlock.Claim) bool {
	n := s.NodeAt(string(c.Key))
	if c.Mode != interlock.Permits || n == nil || n.pooled == nil {
		return false
	}
	p := n.Pool().Policy
	return p != nil && p.Capacity > 0 && n.pooled.Used+uint64(c.Count) > uint64(p.Capacity)
}

// endings are the descriptions of the end of a lease, by its reason.
var endings = [...]message.ID{
	0:                   message.LeaseGone,
	record.ByRelease:    message.LeaseReleased,
	record.ByTTL:        message.LeaseExpired,
	record.ByForgetting: message.LeaseForgotten,
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
	record.ByTakeOver:   message.LeaseTakenOver,
}

// FirstKey is the key that stands for r where there is room for one only; "" for a
// request that claims none.
func (r *Request) FirstKey() interlock.Key {
	if len(r.Claims()) == 0 {
		return ""
	}
	return r.Claims()[0].Key
}

// endWords describe the end of a lease.
func (r *Request) Ending(next *message.Text) *message.Text {
	id := endings[0]
	if int(r.Reason) < len(endings) {
		id = endings[r.Reason]
	}
	switch {
	case r.Reason == record.ByBase && r.Fence > 0:
		id = message.MemberOver
	case r.Reason == record.ByDeadlock && r.Fence > 0:
		id = message.DeadlockVictim
	case r.Reason == record.ByLapse && r.Fence == 0:
		id = message.NobodyAsked
	}
	what := message.New(id)
	if end := r.EndCause; end != nil && r.Reason == record.ByBreak {
		what = message.New(message.PartyLeftNamed, message.Str(end.Asker), message.Str(end.Words))
	}
	title := r.Title()
	// it may have been for more of a lease, which goes on
	if r.Reason == record.ByLeaving && r.Fence == 0 && len(r.Claims()) > 0 {
		title = message.New(message.TheRequest, message.Str(r.Claims()[0].Key))
	}
	var delay, who, wrote *message.Text
	if r.Phase == Closed {
		delay = message.New(message.KeysStayClosed, message.Dur(r.LockDelay))
	}
	if end := r.EndCause; end != nil && (r.Reason == record.ByRevocation || r.Reason == record.ByPreemption) {
		if by := cmp.Or(end.Asker, end.Actor); by != "" {
			who = message.New(message.EndedBy, message.Str(by))
		}
		if end.Words != "" {
			wrote = message.New(message.WhoWrote, message.Str(end.Words))
		}
	}
	return message.New(
		message.LeaseOver, message.Sub(title), message.Sub(what), message.Sub(delay), message.Sub(who), message.Sub(wrote),
		message.Sub(next),
	)
}

// Title names r in a sentence.
func (r *Request) Title() *message.Text {
	switch {
	case r.Reason == record.ByFull:
		return message.New(message.TheRun, message.Str(r.Claims()[0].Key))
	case len(r.Claims()) > 0:
		return message.New(message.TheLease, message.Str(r.Claims()[0].Key))
	case r.Fence > 0:
		return message.New(message.TheTaskLease)
	}
	return message.New(message.TheDeclaredWait)
}

// Aftermath returns what holds since a lease has ended with a code, nil for nothing more.
func (r *Request) Aftermath(code interlock.Code) *message.Text {
	if !r.AttemptAt().IsZero() && (code == interlock.CodeTaken || code == interlock.CodeExpired) {
		return message.New(message.DropTask)
	}
	switch code {
	case interlock.CodeTaken:
		return message.New(message.KeyTaken)
	case interlock.CodeExpired:
		if r.Phase == Closed {
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
