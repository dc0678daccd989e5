package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// suspectMore suspects those of the next swath.
func (e *Engine) suspectMore() {
	s := e.PendingWork.NS
	for begin := e.Visited; e.Visited < begin+e.Swath && !e.full(); e.Doubt.Part++ {
		e.Visited++
		if !s.Requests.Part(e.Doubt.Part, func(r *store.Request) {
			e.Visited++
			p := r.FlowState
			if r.Phase == store.Waiting && (r.Target != nil || p != nil && (p.HoldsAndWaits || len(p.Waits) > 1)) {
				e.Suspect(p, r)
			}
		}) {
			e.Doubt = store.SuspectScan{}
			return
		}
	}
}

// cycleTo walks back from the hop that closed the cycle.
func cycleTo(visited []store.SearchStep, last int) (cycle []store.SearchStep) {
	for i := last; i >= 0; {
		h := visited[i]
		cycle = append(cycle, h)
		if i = h.From; i >= 0 {
			visited[i].Via = h.Led
		}
	}
	slices.Reverse(cycle)
	return cycle
}

// EachBlocker calls visit for each holder and each waiter ahead that r waits for, as a flow or
// as a waiter without one. Flows that cannot be on a cycle may be left out. It stops when visit
// returns true, and returns that.
func (e *Engine) eachBlocker(r *store.Request, visit func(need int, p *store.FlowState, r *store.Request) bool) bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		n := m.Node
		against, counts := lockmode.Conflicts[m.Mode], r.CountsAgainst(m)
		for h := n.First; h != nil; h = h.Next {
			e.looked++
			inTheWay := against.Has(h.Mode) || counts == store.ShortOfPermits && h.Counts == interlock.Permits
			if p := h.Req.FlowState; inTheWay && p != nil && len(p.Waits) > 0 && visit(i, p, nil) {
				return true
			}
		}
		// Only flows that hold and wait can be on a cycle, and there are few, so they are
		// examined instead of everything below the key.
		for _, p := range r.NS.HoldsAndWaitsBelow(n, against) {
			e.looked++
			if p.Shows(n, against) && visit(i, p, nil) {
				return true
			}
		}
		for c := n.Line.First; c != nil; c = c.Next {
			if !m.IsBehind(c, counts != store.Enough) {
				continue
			}
			for p := c.First(); p != nil && store.Before(p.Req, r); p = p.Next() {
				e.looked++
				if visit(i, p.Req.FlowState, p.Req) {
					return true
				}
			}
		}
	}
	return false
}
