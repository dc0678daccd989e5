package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// park puts a lease aside.
func (p *player) park(o *op) error {
	list := p.m.inPhase(held)
	if o.r[1]%12 == 0 {
		list = p.m.inPhase(held, inGrace, closed, parked, over)
	}
	r, ok := pick(o.r[0], list)
	if !ok || r.base != nil || r.fence == 0 || r.set != nil {
		return nil
	}
	c := &engine.Park{
		Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID),
		Free: o.r[3]%3 == 0, Keep: o.r[3]%5 == 1, For: among(o.r[4], 0, 10*time.Second, time.Minute, time.Hour),
		Reason: among(o.r[4]>>8, "may I?", "may I?", ""),
	}
	if o.r[5]%4 == 0 {
		c.RequestID = fmt.Sprintf("p%d", o.r[6])
	}
	return p.step(c)
}

// resume takes a parked lease up again, in whosever name.
func (p *player) resume(o *op) error {
	list := p.m.inPhase(parked)
	if o.r[1]%12 == 0 {
		list = p.m.inPhase(waiting, held, inGrace, closed, parked, over)
	}
	r, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	c := &engine.Resume{
		Head: engine.Head{Namespace: r.ns}, Lease: interlock.LeaseID(r.ask.ID), Flow: among(o.r[2], "main", "main", "sub"),
		MaxWait:    among(o.r[3], 0, 0, 5*time.Second),
		OnConflict: among(o.r[3]>>8, interlock.Wait, interlock.Wait, interlock.Preempt, interlock.Fail),
		Attach:     o.r[3]>>16%5 < 3,
		Unapproved: o.r[6]>>8%3 == 0,
	}
	if s := p.session(o.r[4], 1); s != nil && s.ns == r.ns && o.r[4]>>8%5 > 0 {
		c.Session = s.id
	}
	c.Link = uint64(1 + o.r[3]>>20%3)
	if o.r[5]%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
	}
	return p.step(c)
}
