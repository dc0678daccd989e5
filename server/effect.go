package server

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// claimEffect is POST /v1/effects.
func (c *call) claimEffect() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.ClaimEffect{Head: h, ID: freshID()}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeClaimEffect(d, cmd) }) {
		return
	}
	eff, at, err := c.claimOrWait(cmd, wait)
	switch {
	case err != nil:
		c.failWith(err)
	case eff.Outcome == engine.Refused:
		c.refused(&eff, at)
	default:
		c.settled(&eff, at)
	}
}

// settled answers with an effect as it is now.
func (c *call) settled(eff *engine.Effect, at interlock.At) {
	j := c.reply()
	j.str("outcome", effectState(eff.Effect.State))
	writeEffect(j, "effect", prose.Effect(eff.Effect))
	c.send(http.StatusOK, j, at)
}

// effectState names a state; an effect that was found not done has none and is free.
func effectState(s interlock.EffectState) string {
	if name := s.String(); name != "" {
		return name
	}
	return "free"
}

// settle carries out the claimer's report on its effect.
func (c *call) settle(decode func(*jsonIn, *engine.SettleEffect), state interlock.EffectState) {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.SettleEffect{Head: h, State: state}
	if cmd.ID, ok = c.effectID(); !ok {
		return
	}
	if !c.body(func(d *jsonIn) { decode(d, cmd) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.settled(&eff, at)
	}
}

// completeEffect is POST /v1/effects/{id}/done.
func (c *call) completeEffect() { c.settle(decodeDone, interlock.EffectDone) }

// markEffectUnknown is POST /v1/effects/{id}/unknown.
func (c *call) markEffectUnknown() { c.settle((*jsonIn).reasonRequest, interlock.EffectUnknown) }

// cancelEffect is POST /v1/effects/{id}/cancel: it was not done.
func (c *call) cancelEffect() { c.settle((*jsonIn).reasonRequest, 0) }

// reconcileEffect is POST /v1/effects/{digest}/reconcile.
func (c *call) reconcileEffect() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.SettleEffect{Head: h}
	if cmd.Digest, ok = c.digest(); !ok {
		return
	}
	if !c.body(func(d *jsonIn) { decodeReconcile(d, cmd) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.settled(&eff, at)
	}
}

// deleteEffects is DELETE /v1/effects: of those that are done.
func (c *call) deleteEffects() {
	if c.query.Get("older_than_ms") == "" {
		c.refuse(interlock.CodeInvalidRequest, "parameter older_than_ms is missing: the minimum age of the done effects")
		return
	}
	age, ok := c.intParam("older_than_ms", 0, 0, interlock.EffectWindow.Milliseconds())
	if !ok {
		return
	}
	c.forget(&engine.ForgetEffects{Head: c.head(), OlderThan: time.Duration(age) * time.Millisecond})
}

// deleteEffect is DELETE /v1/effects/{digest}.
func (c *call) deleteEffect() {
	if digest, ok := c.digest(); ok {
		c.forget(&engine.ForgetEffects{Head: c.head(), One: true, Digest: digest})
	}
}

func (c *call) forget(cmd *engine.ForgetEffects) {
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	j := c.reply()
	j.str("outcome", "forgotten")
	j.int("forgotten", int64(eff.Forgotten))
	j.bool("more", eff.More)
	c.send(http.StatusOK, j, at)
}

// digest is that of an action in the path.
func (c *call) digest() (digest [32]byte, ok bool) {
	if n, err := hex.Decode(digest[:], []byte(c.variable[:min(len(c.variable), 2*len(digest))])); err != nil ||
		n != len(digest) || len(c.variable) != 2*n {
		c.refuse(
			interlock.CodeInvalidID, "invalid digest of an action: want 64 hexadecimal digits, as the server returned it",
		)
		return digest, false
	}
	return digest, true
}

// getEffect is GET /v1/effects/{digest}.
func (c *call) getEffect() {
	digest, ok := c.digest()
	if !ok {
		return
	}
	var effect engine.SideEffect
	var known bool
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { effect, known = e.Effect(c.namespace, digest) })
	switch {
	case !ok:
		return
	case !known:
		c.refuse(
			interlock.CodeUnknownEffect,
			"no effect has this digest: it was never claimed, or was reconciled as not done, or was done long ago",
		)
		return
	}
	j := c.reply()
	writeEffect(j, "effect", prose.Effect(&effect))
	c.send(http.StatusOK, j, at)
}

// listEffects is GET /v1/effects.
func (c *call) listEffects() {
	list := engine.EffectList{Namespace: c.namespace}
	if name := c.query.Get("state"); name != "" {
		var ok bool
		if list.State, ok = interlock.ParseEffectState(name); !ok {
			c.refuse(
				interlock.CodeInvalidRequest,
				fmt.Sprintf("parameter state: want claimed, done or unknown, found %q", clipped(name)),
			)
			return
		}
	}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	list.Limit = int(limit)
	listing := "effects " + list.State.String()
	after, ok := c.openCursor(listing)
	if !ok {
		return
	}
	copy(list.After[:], after)
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("effects")
	for i := range list.Rows {
		writeEffect(j, "", prose.Effect(&list.Rows[i]))
	}
	j.closeArray()
	if n := len(list.Rows); list.More && n > 0 {
		j.str("cursor", c.makeCursor(listing, string(list.Rows[n-1].Digest[:])))
	}
	c.send(http.StatusOK, j, at)
}
