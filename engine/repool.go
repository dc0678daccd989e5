package engine

import (
	"slices"

	"github.com/interlockdev/interlock/engine/internal/store"
)

// repoolMore continues the visits, as far as the step may.
func (e *Engine) repoolMore() {
	s := e.PendingWork.NS
	x := &s.Repooling
	for !e.full() {
		x.Left = min(x.Left, len(s.Pools)) // new ones need no visit, and one that goes leaves its seat to the last
		if x.Left > 0 {
			if e.Visited++; e.visit(s.Pools[x.Left-1]) {
				x.Left--
			}
			continue
		}
		x.Changes = slices.Delete(x.Changes, 0, len(x.Changes)-int(x.Edition-x.Until))
		if len(x.Changes) == 0 {
			x.Changes = nil
			return
		}
		x.Left, x.Until = len(s.Pools), x.Edition
	}
}

// visit makes a pool follow the patterns, checks the waiters in its line, and reports whether
// it is done. It makes progress however little the step may do.
func (e *Engine) visit(p *store.Pool) bool {
	for p.IsBehind() {
		if p.Next(); e.full() {
			return false
		}
	}
	for p.Mixed {
		if p.SortLine(store.MostSorted); e.full() {
			return false
		}
	}
	if p.Stirred && p.Node.Line != nil {
		for c := p.Node.Line.First; c != nil; c = c.Next {
			e.Visited++
			if c.TakesTokens() {
				e.ReadyClass(c)
			}
		}
	}
	p.Stirred = false
	return true
}
