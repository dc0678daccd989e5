package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// convert asks for other claims of a lease: those it has in another mode, some of
// them, or others besides.
func (p *player) convert(o *op) error {
	r, ok := pick(o.r[0], p.m.inPhase(held))
	if o.r[1]%16 == 0 {
		r, ok = pick(o.r[0], p.m.inPhase(held, inGrace, closed, parked, over))
	}
	if !ok || r.fence == 0 || r.base != nil {
		return nil
	}
	c := &engine.Convert{
		Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID), ID: p.id(),
		MaxWait:    among(o.r[3], 0, 0, 0, 5*time.Second),
		OnConflict: among(o.r[3]>>8, interlock.Wait, interlock.Wait, interlock.Preempt, interlock.Fail),
		Attach:     o.r[3]>>16%5 < 3,
	}
	c.Link = uint64(1 + o.r[3]>>20%3)
	more := p.claims(o)
	for i, claim := range r.claims {
		switch o.r[7] >> (3 * i) % 8 {
		case 0: // it is dropped
		case 1, 2:
			c.Claims = append(c.Claims, claim)
		case 3, 4:
			if claim.Mode == interlock.Permits {
				c.Claims = append(c.Claims, interlock.Claim{Key: claim.Key, Mode: claim.Mode, Count: 1 + o.r[7]>>20%3})
				continue
			}
			fallthrough
		default:
			c.Claims = append(
				c.Claims,
				interlock.Claim{
					Key: claim.Key,
					Mode: among(
						o.r[7]>>(3*i+8), interlock.Exclusive, interlock.Exclusive, interlock.Shared, interlock.IntentExclusive,
					),
				},
			)
		}
	}
	if o.r[4]>>16%3 == 0 {
		c.Claims = append(c.Claims, more...)
	}
	if o.r[4]>>20%32 > 0 {
		c.Claims = dedupe(c.Claims)
	}
	if o.r[4]>>8%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
	}
	return p.step(c)
}

// pattern sets or drops a pattern, or changes the settings. The first in a namespace
// is one that all keys fit, mostly.
func (p *player) pattern(o *op) error {
	head := engine.Head{Namespace: among(o.r[0], firstNamespace, firstNamespace, firstNamespace, otherNamespace)}
	all := interlock.Pattern{
		Name: "zz", Shape: "{name}/{path...}", Preempt: among(o.r[7], interlock.PreemptRevoke, interlock.PreemptAsk),
		OnDeadlock: among(o.r[7]>>8, interlock.DeadlockRevoke, interlock.DeadlockRefuse), AuditRefusals: o.r[7]>>16%2 == 0,
	}
	if len(p.m.patterns[head.Namespace]) == 0 && o.r[1]%8 > 0 {
		if err := p.step(&engine.SetPattern{Head: head, Pattern: all}); err != nil {
			return err
		}
	}
	n := among(o.r[2], uint32(2), 3, 4)
	one := among(
		o.r[3], all,
		interlock.Pattern{Name: "p", Shape: "p", Capacity: n},
		interlock.Pattern{
			Name: "p", Shape: "p", Capacity: n, Groups: []interlock.Group{{Name: "x", Min: 1}, {Name: "y", Max: 2}},
		},
		interlock.Pattern{Name: "g", Shape: "g:{id:int}", Aliases: []string{"gg-{id:int}"}, Capacity: n},
		interlock.Pattern{
			Name: "ax", Shape: among(o.r[4], "a/x", "a/{sub}/1", "a/{rest...}"),
			Allow: []interlock.Rule{{Principal: "web"}, {Principal: "*", Modes: []interlock.Mode{interlock.Shared}}},
		},
		interlock.Pattern{Name: "lows", Shape: "r:{name:lower}/{path...}"},
		interlock.Pattern{
			Name: "low", Shape: "r:prod/{path...}", Aliases: []string{"prod/{path...}"},
			Allow: []interlock.Rule{{Principal: "web"}}, Capacity: among(o.r[4], 0, n),
		},
		interlock.Pattern{Name: "t", Shape: "t", Rate: 2, Per: among(o.r[4], 2*time.Second, 10*time.Second), Burst: 3},
		interlock.Pattern{Name: "t", Shape: "t", Rate: 2, Per: 4 * time.Second, Burst: 3, Capacity: 3},
		interlock.Pattern{Name: "c", Shape: "c", Rate: 1, Per: among(o.r[4], 4*time.Second, 15*time.Second), Burst: 1},
		interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: among(o.r[4], uint32(1), 2, 3)},
		interlock.Pattern{
			Name: "works", Shape: "org:{org}/workflow:{id}/runs", Capacity: 1, MaxWait: among(o.r[4], 0, 3*time.Second),
		},
		interlock.Pattern{
			Name: "b", Shape: "b", TTL: 20 * time.Second, MaxTTL: 40 * time.Second, MaxHold: 30 * time.Second,
			LockDelay: 3 * time.Second,
		},
		interlock.Pattern{
			Name: "c", Shape: "c", Grace: 3 * time.Second, MaxGrace: 4 * time.Second, Stall: 20 * time.Second,
			MaxWait: 15 * time.Second,
		},
		interlock.Pattern{
			Name: "b", Shape: "b",
			Allow: []interlock.Rule{{Principal: "web"}, {Principal: "*", Modes: []interlock.Mode{interlock.Shared}}},
		},
		interlock.Pattern{Name: "b", Shape: "b", Allow: []interlock.Rule{{Principal: "group:x"}, {Principal: "ops"}}},
		interlock.Pattern{
			Name: "c", Shape: "c",
			Allow: []interlock.Rule{{Principal: "group:y", Modes: []interlock.Mode{interlock.Exclusive}}, {Principal: "web"}},
		},
	)
	switch o.r[5] % 12 {
	case 0:
		name := among(o.r[6], "b", "c", "zz", "none")
		if err := p.step(&engine.DropPattern{Head: head, Name: name}); err != nil || o.r[7]%2 == 0 {
			return err
		}
		if err := p.step(&engine.RevertPattern{Head: head, Name: name}); err != nil {
			return err
		}
		return p.step(&engine.RevertPattern{Head: head, Name: name}) // is dropped again
	case 2, 3:
		if head.Actor = among(o.r[6]>>8, "", "web"); o.r[6]>>12%4 == 0 {
			head.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
		}
		return p.step(&engine.RevertPattern{
			Head: head, Name: among(o.r[6], "b", "c", "zz", "p", "t", "runs", "none"),
			Revision: uint64(among(o.r[7], 0, 0, 1, 2, 7)),
		})
	case 4:
		if o.r[6]%4 == 0 {
			head.Actor = among(o.r[6]>>8, "", "web")
			return p.step(&engine.DeleteNamespace{Head: head, Force: o.r[7]%4 > 0})
		}
	case 5:
		if o.r[6]%4 < 3 {
			return p.changeWebhook(head, o)
		}
	case 1:
		return p.step(&engine.Configure{Head: head, Settings: interlock.Settings{
			Closed: o.r[6]%2 == 1, StrictOrder: o.r[6]%4 == 1,
			EffectRetention: among(o.r[7]>>16, 0, time.Second, 20*time.Second),
			Quota:           interlock.Quota{Documents: among(o.r[7], 0, 0, 3, 5), State: among(o.r[7]>>8, 0, 0, 900, 1900)},
		}})
	}
	one.Write = among(
		o.r[6]>>16, interlock.WriteGuarded, interlock.WriteOpen, interlock.WriteVersion, interlock.WriteLease,
		interlock.WriteSingle,
	)
	if one.Write == interlock.WriteSingle {
		if one.Writer = "web"; o.r[6]>>24%2 == 0 {
			one.Writer, one.WriterQueue = "", among(o.r[6]>>20, "q", "q", "r")
		}
	}
	one.AuditRefusals = o.r[6]>>28%2 == 0
	one.OnDeadlock = among(o.r[6]>>12, interlock.DeadlockRefuse, interlock.DeadlockRevoke)
	one.Preempt = among(
		o.r[6]>>8, interlock.PreemptAsk, interlock.PreemptAsk, interlock.PreemptRevoke, interlock.PreemptNever,
	)
	return p.step(&engine.SetPattern{Head: head, Pattern: one})
}

// arrive lets a party of a barrier come to it again.
func (p *player) arrive(o *op) error {
	list := p.m.inPhase(held)
	if o.r[1]%16 == 0 {
		list = p.m.inPhase(offered, held, inGrace, closed, over)
	}
	var parties []*request
	for _, r := range list {
		if r.set != nil {
			parties = append(parties, r)
		}
	}
	r, ok := pick(o.r[0], parties)
	if !ok {
		return nil
	}
	c := &engine.Arrive{
		Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID), ID: p.id(),
		MaxWait: among(o.r[3], 0, 0, 0, 5*time.Second), Attach: o.r[3]>>16%5 < 3,
	}
	c.Link = uint64(1 + o.r[3]>>20%3)
	if o.r[4]%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
	}
	return p.step(c)
}

// declare declares a wait for another session.
func (p *player) declare(o *op) error {
	on, by := p.session(o.r[0], o.r[1]), p.session(o.r[2], 1)
	if on == nil || by == nil {
		return nil
	}
	c := &engine.Declare{
		Head: p.in(by), ID: p.id(), Flow: among(o.r[3], "main", "main", "sub"),
		On:      engine.FlowRef{Session: on.name, Flow: among(o.r[4], "", "main", "sub")},
		MaxWait: among(o.r[5], 0, 0, 10*time.Second), Attach: o.r[6]%2 == 0, Encloses: o.r[7]>>8%3 == 0,
	}
	if o.r[4]>>8%3 == 0 {
		c.On.Session, c.On.Agent = "", on.agent
	}
	if o.r[5]>>8%8 == 0 {
		c.Session, c.Agent = interlock.SessionID{}, fmt.Sprintf("bare-%d", p.ids)
	}
	if o.r[6]>>8%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
	}
	c.Link = uint64(1 + o.r[7]%3)
	return p.step(c)
}
