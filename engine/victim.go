package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// breakDeadlock ends the wait of a cycle's victim: the lowest base priority, then the fewest
// leases, then the youngest wait. One that encloses work comes after all others: the work cannot
// wait for itself. A wait for the end of a task comes before all others, because
// ending it undoes nothing: its caller is notified at once, and the task continues. Were the
// worker's wait to end instead, its attempt would fail and be repeated, and meet the same wait
// each time; and a task in line would come back to it. Where the patterns of the contested keys
// demand it, the leases that block others in the cycle end as well, after their grace: as many
// as fit in the step.
func (e *Engine) breakDeadlock(cycle []store.SearchStep) {
	victim := store.VictimOf(cycle)
	cycle = slices.Concat(cycle[victim:], cycle[:victim])
	steps := make([]interlock.CycleStep, min(len(cycle), interlock.MaxCycleSteps))
	for i, h := range cycle[:len(steps)] {
		p := partyOf(h.Req())
		steps[i] = interlock.CycleStep{Agent: p.Agent, Session: p.Session, Flow: p.Flow, Victim: i == 0}
		if !p.Task.IsZero() { // in line: that is the flow of its worker, when it has one
			steps[i].Flow = p.Task.String()
		}
		if h.Req().Encloses {
			steps[i].Next = interlock.Within
		}
		if h.Via != store.NoNeed {
			c := h.Req().ClaimAt(int(h.Via))
			steps[i].Key, steps[i].Mode = c.Key, c.Mode
			steps[i].Next = h.Req().WayOf(int(h.Via), cycle[(i+1)%len(cycle)].Req())
		}
	}
	r := cycle[0].Req().Whole()
	forfeit := r.FlowState.LeasesToForfeit(cycle[len(cycle)-1])
	if f := r.Awaited; f != nil {
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
