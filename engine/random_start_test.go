package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// startRun starts a run, mostly of one organisation, or asks for one again.
func (p *player) startRun(o *op) error {
	c := &engine.StartRun{
		ID: p.id(), Org: among(o.r[1], "o", "o", "o", "o", "o", "o", "o", ""), Workflow: among(o.r[1]>>8, "", "w", "w", "v"),
		Flow: among(o.r[1]>>16, "", "main", "sub"), Priority: among(o.r[2], 0, 0, 0, 1, -1),
		TTL:     among(o.r[2]>>8, 0, 9*time.Second, 30*time.Second),
		MaxHold: among(o.r[2]>>16, 0, 0, 12*time.Second),
		MaxWait: among(o.r[3], 0, 2*time.Second, 8*time.Second, time.Minute), Attach: o.r[3]>>8%5 > 0,
	}
	if again, ok := pick(o.r[4], p.started); ok && o.r[4]>>16%3 == 0 && !p.isGone(again.Namespace, again.Session) {
		again.From, again.ID, again.MaxWait, again.Attach = nil, c.ID, c.MaxWait, c.Attach
		if again.Link = uint64(1 + o.r[5]%3); o.r[5]>>8%8 == 0 {
			again.Purpose = "something else"
		}
		return p.step(&again)
	}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[6]%3 > 0 {
		c.Head = p.in(s)
	} else {
		c.Namespace, c.Agent = among(o.r[0], firstNamespace, firstNamespace, otherNamespace), fmt.Sprintf("bare-%d", p.ids)
	}
	c.Link = uint64(1 + o.r[5]%3)
	if p.m.pattern(c.Namespace, "org:o/runs") == nil && o.r[7]%2 == 0 {
		runs := interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: among(o.r[7]>>8, uint32(1), 2)}
		if err := p.step(&engine.SetPattern{Head: engine.Head{Namespace: c.Namespace}, Pattern: runs}); err != nil {
			return err
		}
	}
	if o.r[8]%2 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.started = append(p.started, *c)
	}
	return p.step(c)
}
