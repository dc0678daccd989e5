package engine_test

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// actions are the external actions of random runs.
var actions = []string{
	`{"tool":"charge"}`, `{"tool":"refund"}`, `{"tool":"mail"}`, `{"tool":"book"}`, `{"tool":"ship"}`, `{"tool":"sign"}`,
	"[1]", "[2]", "[3]", "[4]",
}

// claimEffect sets out to do one of a few things.
func (p *player) claimEffect(o *op) error {
	if c, ok := pick(o.r[0], p.claimed); ok && o.r[1]%6 == 0 { // the same request again
		if s := p.m.sessionByID(c.Namespace, c.Session); s == nil || !s.ended {
			c.ID, c.From = p.id(), nil
			c.TTL += among(o.r[2], 0, 0, 0, time.Second)
			return p.step(&c)
		}
	}
	c := &engine.ClaimEffect{
		Head: engine.Head{
			Namespace: among(o.r[2], firstNamespace, firstNamespace, otherNamespace), Actor: among(o.r[2]>>8, "", "web"),
		},
		ID: p.id(), Agent: fmt.Sprintf("bare-%d", p.ids), Flow: among(o.r[3], "main", "", "sub"),
		Action: among(o.r[4], append([]string{""}, actions...)...),
		TTL:    among(o.r[5], 0, 5*time.Second, 40*time.Second, -time.Second),
	}
	switch s := p.session(o.r[6], o.r[7]); {
	case o.r[8]%3 == 0:
		if r, ok := pick(o.r[9], p.m.inPhase(held, held, inGrace, parked, over)); ok && !p.isClosedPart(r) {
			c.Head = p.head(r, o.r[7])
			c.Lease = interlock.LeaseID(r.ask.ID)
		}
	case s != nil && o.r[8]%3 == 1:
		c.Head = p.in(s)
	}
	if o.r[1]>>8%3 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.claimed = append(p.claimed, *c)
	}
	return p.step(c)
}

// settleEffect returns what became of one of them.
func (p *player) settleEffect(o *op) error {
	if o.r[9]%8 == 0 {
		c := &engine.ForgetEffects{
			Head: engine.Head{Namespace: among(o.r[0], firstNamespace, firstNamespace, otherNamespace)},
		}
		if c.OlderThan = among(o.r[1], 0, 5*time.Second, time.Minute, -1); o.r[2]%2 == 0 {
			c.OlderThan, c.One, c.Digest = 0, true, sha256.Sum256([]byte(among(o.r[4], actions...)))
		}
		return p.step(c)
	}
	c := &engine.SettleEffect{
		Head: engine.Head{Namespace: among(o.r[0], firstNamespace, firstNamespace, otherNamespace)},
		State: among(
			o.r[1], interlock.EffectDone, interlock.EffectDone, interlock.EffectUnknown, 0, 0, interlock.EffectClaimed,
		),
	}
	d, ok := pick(o.r[2], p.m.sideEffects)
	switch {
	case ok && o.r[3]%3 > 0:
		c.Namespace, c.ID = d.ns, d.id
	case ok && o.r[3]%8 > 0:
		c.Namespace, c.Digest = d.ns, sha256.Sum256([]byte(d.action))
	default:
		c.Digest = sha256.Sum256([]byte(among(o.r[4], actions...)))
	}
	if c.State == interlock.EffectDone {
		c.Result = among(o.r[5], "", `{"ok":true}`, "[1]", "no JSON")
	}
	if o.r[6]%3 == 0 {
		c.Reason = among(o.r[6]>>4, "the bank says so", "the line broke")
	}
	if o.r[7]%4 == 0 {
		c.RequestID = fmt.Sprintf("e%d", o.r[8]%64)
	}
	return p.step(c)
}
