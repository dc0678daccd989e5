package engine

import (
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
)

// The rights of principals, as far as they depend on the engine's state: access lists of
// queues, ownership of tasks, the groups that a request names, and the claims of a lease. The
// server's routes decide which role may call which operation.

// claimable has the modes in the order of listing them to a principal that may not claim all.
var claimable = [...]interlock.Mode{
	interlock.Exclusive, interlock.SharedIntentExclusive, interlock.Shared, interlock.IntentExclusive, interlock.IntentShared,
	interlock.Permits, interlock.Barrier, interlock.Member,
}

// MayClaim returns the first mode in which a principal may claim a key by the allow lists of
// its pattern and of the patterns below it: Exclusive without such lists, 0 if there is none.
// problem is the reason why it is not Exclusive.
func (e *Engine) MayClaim(ns interlock.Namespace, key interlock.Key, by *interlock.Principal) (mode interlock.Mode, problem *message.Text) {
	s := e.turnTo(ns)
	if s == nil {
		return interlock.Exclusive, nil
	}
	for _, mode := range claimable {
		no := s.excludes(interlock.Claim{Key: key, Mode: mode}, by)
		if no == nil {
			return mode, problem
		}
		if problem == nil {
			problem = no.message
		}
	}
	return 0, problem
}

// outsideGroup returns why a principal may not name a claimant group, nil if it may.
func outsideGroup(by *interlock.Principal, group string) *refusal {
	if by.InGroup(group) {
		return nil
	}
	return &refusal{code: interlock.CodeForbidden, message: message.New(message.GroupForbidden, message.Str(by.Name), message.Str(keypath.Clip(group, 64)), quoted(by.Groups))}
}

// forbidden returns the refusal of an operation that an access list does not admit.
func forbidden(by *interlock.Principal, what *message.Text, list []string) *refusal {
	return &refusal{code: interlock.CodeForbidden, message: message.New(message.NotListed, message.Sub(displayName(by)), message.Sub(what), quoted(list))}
}

// maxQuoted bounds the entries of a list that a refusal shows.
const maxQuoted = 16

// quoted writes names for a sentence.
func quoted(names []string) message.Arg {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == maxQuoted:
			return message.Sub(message.New(message.AndMore, message.Str(b.String()), message.Num(len(names)-i)))
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(keypath.Clip(name, 64)))
	}
	return message.Str(b.String())
}

// keepsFrom returns why a principal may not submit a task, or send a message, to the
// queue; nil if it may.
func (q *queue) keepsFrom(by *interlock.Principal, sent bool) *refusal {
	if by.Listed(q.Submit) {
		return nil
	}
	what := message.SubmitTo
	if sent {
		what = message.SendTo
	}
	return forbidden(by, message.New(what, message.Str(q.Name)), q.Submit)
}

// notPuller returns why a principal may not pull from the queue, nil if it may.
func (q *queue) notPuller(by *interlock.Principal) *refusal {
	if by.Listed(q.Pull) {
		return nil
	}
	return forbidden(by, message.New(message.PullFrom, message.Str(q.Name)), q.Pull)
}

// notAdmin returns why a principal may not administer the queue, nil if it may.
func (q *queue) notAdmin(by *interlock.Principal, what *message.Text) *refusal {
	switch {
	case by.Has(interlock.RoleOperator), len(q.Admin) > 0 && by.Listed(q.Admin):
		return nil
	case len(q.Admin) == 0:
		return &refusal{code: interlock.CodeForbidden, message: message.New(message.NoAdministrators, message.Str(by.Name), message.Sub(what), message.Str(q.Name))}
	}
	return &refusal{code: interlock.CodeForbidden, message: message.New(message.NotAdministrator, message.Str(by.Name), message.Sub(what), message.Str(q.Name), quoted(q.Admin))}
}

// notChangedBy returns the reason why a principal may not cancel, reschedule, replay or discard
// the task; nil if it may. Tasks of other submitters belong to their queue's administrators.
func (t *task) notChangedBy(by *interlock.Principal) *refusal {
	if by == nil || t.spec.Principal == by.Name && by.Has(interlock.RoleAgent) {
		return nil
	}
	return t.queue.notAdmin(by, message.New(message.ChangeForeignTask))
}

// keepsFrom returns why a principal may not take a lease, or an offer, into its own
// hands: it is not the one to which the lease was granted, and may not claim all of it.
func (r *request) keepsFrom(by *interlock.Principal) *refusal {
	return r.keepsClaimsFrom(by, r.claims())
}

// keepsClaimsFrom is keepsFrom for some claims.
func (r *request) keepsClaimsFrom(by *interlock.Principal, claims []interlock.Claim) *refusal {
	if by == nil && r.owner() == "" || by != nil && by.Name == r.owner() {
		return nil
	}
	if no := outsideGroup(by, r.Group); no != nil {
		return no
	}
	for _, c := range claims {
		if no := r.ns.excludes(c, by); no != nil {
			return no
		}
	}
	return nil
}

// mayWriteBy returns why a principal may not write a key under a lease, nil if it may: it
// must be allowed to claim so itself what covers the key, and the key. So a lease never
// lets a caller write what it could not have locked.
func (r *request) mayWriteBy(by *interlock.Principal, key interlock.Key) *refusal {
	for _, c := range r.claims() {
		if c.Mode != lockmode.X || c.Key != key && !keypath.IsBelow(string(key), string(c.Key)) {
			continue
		}
		if no := r.ns.excludes(c, by); no != nil {
			return no
		}
		break
	}
	return r.ns.excludes(interlock.Claim{Key: key, Mode: lockmode.X}, by)
}

// notSignedFor returns why a principal gets no signed statement about a lease, nil if it
// does: it must be allowed to claim itself what the lease claims exclusively.
func (r *request) notSignedFor(by *interlock.Principal) *refusal {
	for _, c := range r.claims() {
		if c.Mode != lockmode.X {
			continue
		}
		if no := r.ns.excludes(c, by); no != nil {
			return no
		}
	}
	return nil
}

// notWriter returns why a principal may not change what the queue is the writer of, nil
// if it may: it is a worker of the queue, and may pull from it.
func (q *queue) notWriter(by *interlock.Principal) *refusal {
	if !by.WorksFor(q.Name) {
		return &refusal{code: interlock.CodeForbidden, message: message.New(message.NotAWorker, message.Str(by.Name), message.Str(q.Name))}
	}
	return q.notPuller(by)
}

// mayTake refuses a command that would take up an offer that its principal may not hold.
func (e *Engine) mayTake(r *request) bool {
	if r.phase != offered {
		return true
	}
	no := r.keepsFrom(e.head.Principal)
	if no != nil {
		e.refuseFor(no)
	}
	return no == nil
}
