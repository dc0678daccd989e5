package engine_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// claimEffect sets out to do action=, in the name of holder= or of the lease with
// fence=. With effect= it is the claim of that name again.
func (s *script) claimEffect(w *words) error {
	c := &engine.ClaimEffect{
		Head: s.head(w), ID: s.id(), Flow: w.get("flow"), Action: w.get("action"), TTL: w.duration("ttl"),
	}
	if w.has("effect") {
		c.ID = s.effects[w.get("effect")]
	}
	if w.has("fence") {
		c.Head, c.Lease = s.byFence(w)
	} else {
		s.asker(&c.Head, &c.Agent, w)
	}
	return s.tell(c)
}

// settleEffect returns what became of effect=, which its claimer knows by the name that
// it got, and others by its action.
func (s *script) settleEffect(w *words) error {
	c := &engine.SettleEffect{Head: s.head(w), Result: w.get("result"), Reason: w.get("reason")}
	switch {
	case w.has("done"):
		c.State = interlock.EffectDone
	case w.has("unknown"):
		c.State = interlock.EffectUnknown
	case w.has("claimed"):
		c.State = interlock.EffectClaimed
	}
	w.used["undone"] = true
	if w.has("effect") {
		c.ID = s.effects[w.get("effect")]
	}
	if w.has("action") {
		c.Digest = sha256.Sum256([]byte(w.get("action")))
	}
	if w.has("as") {
		c.Session = s.actor(c.Namespace, w.get("as")).id
	}
	c.From = &listener{w.get("as")}
	return s.tell(c)
}

// effectLine describes an effect, and names it for callers that know its id.
func (s *script) effectLine(f *engine.SideEffect) string {
	text := fmt.Sprintf("%s %v by %s attempt=%d", f.Action, f.State, flowName(f.Agent, f.Flow), f.Attempt)
	if f.State == 0 {
		text = fmt.Sprintf("%s not done by %s attempt=%d", f.Action, flowName(f.Agent, f.Flow), f.Attempt)
	}
	if f.Principal != "" {
		text += " principal=" + f.Principal
	}
	if f.Age > 0 {
		text += fmt.Sprintf(" age=%v", f.Age)
	}
	if f.ExpiresIn > 0 {
		text += fmt.Sprintf(" until=%v", since(s.now.Add(f.ExpiresIn)))
	}
	if f.Settled > 0 {
		text += fmt.Sprintf(" settled=%v", f.Settled)
	}
	if f.Result != "" {
		text += " result=" + f.Result
	}
	if f.Reason != nil {
		text += fmt.Sprintf(" reason=%q", prose.Sentence(f.Reason))
	}
	if f.ID.IsZero() {
		return text
	}
	for name, id := range s.effects {
		if id == f.ID {
			return text + " effect=" + name
		}
	}
	name := fmt.Sprintf("e%d", len(s.effects)+1)
	s.effects[name] = f.ID
	return text + " effect=" + name
}

// showEffects lists what is known of effects.
func (s *script) showEffects(ns interlock.Namespace, w *words) {
	l := &engine.EffectList{Namespace: ns, Limit: int(w.number("limit"))}
	l.State, _ = interlock.ParseEffectState(w.get("in"))
	for !l.Look(s.e) {
	}
	for i := range l.Rows {
		s.printf("%s", s.effectLine(&l.Rows[i]))
	}
	if l.More {
		s.printf("and more")
	}
}
