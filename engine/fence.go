package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Commands about a key and a fence: to revoke a lease, and to check whether a write may go
// ahead.

func (c *Revoke) decide(e *Engine) {
	asked, ok := e.operatorsKey(&c.Key, c.Reason)
	if !ok {
		return
	}
	r := e.leaseAt(c.Key, asked, c.Fence)
	if r == nil {
		r = e.PendingWork.NS.AwayWith(c.Fence, c.Key, asked)
	}
	if r == nil {
		e.refuseFence(c.Key, c.Fence)
		eff := &e.out.Effects[e.replied]
		if eff.Code == interlock.CodeFenced {
			eff.Message = message.New(message.NothingToRevoke, message.Str(c.Key), message.Num(c.Fence))
			eff.Conflict.Kind = ""
		}
		return
	}
	sess, lease := r.Session(), r.Lease()
	ev := e.endCause(r, record.ByRevocation)
	ev.Note, ev.Outcome, ev.Actor = "", c.Reason, c.Actor
	e.tag(ev, Done)
	e.emit(ev)
	if sess != nil {
		e.lost(sess, r, lease)
	}
	e.reply(Done)
}

func (c *RequestYield) decide(e *Engine) {
	asked, ok := e.operatorsKey(&c.Key, c.Reason)
	if !ok {
		return
	}
	l := e.leaseAt(c.Key, asked, c.Fence)
	if l == nil || l.Phase == store.Closed {
		e.refuseFence(c.Key, c.Fence)
		return
	}
	if l.Phase == store.InGrace {
		e.refuse(interlock.CodeInGrace, pastHardEnd(l))
		return
	}
	r := e.firstWaiterFor(l, c.Key)
	if r == nil {
		e.refuse(interlock.CodeNoWaiter, message.New(message.NoWaiter, message.Str(c.Key), message.Num(c.Fence)))
		return
	}
	if !l.IsAskedBy(r) {
		ev := e.yieldEvent(r, l)
		ev.Actor, ev.Note = c.Actor, c.Reason
		e.tag(ev, Done)
		e.emit(ev)
		if l.Asker() == r {
			e.reportAsked(l)
		}
	}
	e.reply(Done)
}

// operatorsKey checks the reason of an operator's command, and spells its key as the patterns of the namespace do. It
// returns the key as it was asked for; ok is false when the command was refused.
func (e *Engine) operatorsKey(key *interlock.Key, reason string) (asked interlock.Key, ok bool) {
	if !e.acceptsReason(reason) {
		return "", false
	}
	asked = *key
	_, *key = e.PendingWork.NS.Fit(asked)
	return asked, true
}

// acceptsReason refuses a command if its reason is too long, or no text.
func (e *Engine) acceptsReason(reason string) bool {
	code, problem := store.CheckTexts(store.Text{Name: "reason", Value: reason, Limit: interlock.MaxReasonBytes})
	if code != "" {
		e.refuse(code, problem)
	}
	return code == ""
}

// leaseAt returns the lease with a fence that claims a key, or the key as it was asked for: the lease may be older than
// the pattern that now defines the key's spelling.
func (e *Engine) leaseAt(key, asked interlock.Key, fence interlock.Fence) *store.Request {
	if r := e.holderOf(key, fence, false); r != nil {
		return r
	}
	return e.holderOf(asked, fence, false)
}

func (c *CheckFence) decide(e *Engine) {
	_, c.Key = e.PendingWork.NS.Fit(c.Key)
	if keypath.Problem(string(c.Key)) != nil || e.holderOf(c.Key, c.Fence, true) == nil {
		e.refuseFence(c.Key, c.Fence)
		return
	}
	e.reply(Done)
}

// holderOf returns the lease or offer with a fence that claims a key. If writing is
// set, it must be a lease in its holder's hands that may write the key: its claim
// on it, or on an ancestor, is exclusive.
func (e *Engine) holderOf(key interlock.Key, fence interlock.Fence, writing bool) *store.Request {
	s := e.PendingWork.NS
	if s == nil {
		return nil
	}
	for at := string(key); ; {
		if n := s.NodeAt(at); n != nil && (!writing || n.Modes.Has(lockmode.X)) {
			h, looks := n.Holder(fence)
			if e.Visited += looks; h != nil && (!writing || h.Mode == lockmode.X && h.Req.MayWrite()) {
				return h.Req
			}
		}
		parent, ok := keypath.Parent(at)
		if !writing || !ok {
			return nil
		}
		at = parent
	}
}

func (e *Engine) refuseFence(key interlock.Key, fence interlock.Fence) {
	if problem := keypath.Problem(string(key)); problem != nil {
		e.refuse(
			interlock.CodeInvalidKey,
			message.New(message.InvalidKey, message.Str(keypath.Clip(string(key), 64)), message.Sub(problem)),
		)
		return
	}
	eff := e.refuse(interlock.CodeFenced, message.New(message.Fenced, message.Num(fence), message.Str(key)))
	eff.Conflict = e.PendingWork.NS.Situation(key)
	eff.Conflict.Kind = interlock.FencedOff
}
