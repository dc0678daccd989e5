package engine

import (
	"bytes"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// lives reports whether the claimer of d may still be about to do it.
func (e *Engine) lives(d *store.SideEffect) bool {
	if d.State != interlock.EffectClaimed {
		return false
	}
	if !d.Lease.IsZero() {
		r := e.PendingWork.NS.Live(d.Lease)
		return r != nil && !r.IsOver()
	}
	if d.Session != 0 {
		s := e.PendingWork.NS.ByNum[d.Session]
		return s != nil && !s.Dead
	}
	return e.Clock < d.Claimed.Add(d.TTL)
}

func byEffectDigest(a, b *store.SideEffect) int { return bytes.Compare(a.Digest[:], b.Digest[:]) }
