package store

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

// OutsideGroup returns why a principal may not name a claimant group, nil if it may.
func OutsideGroup(by *interlock.Principal, group string) *Refusal {
	if by.InGroup(group) {
		return nil
	}
	return &Refusal{
		Code: interlock.CodeForbidden,
		Message: message.New(
			message.GroupForbidden, message.Str(by.Name), message.Str(keypath.Clip(group, 64)), quoted(by.Groups),
		),
	}
}

// forbidden returns the refusal of an operation that an access list does not admit.
func forbidden(by *interlock.Principal, what *message.Text, list []string) *Refusal {
	return &Refusal{
		Code:    interlock.CodeForbidden,
		Message: message.New(message.NotListed, message.Sub(DisplayName(by)), message.Sub(what), quoted(list)),
	}
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

// KeepsFrom returns why a principal may not submit a task, or send a message, to the
// queue; nil if it may.
func (q *Queue) KeepsFrom(by *interlock.Principal, sent bool) *Refusal {
	if no := reservedQueue(q.Name, interlock.SubmitRoles(q.Name), by); no != nil {
		return no
	}
	if by.Listed(q.Submit) {
		return nil
	}
	what := message.SubmitTo
	if sent {
		what = message.SendTo
	}
	return forbidden(by, message.New(what, message.Str(q.Name)), q.Submit)
}

// NotPuller returns why a principal may not pull from the queue, nil if it may.
func (q *Queue) NotPuller(by *interlock.Principal) *Refusal {
	if no := q.NotSettler(by); no != nil {
		return no
	}
	if by.Listed(q.Pull) {
		return nil
	}
	return forbidden(by, message.New(message.PullFrom, message.Str(q.Name)), q.Pull)
}

// NotSettler returns why a principal may not end an attempt at one of the queue's tasks, though it knows the lease; nil
// if it may.
func (q *Queue) NotSettler(by *interlock.Principal) *Refusal {
	return reservedQueue(q.Name, interlock.PullRoles(q.Name), by)
}

// reservedQueue returns why a principal may not do with a queue what needs one of some roles, nil if it may or if there
// are none.
func reservedQueue(name string, need interlock.Roles, by *interlock.Principal) *Refusal {
	if need == 0 || by.Has(need) {
		return nil
	}
	return &Refusal{
		Code: interlock.CodeForbidden,
		Message: message.New(
			message.ReservedQueue, message.Sub(DisplayName(by)), message.Str(name),
			message.Str(strings.ReplaceAll(need.String(), ",", " or ")),
		),
	}
}

// ReservedKey returns why a principal may not claim a key, write it or send to it; nil if it may.
func ReservedKey(key interlock.Key, by *interlock.Principal) *Refusal {
	if need := key.WriteRoles(); need == 0 || by.Has(need) {
		return nil
	}
	return &Refusal{
		Code: interlock.CodeForbidden, Key: key,
		Message: message.New(message.ReservedKey, message.Sub(DisplayName(by)), message.Str(key)),
	}
}

// NotAdmin returns why a principal may not administer the queue, nil if it may.
func (q *Queue) NotAdmin(by *interlock.Principal, what *message.Text) *Refusal {
	switch {
	case by.Has(interlock.RoleOperator), len(q.Admin) > 0 && by.Listed(q.Admin):
		return nil
	case len(q.Admin) == 0:
		return &Refusal{
			Code:    interlock.CodeForbidden,
			Message: message.New(message.NoAdministrators, message.Str(by.Name), message.Sub(what), message.Str(q.Name)),
		}
	}
	return &Refusal{
		Code: interlock.CodeForbidden,
		Message: message.New(
			message.NotAdministrator, message.Str(by.Name), message.Sub(what), message.Str(q.Name), quoted(q.Admin),
		),
	}
}

// NotChangedBy returns the reason why a principal may not cancel, reschedule, replay or discard
// the task; nil if it may. Tasks of other submitters belong to their queue's administrators.
func (t *Task) NotChangedBy(by *interlock.Principal) *Refusal {
	if by == nil || t.Spec.Principal == by.Name && by.Has(interlock.RoleAgent|interlock.RoleMerger) {
		return nil
	}
	return t.Queue.NotAdmin(by, message.New(message.ChangeForeignTask))
}

// KeepsFrom returns why a principal may not take a lease, or an offer, into its own
// hands: it is not the one to which the lease was granted, and may not claim all of it.
func (r *Request) KeepsFrom(by *interlock.Principal) *Refusal {
	return r.KeepsClaimsFrom(by, r.Claims())
}

// KeepsClaimsFrom is KeepsFrom for some claims.
func (r *Request) KeepsClaimsFrom(by *interlock.Principal, claims []interlock.Claim) *Refusal {
	for _, c := range claims { // its owner's role may be gone
		if no := ReservedKey(c.Key, by); no != nil {
			return no
		}
	}
	if by == nil && r.Owner() == "" || by != nil && by.Name == r.Owner() {
		return nil
	}
	if no := OutsideGroup(by, r.Group); no != nil {
		return no
	}
	for _, c := range claims {
		if no := r.NS.Excludes(c, by); no != nil {
			return no
		}
	}
	return nil
}

// MayWriteBy returns why a principal may not write a key under a lease, nil if it may: it
// must be allowed to claim so itself what covers the key, and the key. So a lease never
// lets a caller write what it could not have locked.
func (r *Request) MayWriteBy(by *interlock.Principal, key interlock.Key) *Refusal {
	for _, c := range r.Claims() {
		if c.Mode != lockmode.X || c.Key != key && !keypath.IsBelow(string(key), string(c.Key)) {
			continue
		}
		if no := r.NS.Excludes(c, by); no != nil {
			return no
		}
		break
	}
	return r.NS.Excludes(interlock.Claim{Key: key, Mode: lockmode.X}, by)
}

// NotSignedFor returns why a principal gets no signed statement about a lease, nil if it
// does: it must be allowed to claim itself what the lease claims exclusively.
func (r *Request) NotSignedFor(by *interlock.Principal) *Refusal {
	for _, c := range r.Claims() {
		if c.Mode != lockmode.X {
			continue
		}
		if no := r.NS.Excludes(c, by); no != nil {
			return no
		}
	}
	return nil
}

// NotWriter returns why a principal may not change the keys of the queue's pattern, nil
// if it may: it is a worker of the queue, and may pull from it.
func (q *Queue) NotWriter(by *interlock.Principal) *Refusal {
	if !by.WorksFor(q.Name) {
		return &Refusal{
			Code: interlock.CodeForbidden, Message: message.New(message.NotAWorker, message.Str(by.Name), message.Str(q.Name)),
		}
	}
	return q.NotPuller(by)
}
