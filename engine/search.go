package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// The search for a cycle, which may take several steps.
//
// A step looks at stepLooks objects: waits, holders and places in line. A search beyond that
// continues in the next step of its namespace, which is due at once, while other namespaces
// have their turn. In between the graph changes, so a search may miss edges that were added
// behind it and keep edges that are gone. It may miss them because every new edge makes a
// suspect of its own, and a flow that is suspected during its search is searched for once more.
// Kept edges are checked again: the edges of a cycle that was found over several steps must all
// still be there, else the search begins anew. At each key the holders are looked at once for
// all waiters of a mode, and the line once for all.
//
//	cycle ──► none: done
//	  ├─────► of plain locks: broken
//	  ▼
//	collect ──► gather ──► reduce ──► stuck cycle ──► none: done
//	                                      └─────────► broken
//
// A slice is small, some tens of microseconds, because another namespace may have to wait for
// it. The search of one suspect comes to its end in as many steps as it has slices to look at,
// whether these steps are ticks or commands of the namespace: each carries out one. A flow is
// suspected once however many new edges it has, so there are at most as many searches to come
// as flows that wait.

// stepLooks bounds the objects that the searches for deadlocks of one step look at. One
// list is not interrupted: the waits of one flow, and the parties of one barrier.
const stepLooks = 250

// searchPhase is the current activity of a search.
type searchPhase uint8

const (
	findingCycle searchPhase = iota
	collecting               // the waits that can be reached, because the cycle has alternatives
	barrierSet               // what of them the reduction is about
	reducing                 // those to the ones that can never be served
	findingStuck             // a cycle among these
	findingOwn               // one in which the newest wait of the suspect is the victim
)

// search is the search for a cycle through one suspect. It is volatile.
type search struct {
	suspect
	phase  searchPhase
	paused bool         // it has taken more than one step
	dirty  bool         // while it reduces: something that others may wait for was dropped
	number uint64       // of the walk; marks at keys carry it
	hops   []searchStep // the waits that it came to, nearest first
	cycle  []searchStep // that was found, while a better one is looked for
	reduction

	// Where it continues.
	next       int     // the hop under examination
	order      []int16 // its needs in the order of their keys
	need       int     // index in order
	list       blockerList
	begun      bool   // with the list, or with the flows of a session
	held       *need  // the next holder
	nextHolder int    // the index of the next one in namespace.holdsAndWaits
	flow       string // the last one of a session that was visited
}

// blockerList is one list of possible blockers of a waiter at a key.
type blockerList uint8

const (
	listHolders blockerList = iota
	listBelow               // holders of something below
	listPermits
	listLine
)

// trace is the progress of a walk at a key: for waits of others, and for those of the flow that
// it began with.
type trace struct {
	number uint64
	done   [2][listLine]lockmode.Set
}

// countLook counts an object that a search looks at, and reports whether the step has room for
// it.
func (e *Engine) countLook() bool {
	if e.lookBudgetSpent() {
		return false
	}
	e.looked++
	return true
}

// lookBudgetSpent reports that the searches of the step have looked at enough.
func (e *Engine) lookBudgetSpent() bool { return e.looked >= e.looks }

// isSearching reports that a search is to go on, or to begin.
func (a *pendingWork) isSearching() bool { return a.suspects.Len() > 0 || a.search != nil }

// breakCycle continues a search, or begins with the oldest suspect. If a cycle goes through the
// suspect, the victim's wait ends and the suspect is searched again, for there may be another
// cycle. A wait of the suspect itself for permits ends as well.
func (e *Engine) breakCycle() {
	if e.search == nil {
		s := e.suspects.Pop()
		if s.party != nil {
			s.party.suspected = false
		}
		if r := s.waitsForItself(); r != nil {
			e.suspect(s.party, s.req)
			e.leaveLine(r, record.ByPattern)
			return
		}
		e.search = e.newSearch(s)
	}
	x := e.search
	if !x.paused {
		e.looked += x.size()
	}
	if !x.paused && !x.isWaitedFor() {
		e.endSearch()
		return
	}
	cycle, done := e.goOn(x)
	switch {
	case !done:
		x.paused = true
	case len(cycle) == 0:
		e.endSearch()
	default:
		s := x.suspect
		e.endSearch()
		e.search = e.newSearch(s)
		e.breakDeadlock(cycle)
	}
}

// newSearch returns a search that begins with the suspect's waits.
func (e *Engine) newSearch(s suspect) *search {
	x := e.idleSearch
	if x == nil {
		x = &search{}
	}
	e.idleSearch = nil
	*x = search{suspect: s, hops: x.hops[:0], order: x.order[:0]}
	return x
}

// endSearch ends the search that is under way.
func (e *Engine) endSearch() {
	x := e.search
	clear(x.hops)
	x.reduction, x.cycle = reduction{}, nil
	e.search, e.idleSearch = nil, x
}

// goOn takes a search further, as far as the step has room. When it is done, it returns the
// cycle to break, or nil.
func (e *Engine) goOn(x *search) (cycle []searchStep, done bool) {
	for {
		switch {
		case !x.isAlive():
			return nil, true
		case x.number == 0:
			e.beginWalk(x, findingCycle)
		case x.dirty:
			x.restart()
			e.beginWalk(x, collecting)
		}
		if x.phase == barrierSet && !e.gather(x) {
			return nil, false
		}
		if x.phase == reducing {
			if !e.reduce(x) {
				return nil, false
			}
			if len(x.stuck) == 0 {
				return nil, true
			}
			e.beginWalk(x, findingStuck)
			continue
		}
		last, done := e.walk(x)
		if !done {
			return nil, false
		}
		if x.phase == collecting {
			x.beginGathering()
			continue
		}
		found := cycleTo(x.hops, last)
		own := x.phase == findingOwn
		if own && (len(found) == 0 || x.stuck == nil && hasAlternatives(found)) {
			found = x.cycle
		}
		switch {
		case len(found) == 0:
			return nil, true
		case x.paused && !e.isReal(x, found):
			x.restart()
			x.paused, x.cycle = false, nil
			e.beginWalk(x, findingCycle)
		case x.phase == findingCycle && hasAlternatives(found):
			e.beginWalk(x, collecting)
		case own || found[victimOf(found)].req() == x.newest():
			return found, true
		default: // the suspect's own wait closed all its cycles, so it is enough if it is the victim of one
			x.cycle = found
			e.beginWalk(x, findingOwn)
		}
	}
}

// isAlive reports whether the suspect still waits.
func (s suspect) isAlive() bool {
	if s.party != nil {
		return len(s.party.waits) > 0
	}
	return s.req.num == s.num && s.req.phase == waiting
}

// beginWalk turns the search to a walk.
func (e *Engine) beginWalk(x *search, phase searchPhase) {
	e.walks++
	x.phase, x.number, x.dirty = phase, e.walks, false
	clear(x.hops)
	x.hops = x.hops[:0]
	x.skip(0)
	switch {
	case phase == findingOwn:
		x.visit(x.newest(), -1, 0)
	case x.party == nil:
		x.visit(x.req, -1, 0)
	default:
		for _, r := range x.party.waits {
			x.visit(r, -1, 0)
		}
	}
}

// skip continues a hop from its beginning.
func (x *search) skip(to int) {
	x.next, x.order, x.need, x.list = to, x.order[:0], 0, listHolders
	x.rewind()
}

func (x *search) rewind() { x.begun, x.held, x.nextHolder, x.flow = false, nil, 0, "" }

// newest returns that wait of the suspect which is rather to be the victim than its others.
func (s suspect) newest() *request {
	if s.party == nil {
		return s.req
	}
	r := s.party.waits[0]
	for _, w := range s.party.waits[1:] {
		if isBetterVictim(w, r) {
			r = w
		}
	}
	return r
}

// visit adds a wait that another one waits for, unless the walk came to it before.
func (x *search) visit(r *request, from, need int) {
	if r.share != nil && (x.phase != collecting || r.party == nil) {
		return // waits for parts stop no flow, but others wait behind them
	}
	w := r.wait
	if i := int(w.at); i < len(x.hops) && x.hops[i].wait == w && x.hops[i].num == r.num {
		return
	}
	if x.phase == collecting && r.party == nil && x.isFreed(r.whole()) || x.phase != collecting && x.stuck != nil && !x.isStuck(r.whole()) {
		return
	}
	if x.phase == findingOwn && from >= 0 && !isBetterVictim(x.hops[0].req(), r) {
		return
	}
	w.at = int32(len(x.hops))
	x.hops = append(x.hops, searchStep{wait: w, num: r.num, from: from, led: int16(need)})
}

// stillWaits reports whether the hop's wait is what it was.
func (h *searchStep) stillWaits() bool {
	r := h.req()
	return r != nil && r.num == h.num && r.phase == waiting && r.wait == h.wait
}

// walk visits the waits that the suspect waits for, by itself or through others, nearest
// first. It ends at the first one that waits for the suspect, unless it collects, and
// returns its place among the hops; else -1. It is not done if the step has no room left.
func (e *Engine) walk(x *search) (last int, done bool) {
	for x.next < len(x.hops) {
		closed, done := e.widen(x)
		switch {
		case closed:
			return x.next, true
		case !done:
			return -1, false
		}
		x.skip(x.next + 1)
	}
	return -1, true
}

// widen visits those that one wait waits for.
func (e *Engine) widen(x *search) (closed, done bool) {
	if !x.hops[x.next].stillWaits() {
		return false, true
	}
	waiter := x.hops[x.next].req()
	if x.phase == collecting && x.onlyInTheWay(waiter.whole()) {
		return false, true
	}
	visit := func(need int, p *flowState, r *request) bool {
		switch {
		case p != nil && p == waiter.party && !waiter.follows():
		case x.phase != collecting && (p != nil && p == x.party || p == nil && x.party == nil && r == x.req):
			x.hops[x.next].via = int16(need)
			return true
		case p != nil:
			for _, other := range p.waits {
				x.visit(other, x.next, need)
			}
		default:
			x.visit(r, x.next, need)
		}
		return false
	}
	if len(x.order) == 0 && !x.begun { // else it continues with this one
		if !e.countLook() {
			return false, false
		}
		x.order = waiter.needsByKey(x.order)
	}
	switch {
	case waiter.target != nil:
		return e.seekTarget(x, waiter, visit)
	case waiter.follows():
		return waiter.awaited.eachBlocker(visit), true
	}
	for ; x.need < len(x.order); x.need++ {
		for ; x.list <= listLine; x.list++ {
			if closed, done := e.seek(x, waiter, int(x.order[x.need]), visit); closed || !done {
				return closed, done
			}
			x.rewind()
		}
		x.list = listHolders
	}
	return e.eachAbsent(waiter, visit), true
}

// needsByKey appends the indexes of r's needs in the order of their keys, so that a search
// does not depend on that of the claims.
func (r *request) needsByKey(order []int16) []int16 {
	needs := r.needs()
	for i := range needs {
		order = append(order, int16(i))
	}
	if len(needs) > 1 {
		slices.SortStableFunc(order, func(a, b int16) int { return cmp.Compare(needs[a].node.key, needs[b].node.key) })
	}
	return order
}

// seek visits one list of possible blockers of r at a need.
func (e *Engine) seek(x *search, r *request, i int, visit func(need int, p *flowState, r *request) bool) (closed, done bool) {
	m := &r.needs()[i]
	n, against := m.node, lockmode.Conflicts[m.mode]
	if x.list == listLine {
		return e.seekLine(x, r, i, visit)
	}
	if x.list == listPermits {
		if r.countsAgainst(m) != shortOfPermits {
			return false, true
		}
	} else if against&n.modes == 0 {
		return false, true
	}
	seen := &n.line.traced(x.number).done[x.side(r)][x.list]
	if seen.Has(m.mode) {
		return false, true
	}
	if x.list == listBelow {
		for all := r.ns.tornBelow(n, against); x.nextHolder < len(all); x.nextHolder++ {
			if !e.countLook() {
				return false, false
			}
			if p := all[x.nextHolder]; p.shows(n, against) && visit(i, p, nil) {
				return true, true
			}
		}
	} else {
		if !x.begun {
			x.begun, x.held = true, n.first
		}
		for ; x.held != nil; x.held = x.held.next {
			if !e.countLook() {
				return false, false
			}
			h := x.held
			inTheWay := h.counts == interlock.Permits
			if x.list == listHolders {
				inTheWay = against.Has(h.mode)
			}
			if p := h.req.party; inTheWay && p != nil && len(p.waits) > 0 && visit(i, p, nil) {
				return true, true
			}
		}
	}
	*seen |= lockmode.SetOf(m.mode)
	return false, true
}

// seekLine visits the waiters that stand before r, unless the walk has met them before. The
// waits of the flow that it began with skip each other, so their progress is kept apart.
func (e *Engine) seekLine(x *search, r *request, i int, visit func(need int, p *flowState, r *request) bool) (closed, done bool) {
	m, who := &r.needs()[i], x.side(r)
	short := r.countsAgainst(m) != enough
	m.node.line.traced(x.number)
	for c := m.node.line.first; c != nil; c = c.next {
		if !m.isBehind(c, short) {
			continue
		}
		p := c.first()
		if met := c.upto[who]; met != nil {
			p = met.next()
		}
		for ; p != nil && before(p.req, r); p = p.next() {
			if !e.countLook() {
				return false, false
			}
			c.own().upto[who] = p
			if visit(i, p.req.party, p.req) {
				return true, true
			}
		}
	}
	return false, true
}

// isBehind reports whether the need's request waits for the waiters of a bucket that stand
// before it: they exclude it, or it is short of permits that they want, too.
func (m *need) isBehind(c *bucket, short bool) bool {
	return (lockmode.Conflicts[m.mode].Has(c.mode) || short && c.counts == interlock.Permits) && !c.isAsideFor(m.req)
}

// side distinguishes the waits of the flow that the walk began with from others.
func (x *search) side(r *request) int {
	if x.party != nil && r.party == x.party {
		return 1
	}
	return 0
}

// traced returns what the walk with a number has looked at at the line's key.
func (l *waitQueue) traced(number uint64) *trace {
	if l.trace == nil {
		l.trace = &trace{}
	}
	if l.trace.number != number {
		*l.trace = trace{number: number}
		for c := l.first; c != nil; c = c.next {
			if c.bucketIndex != noIndex {
				c.upto = [2]*queueEntry{}
			}
		}
	}
	return l.trace
}

// isReal reports whether all edges of a cycle through the suspect are there.
func (e *Engine) isReal(x *search, cycle []searchStep) bool {
	for i := range cycle {
		h, next := &cycle[i], &cycle[(i+1)%len(cycle)]
		if !h.stillWaits() || !e.blocks(next.req(), h.req(), int(h.via)) {
			return false
		}
	}
	return len(cycle) > 0 && x.isWaitedFor()
}

// blocks reports whether the flow of q, or q if it has none, blocks r, at a need unless that is
// noNeed.
func (e *Engine) blocks(q, r *request, need int) bool {
	is := func(p *flowState, other *request) bool { return p != nil && p == q.party || p == nil && other == q }
	match := func(_ int, p *flowState, other *request) bool { return is(p, other) }
	switch {
	case r.target != nil:
		return q.party != nil && q.party.sess == r.target && (r.targetFlow == "" || q.party.name == r.targetFlow)
	case r.follows():
		return r.awaited.eachBlocker(match)
	}
	m := &r.needs()[need]
	counts := r.countsAgainst(m)
	if p := q.party; p != nil {
		if p.holdsAgainst(m, counts) {
			return true
		}
		for _, w := range p.waits {
			if w.stands(m, counts != enough) {
				return true
			}
		}
	} else if q.stands(m, counts != enough) {
		return true
	}
	return e.eachAbsent(r, match)
}

// stands reports whether r stands in line before the request of a need, which waits for it.
func (r *request) stands(m *need, short bool) bool {
	o := r.needAt(m.node)
	return o != nil && r != m.req && before(r, m.req) && m.isBehind(r.placeOf(o).class, short)
}
