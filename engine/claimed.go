package engine

import (
	"github.com/interlockdev/interlock"
)

// Effect gives what is known of an effect, and whether it was ever claimed.
func (e *Engine) Effect(ns interlock.Namespace, digest [32]byte) (interlock.Effect, bool) {
	return interlock.Effect{}, false
}

// EffectList lists effects in the order of their digests.
type EffectList struct {
	Namespace interlock.Namespace
	State     interlock.EffectState // 0: all
	After     [32]byte              // begin after this one
	Limit     int                   // 0: 100

	Rows []interlock.Effect
	More bool
}

func (l *EffectList) Look(e *Engine) (done bool) { return true }

func (e *Engine) claimEffect(c *ClaimEffect) {
	e.refuse(interlock.CodeUnsupported, "effects are not claimed yet")
}

func (e *Engine) settleEffect(c *SettleEffect) {
	e.refuse(interlock.CodeUnsupported, "effects are not settled yet")
}
