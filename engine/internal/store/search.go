package store

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// SearchPhase is the current activity of a search.
type SearchPhase uint8

const (
	FindingCycle SearchPhase = iota
	Collecting               // the waits that can be reached, because the cycle has alternatives
	BarrierSet               // what of them the reduction is about
	Reducing                 // those to the ones that can never be served
	FindingStuck             // a cycle among these
	FindingOwn               // one in which the newest wait of the suspect is the victim
)

// Search is the search for a cycle through one suspect. It is volatile.
type Search struct {
	Suspect
	Phase  SearchPhase
	Paused bool         // it has taken more than one step
	Dirty  bool         // while it reduces: something that others may wait for was dropped
	Number uint64       // of the walk; marks at keys carry it
	Hops   []SearchStep // the waits that it came to, nearest first
	Cycle  []SearchStep // that was found, while a better one is looked for
	Reduction
	looks *Budget // State.Looks
	walks *uint64 // State.walks

	// Where it continues.
	Next       int     // the hop under examination
	Order      []int16 // its needs in the order of their keys
	Need       int     // index in order
	List       blockerList
	Begun      bool   // with the list, or with the flows of a session
	Held       *Need  // the next holder
	NextHolder int    // the index of the next one in namespace.HoldsAndWaits
	Flow       string // the last one of a session that was visited
}

// blockerList is one list of possible blockers of a waiter at a key.
type blockerList uint8

const (
	ListHolders blockerList = iota
	ListBelow               // holders of something below
	ListPermits
	ListLine
)

// trace is the progress of a walk at a key: for waits of others, and for those of the flow that
// it began with.
type trace struct {
	number uint64
	Done   [2][ListLine]lockmode.Set
}

// HasSearch reports that a search is to go on, or to begin.
func (a *PendingWork) HasSearch() bool { return a.Suspects.Len() > 0 || a.Search != nil }

// IsAlive reports whether the suspect still waits.
func (s Suspect) IsAlive() bool {
	if s.FlowState != nil {
		return len(s.FlowState.Waits) > 0
	}
	return s.Req.Num == s.num && s.Req.Phase == Waiting
}

// SkipTo continues a hop from its beginning.
func (x *Search) SkipTo(to int) {
	x.Next, x.Order, x.Need, x.List = to, x.Order[:0], 0, ListHolders
	x.Rewind()
}

func (x *Search) Rewind() { x.Begun, x.Held, x.NextHolder, x.Flow = false, nil, 0, "" }

// Newest returns that wait of the suspect which is rather to be the victim than its others.
func (s Suspect) Newest() *Request {
	if s.FlowState == nil {
		return s.Req
	}
	r := s.FlowState.Waits[0]
	for _, w := range s.FlowState.Waits[1:] {
		if IsBetterVictim(w, r) {
			r = w
		}
	}
	return r
}

// Visit adds a wait that another one waits for, unless the walk came to it before.
func (x *Search) Visit(r *Request, from, need int) {
	if r.Share != nil && (x.Phase != Collecting || r.FlowState == nil) {
		return // waits for parts stop no flow, but others wait behind them
	}
	w := r.Wait
	if i := int(w.at); i < len(x.Hops) && x.Hops[i].Wait == w && x.Hops[i].num == r.Num {
		return
	}
	if x.Phase == Collecting && r.FlowState == nil && x.isFreed(r.Whole()) ||
		x.Phase != Collecting && x.Stuck != nil && !x.isStuck(r.Whole()) {
		return
	}
	if x.Phase == FindingOwn && from >= 0 && !IsBetterVictim(x.Hops[0].Req(), r) {
		return
	}
	w.at = int32(len(x.Hops))
	x.Hops = append(x.Hops, SearchStep{Wait: w, num: r.Num, From: from, Led: int16(need)})
}

// StillWaits reports whether the hop's wait is unchanged.
func (h *SearchStep) StillWaits() bool {
	r := h.Req()
	return r != nil && r.Num == h.num && r.Phase == Waiting && r.Wait == h.Wait
}

// NeedsByKey appends the indexes of r's needs in the order of their keys, so that a search
// does not depend on that of the claims.
func (r *Request) NeedsByKey(order []int16) []int16 {
	needs := r.Needs()
	for i := range needs {
		order = append(order, int16(i))
	}
	if len(needs) > 1 {
		slices.SortStableFunc(order, func(a, b int16) int { return cmp.Compare(needs[a].Node.Key, needs[b].Node.Key) })
	}
	return order
}

// IsBehind reports whether the need's request waits for the waiters of a bucket that stand
// before it: they exclude it, or it is short of permits that they want, too.
func (m *Need) IsBehind(c *bucket, short bool) bool {
	return (lockmode.Conflicts[m.Mode].Has(c.Mode) || short && c.Counts == interlock.Permits) && !c.IsAsideFor(m.Req)
}

// Side distinguishes the waits of the flow that the walk began with from others.
func (x *Search) Side(r *Request) int {
	if x.FlowState != nil && r.FlowState == x.FlowState {
		return 1
	}
	return 0
}

// Traced returns the trace of the walk with a number at the line's key.
func (l *waitQueue) Traced(number uint64) *trace {
	if l.trace == nil {
		l.trace = &trace{}
	}
	if l.trace.number != number {
		*l.trace = trace{number: number}
		for c := l.First; c != nil; c = c.Next {
			if c.bucketIndex != noIndex {
				c.Upto = [2]*QueueEntry{}
			}
		}
	}
	return l.trace
}

// Stands reports whether r stands in line before the request of a need, which waits for it.
func (r *Request) Stands(m *Need, short bool) bool {
	o := r.needAt(m.Node)
	return o != nil && r != m.Req && Before(r, m.Req) && m.IsBehind(r.placeOf(o).Class, short)
}

// NoNeed stands for the index of a need in a wait that has none.
const NoNeed = -1

// The search for a cycle, which may take several steps.
//
// A step looks at StepLooks objects: waits, holders and places in line. A search beyond that
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

// StepLooks bounds the objects that the searches for deadlocks of one step look at. One
// list is not interrupted: the waits of one flow, and the parties of one barrier.
const StepLooks = 250

// NewSearch returns a search that begins with the suspect's waits.
func (st *State) NewSearch(s Suspect) *Search {
	x := st.idleSearch
	if x == nil {
		x = &Search{}
	}
	st.idleSearch = nil
	*x = Search{Suspect: s, Hops: x.Hops[:0], Order: x.Order[:0], looks: &st.Looks, walks: &st.walks}
	return x
}

// EndSearch ends the search that is under way.
func (st *State) EndSearch() {
	x := st.Search
	clear(x.Hops)
	x.Reduction, x.Cycle = Reduction{}, nil
	st.Search, st.idleSearch = nil, x
}

// Continue takes a search further, as far as the step has room. When it is done, it returns the
// cycle to break, or nil.
func (x *Search) Continue() (cycle []SearchStep, done bool) {
	for {
		switch {
		case !x.IsAlive():
			return nil, true
		case x.Number == 0:
			x.beginWalk(FindingCycle)
		case x.Dirty:
			x.Restart()
			x.beginWalk(Collecting)
		}
		if x.Phase == BarrierSet && !x.gather() {
			return nil, false
		}
		if x.Phase == Reducing {
			if !x.reduce() {
				return nil, false
			}
			if len(x.Stuck) == 0 {
				return nil, true
			}
			x.beginWalk(FindingStuck)
			continue
		}
		last, done := x.walk()
		if !done {
			return nil, false
		}
		if x.Phase == Collecting {
			x.BeginGathering()
			continue
		}
		found := cycleTo(x.Hops, last)
		own := x.Phase == FindingOwn
		if own && (len(found) == 0 || x.Stuck == nil && hasAlternatives(found)) {
			found = x.Cycle
		}
		switch {
		case len(found) == 0:
			return nil, true
		case x.Paused && !x.isReal(found):
			x.Restart()
			x.Paused, x.Cycle = false, nil
			x.beginWalk(FindingCycle)
		case x.Phase == FindingCycle && hasAlternatives(found):
			x.beginWalk(Collecting)
		case own || found[VictimOf(found)].Req() == x.Newest():
			return found, true
		default: // the suspect's own wait closed all its cycles, so it is enough if it is the victim of one
			x.Cycle = found
			x.beginWalk(FindingOwn)
		}
	}
}

// beginWalk turns the search to a walk.
func (x *Search) beginWalk(phase SearchPhase) {
	*x.walks++
	x.Phase, x.Number, x.Dirty = phase, *x.walks, false
	clear(x.Hops)
	x.Hops = x.Hops[:0]
	x.SkipTo(0)
	switch {
	case phase == FindingOwn:
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
func (x *Search) walk() (last int, done bool) {
	for x.Next < len(x.Hops) {
		closed, done := x.widen()
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
func (x *Search) widen() (closed, done bool) {
	if !x.Hops[x.Next].StillWaits() {
		return false, true
	}
	waiter := x.Hops[x.Next].Req()
	if x.Phase == Collecting && x.OnlyInTheWay(waiter.Whole()) {
		return false, true
	}
	visit := func(need int, p *FlowState, r *Request) bool {
		switch {
		case p != nil && p == waiter.FlowState && !waiter.Follows():
		case x.Phase != Collecting && (p != nil && p == x.FlowState || p == nil && x.FlowState == nil && r == x.Req):
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
		if !x.looks.Spend() {
			return false, false
		}
		x.Order = waiter.NeedsByKey(x.Order)
	}
	switch {
	case waiter.Target != nil:
		return x.seekTarget(waiter, visit)
	case waiter.Follows():
		return waiter.Awaited.EachBlocker(visit), true
	}
	for ; x.Need < len(x.Order); x.Need++ {
		for ; x.List <= ListLine; x.List++ {
			if closed, done := x.seek(waiter, int(x.Order[x.Need]), visit); closed || !done {
				return closed, done
			}
			x.Rewind()
		}
		x.List = ListHolders
	}
	return x.eachAbsent(waiter, visit), true
}

// seek visits one list of possible blockers of r at a need.
func (x *Search) seek(
	r *Request, i int, visit func(need int, p *FlowState, r *Request) bool,
) (closed, done bool) {
	m := &r.Needs()[i]
	n, against := m.Node, lockmode.Conflicts[m.Mode]
	if x.List == ListLine {
		return x.seekLine(r, i, visit)
	}
	if x.List == ListPermits {
		if r.CountsAgainst(m) != ShortOfPermits {
			return false, true
		}
	} else if against&n.Modes == 0 {
		return false, true
	}
	seen := &n.Line.Traced(x.Number).Done[x.Side(r)][x.List]
	if seen.Has(m.Mode) {
		return false, true
	}
	if x.List == ListBelow {
		for all := r.NS.HoldsAndWaitsBelow(n, against); x.NextHolder < len(all); x.NextHolder++ {
			if !x.looks.Spend() {
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
			if !x.looks.Spend() {
				return false, false
			}
			h := x.Held
			inTheWay := h.Counts == interlock.Permits
			if x.List == ListHolders {
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
func (x *Search) seekLine(
	r *Request, i int, visit func(need int, p *FlowState, r *Request) bool,
) (closed, done bool) {
	m, who := &r.Needs()[i], x.Side(r)
	short := r.CountsAgainst(m) != Enough
	m.Node.Line.Traced(x.Number)
	for c := m.Node.Line.First; c != nil; c = c.Next {
		if !m.IsBehind(c, short) {
			continue
		}
		p := c.First()
		if met := c.Upto[who]; met != nil {
			p = met.Next()
		}
		for ; p != nil && Before(p.Req, r); p = p.Next() {
			if !x.looks.Spend() {
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
func (x *Search) isReal(cycle []SearchStep) bool {
	for i := range cycle {
		h, next := &cycle[i], &cycle[(i+1)%len(cycle)]
		if !h.StillWaits() || !x.blocks(next.Req(), h.Req(), int(h.Via)) {
			return false
		}
	}
	return len(cycle) > 0 && x.IsWaitedFor()
}

// seekTarget visits the flow that a declared wait waits for, or the session's flows that wait
// themselves, in the order of their names.
func (x *Search) seekTarget(r *Request, visit func(need int, p *FlowState, r *Request) bool) (closed, done bool) {
	if r.TargetFlow != "" {
		f := r.Target.FlowOf(r.TargetFlow, r.NS.Salt.Hash(r.TargetFlow))
		return f != nil && visit(NoNeed, f, nil), true
	}
	x.Begun = true
	i, met := slices.BinarySearchFunc(r.Target.Waiting, x.Flow, ByFlowName)
	if met {
		i++
	}
	for _, f := range r.Target.Waiting[i:] {
		if !x.looks.Spend() {
			return false, false
		}
		if x.Flow = f.Name; visit(NoNeed, f, nil) {
			return true, true
		}
	}
	return false, true
}

// blocks reports whether the flow of q, or q if it has none, blocks r, at a need unless that is
// NoNeed.
func (x *Search) blocks(q, r *Request, need int) bool {
	is := func(p *FlowState, other *Request) bool {
		return p != nil && p == q.FlowState || p == nil && other == q
	}
	match := func(_ int, p *FlowState, other *Request) bool { return is(p, other) }
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
			if w.Stands(m, counts != Enough) {
				return true
			}
		}
	} else if q.Stands(m, counts != Enough) {
		return true
	}
	return x.eachAbsent(r, match)
}

// eachBlocker calls visit for each holder and each waiter ahead that r waits for, as a flow or
// as a waiter without one. Flows that cannot be on a cycle may be left out. It stops when visit
// returns true, and returns that.
func (x *Search) eachBlocker(r *Request, visit func(need int, p *FlowState, r *Request) bool) bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		n := m.Node
		against, counts := lockmode.Conflicts[m.Mode], r.CountsAgainst(m)
		for h := n.First; h != nil; h = h.Next {
			x.looks.Spent++
			inTheWay := against.Has(h.Mode) || counts == ShortOfPermits && h.Counts == interlock.Permits
			if p := h.Req.FlowState; inTheWay && p != nil && len(p.Waits) > 0 && visit(i, p, nil) {
				return true
			}
		}
		// Only flows that hold and wait can be on a cycle, and there are few, so they are
		// examined instead of everything below the key.
		for _, p := range r.NS.HoldsAndWaitsBelow(n, against) {
			x.looks.Spent++
			if p.Shows(n, against) && visit(i, p, nil) {
				return true
			}
		}
		for c := n.Line.First; c != nil; c = c.Next {
			if !m.IsBehind(c, counts != Enough) {
				continue
			}
			for p := c.First(); p != nil && Before(p.Req, r); p = p.Next() {
				x.looks.Spent++
				if visit(i, p.Req.FlowState, p.Req) {
					return true
				}
			}
		}
	}
	return false
}

// eachAbsent is EachBlocker for a barrier: it visits the holders of the leases that absent
// returns and, once all parties are there, the blockers of its generation. If r itself is the
// blocker, r waits for the party that it locks out.
func (x *Search) eachAbsent(r *Request, visit func(need int, p *FlowState, r *Request) bool) bool {
	m := r.Barrier()
	if m == nil {
		return false
	}
	at := len(r.Needs()) - 1
	for _, x := range r.Absent(m) {
		if p := x.FlowState; p != nil && len(p.Waits) > 0 && visit(at, p, nil) {
			return true
		}
	}
	if !r.Gathered(m) {
		return false
	}
	for _, w := range r.GatheredAt(m) {
		if w == r || w.LockedOut() < 0 {
			continue
		}
		closed := x.eachBlocker(w, func(_ int, p *FlowState, x *Request) bool {
			if p != nil && p == r.FlowState {
				p, x = w.FlowState, w
			}
			return visit(at, p, x)
		})
		if closed {
			return true
		}
	}
	return false
}

// cycleTo walks back from the hop that closed the cycle.
func cycleTo(visited []SearchStep, last int) (cycle []SearchStep) {
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

// VictimOf returns the place of a cycle's victim.
func VictimOf(cycle []SearchStep) (victim int) {
	for i, h := range cycle {
		if IsBetterVictim(h.Req(), cycle[victim].Req()) {
			victim = i
		}
	}
	return victim
}
