package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// barrierSet is the set of leases that one opening of a barrier admitted.
type barrierSet struct {
	leases     []*request
	generation uint64
}

// lost reports whether a party is gone, so that the barrier can never open for this
// set again.
func (g *barrierSet) lost() bool {
	return slices.ContainsFunc(g.leases, func(r *request) bool { return r.phase != held && r.phase != offered })
}

// barrier returns the barrier that r arrives at or holds.
func (r *request) barrier() (c interlock.Claim, ok bool) {
	if len(r.claims) == 1 && r.claims[0].Mode == interlock.Barrier {
		return r.claims[0], true
	}
	return c, false
}

// atBarrier returns the requests at the barrier of a key that are in one of the phases.
func (m *model) atBarrier(ns interlock.Namespace, key interlock.Key, phases ...phase) (list []*request) {
	for _, r := range m.inPhase(phases...) {
		if c, ok := r.barrier(); ok && r.ns == ns && c.Key == key {
			list = append(list, r)
		}
	}
	return list
}

// parties returns the requests that are admitted together with r, which may just be arriving:
// of those that wait for the first time as many of the first in line as the barrier has
// parties; of those that have opened it once their whole set, as far as it has arrived.
func (m *model) parties(r *request) (list []*request) {
	c, _ := r.barrier()
	for _, q := range m.atBarrier(r.ns, c.Key, waiting) {
		if r.base == nil && q.base == nil || r.base != nil && q.base != nil && q.base.set == r.base.set {
			list = append(list, q)
		}
	}
	if x := m.coming; x != nil && !slices.Contains(m.requests, x) && !m.hopeful {
		if y, ok := x.barrier(); ok && y.Key == c.Key && x.ns == r.ns && (x.base == nil) == (r.base == nil) &&
			(x.base == nil || x.base.set == r.base.set) {
			list = append(list, x)
		}
	}
	if !slices.Contains(list, r) {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *request) int {
		if m.aheadOf(a, b) {
			return -1
		}
		return 1
	})
	return list[:min(len(list), int(c.Count))]
}

// opens reports whether the barrier opens for r: all its parties are there, nothing else blocks
// any of them, and no earlier set holds the barrier.
func (m *model) opens(r *request) bool {
	if slices.Contains(m.opening, r) {
		return true
	}
	c, _ := r.barrier()
	parties := m.parties(r)
	if r.base != nil {
		there := func(lease *request) bool {
			return slices.ContainsFunc(parties, func(q *request) bool { return q.base == lease }) ||
				m.hopeful && !slices.Contains(m.requests, lease)
		}
		return !slices.ContainsFunc(
			r.base.set.leases, func(lease *request) bool { return !there(lease) || !m.hopeful && r.base.set.lost() },
		)
	}
	earlier := m.atBarrier(r.ns, c.Key, offered, held, inGrace, closed)
	if m.hopeful { // it can release its own
		earlier = slices.DeleteFunc(earlier, func(q *request) bool { return q.party() == r.party() })
	}
	if len(earlier) > 0 || !slices.Contains(parties, r) {
		return len(earlier) == 0 && m.hopeful // those ahead go first
	}
	if len(parties) < int(c.Count) {
		return m.hopeful && m.freeFor(r, r.claims) // others may come, and ahead of all
	}
	return !slices.ContainsFunc(parties, func(q *request) bool { return !m.freeFor(q, q.claims) })
}

// barrierBlockers are the requests that r waits for at its barrier: the earlier set, or members
// of its own set that have not come back, or that are there and blocked.
func (m *model) barrierBlockers(r *request) (list []*request) {
	c, ok := r.barrier()
	if !ok {
		return nil
	}
	parties := m.parties(r)
	if r.base != nil {
		for _, lease := range r.base.set.leases {
			if !slices.ContainsFunc(parties, func(q *request) bool { return q.base == lease }) {
				list = append(list, lease)
			}
		}
		return list
	}
	earlier := m.atBarrier(r.ns, c.Key, offered, held, inGrace, closed)
	for _, q := range earlier {
		if q.party() != r.party() {
			list = append(list, q)
		}
	}
	if len(earlier) == 0 && m.freeFor(r, r.claims) && len(parties) == int(c.Count) {
		for _, q := range parties {
			if q != r && !m.freeFor(q, q.claims) {
				list = append(list, q)
			}
		}
	}
	return list
}

// open takes in that the barrier opens for r, and so for all its parties.
func (m *model) open(r *request) {
	if _, ok := r.barrier(); !ok || slices.Contains(m.opening, r) {
		return
	}
	m.opening = m.parties(r)
	if r.base != nil {
		r.base.set.generation++
		return
	}
	set := &barrierSet{leases: m.opening, generation: 1}
	for _, q := range m.opening {
		q.set = set
	}
}

// breaks records that r leaves the barrier: the rest of its generation is refused.
func (m *model) breaks(r *request, why record.Reason) {
	if _, ok := r.barrier(); !ok || why == record.ByBreak {
		return
	}
	if r.phase != waiting { // a lease
		for _, q := range m.inPhase(waiting) {
			if q.base != nil && q.base.set == r.set && q.base != r && r.set != nil {
				m.broken = append(m.broken, q)
				m.breakers = append(m.breakers, breaker{q, r, why})
			}
		}
		return
	}
	parties := m.parties(r)
	if slices.Contains(parties, r) {
		for _, q := range parties {
			if q != r && slices.Contains(m.requests, q) { // not one that only comes
				m.broken = append(m.broken, q)
				m.breakers = append(m.breakers, breaker{q, r, why})
			}
		}
	}
	if !m.reranked(r) {
		return
	}
	c, _ := r.barrier() // those of r's generation before priorities changed in this step may be refused, too
	for _, q := range m.atBarrier(r.ns, c.Key, waiting) {
		if q.base == nil && r.base == nil && !slices.Contains(parties, q) {
			m.breakers = append(m.breakers, breaker{q, r, why})
		}
	}
}

// breaker is a lost party, and the waiters of its generation.
type breaker struct {
	waiter, lost *request
	why          record.Reason // 0: it was parked
}

// permitBreak: a waiter with a broken barrier learns which party was lost, and why.
func (m *model) permitBreak(r *request, ev *record.Event) error {
	told := func(b breaker) bool {
		why := b.why.String()
		if b.why == 0 {
			why = "parked"
		}
		return b.waiter == r && b.lost.num == ev.By && ev.ByID == [16]byte{} && m.agentOf(b.lost) == ev.Asker &&
			why == ev.Outcome
	}
	if !slices.ContainsFunc(m.breakers, told) {
		return fmt.Errorf("the party %d of %q was not lost so: %s", ev.By, ev.Asker, ev.Outcome)
	}
	return nil
}

// checkBarriers: a barrier opens for exactly its parties, and breaks for all (I10).
func (m *model) checkBarriers() error {
	for _, r := range m.opening {
		if r.phase == waiting {
			return fmt.Errorf("the barrier did not open for %v (I10)", r)
		}
	}
	for _, r := range m.broken {
		// The generation may be computed before or after lent priorities were returned in this
		// step.
		if r.phase == waiting && !m.reranked(r) {
			return fmt.Errorf("%v was not told that the barrier is broken (I10)", r)
		}
	}
	m.opening, m.broken, m.breakers = nil, nil, nil
	return nil
}

// reranked reports whether a waiter at r's barrier has changed its priority in this step.
func (m *model) reranked(r *request) bool {
	c, _ := r.barrier()
	return slices.ContainsFunc(m.atBarrier(r.ns, c.Key, waiting), func(q *request) bool {
		before, waited := m.ranked[q]
		return waited && before != m.priority(q)
	})
}

// newArrival is the request of a lease that comes to its barrier again.
func (m *model) newArrival(c *engine.Arrive, num uint64) *request {
	lease := m.byID(c.Namespace, c.Lease)
	if lease == nil || lease.set == nil {
		return nil
	}
	r := m.about(lease, num)
	r.ask.Head, r.ask.ID, r.ask.MaxWait, r.ask.Attach = c.Head, c.ID, c.MaxWait, c.Attach
	r.ask.OnConflict = interlock.Wait
	r.claims, r.lead = lease.claims, true
	m.boundWait(r)
	return r
}

func (m *model) expectArrive(c *engine.Arrive) answer {
	return m.withTaken(&c.Head, c.Lease, func(lease *request) answer {
		r := m.made(c, m.highestNum()+1)
		switch {
		case r == nil:
			return refusalKey(interlock.CodeMismatch, interlock.CodeInvalidRequest, interlock.CodeInvalidMode)
		case lease.set.lost():
			return refusalKey(interlock.CodeBroken)
		}
		if earlier := m.converting(lease); earlier != nil {
			return answer{outcome: engine.Queued, about: earlier}
		}
		if m.free(r) {
			return answer{outcome: engine.Granted, about: lease}
		}
		return answer{outcome: engine.Queued, fresh: true}
	})
}

// generation returns the number of the opening that admits r, 0 if r waits at no barrier.
func (m *model) generation(r *request) uint64 {
	_, ok := r.barrier()
	switch {
	case !ok:
		return 0
	case r.base == nil:
		return 1
	case slices.Contains(m.opening, r):
		return r.base.set.generation
	}
	return r.base.set.generation + 1
}
