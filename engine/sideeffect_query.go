package engine

import (
	"bytes"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Effect describes a side effect, and reports whether it is known.
func (e *Engine) Effect(ns interlock.Namespace, digest [32]byte) (SideEffect, bool) {
	s := e.turnTo(ns)
	if s == nil {
		return SideEffect{}, false
	}
	return e.shownEffect(s.SideEffects.At(digest, e.Clock))
}

// ClaimedEffect describes the side effect with a claim, and reports whether it is known.
func (e *Engine) ClaimedEffect(ns interlock.Namespace, id interlock.EffectID) (SideEffect, bool) {
	s := e.turnTo(ns)
	if s == nil {
		return SideEffect{}, false
	}
	return e.shownEffect(s.SideEffects.Of(id, e.Clock))
}

func (e *Engine) shownEffect(d *store.SideEffect) (SideEffect, bool) {
	if d == nil {
		return SideEffect{}, false
	}
	return *showEffect(d, e.PendingWork.NS, false), true
}

// EffectList lists effects in the order of their digests, with no more text than an
// answer can take.
type EffectList struct {
	Namespace interlock.Namespace
	State     interlock.EffectState // 0: all
	After     [32]byte              // begin after this one
	Limit     int                   // 0: 100, at most 1,000

	Rows []SideEffect
	More bool

	found first[*store.SideEffect]
	next  int
}

func (l *EffectList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	wanted := func(d *store.SideEffect) bool {
		return bytes.Compare(d.Digest[:], l.After[:]) > 0 && !d.IsPast(s.Now()) && (l.State == 0 || d.StateIn(s) == l.State)
	}
	if !sift(&l.found, s.SideEffects.All.Part, &l.next, wanted, byEffectDigest) {
		return false
	}
	size := 0
	for _, d := range l.found.list {
		if size += d.Size(); len(l.Rows) == limit || len(l.Rows) > 0 && size > interlock.MaxReadBytes {
			l.More = true
			break
		}
		l.Rows = append(l.Rows, *showEffect(d, s, false))
	}
	return true
}

// showEffect describes a side effect of namespace s to its claimer or to others.
func showEffect(d *store.SideEffect, s *store.Namespace, mine bool) *SideEffect {
	f := &SideEffect{Reason: message.Plain(d.Reason), Effect: interlock.Effect{
		Digest: d.Digest, Action: d.Action, State: d.StateIn(s), Agent: d.Agent, Session: d.Name, Flow: d.Flow,
		Principal: d.Owner,
		Age:       s.Now().Sub(d.Claimed), Attempt: int(d.Attempt), Result: d.Result,
	}}
	if mine {
		f.ID = d.ID
	}
	switch {
	case d.Settled != 0:
		f.Settled = s.Now().Sub(d.Settled)
	case f.State == interlock.EffectUnknown:
		f.Reason = silence(d)
	case d.TTL > 0:
		f.ExpiresIn = d.Claimed.Add(d.TTL).Sub(s.Now())
	}
	return f
}

// silence returns the reason why no outcome of d was reported.
func silence(d *store.SideEffect) *message.Text {
	switch {
	case !d.Lease.IsZero():
		return message.New(message.EffectLeaseEnded)
	case d.Session != 0:
		return message.New(message.EffectSessionEnded)
	}
	return message.New(message.EffectTimeOut)
}
