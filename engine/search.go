package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// breakCycle continues a search, or begins with the oldest suspect. If a cycle goes through the
// suspect, the victim's wait ends and the suspect is searched again, for there may be another
// cycle. A wait of the suspect itself for permits ends as well.
func (e *Engine) breakCycle() {
	if e.Search == nil {
		s := e.Suspects.Pop()
		if s.FlowState != nil {
			s.FlowState.Suspected = false
		}
		if r := s.WaitsForItself(); r != nil {
			e.Suspect(s.FlowState, s.Req)
			e.leaveLine(r, record.ByPattern)
			return
		}
		e.Search = e.newSearch(s)
	}
	x := e.Search
	if !x.Paused {
		e.looked += x.Size()
	}
	if !x.Paused && !x.IsWaitedFor() {
		e.endSearch()
		return
	}
	cycle, done := e.goOn(x)
	switch {
	case !done:
		x.Paused = true
	case len(cycle) == 0:
		e.endSearch()
	default:
		s := x.Suspect
		e.endSearch()
		e.Search = e.newSearch(s)
		e.breakDeadlock(cycle)
	}
}

// newSearch returns a search that begins with the suspect's waits.
func (e *Engine) newSearch(s store.Suspect) *store.Search {
	x := e.idleSearch
	if x == nil {
		x = &store.Search{}
	}
	e.idleSearch = nil
	*x = store.Search{Suspect: s, Hops: x.Hops[:0], Order: x.Order[:0]}
	return x
}

// endSearch ends the search that is under way.
func (e *Engine) endSearch() {
	x := e.Search
	clear(x.Hops)
	x.Reduction, x.Cycle = store.Reduction{}, nil
	e.Search, e.idleSearch = nil, x
}

// goOn takes a search further, as far as the step has room. When it is done, it returns the
// cycle to break, or nil.
func (e *Engine) goOn(x *store.Search) (cycle []store.SearchStep, done bool) {
	for {
		switch {
		case !x.IsAlive():
			return nil, true
		case x.Number == 0:
			e.beginWalk(x, store.FindingCycle)
		case x.Dirty:
			x.Restart()
			e.beginWalk(x, store.Collecting)
		}
		if x.Phase == store.BarrierSet && !e.gather(x) {
			return nil, false
		}
		if x.Phase == store.Reducing {
			if !e.reduce(x) {
				return nil, false
			}
			if len(x.Stuck) == 0 {
				return nil, true
			}
			e.beginWalk(x, store.FindingStuck)
			continue
		}
		last, done := e.walk(x)
		if !done {
			return nil, false
		}
		if x.Phase == store.Collecting {
			x.BeginGathering()
			continue
		}
		found := cycleTo(x.Hops, last)
		own := x.Phase == store.FindingOwn
		if own && (len(found) == 0 || x.Stuck == nil && hasAlternatives(found)) {
			found = x.Cycle
		}
		switch {
		case len(found) == 0:
			return nil, true
		case x.Paused && !e.isReal(x, found):
			x.Restart()
			x.Paused, x.Cycle = false, nil
			e.beginWalk(x, store.FindingCycle)
		case x.Phase == store.FindingCycle && hasAlternatives(found):
			e.beginWalk(x, store.Collecting)
		case own || found[victimOf(found)].Req() == x.Newest():
			return found, true
		default: // the suspect's own wait closed all its cycles, so it is enough if it is the victim of one
			x.Cycle = found
			e.beginWalk(x, store.FindingOwn)
		}
	}
}

// beginWalk turns the search to a walk.
func (e *Engine) beginWalk(x *store.Search, phase store.SearchPhase) {
	e.walks++
	x.Phase, x.Number, x.Dirty = phase, e.walks, false
	clear(x.Hops)
	x.Hops = x.Hops[:0]
	x.SkipTo(0)
	switch {
	case phase == store.FindingOwn:
		x.Visit(x.Newest(), -1, 0)
	case x.FlowState == nil:
		x.Visit(x.Req, -1, 0)
	default:
		for _, r := range x.FlowState.Waits {
			x.Visit(r, -1, 0)
		}
	}
}

// walk visits the waits that the suspect waits for, by itself or through others, nearest
// first. It ends at the first one that waits for the suspect, unless it collects, and
// returns its place among the hops; else -1. It is not done if the step has no room left.
func (e *Engine) walk(x *store.Search) (last int, done bool) {
	for x.Next < len(x.Hops) {
		closed, done := e.widen(x)
		switch {
		case closed:
			return x.Next, true
		case !done:
			return -1, false
		}
		x.SkipTo(x.Next + 1)
	}
	return -1, true
}

// widen visits those that one wait waits for.
func (e *Engine) widen(x *store.Search) (closed, done bool) {
	if !x.Hops[x.Next].StillWaits() {
		return false, true
	}
	waiter := x.Hops[x.Next].Req()
	if x.Phase == store.Collecting && x.OnlyInTheWay(waiter.Whole()) {
		return false, true
	}
	visit := func(need int, p *store.FlowState, r *store.Request) bool {
		switch {
		case p != nil && p == waiter.FlowState && !waiter.Follows():
		case x.Phase != store.Collecting && (p != nil && p == x.FlowState || p == nil && x.FlowState == nil && r == x.Req):
			x.Hops[x.Next].Via = int16(need)
			return true
		case p != nil:
			for _, other := range p.Waits {
				x.Visit(other, x.Next, need)
			}
		default:
			x.Visit(r, x.Next, need)
		}
		return false
	}
	if len(x.Order) == 0 && !x.Begun { // else it continues with this one
		if !e.countLook() {
			return false, false
		}
		x.Order = waiter.NeedsByKey(x.Order)
	}
	switch {
	case waiter.Target != nil:
		return e.seekTarget(x, waiter, visit)
	case waiter.Follows():
		return waiter.Awaited.EachBlocker(visit), true
	}
	for ; x.Need < len(x.Order); x.Need++ {
		for ; x.List <= store.ListLine; x.List++ {
			if closed, done := e.seek(x, waiter, int(x.Order[x.Need]), visit); closed || !done {
				return closed, done
			}
			x.Rewind()
		}
		x.List = store.ListHolders
	}
	return e.eachAbsent(waiter, visit), true
}

// seek visits one list of possible blockers of r at a need.
func (e *Engine) seek(
	x *store.Search, r *store.Request, i int, visit func(need int, p *store.FlowState, r *store.Request) bool,
) (closed, done bool) {
	m := &r.Needs()[i]
	n, against := m.Node, lockmode.Conflicts[m.Mode]
	if x.List == store.ListLine {
		return e.seekLine(x, r, i, visit)
	}
	if x.List == store.ListPermits {
		if r.CountsAgainst(m) != store.ShortOfPermits {
			return false, true
		}
	} else if against&n.Modes == 0 {
		return false, true
	}
	seen := &n.Line.Traced(x.Number).Done[x.Side(r)][x.List]
	if seen.Has(m.Mode) {
		return false, true
	}
	if x.List == store.ListBelow {
		for all := r.NS.HoldsAndWaitsBelow(n, against); x.NextHolder < len(all); x.NextHolder++ {
			if !e.countLook() {
				return false, false
			}
			if p := all[x.NextHolder]; p.Shows(n, against) && visit(i, p, nil) {
				return true, true
			}
		}
	} else {
		if !x.Begun {
			x.Begun, x.Held = true, n.First
		}
		for ; x.Held != nil; x.Held = x.Held.Next {
			if !e.countLook() {
				return false, false
			}
			h := x.Held
			inTheWay := h.Counts == interlock.Permits
			if x.List == store.ListHolders {
				inTheWay = against.Has(h.Mode)
			}
			if p := h.Req.FlowState; inTheWay && p != nil && len(p.Waits) > 0 && visit(i, p, nil) {
				return true, true
			}
		}
	}
	*seen |= lockmode.SetOf(m.Mode)
	return false, true
}

// seekLine visits the waiters that stand before r, unless the walk has met them before. The
// waits of the flow that it began with skip each other, so their progress is kept apart.
func (e *Engine) seekLine(
	x *store.Search, r *store.Request, i int, visit func(need int, p *store.FlowState, r *store.Request) bool,
) (closed, done bool) {
	m, who := &r.Needs()[i], x.Side(r)
	short := r.CountsAgainst(m) != store.Enough
	m.Node.Line.Traced(x.Number)
	for c := m.Node.Line.First; c != nil; c = c.Next {
		if !m.IsBehind(c, short) {
			continue
		}
		p := c.First()
		if met := c.Upto[who]; met != nil {
			p = met.Next()
		}
		for ; p != nil && store.Before(p.Req, r); p = p.Next() {
			if !e.countLook() {
				return false, false
			}
			c.Own().Upto[who] = p
			if visit(i, p.Req.FlowState, p.Req) {
				return true, true
			}
		}
	}
	return false, true
}

// isReal reports whether all edges of a cycle through the suspect are there.
func (e *Engine) isReal(x *store.Search, cycle []store.SearchStep) bool {
	for i := range cycle {
		h, next := &cycle[i], &cycle[(i+1)%len(cycle)]
		if !h.StillWaits() || !e.blocks(next.Req(), h.Req(), int(h.Via)) {
			return false
		}
	}
	return len(cycle) > 0 && x.IsWaitedFor()
}

// blocks reports whether the flow of q, or q if it has none, blocks r, at a need unless that is
// NoNeed.
func (e *Engine) blocks(q, r *store.Request, need int) bool {
	is := func(p *store.FlowState, other *store.Request) bool {
		return p != nil && p == q.FlowState || p == nil && other == q
	}
	match := func(_ int, p *store.FlowState, other *store.Request) bool { return is(p, other) }
	switch {
	case r.Target != nil:
		return q.FlowState != nil && q.FlowState.Sess == r.Target && (r.TargetFlow == "" || q.FlowState.Name == r.TargetFlow)
	case r.Follows():
		return r.Awaited.EachBlocker(match)
	}
	m := &r.Needs()[need]
	counts := r.CountsAgainst(m)
	if p := q.FlowState; p != nil {
		if p.HoldsAgainst(m, counts) {
			return true
		}
		for _, w := range p.Waits {
			if w.Stands(m, counts != store.Enough) {
				return true
			}
		}
	} else if q.Stands(m, counts != store.Enough) {
		return true
	}
	return e.eachAbsent(r, match)
}
