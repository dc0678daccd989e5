package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/engine/internal/store"
)

// nextLease returns the next lease of the session that x sweeps. It returns nil if there are no
// more, with done set, or if the step has looked at enough.
func (e *Engine) nextLease(x *store.Sweep, s *store.Session) (r *store.Request, done bool) {
	for more := true; ; {
		for len(x.Leases) > 0 {
			l := x.Leases[0]
			if l.Req.Num == l.Num && l.Req.Phase != store.Over && l.Req.Session() == s {
				return l.Req, false
			}
			x.Leases = x.Leases[1:] // it has ended since
		}
		if !more || e.full() {
			return nil, !more
		}
		more = e.gatherLeases(x, s)
	}
}

// gatherLeases fills the swath, as far as the step may. more is false when nothing is left behind it.
func (e *Engine) gatherLeases(x *store.Sweep, s *store.Session) (more bool) {
	x.Leases = x.Leases[:0:cap(x.Leases)]
	for more = true; more && len(x.Leases) < e.Swath && !e.full(); {
		if len(x.Flows) == 0 {
			more = e.nextPart(x, s)
			continue
		}
		f := x.Flows[0]
		if x.Left < 0 || x.Left > len(f.Leases) {
			x.Left = len(f.Leases)
		}
		for x.Left > 0 && len(x.Leases) < e.Swath {
			x.Left--
			e.Visited++
			x.Leases = append(x.Leases, store.SweptLease{Req: f.Leases[x.Left], Num: f.Leases[x.Left].Num})
		}
		if x.Left == 0 {
			x.Flows, x.Left = x.Flows[1:], -1
		}
	}
	slices.SortFunc(x.Leases, func(a, b store.SweptLease) int { return cmp.Compare(a.Req.Fence, b.Req.Fence) })
	return more
}

// nextPart turns to the flows of the next chain.
func (e *Engine) nextPart(x *store.Sweep, s *store.Session) bool {
	x.Flows, x.Left = x.Flows[:0], -1
	more := s.Flows.Part(x.Part, func(f *store.FlowState) { x.Flows = append(x.Flows, f) })
	x.Part++
	e.Visited += 1 + len(x.Flows)
	return more
}

// nextWaiting returns the next flow that waits for something. It returns nil if there are no more,
// with done set, or if the step has looked at enough. Flows are in the order of their names
// within a swath.
func (e *Engine) nextWaiting(x *store.Sweep, s *store.Session) (f *store.FlowState, done bool) {
	for more := true; ; {
		for len(x.Lines) > 0 {
			if len(x.Lines[0].Waits) > 0 {
				return x.Lines[0], false
			}
			x.Lines = x.Lines[1:]
		}
		if !more || e.full() {
			return nil, !more
		}
		x.Lines = x.Lines[:0:cap(x.Lines)]
		for n := 0; more && n < e.Swath && !e.full(); {
			more = e.nextPart(x, s)
			n += len(x.Flows)
			for _, f := range x.Flows {
				if len(f.Waits) > 0 {
					x.Lines = append(x.Lines, f)
				}
			}
		}
		slices.SortFunc(x.Lines, func(a, b *store.FlowState) int { return strings.Compare(a.Name, b.Name) })
	}
}
