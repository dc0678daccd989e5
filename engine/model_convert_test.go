package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// newConversion is the request that c makes for its lease: in the name of the
// lease's holder, and with the lease's priority. It leads if it adds no key.
func (m *model) newConversion(c *engine.Convert, num uint64) *request {
	lease := m.byID(c.Namespace, c.Lease)
	if lease == nil {
		return nil
	}
	r := m.about(lease, num)
	r.ask.Head, r.ask.ID, r.ask.MaxWait, r.ask.OnConflict, r.ask.Attach = c.Head, c.ID, c.MaxWait, c.OnConflict, c.Attach
	r.claims, r.lead = m.normal(c.Namespace, c.Claims), true
	for _, claim := range r.claims {
		has := slices.ContainsFunc(lease.claims, func(have interlock.Claim) bool { return have.Key == claim.Key })
		r.lead = r.lead && has
	}
	m.boundWait(r)
	return r
}

// about is a request that changes a lease.
func (m *model) about(lease *request, num uint64) *request {
	r := &request{num: num, ns: lease.ns, session: lease.session, base: lease, arrived: m.now}
	r.ask.Agent, r.ask.Flow, r.ask.Purpose = lease.ask.Agent, lease.ask.Flow, lease.ask.Purpose
	r.ask.Group, r.ask.Priority = lease.ask.Group, lease.ask.Priority
	return r
}

// subject returns the request that r is about: for a granted conversion, its lease.
func (r *request) subject() *request {
	if r.phase == over && r.why == record.ByConversion {
		return r.base.subject()
	}
	return r
}

// converting returns the conversion that a lease waits for, nil if there is none.
func (m *model) converting(lease *request) *request {
	for _, r := range m.inPhase(waiting) {
		if r.base == lease {
			return r
		}
	}
	return nil
}

func sameClaims(a, b []interlock.Claim) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c interlock.Claim) bool { return !slices.Contains(b, c) })
}

// expectConvert: asking for the lease's present claims changes nothing; repeating a waiting
// conversion continues that wait; anything else replaces it.
func (m *model) expectConvert(c *engine.Convert) answer {
	var group string
	var had []interlock.Claim
	if lease := m.byID(c.Namespace, c.Lease); lease != nil {
		group, had = lease.ask.Group, append([]interlock.Claim{}, lease.claims...) // not nil: a task may have none
	}
	wrong := m.wrongClaims(&c.Head, had, c.Claims, group, interlock.Permits)
	if c.MaxWait < 0 || c.MaxWait > interlock.MaxMaxWait {
		wrong = append(wrong, interlock.CodeInvalidTTL)
	}
	want := m.withTaken(&c.Head, c.Lease, func(lease *request) answer {
		if _, member := lease.membership(); lease.set != nil || lease.member != nil || member {
			return refusalKey(interlock.CodeInvalidRequest)
		}
		if codes := m.notFor(&c.Head, lease, m.normal(c.Namespace, c.Claims)); len(wrong)+len(codes) > 0 {
			return refusalKey(codes...)
		}
		r := m.newConversion(c, m.highestNum()+1)
		if sameClaims(r.claims, lease.claims) {
			return answer{outcome: engine.Granted, reused: []*request{lease}}
		}
		if earlier := m.converting(lease); earlier != nil && sameClaims(earlier.claims, r.claims) {
			return answer{outcome: engine.Queued, about: earlier}
		}
		if code := m.outOfOrder(r); code != "" {
			return refusalKey(code)
		}
		switch {
		case m.neverServed(r):
			return refusalKey(interlock.CodeTooManyPermits)
		case m.free(r):
			return answer{outcome: engine.Granted, about: lease}
		case m.atBest().free(r):
			return answer{}
		case c.OnConflict == interlock.Fail:
			return refusalKey(m.refusals(r)...)
		}
		return answer{outcome: engine.Queued, fresh: true}
	})
	if want.outcome == engine.Refused {
		want.codes = append(want.codes, wrong...) // whichever is looked at first
	}
	return want
}

// withHeld leads to a lease that can still be worked with.
func (m *model) withHeld(head *engine.Head, id interlock.LeaseID, then func(*request) answer) answer {
	return m.withLease(head, id, func(r *request) answer {
		switch {
		case r.member != nil && r.phase == held && r.member.phase == inGrace:
			return refusalKey(interlock.CodeInGrace) // a part's grace is its member's
		case r.phase == parked, r.phase == waiting:
			return refusalKey(interlock.CodeParked)
		case r.phase == offered && !r.lapse.mustBeDue(m.now): // its ttl begins when it is taken up
			return then(r)
		case r.phase == inGrace, r.hardEnd().mustBeDue(m.now) && r.ask.Grace > 0:
			return refusalKey(interlock.CodeInGrace)
		case r.hardEnd().mustBeDue(m.now):
			return refusalKey(interlock.CodeExpired, interlock.CodeTaken)
		}
		return then(r)
	})
}

// withTaken leads to a lease that its holder knows of, and can still work with.
func (m *model) withTaken(head *engine.Head, id interlock.LeaseID, then func(*request) answer) answer {
	if r := m.byID(head.Namespace, id); r != nil && r.phase == offered {
		return refusalKey(interlock.CodeUnknownLease)
	}
	return m.withHeld(head, id, then)
}

// permitConversion: a lease has other claims at once.
func (m *model) permitConversion(cmd engine.Command, ev *record.Event) error {
	r := m.made(cmd, m.highestNum()+1)
	if r == nil || r.base == nil {
		return errors.New("nobody asked for it")
	}
	switch {
	case r.base.num != ev.Num:
		return fmt.Errorf("it was asked of %v", r.base)
	case r.base.phase != held:
		return fmt.Errorf("%v is not held", r.base)
	case !slices.Equal(ev.Claims, r.claims):
		return fmt.Errorf("it was to have %s, not %s", claimsText(r.claims), claimsText(ev.Claims))
	case !m.atBest().free(r):
		return fmt.Errorf("%v is blocked by %v (I1)", r, m.blockers(r))
	}
	return m.permitFence(ev.Fence)
}

// convert replaces the claims of a lease.
func (m *model) convert(lease *request, claims []interlock.Claim, fence interlock.Fence) {
	if up := without(lease.claims, claims); len(up) > 0 {
		m.writes = append(m.writes, write{lease.ns, up, m.events, nil})
	}
	for _, c := range claims {
		if c.Mode == interlock.Permits {
			m.spend(lease.ns, c.Key, max(0, int(c.Count)-permits(lease.claims, c.Key)))
		} else if !coversAll(lease.claims, []interlock.Claim{c}) {
			m.spend(lease.ns, c.Key, tokens(c))
		}
	}
	lease.claims, lease.fence, lease.changed, m.fence = claims, fence, false, fence
}
