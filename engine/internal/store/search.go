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

// StillWaits reports whether the hop's wait is what it was.
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

// Traced returns what the walk with a number has looked at at the line's key.
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
