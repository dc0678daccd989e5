package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// yieldAsk is a request to a holder to yield.
type yieldAsk struct {
	lease *request
	by    *request
}

// contested returns the preemption policies of the keys where r meets a holder.
func (m *model) contested(lease, r *request) (policies []interlock.PreemptPolicy) {
	for _, have := range lease.claims {
		for _, want := range r.wants() {
			meet := clash(have, want) || have.Key == want.Key && have.Mode == interlock.Permits && want.Mode == interlock.Permits
			if !meet {
				continue
			}
			for _, key := range []interlock.Key{have.Key, want.Key} {
				policy := interlock.PreemptAsk
				if p := m.pattern(r.ns, key); p != nil {
					policy = p.Preempt
				}
				policies = append(policies, policy)
			}
		}
	}
	return policies
}

// permitAsking: a preempting request asks its blockers when it arrives.
func (m *model) permitAsking(cmd engine.Command, ev *record.Event) error {
	lease, by := m.subjectOf(ev), m.byNum(ev.By)
	if lease == nil || lease.phase != held && lease.phase != offered && lease.phase != parked || by == nil ||
		by.phase != waiting {
		return fmt.Errorf("%v is asked by %v", lease, by)
	}
	if c, ok := cmd.(*engine.RequestYield); ok {
		switch {
		case !m.mayBeYielded(c, lease) || !m.isBehind(by, lease):
			return fmt.Errorf("%v does not wait for %v", by, lease)
		case slices.ContainsFunc(m.plainlyBehind(c, lease), func(r *request) bool { return m.aheadOf(r, by) }):
			return fmt.Errorf("%v is not the first that waits for %v", by, lease)
		case slices.Contains(m.asks, yieldAsk{lease, by}):
			return fmt.Errorf("%v has asked %v before", by, lease)
		case ev.Priority != by.ask.Priority || ev.Purpose != by.ask.Purpose || ev.Note != c.Reason || ev.Actor != c.Actor:
			return fmt.Errorf("it does not say who asks: %+v", ev)
		}
		return nil
	}
	if by.member != nil {
		if lease.member == nil || lease.claims[0].Key != by.claims[0].Key {
			return fmt.Errorf("%v does not have the part for which %v waits", lease, by)
		}
		return nil
	}
	id, _ := idOf(cmd)
	switch {
	case by.ask.ID != id && (by.since != m.now || by.since == 0) || by.ask.OnConflict != interlock.Preempt:
		return fmt.Errorf("%v does not preempt, or has not just come", by)
	case lease.ns != by.ns || lease.party() == by.party():
		return errors.New("nobody is asked to yield to himself")
	case !slices.ContainsFunc(
		m.contested(lease, by), func(p interlock.PreemptPolicy) bool { return p != interlock.PreemptNever },
	):
		return fmt.Errorf("%v is not in the way of %v, or may not be asked", lease, by)
	case ev.Priority != by.ask.Priority || ev.Purpose != by.ask.Purpose:
		return fmt.Errorf("it does not say who asks: %+v", ev)
	}
	return nil
}

// mustAsk returns the leases that r must ask when it begins to wait: all that keep it
// from a key, where no pattern has a word in it. Of those with permits it asks as
// many as it takes.
func (m *model) mustAsk(r *request) (list []*request) {
	if r.ask.OnConflict != interlock.Preempt {
		return nil
	}
	for _, q := range m.inPhase(held) {
		never := slices.Contains(m.contested(q, r), interlock.PreemptNever)
		if m.inTheWay(q, r, r.wants()) && !never && !r.ask.Any && q.member == nil {
			list = append(list, q)
		}
	}
	return list
}

// mayBeYielded reports whether c is about r.
func (m *model) mayBeYielded(c *engine.RequestYield, r *request) bool {
	return r.ns == c.Namespace && r.holds() && r.phase != closed && r.fence == c.Fence && slices.ContainsFunc(
		r.claims, func(have interlock.Claim) bool {
			return have.Key == m.spell(c.Namespace, c.Key) || have.Key == c.Key
		},
	)
}

// isBehind reports whether r waits where it meets a lease. A task has no agent yet.
func (m *model) isBehind(r, lease *request) bool {
	return r.phase == waiting && r.task == nil && r.ns == lease.ns && r.party() != lease.party() &&
		len(m.contested(lease, r)) > 0
}

// plainlyBehind returns the requests that the lease alone decides about: they want its key, and nothing else,
// exclusively, as it does.
func (m *model) plainlyBehind(c *engine.RequestYield, lease *request) (list []*request) {
	key := interlock.Claim{Key: m.spell(c.Namespace, c.Key), Mode: interlock.Exclusive}
	if !slices.Contains(lease.claims, key) {
		return nil
	}
	for _, r := range m.requests {
		if m.isBehind(r, lease) && r.base == nil && r.member == nil && len(r.claims) == 1 && r.claims[0] == key {
			list = append(list, r)
		}
	}
	return list
}

// expectRequestYield returns the answer to c.
func (m *model) expectRequestYield(c *engine.RequestYield) answer {
	at := slices.IndexFunc(m.requests, func(r *request) bool { return m.mayBeYielded(c, r) })
	if at < 0 {
		return refusalKey(interlock.CodeFenced)
	}
	lease := m.requests[at]
	switch {
	case lease.phase == inGrace:
		return refusalKey(interlock.CodeInGrace)
	case len(m.plainlyBehind(c, lease)) > 0:
		return answer{outcome: engine.Done}
	case !slices.ContainsFunc(m.requests, func(r *request) bool { return m.isBehind(r, lease) }):
		return refusalKey(interlock.CodeNoWaiter)
	}
	return answer{outcome: engine.Refused, codes: []interlock.Code{interlock.CodeNoWaiter, ""}}
}

// permitPreemption: a holder that was asked in this step loses the lease, if a pattern lets the
// asking request revoke and its priority is not lower.
func (m *model) permitPreemption(r *request) error {
	for _, a := range m.asks {
		if a.lease != r || a.by.waitsSince() != m.now || a.by.ask.Priority < r.ask.Priority {
			continue
		}
		if slices.Contains(m.contested(r, a.by), interlock.PreemptRevoke) {
			return nil
		}
	}
	return fmt.Errorf("nobody may take %v away", r)
}

// yield returns the request that a holder is asked to yield to: the one with the highest
// priority, and of equals the first; nil when there is none any more.
func (m *model) yield(lease *request) (best *request) {
	for _, a := range m.asks {
		if a.lease == lease && a.by.phase == waiting && (best == nil || a.by.ask.Priority > best.ask.Priority) {
			best = a.by
		}
	}
	return best
}

func (m *model) checkYield(lease *request, got *interlock.Yield) error {
	by := m.yield(lease)
	if got != nil && slices.ContainsFunc(m.asks, func(a yieldAsk) bool {
		return a.lease == lease && a.by.phase != waiting && max(a.by.granted, a.by.ended) == m.now
	}) {
		return nil
	}
	switch {
	case by == nil && got == nil:
		return nil
	case by != nil && got == nil && by.arrived == m.now:
		return nil // that request asked after the lease was reported, in the same step
	case by == nil || got == nil:
		return fmt.Errorf("%v is to yield to %v, and is told %+v", lease, by, got)
	case got.Agent != m.agentOf(by) || got.Flow != by.flow() || got.Priority != by.ask.Priority ||
		got.Since != m.now.Sub(max(by.waitsSince(), lease.granted)) ||
		got.Revoked != (lease.phase == inGrace && lease.why == record.ByPreemption):
		return fmt.Errorf("%v is to yield to %v, and is told %+v", lease, by, got)
	}
	return nil
}
