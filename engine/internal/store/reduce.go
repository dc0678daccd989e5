package store

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Which waits can never be served.
//
// A wait for locks needs all its blockers to go away, so a cycle of such waits is a deadlock. A
// wait for permits needs only some to be returned, and a wait for any one of several claims
// only one of them to be free. A cycle through such a wait may not be a deadlock, because a
// flow outside of it can help. Reduction decides that: a flow that waits for nothing goes away
// one day, and so does a flow when all its waits can be served without those that remain, and
// so on. What remains in the end is deadlocked. Plain locks never come here.

// Reduction is about the waits that can be reached from a suspect. It may take several steps. A
// wait that was found to be served one day stays so, because anything that later makes it part
// of a deadlock has suspects of its own. The remaining waits are computed anew when one of them
// drops something, or leaves.
type Reduction struct {
	Heap  collection.ValueHeap[GatheredWait] // those that were gathered and are not in waits yet
	Waits []GatheredWait                     // in the order of the line; whole requests
	Stuck map[*Request]uint64                // those of them that remain, with their numbers
	Freed map[*Request]uint64                // those that do not, likewise
	Left  map[*FlowState]int                 // how many remain of each flow
	of    map[*Session]int                   // and of each session
	keys  map[modeTotals]*residue
	Seen  map[*FlowState]bool // flows with leases that are counted in keys

	// Where it continues.
	UpTo     int
	Counted  bool // the leases are
	Progress bool // in this round
}

// GatheredWait is a wait that a reduction is about.
type GatheredWait struct {
	R         *Request
	Num       uint64
	Score     Time // when it was gathered
	FlowState *FlowState
}

func (w GatheredWait) Less(o GatheredWait) bool {
	return w.Score < o.Score || w.Score == o.Score && w.Num < o.Num
}

func (w *GatheredWait) StillWaits() bool { return w.R.Num == w.Num && w.R.Phase == Waiting }

// modeTotals is a part of a key's usage that is counted together: what blocks all requests there, or
// what the dormant tasks of a queue want, which block only tasks of that queue.
type modeTotals struct {
	node  *Node
	queue *Queue // nil: for all
}

// residue is what the remaining flows have and want at one key: of the wanted permits, those
// ahead of the current wait.
type residue struct {
	flowTally
	permits []permitResidue // of each group
}

type permitResidue struct {
	group       int
	used, ahead uint64
}

// BeginGathering begins the reduction with the waits that were collected.
func (x *Search) BeginGathering() {
	x.Phase, x.UpTo = BarrierSet, 0
	x.Heap, x.Waits, x.Stuck, x.Left, x.of = nil, nil, map[*Request]uint64{}, map[*FlowState]int{}, map[*Session]int{}
}

// Restart forgets the remaining flows, but not the removed ones.
func (d *Reduction) Restart() { *d = Reduction{Freed: d.Freed} }

func (d *Reduction) NewRound() {
	d.keys, d.Seen = map[modeTotals]*residue{}, map[*FlowState]bool{}
	d.UpTo, d.Counted, d.Progress = 0, false, false
}

func (d *Reduction) isStuck(r *Request) bool {
	num, ok := d.Stuck[r]
	return ok && num == r.Num
}

func (d *Reduction) isFreed(r *Request) bool {
	num, ok := d.Freed[r]
	return ok && num == r.Num
}

// OnlyInTheWay reports whether a wait blocks others without being waited for, as long as its
// flow waits elsewhere: it can be served, or is for a part, which its member does not wait for.
func (d *Reduction) OnlyInTheWay(r *Request) bool { return r.Share != nil || d.isFreed(r) }

// Relieved records that a flow, or a waiter without one, has dropped something that others may
// wait for.
func (a *PendingWork) Relieved(p *FlowState, r *Request) {
	if x := a.Search; x != nil && x.Stuck != nil && !x.Gone(p, r) {
		x.Dirty = true
	}
}

// Remains counts the remaining waits of a flow.
func (d *Reduction) Remains(p *FlowState, by int) {
	if p == nil {
		return
	}
	d.Left[p] += by
	if p.Sess != nil {
		d.of[p.Sess] += by
	}
}

// Gone reports whether a flow, or a wait without one, is not among those that remain.
func (d *Reduction) Gone(p *FlowState, r *Request) bool {
	if p != nil {
		return d.Left[p] == 0
	}
	return !d.isStuck(r)
}

// Add counts what r has, or waits for, among what remains.
func (d *Reduction) Add(r *Request, waits bool) {
	var queue *Queue
	if waits && r.Task != nil && r.Task.Eligibility.IsYielding() {
		queue = r.Task.Queue
	}
	for i := range r.Needs() {
		m := &r.Needs()[i]
		at := modeTotals{m.Node, queue}
		x := d.keys[at]
		if x == nil {
			x = &residue{}
			d.keys[at] = x
		}
		x.add(r, m, waits)
	}
}

// At returns what r finds at a key.
func (d *Reduction) At(r *Request, n *Node) *residue {
	x := d.keys[modeTotals{n, nil}]
	if r.Task != nil {
		x = x.plus(d.keys[modeTotals{n, r.Task.Queue}])
	}
	return x
}

// plus returns what both are together.
func (x *residue) plus(y *residue) *residue {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	sum := &residue{x.flowTally, slices.Clone(x.permits)}
	for mode := lockmode.IS; mode <= lockmode.X; mode++ {
		*sum.Granted.Of(mode) += *y.Granted.Of(mode)
		*sum.Waits.Of(mode) += *y.Waits.Of(mode)
	}
	for _, g := range y.permits {
		sum.count(g)
	}
	return sum
}

func (x *residue) add(r *Request, m *Need, waits bool) {
	if waits {
		*x.Waits.Of(m.Mode)++
	} else {
		*x.Granted.Of(m.Mode)++
	}
	if m.Counts != interlock.Permits {
		return
	}
	g := permitResidue{group: r.GroupAt(m)}
	if n := uint64(r.CountOf(m)); waits {
		g.ahead = n
	} else {
		g.used = n
	}
	x.count(g)
}

// count adds permits of a group.
func (x *residue) count(g permitResidue) {
	for i := range x.permits {
		if of := &x.permits[i]; of.group == g.group {
			of.used += g.used
			of.ahead += g.ahead
			return
		}
	}
	x.permits = append(x.permits, g)
}

// Used returns the permits that those of all groups have.
func (x *residue) Used() (sum uint64) {
	for _, g := range x.permits {
		sum += g.used
	}
	return sum
}

// of returns the permits that those of a group have, and want.
func (x *residue) of(group int) (used, ahead uint64) {
	for _, g := range x.permits {
		if g.group == group {
			return g.used, g.ahead
		}
	}
	return 0, 0
}

// LeavesTo reports whether a declared wait waits for none of those that remain.
func (d *Reduction) LeavesTo(r *Request) bool {
	if r.TargetFlow == "" {
		return d.of[r.Target] == 0
	}
	f := r.Target.FlowOf(r.TargetFlow, r.NS.Salt.Hash(r.TargetFlow))
	return f == nil || d.Left[f] == 0
}

// OwnAt returns what r's own flow has at a key and wants before r. For permits it is the number
// that the flow can return.
func (d *Reduction) OwnAt(r *Request, n *Node) *residue {
	x := &residue{}
	if r.FlowState == nil {
		return x
	}
	for _, l := range r.FlowState.Leases {
		if m := l.needAt(n); m != nil {
			x.add(l, m, false)
		}
	}
	for _, g := range r.KeptAt(n).permits {
		x.count(permitResidue{group: g.group, used: -g.used})
	}
	for _, w := range r.FlowState.Waits {
		if m := w.needAt(n); m != nil && Before(w, r) {
			x.add(w, m, true)
		}
	}
	return x
}

// Spares reports whether there are permits for r besides those that the flows of x keep, and
// others of them want before it, and tokens, once they have come back.
func (x *residue) Spares(r *Request, m *Need, own *residue) bool {
	p := m.Node.Pool().Policy
	if p == nil {
		return true
	}
	of := func(group int) (used, ahead uint64) {
		used, ahead = x.of(group)
		ownUsed, ownAhead := own.of(group)
		return used - ownUsed, ahead - ownAhead
	}
	var used, ahead uint64
	for _, g := range x.permits {
		u, a := of(g.group)
		used, ahead = used+u, ahead+a
	}
	n := uint64(r.CountOf(m))
	return (p.Capacity == 0 || p.fits(r.GroupAt(m), n, used, ahead, of)) &&
		(p.Rate == 0 || ahead+n <= uint64(p.BurstLimit()))
}

// gather continues to gather them, and sorts them in the order of the line.
func (x *Search) gather() (done bool) {
	for ; x.UpTo < len(x.Hops); x.UpTo++ {
		if !x.looks.Spend() {
			return false
		}
		h := &x.Hops[x.UpTo]
		if !h.StillWaits() || h.Req().Parent != nil && h.Req().Pos > 0 {
			continue // its first branch stands for it
		}
		r := h.Req().Whole()
		x.Heap.Push(GatheredWait{R: r, Num: r.Num, Score: r.Wait.Score, FlowState: r.FlowState})
		if x.OnlyInTheWay(r) {
			continue
		}
		x.Stuck[r] = r.Num
		x.Remains(r.FlowState, 1)
	}
	if x.Waits == nil {
		x.Waits = make([]GatheredWait, 0, len(x.Heap))
	}
	for len(x.Heap) > 0 {
		if !x.looks.Spend() {
			return false
		}
		x.Waits = append(x.Waits, x.Heap.Pop())
	}
	x.Heap = nil
	x.NewRound()
	x.Phase = Reducing
	return true
}

// reduce continues the reduction until nothing changes, and reports whether it got there.
func (x *Search) reduce() (done bool) {
	for {
		for ; !x.Counted && x.UpTo < len(x.Waits); x.UpTo++ {
			if !x.looks.Spend() {
				return false
			}
			x.countWait(&x.Waits[x.UpTo])
		}
		if !x.Counted {
			x.Counted, x.UpTo = true, 0
		}
		for ; x.UpTo < len(x.Waits); x.UpTo++ {
			if !x.looks.Spend() {
				return false
			}
			x.judge(&x.Waits[x.UpTo])
		}
		if !x.Progress {
			return true
		}
		x.NewRound()
	}
}

// countWait adds the holdings of a wait's flow, once.
func (x *Search) countWait(w *GatheredWait) {
	p := w.FlowState
	if p == nil || x.Seen[p] || x.Left[p] == 0 {
		return
	}
	x.Seen[p] = true
	for _, l := range p.Leases {
		x.looks.Spent += weighs * len(l.Needs())
		x.Add(l, false)
	}
}

// judge removes a wait that can be served, and adds its claims if its flow remains.
func (x *Search) judge(w *GatheredWait) {
	if num, ok := x.Stuck[w.R]; ok && num == w.Num && (!w.StillWaits() || x.isServable(w.R)) {
		x.Progress = true
		delete(x.Stuck, w.R)
		if x.Freed == nil {
			x.Freed = map[*Request]uint64{}
		}
		x.Freed[w.R] = w.Num
		x.Remains(w.FlowState, -1)
	}
	if w.StillWaits() && !x.Gone(w.FlowState, w.R) {
		for way := range w.R.EachAlternative {
			x.Add(way, true)
		}
	}
}

// isServable reports whether r can be served without those that remain.
func (x *Search) isServable(r *Request) bool {
	for way := range r.EachAlternative {
		x.looks.Spent += weighs * len(way.Needs())
		if x.isFreeWithin(way) {
			return true
		}
	}
	return false
}

// isFreeWithin reports whether no remaining flow blocks r. Its own flow blocks it only by the permits
// that it has: while it waits it returns none.
func (x *Search) isFreeWithin(r *Request) bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		there := x.At(r, m.Node)
		if there == nil {
			continue
		}
		own := x.OwnAt(r, m.Node)
		for mode := lockmode.IS; mode <= lockmode.X; mode++ {
			if lockmode.Conflicts[m.Mode].Has(mode) &&
				(*there.Granted.Of(mode) > *own.Granted.Of(mode) || *there.Waits.Of(mode) > *own.Waits.Of(mode)) {
				return false
			}
		}
		if m.Counts == interlock.Permits && !there.Spares(r, m, own) {
			return false
		}
	}
	blocks := func(_ int, p *FlowState, other *Request) bool {
		return (p == nil || p != r.FlowState || r.Follows()) && !x.Gone(p, other)
	}
	switch {
	case r.Target != nil:
		return x.LeavesTo(r)
	case r.Follows():
		return !r.Awaited.EachBlocker(blocks)
	}
	return !x.eachAbsent(r, blocks)
}

// weighs is how much more it costs to weigh a need than to look at an object.
const weighs = 2

// hasAlternatives reports whether a wait on the cycle could be served by others
// than those of the cycle.
func hasAlternatives(cycle []SearchStep) bool {
	return slices.ContainsFunc(cycle, func(h SearchStep) bool {
		return h.Req().Parent != nil || h.Via != NoNeed && h.Req().Needs()[h.Via].Counts == interlock.Permits
	})
}
