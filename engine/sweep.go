package engine

import (
	"cmp"
	"slices"
	"strings"
)

// sweep goes through all leases of a session, or through its flows, a swath at a time, so
// that a step need not look at all of them. It may take several steps, between which
// leases end, and come: those that have come since are not looked at. Some may be looked
// at twice.
//
//	flows of the session   part 0 │ part 1 │ ...     a part is one chain of the table
//	leases of one flow     0 1 2 3 ... left ... n    from the last to the first: the seat of
//	                                                 one that ends is taken by the last
type sweep struct {
	part  int          // of session.flows: the next
	flows []*flowState // of the part before, that are left
	left  int          // leases of the first of them that are left; -1: all

	leases []sweptLease // the swath, in the order of the fences
	lines  []*flowState
}

// sweptLease is a lease of a swath.
type sweptLease struct {
	req *request
	num uint64
}

// nextLease returns the next lease of the session that x sweeps. It returns nil if there are no
// more, with done set, or if the step has looked at enough.
func (e *Engine) nextLease(x *sweep, s *session) (r *request, done bool) {
	for more := true; ; {
		for len(x.leases) > 0 {
			l := x.leases[0]
			if l.req.num == l.num && l.req.phase != over && l.req.session() == s {
				return l.req, false
			}
			x.leases = x.leases[1:] // it has ended since
		}
		if !more || e.full() {
			return nil, !more
		}
		more = e.gatherLeases(x, s)
	}
}

// passed records that the last lease needs no other look.
func (x *sweep) passed() { x.leases = x.leases[1:] }

// gatherLeases fills the swath, as far as the step may. more is false when nothing is left behind it.
func (e *Engine) gatherLeases(x *sweep, s *session) (more bool) {
	x.leases = x.leases[:0:cap(x.leases)]
	for more = true; more && len(x.leases) < e.swath && !e.full(); {
		if len(x.flows) == 0 {
			more = e.nextPart(x, s)
			continue
		}
		f := x.flows[0]
		if x.left < 0 || x.left > len(f.leases) {
			x.left = len(f.leases)
		}
		for x.left > 0 && len(x.leases) < e.swath {
			x.left--
			e.objects++
			x.leases = append(x.leases, sweptLease{f.leases[x.left], f.leases[x.left].num})
		}
		if x.left == 0 {
			x.flows, x.left = x.flows[1:], -1
		}
	}
	slices.SortFunc(x.leases, func(a, b sweptLease) int { return cmp.Compare(a.req.fence, b.req.fence) })
	return more
}

// nextPart turns to the flows of the next chain.
func (e *Engine) nextPart(x *sweep, s *session) bool {
	x.flows, x.left = x.flows[:0], -1
	more := s.flows.Part(x.part, func(f *flowState) { x.flows = append(x.flows, f) })
	x.part++
	e.objects += 1 + len(x.flows)
	return more
}

// nextWaiting returns the next flow that waits for something. It returns nil if there are no more,
// with done set, or if the step has looked at enough. Flows are in the order of their names
// within a swath.
func (e *Engine) nextWaiting(x *sweep, s *session) (f *flowState, done bool) {
	for more := true; ; {
		for len(x.lines) > 0 {
			if len(x.lines[0].waits) > 0 {
				return x.lines[0], false
			}
			x.lines = x.lines[1:]
		}
		if !more || e.full() {
			return nil, !more
		}
		x.lines = x.lines[:0:cap(x.lines)]
		for n := 0; more && n < e.swath && !e.full(); {
			more = e.nextPart(x, s)
			n += len(x.flows)
			for _, f := range x.flows {
				if len(f.waits) > 0 {
					x.lines = append(x.lines, f)
				}
			}
		}
		slices.SortFunc(x.lines, func(a, b *flowState) int { return strings.Compare(a.name, b.name) })
	}
}
