package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// The wait-for graph.
//
// Its vertices are parties: flows, and each anonymous waiter by itself. A waiting
// party points to each party that holds a conflicting mode at one of its keys,
// and to each conflicting waiter that stands before it. The graph is never
// stored. After a step that adds an edge, a search starts from the party that
// the new edges begin or end at: a queued request, or a flow that was granted
// something while it waits elsewhere. A party that waits for nothing has no
// outgoing edge, so most grants need no search, and a newcomer at the end of a
// line that holds nothing has no incoming one, so most waits need none either.

// suspect is a party whose new edges may have closed a cycle.
type suspect struct {
	flow *flow
	req  *request // for an anonymous waiter
	num  uint64   // req's number when it was suspected
}

func (e *Engine) suspect(f *flow, r *request) {
	s := suspect{flow: f}
	if f == nil {
		s.req, s.num = r, r.num
	}
	e.suspects = append(e.suspects, s)
}

// breakCycle looks at the oldest suspect. If a cycle goes through it, the victim's
// wait ends and the suspect stays one, for there may be another.
func (e *Engine) breakCycle() {
	s := e.suspects[0]
	if cycle := e.findCycle(s); cycle != nil {
		e.sacrifice(cycle)
		return
	}
	e.suspects = append(e.suspects[:0], e.suspects[1:]...)
}

// sacrifice ends the wait of a cycle's victim: the lowest base priority, then the
// fewest leases, then the youngest wait.
func (e *Engine) sacrifice(cycle []*wait) {
	victim := 0
	for i := 1; i < len(cycle); i++ {
		if worse(cycle[i].req, cycle[victim].req) {
			victim = i
		}
	}
	cycle = slices.Concat(cycle[victim:], cycle[:victim])
	steps := make([]interlock.CycleStep, min(len(cycle), interlock.MaxCycleSteps))
	for i, w := range cycle[:len(steps)] {
		r := w.req
		c := r.claimAt(w.via)
		steps[i] = interlock.CycleStep{
			Agent: r.agentName(), Flow: r.flowName(), Key: c.Key, Mode: c.Mode, Victim: i == 0,
		}
		if s := r.session(); s != nil {
			steps[i].Session = s.name
		}
	}
	r := cycle[0].req
	caller := r.wait.caller
	ev := e.event(EvLeft, r)
	ev.Reason, ev.Cycle, ev.Waited = ByDeadlock, steps, e.now.Sub(r.wait.arrived)
	e.emit(ev)
	if caller != nil && r != e.asking {
		e.refuseGone(caller, r)
	}
}

// worse reports whether a is rather to be sacrificed than b.
func worse(a, b *request) bool {
	if a.priority != b.priority {
		return a.priority < b.priority
	}
	if la, lb := a.flow.leaseCount(), b.flow.leaseCount(); la != lb {
		return la < lb
	}
	return a.num > b.num
}

func (f *flow) leaseCount() int {
	if f == nil {
		return 0
	}
	return len(f.leases)
}

// claimAt gives the claim of r for which need i exists.
func (r *request) claimAt(i int) interlock.Claim { return r.claims[r.needs[i].claim] }

// findCycle gives a shortest cycle through the suspect, as the waits on it in the
// order of its edges, or nil.
func (e *Engine) findCycle(s suspect) []*wait {
	e.search++
	queue := e.searched[:0]
	defer func() { clear(queue); e.searched = queue[:0] }()
	visit := func(r *request, from *wait, need int) {
		if r.wait.mark != e.search {
			r.wait.mark, r.wait.from, r.wait.fromNeed = e.search, from, need
			queue = append(queue, r.wait)
		}
	}
	switch {
	case s.flow != nil && s.flow.isWaitedFor():
		for _, r := range s.flow.waits {
			visit(r, nil, 0)
		}
	case s.flow == nil && s.req.num == s.num && s.req.phase == waiting && s.req.hasFollower():
		visit(s.req, nil, 0)
	}
	for next := 0; next < len(queue); next++ {
		w := queue[next]
		closed := e.eachBlocker(w.req, s, func(need int, f *flow, r *request) bool {
			switch {
			case f != nil && f == w.req.flow:
			case f != nil && f == s.flow, f == nil && r == s.req:
				w.via = need
				return true
			case f != nil:
				for _, other := range f.waits {
					visit(other, w, need)
				}
			default:
				visit(r, w, need)
			}
			return false
		})
		if closed {
			return cycleTo(w)
		}
	}
	return nil
}

// cycleTo walks back from the wait that closed the cycle.
func cycleTo(w *wait) (cycle []*wait) {
	for ; w != nil; w = w.from {
		cycle = append(cycle, w)
		if w.from != nil {
			w.from.via = w.fromNeed
		}
	}
	slices.Reverse(cycle)
	return cycle
}

// isWaitedFor is false when nobody can be waiting for the flow: it holds nothing
// that is wanted, and nobody stands behind it.
func (f *flow) isWaitedFor() bool {
	if len(f.leases) > 64 {
		return true // looking through them would cost more than the search
	}
	for _, r := range f.leases {
		for i := range r.needs {
			if l := r.needs[i].node.line; l != nil && l.modes&conflicts[r.needs[i].mode] != 0 {
				return true
			}
		}
	}
	for _, r := range f.waits {
		if r.hasFollower() {
			return true
		}
	}
	return false
}

// hasFollower reports whether a conflicting waiter stands behind r.
func (r *request) hasFollower() bool {
	for i := range r.needs {
		against := conflicts[r.needs[i].mode]
		for c := r.needs[i].node.line.first; c != nil; c = c.next {
			if against.has(c.mode) && before(r, c.last().req) {
				return true
			}
		}
	}
	return false
}

// eachBlocker calls visit for the parties that r waits for, each a flow or an
// anonymous waiter. Parties that cannot be on a cycle may be left out, and so are
// waiters ahead that the search which began at s has met at the same key before.
// It stops when visit returns true, and returns that.
func (e *Engine) eachBlocker(r *request, s suspect, visit func(need int, f *flow, r *request) bool) bool {
	for i := range r.needs {
		m := &r.needs[i]
		n := m.node
		against := conflicts[m.mode]
		if against&n.modes != 0 {
			for h := n.first; h != nil; h = h.next {
				if f := h.req.flow; f != nil && len(f.waits) > 0 && against.has(h.mode) && visit(i, f, nil) {
					return true
				}
			}
			// Only flows that hold and wait can be on a cycle, and there are few, so they
			// are looked through instead of everything below the key.
			for _, f := range r.space.tornBelow(n, against) {
				if f.shows(n, against) && visit(i, f, nil) {
					return true
				}
			}
		}
		if e.eachAhead(m, s, func(w *request) bool { return visit(i, w.flow, w) }) {
			return true
		}
	}
	return false
}

// tornBelow gives the flows to look through for holders of something below n.
func (s *space) tornBelow(n *node, against modeSet) []*flow {
	if against&n.modes&setOf(is, ix) == 0 || n.kin == nil || n.kin.child == nil {
		return nil
	}
	return s.torn
}

// eachAhead calls visit for the conflicting waiters before m's request at m's key.
// What a search has met there it need not meet again. The waits of the party that
// it began with skip each other, so what they have met is kept apart.
func (e *Engine) eachAhead(m *need, s suspect, visit func(*request) bool) bool {
	l := m.node.line
	if l.mark != e.search {
		l.mark = e.search
		for c := l.first; c != nil; c = c.next {
			c.upto = [2]*place{}
		}
	}
	who := 0
	if s.flow != nil && m.req.flow == s.flow {
		who = 1
	}
	for c := l.first; c != nil; c = c.next {
		if !conflicts[m.mode].has(c.mode) {
			continue
		}
		p := c.first()
		if met := c.upto[who]; met != nil {
			p = met.next()
		}
		for ; p != nil && before(p.req, m.req); p = p.next() {
			c.upto[who] = p
			if visit(p.req) {
				return true
			}
		}
	}
	return false
}

// shows reports whether the flow holds one of modes at n, by a claim or for
// something below.
func (f *flow) shows(n *node, modes modeSet) bool {
	own := f.at(n)
	for mode := is; mode <= ex; mode++ {
		if modes.has(mode) && own.granted[mode] > 0 {
			return true
		}
	}
	return false
}
