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
		OnConflict: among(o.r[3]>>8, interlock.Wait, interlock.Wait, interlock.Wait, interlock.Fail),
		Attach:     o.r[3]>>16%5 < 3,
	}
	c.Link = uint64(1 + o.r[3]>>20%3)
	more := p.claims(o)
	for i, claim := range r.claims {
		switch o.r[7] >> (3 * i) % 8 {
		case 0: // it is dropped
		case 1, 2:
			c.Claims = append(c.Claims, claim)
		default:
			c.Claims = append(c.Claims, interlock.Claim{Key: claim.Key, Mode: among(o.r[7]>>(3*i+8), interlock.Exclusive, interlock.Exclusive, interlock.Shared, interlock.IntentExclusive)})
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
