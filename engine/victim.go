package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// breakDeadlock ends the wait of a cycle's victim: the lowest base priority, then the fewest
// leases, then the youngest wait. A wait for the end of a task comes before all others, because
// ending it undoes nothing: its caller is notified at once, and the task continues. Were the
// worker's wait to end instead, its attempt would fail and be repeated, and meet the same wait
// each time; and a task in line would come back to it. Where the patterns of the contested keys
// demand it, the leases that block others in the cycle end as well, after their grace: as many
// as fit in the step.
func (e *Engine) breakDeadlock(cycle []searchStep) {
	victim := victimOf(cycle)
	cycle = slices.Concat(cycle[victim:], cycle[:victim])
	steps := make([]interlock.CycleStep, min(len(cycle), interlock.MaxCycleSteps))
	for i, h := range cycle[:len(steps)] {
		p := partyOf(h.req())
		steps[i] = interlock.CycleStep{Agent: p.Agent, Session: p.Session, Flow: p.Flow, Victim: i == 0}
		if !p.Task.IsZero() { // in line: that is the flow of its worker, when it has one
			steps[i].Flow = p.Task.String()
		}
		if h.via != noNeed {
			c := h.req().claimAt(int(h.via))
			steps[i].Key, steps[i].Mode = c.Key, c.Mode
			steps[i].Next = h.req().wayOf(int(h.via), cycle[(i+1)%len(cycle)].req())
		}
	}
	r := cycle[0].req().whole()
	forfeit := r.party.leasesToForfeit(cycle[len(cycle)-1])
	if f := r.awaited; f != nil {
		e.refuseFollower(f, steps)
	} else {
		ev := e.leaving(r, record.ByDeadlock)
		ev.Cycle = steps
		e.giveUp(r, ev)
	}
	for _, l := range forfeit {
		if e.full() {
			return
		}
		e.hard(l, record.ByDeadlock)
	}
}

// victimOf returns the place of a cycle's victim.
func victimOf(cycle []searchStep) (victim int) {
	for i, h := range cycle {
		if isBetterVictim(h.req(), cycle[victim].req()) {
			victim = i
		}
	}
	return victim
}

// isBetterVictim reports whether a is rather to be sacrificed than b.
func isBetterVictim(a, b *request) bool {
	if a.follows() != b.follows() {
		return a.follows()
	}
	if a.priority != b.priority {
		return a.priority < b.priority
	}
	if la, lb := a.party.leaseCount(), b.party.leaseCount(); la != lb {
		return la < lb
	}
	if a.num != b.num {
		return a.num > b.num
	}
	return a.arrived() > b.arrived() // waits for tasks have no numbers of their own
}

func (p *flowState) leaseCount() int {
	if p == nil {
		return 0
	}
	return len(p.leases)
}

// leasesToForfeit returns the leases of the flow that block the wait before it in a cycle, and
// which it loses as the victim, in the order of their fences. It looks at as many as a step
// may: a victim loses no more of them than fit in a step anyway.
func (p *flowState) leasesToForfeit(h searchStep) (list []*request) {
	if p == nil || h.via == noNeed {
		return nil
	}
	m := &h.req().needs()[h.via]
	short := h.req().countsAgainst(m) == shortOfPermits
	n := min(len(p.leases), StepObjects)
	*m.node.ns.agenda.objects += n
	for _, l := range p.leases[:n] {
		if l.phase == held && l.revokedFor(m, short) {
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

// revokedFor reports whether r has a claim that blocks a need, which may be short of permits,
// on a key with a pattern that takes it from a deadlock's victim.
func (r *request) revokedFor(m *need, short bool) bool {
	for _, c := range r.claims() {
		mode := lockmode.Lock(c.Mode)
		if keypath.IsBelow(string(c.Key), m.node.key) {
			mode = lockmode.Intent(c.Mode)
		} else if string(c.Key) != m.node.key {
			continue
		}
		if !lockmode.Conflicts[m.mode].Has(mode) && !(c.Mode == interlock.Permits && short) {
			continue
		}
		if p := r.ns.policyAt(string(c.Key)); p != nil && p.OnDeadlock == interlock.DeadlockRevoke {
			return true
		}
	}
	return false
}

// wayOf returns how other blocks need i of r, which waits: it holds something there that
// excludes it, or it stands before it in line.
func (r *request) wayOf(i int, other *request) interlock.BlockerRole {
	m := &r.needs()[i]
	if m.counts == interlock.Barrier {
		return 0
	}
	if other.party.holdsAgainst(m, r.countsAgainst(m)) {
		return interlock.Holds
	}
	return interlock.Ahead
}

// holdsAgainst reports whether the flow holds something that blocks a need, which may be short
// of something.
func (p *flowState) holdsAgainst(m *need, short shortage) bool {
	return p.shows(m.node, lockmode.Conflicts[m.mode]) || short == shortOfPermits && p.hasPermits(m.node)
}

// hasPermits reports whether the flow holds permits of a key.
func (p *flowState) hasPermits(n *node) bool {
	return p != nil && slices.ContainsFunc(p.leases, func(l *request) bool {
		o := l.needAt(n)
		return o != nil && o.counts == interlock.Permits
	})
}
