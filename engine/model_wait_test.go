package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
)

// The wait-for graph.

// waitsOn returns the waits that must all end before that of r can, or of alternatives one
// must: those of all that block it.
func (m *model) waitsOn(r *request) (list []*request) {
	blockers := m.blockers(r)
	for _, q := range m.inPhase(waiting) {
		if q.member != nil {
			continue // a flow does not stand still for the parts that it will have
		}
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

// stuck returns the waits that can never end by themselves. A request that waits for nothing
// goes away one day; so does a flow when all of its waits are served after those that can go
// away have gone; and so on. The rest is deadlocked.
func (m *model) stuck() []*request {
	left := slices.DeleteFunc(m.inPhase(waiting), func(r *request) bool { return r.member != nil })
	for {
		rest := m.only(left)
		next := slices.DeleteFunc(slices.Clone(left), rest.free)
		if len(next) == len(left) {
			return left
		}
		left = next
	}
}

// only returns the state without the parties that have no wait among the given ones,
// in the best of times: tokens have come back, and parties have come to barriers.
func (m *model) only(waits []*request) *model {
	m.rank() // the line's order stays as it is
	rest := *m
	rest.hopeful = true
	rest.requests = slices.DeleteFunc(slices.Clone(m.requests), func(r *request) bool {
		return !slices.ContainsFunc(waits, func(w *request) bool { return w.party() == r.party() })
	})
	return &rest
}

// leases counts the leases of a flow.
func (m *model) leases(p flowState) (n int) {
	for _, r := range m.requests {
		if r.active() && r.party() == p {
			n++
		}
	}
	return n
}

// ratherVictim is the rule: a wait of a flow for work under its lease last, one for the end of a task first, then the
// lowest base priority,
// then the fewest leases, then the youngest. Of two flows that began to wait for tasks at once
// either may be the victim.
func (m *model) ratherVictim(a, b *request) bool {
	if a.encloses() != b.encloses() {
		return b.encloses()
	}
	if (a.awaits == nil) != (b.awaits == nil) {
		return a.awaits != nil
	}
	if a.ask.Priority != b.ask.Priority {
		return a.ask.Priority < b.ask.Priority
	}
	if x, y := m.leases(a.party()), m.leases(b.party()); x != y {
		return x < y
	}
	if a.awaits != nil {
		return a.arrived > b.arrived || a.arrived == b.arrived && a.num >= b.num
	}
	return a.num > b.num
}

// permitVictim holds the rule for victims (I6): the victim is on a real cycle of stuck waits,
// and the member that the rule chooses; and the reported cycle is real.
func (m *model) permitVictim(r *request, cycle []interlock.CycleStep) error {
	return m.beforeSacrifices(func() error {
		if err := m.chosenNow(r); err != nil {
			return err
		}
		return m.realCycle(r, cycle)
	})
}

// chosen is permitVictim for a task, which has no caller to report the cycle to.
func (m *model) chosen(r *request) error {
	return m.beforeSacrifices(func() error { return m.chosenNow(r) })
}

// beforeSacrifices judges a victim in the state as it is, or else with the waits for the ends
// of tasks that the model has refused in this step: no event has the time of that, and lines
// stand as they stood with them until ranks are found anew.
func (m *model) beforeSacrifices(judge func() error) error {
	err := judge()
	if err == nil || len(m.sacrificed) == 0 {
		return err
	}
	requests := m.requests
	defer func() { m.requests, m.ranks = requests, nil }()
	m.requests, m.ranks = slices.Concat(requests, m.sacrificed), nil
	return judge()
}

func (m *model) chosenNow(r *request) error {
	stuck := m.stuck()
	if !slices.Contains(stuck, r) {
		return fmt.Errorf("%v can still be served", r)
	}
	if !m.onCycle(r, func(q *request) bool { return slices.Contains(stuck, q) }) {
		return fmt.Errorf("%v is on no cycle", r)
	}
	if !m.onCycle(r, func(q *request) bool { return slices.Contains(stuck, q) && m.ratherVictim(r, q) }) {
		return fmt.Errorf("%v: on each of its cycles somebody else is to be the victim", r)
	}
	return nil
}

// realCycle checks the reported cycle: each step waits for the next one, at its key and in its
// mode, and the victim is marked.
func (m *model) realCycle(victim *request, cycle []interlock.CycleStep) error {
	var victims int
	for i, step := range cycle {
		next := cycle[(i+1)%len(cycle)]
		var real bool
		for _, q := range m.inPhase(waiting) {
			if !m.isStep(q, step) || !isWait(q, step) || step.Victim && q != victim ||
				(step.Next == interlock.Within) != q.encloses() {
				continue
			}
			for _, b := range m.blockers(q) {
				way := step.Key == "" || step.Next == 0 || (step.Next == interlock.Holds) == b.holds()
				real = real || way && m.isStep(b, next)
			}
		}
		if !real {
			return fmt.Errorf("step %d of the cycle %+v is no wait for the next step", i+1, cycle)
		}
		if step.Victim {
			victims++
		}
	}
	if victims != 1 || len(cycle) < 2 && victim.awaits == nil { // a flow may hold what blocks the task that it waits for
		return fmt.Errorf("the cycle %+v has %d victims", cycle, victims)
	}
	return nil
}

// isStep reports whether a step of a cycle is r's flow.
func (m *model) isStep(r *request, step interlock.CycleStep) bool {
	if r.task != nil && r.phase == waiting {
		return step.Session == "" && step.Agent == r.ask.Agent && step.Flow == r.task.id.String()
	}
	if r.session == nil {
		return step.Session == "" && step.Agent == r.ask.Agent && step.Flow == r.ask.Flow
	}
	return step.Session != "" && step.Agent == r.session.agent && step.Flow == r.ask.Flow
}

// isWait reports whether a step of a cycle tells what r waits for.
func isWait(r *request, step interlock.CycleStep) bool {
	if r.target != nil || r.awaits != nil {
		return step.Key == "" && step.Mode == 0
	}
	return slices.ContainsFunc(r.claims, func(c interlock.Claim) bool { return c.Key == step.Key && c.Mode == step.Mode })
}

// permitForfeit: the victim of a deadlock loses the contested leases, if a pattern allows it.
func (m *model) permitForfeit(r *request) error {
	revokes := func(c interlock.Claim) bool {
		p := m.pattern(r.ns, c.Key)
		return p != nil && p.OnDeadlock == interlock.DeadlockRevoke
	}
	waited := slices.ContainsFunc(m.inPhase(waiting), func(q *request) bool { return slices.Contains(m.blockers(q), r) })
	waited = waited || slices.Contains(m.forfeits, r.party()) // the first may have been enough
	if !slices.Contains(m.victims, r.party()) || !waited || !slices.ContainsFunc(r.claims, revokes) {
		return fmt.Errorf("%v is not forfeit", r)
	}
	m.forfeits = append(m.forfeits, r.party())
	return nil
}
