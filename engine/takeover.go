package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// Take-over: a process that was started again goes on with the keys of the process before it, instead of standing
// in line behind itself until that session has died. Its request names that session by its id, which is a secret: only
// the same principal with the secret can.
//
// The lease of the session before ends, and the caller gets one of its own in the same step, ahead of the line: in
// between the keys are never free. The new fence keeps out the process before, should it still live.

// predecessor returns the lease that ends for the request r of the command; nil for none.
func (c *Acquire) predecessor(e *Engine, sess *store.Session, r *store.Request) *store.Request {
	if c.TakeOver.IsZero() || sess == nil || c.TakeOver == sess.ID || c.Any || r.IsRun() {
		return nil
	}
	before := e.alive(c.TakeOver)
	if before == nil || before.Owner != sess.Owner || before.Work > interlock.MaxKnown {
		return nil
	}
	for _, l := range heldLeases(before) {
		if sameClaims(l.Claims(), r.Claims()) && l.Group == r.Group && canPass(l) {
			return l
		}
	}
	return nil
}

// canPass reports whether a held lease can pass to another holder: nothing else of its holder depends on it, its
// claims cost nothing anew, and its keys need not stay closed after the death of its holder, as with a lock_delay.
func canPass(l *store.Request) bool {
	if l.LockDelay > 0 || l.Task != nil || l.IsRun() || l.Gathering() != nil || l.Conversion != nil || l.IsShared() {
		return false
	}
	for _, claim := range l.Claims() {
		p := l.NS.PolicyAt(string(claim.Key))
		if claim.Mode > interlock.Permits || p != nil && p.Rate > 0 {
			return false
		}
	}
	return true
}
