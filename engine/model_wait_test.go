package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
)

// The wait-for graph.

// waitsOn gives the waits that must end before that of r can: those of everybody
// who blocks it.
func (m *model) waitsOn(r *request) (list []*request) {
	blockers := m.blockers(r)
	for _, q := range m.inPhase(waiting) {
		if slices.ContainsFunc(blockers, func(b *request) bool { return b.party() == q.party() }) {
			list = append(list, q)
		}
	}
	return list
}

// onCycle reports whether r waits for itself through waits that are all within
// the given set.
func (m *model) onCycle(r *request, within func(*request) bool) bool {
	seen := map[*request]bool{}
	var visit func(q *request) bool
	visit = func(q *request) bool {
		for _, next := range m.waitsOn(q) {
			if next == r {
				return true
			}
			if !seen[next] && within(next) {
				seen[next] = true
				if visit(next) {
					return true
				}
			}
		}
		return false
	}
	return visit(r)
}

// leases counts what a party holds.
func (m *model) leases(p party) (n int) {
	for _, r := range m.requests {
		if r.active() && r.party() == p {
			n++
		}
	}
	return n
}

// ratherVictim is the rule: lowest base priority, then fewest leases, then
// youngest.
func (m *model) ratherVictim(a, b *request) bool {
	if a.ask.Priority != b.ask.Priority {
		return a.ask.Priority < b.ask.Priority
	}
	if x, y := m.leases(a.party()), m.leases(b.party()); x != y {
		return x < y
	}
	return a.num > b.num
}

// rightVictim reports whether there is a cycle of which v is the member that the
// rule chooses.
func (m *model) rightVictim(v *request) bool {
	return m.onCycle(v, func(q *request) bool { return m.ratherVictim(v, q) })
}

// permitVictim holds the rule for victims (I6): on a real cycle, and the one of
// its members that the rule chooses; and the cycle that is spelled out is real.
func (m *model) permitVictim(r *request, cycle []interlock.CycleStep) error {
	if !m.onCycle(r, func(*request) bool { return true }) {
		return fmt.Errorf("%v is on no cycle", r)
	}
	if !m.rightVictim(r) {
		return fmt.Errorf("%v: on each of its cycles somebody else is to be the victim", r)
	}
	return m.realCycle(r, cycle)
}

// realCycle checks the cycle that was spelled out: each step waits for the next
// one, at the key and in the mode that it says, and the victim is marked.
func (m *model) realCycle(victim *request, cycle []interlock.CycleStep) error {
	var victims int
	for i, step := range cycle {
		next := cycle[(i+1)%len(cycle)]
		var real bool
		for _, q := range m.inPhase(waiting) {
			if !m.isStep(q, step) || !slices.Contains(q.ask.Claims, interlock.Claim{Key: step.Key, Mode: step.Mode}) {
				continue
			}
			if step.Victim && q != victim {
				continue
			}
			for _, b := range m.blockers(q) {
				real = real || m.isStep(b, next)
			}
		}
		if !real {
			return fmt.Errorf("step %d of the cycle %+v is no wait for the next step", i+1, cycle)
		}
		if step.Victim {
			victims++
		}
	}
	if victims != 1 || len(cycle) < 2 {
		return fmt.Errorf("the cycle %+v has %d victims", cycle, victims)
	}
	return nil
}

func (m *model) isStep(r *request, step interlock.CycleStep) bool {
	if r.session == nil {
		return step.Session == "" && step.Agent == r.ask.Agent && step.Flow == r.ask.Flow
	}
	return step.Session != "" && step.Agent == r.session.agent && step.Flow == r.ask.Flow
}
