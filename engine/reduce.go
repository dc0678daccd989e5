package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// hasAlternatives reports whether a wait on the cycle could be served by others
// than those of the cycle.
func hasAlternatives(cycle []store.SearchStep) bool {
	return slices.ContainsFunc(cycle, func(h store.SearchStep) bool {
		return h.Req().Parent != nil || h.Via != store.NoNeed && h.Req().Needs()[h.Via].Counts == interlock.Permits
	})
}

// gather continues to gather them, and sorts them in the order of the line.
func (e *Engine) gather(x *store.Search) (done bool) {
	for ; x.UpTo < len(x.Hops); x.UpTo++ {
		if !e.countLook() {
			return false
		}
		h := &x.Hops[x.UpTo]
		if !h.StillWaits() || h.Req().Parent != nil && h.Req().Pos > 0 {
			continue // its first branch stands for it
		}
		r := h.Req().Whole()
		x.Heap.Push(store.GatheredWait{R: r, Num: r.Num, Score: r.Wait.Score, FlowState: r.FlowState})
		if x.OnlyInTheWay(r) {
			continue
		}
		x.Stuck[r] = r.Num
		x.Remains(r.FlowState, 1)
	}
	if x.Waits == nil {
		x.Waits = make([]store.GatheredWait, 0, len(x.Heap))
	}
	for len(x.Heap) > 0 {
		if !e.countLook() {
			return false
		}
		x.Waits = append(x.Waits, x.Heap.Pop())
	}
	x.Heap = nil
	x.NewRound()
	x.Phase = store.Reducing
	return true
}

// reduce continues the reduction until nothing changes, and reports whether it got there.
func (e *Engine) reduce(x *store.Search) (done bool) {
	d := &x.Reduction
	for {
		for ; !d.Counted && d.UpTo < len(d.Waits); d.UpTo++ {
			if !e.countLook() {
				return false
			}
			e.countWait(d, &d.Waits[d.UpTo])
		}
		if !d.Counted {
			d.Counted, d.UpTo = true, 0
		}
		for ; d.UpTo < len(d.Waits); d.UpTo++ {
			if !e.countLook() {
				return false
			}
			e.judge(d, &d.Waits[d.UpTo])
		}
		if !d.Progress {
			return true
		}
		d.NewRound()
	}
}

// countWait adds the holdings of a wait's flow, once.
func (e *Engine) countWait(d *store.Reduction, w *store.GatheredWait) {
	p := w.FlowState
	if p == nil || d.Seen[p] || d.Left[p] == 0 {
		return
	}
	d.Seen[p] = true
	for _, l := range p.Leases {
		e.looked += weighs * len(l.Needs())
		d.Add(l, false)
	}
}

// weighs is how much more it costs to weigh a need than to look at an object.
const weighs = 2

// judge removes a wait that can be served, and adds its claims if its flow remains.
func (e *Engine) judge(d *store.Reduction, w *store.GatheredWait) {
	if num, ok := d.Stuck[w.R]; ok && num == w.Num && (!w.StillWaits() || e.isServable(d, w.R)) {
		d.Progress = true
		delete(d.Stuck, w.R)
		if d.Freed == nil {
			d.Freed = map[*store.Request]uint64{}
		}
		d.Freed[w.R] = w.Num
		d.Remains(w.FlowState, -1)
	}
	if w.StillWaits() && !d.Gone(w.FlowState, w.R) {
		for way := range w.R.EachAlternative {
			d.Add(way, true)
		}
	}
}

// isServable reports whether r can be served without those that remain.
func (e *Engine) isServable(d *store.Reduction, r *store.Request) bool {
	for way := range r.EachAlternative {
		e.looked += weighs * len(way.Needs())
		if e.isFreeWithin(d, way) {
			return true
		}
	}
	return false
}

// isFreeWithin reports whether no remaining flow blocks r. Its own flow blocks it only by the permits
// that it has: while it waits it returns none.
func (e *Engine) isFreeWithin(d *store.Reduction, r *store.Request) bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		x := d.At(r, m.Node)
		if x == nil {
			continue
		}
		own := d.OwnAt(r, m.Node)
		for mode := lockmode.IS; mode <= lockmode.X; mode++ {
			if lockmode.Conflicts[m.Mode].Has(mode) &&
				(*x.Granted.Of(mode) > *own.Granted.Of(mode) || *x.Waits.Of(mode) > *own.Waits.Of(mode)) {
				return false
			}
		}
		if m.Counts == interlock.Permits && !x.Spares(r, m, own) {
			return false
		}
	}
	blocks := func(_ int, p *store.FlowState, other *store.Request) bool {
		return (p == nil || p != r.FlowState || r.Follows()) && !d.Gone(p, other)
	}
	switch {
	case r.Target != nil:
		return d.LeavesTo(r)
	case r.Follows():
		return !r.Awaited.EachBlocker(blocks)
	}
	return !e.eachAbsent(r, blocks)
}
