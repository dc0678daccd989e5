package engine

import (
	"bytes"

	"github.com/interlockdev/interlock"
)

// Effect returns what is known of an effect, and whether it was ever claimed.
func (e *Engine) Effect(ns interlock.Namespace, digest [32]byte) (interlock.Effect, bool) {
	s := e.turnTo(ns)
	if s == nil {
		return interlock.Effect{}, false
	}
	d := s.sideEffects.at(digest, e.now)
	if d == nil {
		return interlock.Effect{}, false
	}
	return *e.showDeed(d, false), true
}

// EffectList lists effects in the order of their digests, with no more text than an
// answer can take.
type EffectList struct {
	Namespace interlock.Namespace
	State     interlock.EffectState // 0: all
	After     [32]byte              // begin after this one
	Limit     int                   // 0: 100, at most 1,000

	Rows []interlock.Effect
	More bool

	found first[*sideEffect]
	next  int
}

func (l *EffectList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	wanted := func(d *sideEffect) bool {
		return bytes.Compare(d.digest[:], l.After[:]) > 0 && !d.isPast(e.now) && (l.State == 0 || e.deedState(d) == l.State)
	}
	if !sift(&l.found, s.sideEffects.all.Part, &l.next, wanted, byEffectDigest) {
		return false
	}
	size := 0
	for _, d := range l.found.list {
		if size += d.size(); len(l.Rows) == limit || len(l.Rows) > 0 && size > interlock.MaxReadBytes {
			l.More = true
			break
		}
		l.Rows = append(l.Rows, *e.showDeed(d, false))
	}
	return true
}

// deedState is d's state as others see it.
func (e *Engine) deedState(d *sideEffect) interlock.EffectState {
	if d.state == interlock.EffectClaimed && !e.lives(d) {
		return interlock.EffectUnknown
	}
	return d.state
}

// showDeed describes a side effect, to its claimer or to others.
func (e *Engine) showDeed(d *sideEffect, mine bool) *interlock.Effect {
	f := &interlock.Effect{
		Digest: d.digest, Action: d.action, State: e.deedState(d), Agent: d.agent, Session: d.name, Flow: d.flow, Principal: d.owner,
		Age: e.now.Sub(d.claimed), Attempt: int(d.attempt), Result: d.result, Reason: d.reason,
	}
	if mine {
		f.ID = d.id
	}
	switch {
	case d.settled != 0:
		f.Settled = e.now.Sub(d.settled)
	case f.State == interlock.EffectUnknown:
		f.Reason = d.silence()
	case d.ttl > 0:
		f.ExpiresIn = d.claimed.Add(d.ttl).Sub(e.now)
	}
	return f
}
