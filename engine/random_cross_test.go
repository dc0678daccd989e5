package engine_test

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// cross makes two flows that hold keys ask for each other's. Flows that ask at random rarely
// wait in a ring, and then seldom for a key with a pattern that makes the victim forfeit.
func (p *player) cross(o *op) error {
	var list []*request
	for _, r := range p.m.inPhase(held) {
		if r.session != nil && !r.session.ended && r.member == nil && len(r.claims) > 0 {
			list = append(list, r)
		}
	}
	one, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	var others []*request
	for _, r := range list {
		if r.ns == one.ns && r.party() != one.party() {
			others = append(others, r)
		}
	}
	other, ok := pick(o.r[1], others)
	if !ok {
		return nil
	}
	for _, x := range [][2]*request{{one, other}, {other, one}} {
		by, of := x[0], x[1]
		if by.phase != held || of.phase != held { // meanwhile the first wait has ended one
			return nil
		}
		claim, _ := pick(o.r[2], of.claims)
		if claim.Mode.Counts() {
			return nil
		}
		err := p.step(&engine.Acquire{
			Head: p.in(by.session), ID: p.id(), LeaseRequest: interlock.LeaseRequest{
				Flow: by.ask.Flow, Claims: []interlock.Claim{{Key: claim.Key}}, OnConflict: interlock.Wait,
			}, Attach: o.r[3]%4 > 0,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
