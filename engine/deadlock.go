package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// The wait-for graph.
//
// Its vertices are parties, and each request without one by itself. A waiting
// party points to each party that holds a conflicting mode at one of its keys,
// and to each conflicting waiter that stands before it. The graph is never
// stored. After a step that adds an edge, a search starts from the party that
// the new edges begin or end at: a queued request, or a party that was granted
// something while it waits elsewhere. A party that waits for nothing has no
// outgoing edge, so most grants need no search, and a newcomer at the end of a
// line that holds nothing has no incoming one, so most waits need none either.

// hop is a wait that a search has come to.
type hop struct {
	*wait
	from int   // the hop that waits for it, by its place in the queue; -1 if the search began here
	led  int16 // the need of that one which leads here
	via  int16 // its own need by which a cycle goes on
}

// suspect is a party whose new edges may have closed a cycle.
type suspect struct {
	party *party
	req   *request // for a waiter without a party
	num   uint64   // req's number when it was suspected
}

func (e *Engine) suspect(p *party, r *request) {
	s := suspect{party: p}
	if p == nil {
		s.req, s.num = r, r.num
	}
	e.suspects = append(e.suspects, s)
}

// suspectAll suspects whoever may be on a cycle in a namespace. Waits by the order of
// the lines alone cannot close one, unless a flow has several of them.
func (e *Engine) suspectAll(s *space) {
	for _, p := range s.torn {
		e.suspect(p, nil)
	}
	for _, sess := range s.sortedSessions() {
		for _, r := range sess.awaiting {
			e.suspect(r.party, r)
		}
		for _, f := range sess.sortedFlows() {
			if len(f.waits) > 1 && !f.torn {
				e.suspect(f, nil)
			}
		}
	}
}

// breakCycle looks at the oldest suspect. If a cycle goes through it, the victim's
// wait ends and the suspect stays one, for there may be another. A wait for permits that
// the suspect itself has ends as well.
func (e *Engine) breakCycle() {
	s := e.suspects[0]
	if r := s.waitsForItself(); r != nil {
		e.leaveLine(r, ByPattern)
		return
	}
	if cycle := e.findCycle(s); cycle != nil {
		e.sacrifice(cycle)
		return
	}
	e.suspects = append(e.suspects[:0], e.suspects[1:]...)
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

// claimAt gives the claim of r for which need i exists.
func (r *request) claimAt(i int) interlock.Claim { return r.claims()[r.needs()[i].claim] }

// findCycle gives a shortest cycle through the suspect that is a deadlock, in the order
// of its edges, or nil.
func (e *Engine) findCycle(s suspect) []hop {
	if !s.isWaitedFor() {
		return nil
	}
	defer func() { clear(e.hops) }()
	cycle := cycleTo(e.walk(s, nil, true))
	if hasAlternatives(cycle) {
		cycle = cycleTo(e.walk(s, e.reduce(s), true))
	}
	return cycle
}

// walk visits the waits that the suspect waits for, by itself or through others,
// nearest first, and begins with its own. If within is not nil, only those of these
// requests count. With closing, it ends at the first one that waits for the suspect, and
// gives its place among those visited; else -1. They are good until the next walk.
func (e *Engine) walk(s suspect, within map[*request]bool, closing bool) (visited []hop, last int) {
	e.search++
	queue := e.hops[:0]
	defer func() {
		e.hops = queue
		e.visits += len(queue)
	}()
	visit := func(r *request, from, need int) {
		if r.share != nil {
			return // nobody stands still for a part
		}
		w := r.wait
		if i := int(w.at); i < len(queue) && queue[i].wait == w || within != nil && !within[r.whole()] {
			return
		}
		w.at = int32(len(queue))
		queue = append(queue, hop{wait: w, from: from, led: int16(need)})
	}
	if s.party == nil {
		visit(s.req, -1, 0)
	} else {
		for _, r := range s.party.waits {
			visit(r, -1, 0)
		}
	}
	for next := 0; next < len(queue); next++ {
		at, waiter := next, queue[next].req()
		closed := e.eachBlocker(waiter, s, func(need int, p *party, r *request) bool {
			switch {
			case p != nil && p == waiter.party && !waiter.follows():
			case closing && (p != nil && p == s.party || p == nil && r == s.req):
				queue[at].via = int16(need)
				return true
			case p != nil:
				for _, other := range p.waits {
					visit(other, at, need)
				}
			default:
				visit(r, at, need)
			}
			return false
		})
		if closed {
			return queue, next
		}
	}
	return queue, -1
}

// cycleTo walks back from the hop that closed the cycle.
func cycleTo(visited []hop, last int) (cycle []hop) {
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

// isWaitedFor is false when nobody can be waiting for the suspect, or it waits for
// nothing any more.
func (s suspect) isWaitedFor() bool {
	if s.party != nil {
		return s.party.isWaitedFor()
	}
	return s.req.num == s.num && s.req.phase == waiting && (s.req.hasFollower() || s.req.task.isAwaited())
}

// isWaitedFor is false when nobody can be waiting for the party: it holds nothing
// that is wanted, and nobody stands behind it.
func (p *party) isWaitedFor() bool {
	if len(p.leases) > 64 || p.sess != nil && len(p.sess.awaiting) > 0 {
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

// eachBlocker calls visit for those that r waits for, each a party or a waiter
// without one. Parties that cannot be on a cycle may be left out, and so are
// waiters ahead that the search which began at s has met at the same key before.
// It stops when visit returns true, and returns that.
func (e *Engine) eachBlocker(r *request, s suspect, visit func(need int, p *party, r *request) bool) bool {
	switch {
	case r.target != nil:
		return r.eachTarget(visit)
	case r.follows():
		return r.awaited.eachInTheWay(visit)
	}
	return e.eachInTheWay(r, s, visit) || e.eachAbsent(r, s, visit)
}

// eachInTheWay is eachBlocker for the holders and the waiters ahead that r
// conflicts with.
func (e *Engine) eachInTheWay(r *request, s suspect, visit func(need int, p *party, r *request) bool) bool {
	for i := range r.needs() {
		m := &r.needs()[i]
		n := m.node
		against := conflicts[m.mode]
		if against&n.modes != 0 {
			for h := n.first; h != nil; h = h.next {
				if p := h.req.party; p != nil && len(p.waits) > 0 && against.has(h.mode) && visit(i, p, nil) {
					return true
				}
			}
			// Only parties that hold and wait can be on a cycle, and there are few, so they
			// are looked through instead of everything below the key.
			for _, p := range r.space.tornBelow(n, against) {
				if p.shows(n, against) && visit(i, p, nil) {
					return true
				}
			}
		}
		counts := r.countsAgainst(m)
		if counts == shortOfPermits {
			for h := n.first; h != nil; h = h.next {
				if p := h.req.party; h.counts == interlock.Permits && p != nil && len(p.waits) > 0 && visit(i, p, nil) {
					return true
				}
			}
		}
		if e.eachAhead(m, counts != enough, s, func(w *request) bool { return visit(i, w.party, w) }) {
			return true
		}
	}
	return false
}

// tornBelow gives the parties to look through for holders of something below n.
func (s *space) tornBelow(n *node, against modeSet) []*party {
	if against&n.modes&setOf(is, ix) == 0 || n.kin == nil || n.kin.child == nil {
		return nil
	}
	return s.torn
}

// eachAhead calls visit for the conflicting waiters before m's request at m's key,
// and for those who want permits if it is short of them.
// What a search has met there it need not meet again. The waits of the party that
// it began with skip each other, so what they have met is kept apart.
func (e *Engine) eachAhead(m *need, short bool, s suspect, visit func(*request) bool) bool {
	l := m.node.line
	if l.mark != e.search {
		l.mark = e.search
		for c := l.first; c != nil; c = c.next {
			if c.crowd != noCrowd {
				c.upto = [2]*place{}
			}
		}
	}
	who := 0
	if s.party != nil && m.req.party == s.party {
		who = 1
	}
	for c := l.first; c != nil; c = c.next {
		if !conflicts[m.mode].has(c.mode) && !(short && c.counts == interlock.Permits) || c.isAsideFor(m.req) {
			continue
		}
		p := c.first()
		if met := c.upto[who]; met != nil {
			p = met.next()
		}
		for ; p != nil && before(p.req, m.req); p = p.next() {
			c.own().upto[who] = p
			if visit(p.req) {
				return true
			}
		}
	}
	return false
}

// shows reports whether the party holds one of modes at n, by a claim or for
// something below.
func (p *party) shows(n *node, modes modeSet) bool {
	own := p.at(n)
	for mode := is; mode <= ex; mode++ {
		if modes.has(mode) && *own.granted.of(mode) > 0 {
			return true
		}
	}
	return false
}
