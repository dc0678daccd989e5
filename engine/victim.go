package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// sacrifice ends the wait of a cycle's victim: the lowest base priority, then the
// fewest leases, then the youngest wait; but no task in line where a flow on the cycle
// waits for the end of one. Where the patterns of the contested keys say so, the leases
// that it is waited for go as well, after their grace: as many as fit in the step.
func (e *Engine) sacrifice(cycle []*wait) {
	followed := slices.ContainsFunc(cycle, func(w *wait) bool { return w.follows != nil })
	victim := -1
	for i, w := range cycle {
		if followed && w.req.task != nil {
			continue // it would come back, and find those who wait for tasks still waiting
		}
		if victim < 0 || worse(w.req, cycle[victim].req) {
			victim = i
		}
	}
	cycle = slices.Concat(cycle[victim:], cycle[:victim])
	steps := make([]interlock.CycleStep, min(len(cycle), interlock.MaxCycleSteps))
	for i, w := range cycle[:len(steps)] {
		p := partyOf(w.req)
		steps[i] = interlock.CycleStep{Agent: p.Agent, Session: p.Session, Flow: p.Flow, Victim: i == 0}
		if !p.Task.IsZero() { // in line: that is the flow of its worker, when it has one
			steps[i].Flow = p.Task.String()
		}
		if w.via != noNeed {
			c := w.req.claimAt(int(w.via))
			steps[i].Key, steps[i].Mode = c.Key, c.Mode
		}
	}
	r := cycle[0].req.whole()
	forfeit := r.party.forfeit(cycle[len(cycle)-1])
	if f := r.wait.follows; f != nil {
		e.refuseFollower(f, steps)
	} else {
		ev := e.leaving(r, ByDeadlock)
		ev.Cycle = steps
		e.giveUp(r, ev)
	}
	for _, l := range forfeit {
		if e.full() {
			return
		}
		e.hard(l, ByDeadlock)
	}
}

// worse reports whether a is rather to be sacrificed than b.
func worse(a, b *request) bool {
	if a.priority != b.priority {
		return a.priority < b.priority
	}
	if la, lb := a.party.leaseCount(), b.party.leaseCount(); la != lb {
		return la < lb
	}
	if a.num != b.num {
		return a.num > b.num
	}
	return a.follows() // it came after the one whose number it has
}

func (p *party) leaseCount() int {
	if p == nil {
		return 0
	}
	return len(p.leases)
}

// forfeit gives the party's leases for which the wait before it in a cycle waits,
// and which it loses as the victim, in the order of their fences.
func (p *party) forfeit(w *wait) (list []*request) {
	if p == nil || w.via == noNeed {
		return nil
	}
	m := &w.req.needs[w.via]
	for _, l := range p.leases {
		if l.phase == held && l.revokedFor(m) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *request) int {
		if a.fence < b.fence {
			return -1
		}
		return 1
	})
	return list
}

// revokedFor reports whether r claims something that is in the way of a need, on a
// key whose pattern takes it from a deadlock's victim.
func (r *request) revokedFor(m *need) bool {
	for _, c := range r.claims {
		mode := lockOf(c.Mode)
		if isBelow(string(c.Key), m.node.key) {
			mode = intent(c.Mode)
		} else if string(c.Key) != m.node.key {
			continue
		}
		if !conflicts[m.mode].has(mode) && !(c.Mode == interlock.Permits && m.counts == interlock.Permits) {
			continue
		}
		if p := r.space.policyAt(string(c.Key)); p != nil && p.OnDeadlock == interlock.DeadlockRevoke {
			return true
		}
	}
	return false
}
