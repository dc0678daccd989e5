package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// The wait-for graph.
//
// Its vertices are flows, and each request without one by itself. A waiting flow points to each
// flow that holds a conflicting mode at one of its keys, and to each conflicting waiter that
// stands before it. The graph is never stored. After a step that adds an edge, a search starts
// from the flow that the new edges begin or end at: a queued request, or a flow that was
// granted something while it waits elsewhere. A flow that waits for nothing has no outgoing
// edge, so most grants need no search, and a newcomer at the end of a line that holds nothing
// has no incoming one, so most waits need none either.

// searchStep is a wait that a search has come to.
type searchStep struct {
	*wait
	num  uint64 // of its request, then
	from int    // the hop that waits for it, by its place in the list; -1 if the search began here
	led  int16  // the need of that one which leads here
	via  int16  // its own need through which a cycle continues
}

// suspect is a flow with new edges that may have closed a cycle.
type suspect struct {
	party *flowState
	req   *request // for a waiter without a flow
	num   uint64   // req's number when it was suspected
}

// suspect lists a flow, or a waiter without one, for the search for cycles. A listed flow is
// not listed twice.
func (e *State) suspect(p *flowState, r *request) {
	s := suspect{party: p}
	if p == nil {
		s.req, s.num = r, r.num
	} else if p.suspected {
		return
	} else {
		p.suspected = true
	}
	e.suspects.Push(s)
}

// suspectScan is the progress of listing all suspects.
type suspectScan struct {
	under bool
	part  int // of namespace.requests: the next
}

// suspectAll lists every flow and waiter of a namespace that may be on a cycle. Waits by the
// order of the lines alone cannot close one, unless a flow has several of them. If there are
// very many requests, it lists a slice, and suspectMore the rest later.
func (e *State) suspectAll(s *namespace) {
	if s.requests.Len()+len(s.sessions) > e.swath {
		s.agenda.doubt = suspectScan{under: true}
		return
	}
	e.objects += s.requests.Len() + len(s.sessions)
	for _, p := range s.holdsAndWaits {
		e.suspect(p, nil)
	}
	for _, sess := range s.sortedSessions() {
		for _, r := range sess.awaiting {
			e.suspect(r.party, r)
		}
		for _, f := range sess.waiting {
			if len(f.waits) > 1 && !f.holdsAndWaits {
				e.suspect(f, nil)
			}
		}
	}
}

// suspectMore suspects those of the next swath.
func (e *Engine) suspectMore() {
	s := e.pendingWork.ns
	for begin := e.objects; e.objects < begin+e.swath && !e.full(); e.doubt.part++ {
		e.objects++
		if !s.requests.Part(e.doubt.part, func(r *request) {
			e.objects++
			p := r.party
			if r.phase == waiting && (r.target != nil || p != nil && (p.holdsAndWaits || len(p.waits) > 1)) {
				e.suspect(p, r)
			}
		}) {
			e.doubt = suspectScan{}
			return
		}
	}
}

// waitsForItself returns a wait of the suspect that is hopeless, or nil.
func (s suspect) waitsForItself() *request {
	if s.party == nil || len(s.party.leases) == 0 {
		return nil
	}
	for _, r := range s.party.waits {
		if m := r.lacking(); m != nil && r.hopeless(m) {
			return r.whole()
		}
	}
	return nil
}

// claimAt returns the claim of r to which need i belongs.
func (r *request) claimAt(i int) interlock.Claim { return r.claims()[r.needs()[i].claim] }

// cycleTo walks back from the hop that closed the cycle.
func cycleTo(visited []searchStep, last int) (cycle []searchStep) {
	for i := last; i >= 0; {
		h := visited[i]
		cycle = append(cycle, h)
		if i = h.from; i >= 0 {
			visited[i].via = h.led
		}
	}
	slices.Reverse(cycle)
	return cycle
}

// isWaitedFor reports whether the suspect still waits, and some request may wait for it.
func (s suspect) isWaitedFor() bool {
	if s.party != nil {
		return s.party.isWaitedFor()
	}
	return s.req.num == s.num && s.req.phase == waiting && (s.req.hasFollower() || s.req.task.isAwaited())
}

// size returns the number of requests to examine for waits on the suspect.
func (s suspect) size() int {
	if s.party == nil {
		return 1
	}
	return 1 + min(len(s.party.leases), fewLeases) + min(len(s.party.waits), fewLeases)
}

// fewLeases are as many leases as are looked through to save a search. Of the waits mostly
// the first has a follower.
const fewLeases = 64

// isWaitedFor reports whether some request may wait for the flow: it holds something that is
// wanted, or a waiter stands behind it.
func (p *flowState) isWaitedFor() bool {
	if len(p.leases) > fewLeases || p.sess != nil && len(p.sess.awaiting) > 0 {
		return true // looking through them would cost more than the search
	}
	for _, r := range p.leases {
		if r.isAwaited() {
			return true
		}
		if m := r.barrier(); m != nil && m.node.parties() != nil {
			return true
		}
		for i := range r.needs() {
			if m := &r.needs()[i]; m.node.line.hasAgainst(m) {
				return true
			}
		}
	}
	for _, r := range p.waits {
		if r.hasFollower() || r.barrier() != nil {
			return true
		}
	}
	return false
}

// hasFollower reports whether a conflicting waiter stands behind r.
func (r *request) hasFollower() bool {
	for i := range r.needs() {
		m := &r.needs()[i]
		for c := m.node.line.first; c != nil; c = c.next {
			if c.against(m.mode, m.counts) && before(r, c.last().req) {
				return true
			}
		}
	}
	return false
}

// eachBlocker calls visit for each holder and each waiter ahead that r waits for, as a flow or
// as a waiter without one. Flows that cannot be on a cycle may be left out. It stops when visit
// returns true, and returns that.
func (e *Engine) eachBlocker(r *request, visit func(need int, p *flowState, r *request) bool) bool {
	for i := range r.needs() {
		m := &r.needs()[i]
		n := m.node
		against, counts := lockmode.Conflicts[m.mode], r.countsAgainst(m)
		for h := n.first; h != nil; h = h.next {
			e.looked++
			inTheWay := against.Has(h.mode) || counts == shortOfPermits && h.counts == interlock.Permits
			if p := h.req.party; inTheWay && p != nil && len(p.waits) > 0 && visit(i, p, nil) {
				return true
			}
		}
		// Only flows that hold and wait can be on a cycle, and there are few, so they are
		// examined instead of everything below the key.
		for _, p := range r.ns.tornBelow(n, against) {
			e.looked++
			if p.shows(n, against) && visit(i, p, nil) {
				return true
			}
		}
		for c := n.line.first; c != nil; c = c.next {
			if !m.isBehind(c, counts != enough) {
				continue
			}
			for p := c.first(); p != nil && before(p.req, r); p = p.next() {
				e.looked++
				if visit(i, p.req.party, p.req) {
					return true
				}
			}
		}
	}
	return false
}

// tornBelow returns the flows to search for holders of something below n.
func (s *namespace) tornBelow(n *node, against lockmode.Set) []*flowState {
	if against&n.modes&lockmode.SetOf(lockmode.IS, lockmode.IX) == 0 || n.kin == nil || n.kin.child == nil {
		return nil
	}
	return s.holdsAndWaits
}

// shows reports whether the flow holds one of modes at n, by a claim or for something below.
func (p *flowState) shows(n *node, modes lockmode.Set) bool {
	own := p.at(n)
	for mode := lockmode.IS; mode <= lockmode.X; mode++ {
		if modes.Has(mode) && *own.granted.Of(mode) > 0 {
			return true
		}
	}
	return false
}
