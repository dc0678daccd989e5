package engine

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

// reduction is about the waits that can be reached from a suspect. It may take several steps. A
// wait that was found to be served one day stays so, because anything that later makes it part
// of a deadlock has suspects of its own. The remaining waits are computed anew when one of them
// drops something, or leaves.
type reduction struct {
	heap  collection.ValueHeap[gatheredWait] // those that were gathered and are not in waits yet
	waits []gatheredWait                     // in the order of the line; whole requests
	stuck map[*request]uint64                // those of them that remain, with their numbers
	freed map[*request]uint64                // those that do not, likewise
	left  map[*flowState]int                 // how many remain of each flow
	of    map[*session]int                   // and of each session
	keys  map[modeTotals]*residue
	seen  map[*flowState]bool // flows with leases that are counted in keys

	// Where it continues.
	upTo     int
	counted  bool // the leases are
	progress bool // in this round
}

// gatheredWait is a wait that a reduction is about.
type gatheredWait struct {
	r     *request
	num   uint64
	score Time // when it was gathered
	party *flowState
}

func (w gatheredWait) Less(o gatheredWait) bool {
	return w.score < o.score || w.score == o.score && w.num < o.num
}

func (w *gatheredWait) stillWaits() bool { return w.r.num == w.num && w.r.phase == waiting }

// modeTotals is a part of a key's usage that is counted together: what blocks all requests there, or
// what the dormant tasks of a queue want, which block only tasks of that queue.
type modeTotals struct {
	node  *node
	queue *queue // nil: for all
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

// hasAlternatives reports whether a wait on the cycle could be served by others
// than those of the cycle.
func hasAlternatives(cycle []searchStep) bool {
	return slices.ContainsFunc(cycle, func(h searchStep) bool {
		return h.req().parent != nil || h.via != noNeed && h.req().needs()[h.via].counts == interlock.Permits
	})
}

// beginGathering begins the reduction with the waits that were collected.
func (x *search) beginGathering() {
	x.phase, x.upTo = barrierSet, 0
	x.heap, x.waits, x.stuck, x.left, x.of = nil, nil, map[*request]uint64{}, map[*flowState]int{}, map[*session]int{}
}

// gather continues to gather them, and sorts them in the order of the line.
func (e *Engine) gather(x *search) (done bool) {
	for ; x.upTo < len(x.hops); x.upTo++ {
		if !e.countLook() {
			return false
		}
		h := &x.hops[x.upTo]
		if !h.stillWaits() || h.req().parent != nil && h.req().pos > 0 {
			continue // its first branch stands for it
		}
		r := h.req().whole()
		x.heap.Push(gatheredWait{r, r.num, r.wait.score, r.party})
		if x.onlyInTheWay(r) {
			continue
		}
		x.stuck[r] = r.num
		x.remains(r.party, 1)
	}
	if x.waits == nil {
		x.waits = make([]gatheredWait, 0, len(x.heap))
	}
	for len(x.heap) > 0 {
		if !e.countLook() {
			return false
		}
		x.waits = append(x.waits, x.heap.Pop())
	}
	x.heap = nil
	x.newRound()
	x.phase = reducing
	return true
}

// restart forgets what remains, but not what does not.
func (d *reduction) restart() { *d = reduction{freed: d.freed} }

func (d *reduction) newRound() {
	d.keys, d.seen = map[modeTotals]*residue{}, map[*flowState]bool{}
	d.upTo, d.counted, d.progress = 0, false, false
}

func (d *reduction) isStuck(r *request) bool {
	num, ok := d.stuck[r]
	return ok && num == r.num
}

func (d *reduction) isFreed(r *request) bool {
	num, ok := d.freed[r]
	return ok && num == r.num
}

// onlyInTheWay reports whether a wait blocks others without being waited for, as long as its
// flow waits elsewhere: it can be served, or is for a part, which its member does not wait for.
func (d *reduction) onlyInTheWay(r *request) bool { return r.share != nil || d.isFreed(r) }

// reduce continues the reduction until nothing changes, and reports whether it got there.
func (e *Engine) reduce(x *search) (done bool) {
	d := &x.reduction
	for {
		for ; !d.counted && d.upTo < len(d.waits); d.upTo++ {
			if !e.countLook() {
				return false
			}
			e.countWait(d, &d.waits[d.upTo])
		}
		if !d.counted {
			d.counted, d.upTo = true, 0
		}
		for ; d.upTo < len(d.waits); d.upTo++ {
			if !e.countLook() {
				return false
			}
			e.judge(d, &d.waits[d.upTo])
		}
		if !d.progress {
			return true
		}
		d.newRound()
	}
}

// countWait adds the holdings of a wait's flow, once.
func (e *Engine) countWait(d *reduction, w *gatheredWait) {
	p := w.party
	if p == nil || d.seen[p] || d.left[p] == 0 {
		return
	}
	d.seen[p] = true
	for _, l := range p.leases {
		e.looked += weighs * len(l.needs())
		d.add(l, false)
	}
}

// weighs is how much more it costs to weigh a need than to look at an object.
const weighs = 2

// judge removes a wait that can be served, and adds its claims if its flow remains.
func (e *Engine) judge(d *reduction, w *gatheredWait) {
	if num, ok := d.stuck[w.r]; ok && num == w.num && (!w.stillWaits() || e.isServable(d, w.r)) {
		d.progress = true
		delete(d.stuck, w.r)
		if d.freed == nil {
			d.freed = map[*request]uint64{}
		}
		d.freed[w.r] = w.num
		d.remains(w.party, -1)
	}
	if w.stillWaits() && !d.gone(w.party, w.r) {
		for way := range w.r.eachAlternative {
			d.add(way, true)
		}
	}
}

// relieved records that a flow, or a waiter without one, has dropped something that others may
// wait for.
func (a *pendingWork) relieved(p *flowState, r *request) {
	if x := a.search; x != nil && x.stuck != nil && !x.gone(p, r) {
		x.dirty = true
	}
}

// remains counts the remaining waits of a flow.
func (d *reduction) remains(p *flowState, by int) {
	if p == nil {
		return
	}
	d.left[p] += by
	if p.sess != nil {
		d.of[p.sess] += by
	}
}

// gone reports whether a flow, or a wait without one, is not among those that remain.
func (d *reduction) gone(p *flowState, r *request) bool {
	if p != nil {
		return d.left[p] == 0
	}
	return !d.isStuck(r)
}

// add counts what r has, or waits for, among what remains.
func (d *reduction) add(r *request, waits bool) {
	var queue *queue
	if waits && r.task != nil && r.task.eligibility.isYielding() {
		queue = r.task.queue
	}
	for i := range r.needs() {
		m := &r.needs()[i]
		at := modeTotals{m.node, queue}
		x := d.keys[at]
		if x == nil {
			x = &residue{}
			d.keys[at] = x
		}
		x.add(r, m, waits)
	}
}

// at returns what r finds at a key.
func (d *reduction) at(r *request, n *node) *residue {
	x := d.keys[modeTotals{n, nil}]
	if r.task != nil {
		x = x.plus(d.keys[modeTotals{n, r.task.queue}])
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
		*sum.granted.Of(mode) += *y.granted.Of(mode)
		*sum.waits.Of(mode) += *y.waits.Of(mode)
	}
	for _, g := range y.permits {
		sum.count(g)
	}
	return sum
}

func (x *residue) add(r *request, m *need, waits bool) {
	if waits {
		*x.waits.Of(m.mode)++
	} else {
		*x.granted.Of(m.mode)++
	}
	if m.counts != interlock.Permits {
		return
	}
	g := permitResidue{group: r.groupAt(m)}
	if n := uint64(r.countOf(m)); waits {
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

// used returns the permits that those of all groups have.
func (x *residue) used() (sum uint64) {
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

// isServable reports whether r can be served without those that remain.
func (e *Engine) isServable(d *reduction, r *request) bool {
	for way := range r.eachAlternative {
		e.looked += weighs * len(way.needs())
		if e.isFreeWithin(d, way) {
			return true
		}
	}
	return false
}

// isFreeWithin reports whether no remaining flow blocks r. Its own flow blocks it only by the permits
// that it has: while it waits it returns none.
func (e *Engine) isFreeWithin(d *reduction, r *request) bool {
	for i := range r.needs() {
		m := &r.needs()[i]
		x := d.at(r, m.node)
		if x == nil {
			continue
		}
		own := d.ownAt(r, m.node)
		for mode := lockmode.IS; mode <= lockmode.X; mode++ {
			if lockmode.Conflicts[m.mode].Has(mode) && (*x.granted.Of(mode) > *own.granted.Of(mode) || *x.waits.Of(mode) > *own.waits.Of(mode)) {
				return false
			}
		}
		if m.counts == interlock.Permits && !x.spares(r, m, own) {
			return false
		}
	}
	blocks := func(_ int, p *flowState, other *request) bool {
		return (p == nil || p != r.party || r.follows()) && !d.gone(p, other)
	}
	switch {
	case r.target != nil:
		return d.leavesTo(r)
	case r.follows():
		return !r.awaited.eachBlocker(blocks)
	}
	return !e.eachAbsent(r, blocks)
}

// leavesTo reports whether a declared wait waits for none of those that remain.
func (d *reduction) leavesTo(r *request) bool {
	if r.targetFlow == "" {
		return d.of[r.target] == 0
	}
	f := r.target.flowOf(r.targetFlow, r.ns.salt.Hash(r.targetFlow))
	return f == nil || d.left[f] == 0
}

// ownAt returns what r's own flow has at a key and wants before r. For permits it is the number
// that the flow can return.
func (d *reduction) ownAt(r *request, n *node) *residue {
	x := &residue{}
	if r.party == nil {
		return x
	}
	for _, l := range r.party.leases {
		if m := l.needAt(n); m != nil {
			x.add(l, m, false)
		}
	}
	for _, g := range r.keptAt(n).permits {
		x.count(permitResidue{group: g.group, used: -g.used})
	}
	for _, w := range r.party.waits {
		if m := w.needAt(n); m != nil && before(w, r) {
			x.add(w, m, true)
		}
	}
	return x
}

// spares reports whether there are permits for r besides those that the flows of x keep, and
// others of them want before it, and tokens, once they have come back.
func (x *residue) spares(r *request, m *need, own *residue) bool {
	p := m.node.pool().policy
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
	n := uint64(r.countOf(m))
	return (p.Capacity == 0 || p.fits(r.groupAt(m), n, used, ahead, of)) && (p.Rate == 0 || ahead+n <= uint64(p.burst()))
}
