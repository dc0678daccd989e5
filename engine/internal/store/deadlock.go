package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// The wait-for graph.
//
// Its vertices are flows, and each request without one by itself. A waiting flow points to each
// flow that holds a conflicting mode at one of its keys, and to each conflicting waiter that
// stands before it. The graph is never stored. After a step that adds an edge, a search starts
// from the flow that the new edges begin or end at: a queued request, or a flow that was
// granted something while it waits elsewhere. A flow that waits for nothing has no outgoing
// edge, so most grants need no search, and a newcomer at the end of a line that holds nothing
// has no incoming one, so most waits need none either.

// SearchStep is a wait that a search has come to.
type SearchStep struct {
	*Wait
	num  uint64 // of its request, then
	From int    // the hop that waits for it, by its place in the list; -1 if the search began here
	Led  int16  // the need of that one which leads here
	Via  int16  // its own need through which a cycle continues
}

// Suspect is a flow with new edges that may have closed a cycle.
type Suspect struct {
	FlowState *FlowState
	Req       *Request // for a waiter without a flow
	num       uint64   // req's number when it was suspected
}

// Suspect lists a flow, or a waiter without one, for the search for cycles. A listed flow is
// not listed twice.
func (st *State) Suspect(p *FlowState, r *Request) {
	s := Suspect{FlowState: p}
	if p == nil {
		s.Req, s.num = r, r.Num
	} else if p.Suspected {
		return
	} else {
		p.Suspected = true
	}
	st.Suspects.Push(s)
}

// SuspectScan is the progress of listing all suspects.
type SuspectScan struct {
	Under bool
	Part  int // of namespace.requests: the next
}

// SuspectAll lists every flow and waiter of a namespace that may be on a cycle. Waits by the
// order of the lines alone cannot close one, unless a flow has several of them. If there are
// very many requests, it lists a slice, and suspectMore the rest later.
func (st *State) SuspectAll(s *Namespace) {
	if s.Requests.Len()+len(s.Sessions) > st.Swath {
		s.Agenda.Doubt = SuspectScan{Under: true}
		return
	}
	st.Visited += s.Requests.Len() + len(s.Sessions)
	for _, p := range s.HoldsAndWaits {
		st.Suspect(p, nil)
	}
	for _, sess := range s.SortedSessions() {
		for _, r := range sess.Awaiting {
			st.Suspect(r.FlowState, r)
		}
		for _, f := range sess.Waiting {
			if len(f.Waits) > 1 && !f.HoldsAndWaits {
				st.Suspect(f, nil)
			}
		}
	}
}

// WaitsForItself returns a wait of the suspect that is hopeless, or nil.
func (s Suspect) WaitsForItself() *Request {
	if s.FlowState == nil || len(s.FlowState.Leases) == 0 {
		return nil
	}
	for _, r := range s.FlowState.Waits {
		if m := r.Lacking(); m != nil && r.Hopeless(m) {
			return r.Whole()
		}
	}
	return nil
}

// ClaimAt returns the claim of r to which need i belongs.
func (r *Request) ClaimAt(i int) interlock.Claim { return r.Claims()[r.Needs()[i].Claim] }

// IsWaitedFor reports whether the suspect still waits, and some request may wait for it.
func (s Suspect) IsWaitedFor() bool {
	if s.FlowState != nil {
		return s.FlowState.isWaitedFor()
	}
	return s.Req.Num == s.num && s.Req.Phase == Waiting && (s.Req.hasFollower() || s.Req.Task.isAwaited())
}

// Size returns the number of requests to examine for waits on the suspect.
func (s Suspect) Size() int {
	if s.FlowState == nil {
		return 1
	}
	return 1 + min(len(s.FlowState.Leases), fewLeases) + min(len(s.FlowState.Waits), fewLeases)
}

// fewLeases are as many leases as are looked through to save a search. Of the waits mostly
// the first has a follower.
const fewLeases = 64

// IsWaitedFor reports whether some request may wait for the flow: it holds something that is
// wanted, or a waiter stands behind it.
func (p *FlowState) isWaitedFor() bool {
	if len(p.Leases) > fewLeases || p.Sess != nil && len(p.Sess.Awaiting) > 0 {
		return true // looking through them would cost more than the search
	}
	for _, r := range p.Leases {
		if r.isAwaited() {
			return true
		}
		if m := r.Barrier(); m != nil && m.Node.Parties() != nil {
			return true
		}
		for i := range r.Needs() {
			if m := &r.Needs()[i]; m.Node.Line.hasAgainst(m) {
				return true
			}
		}
	}
	for _, r := range p.Waits {
		if r.hasFollower() || r.Barrier() != nil {
			return true
		}
	}
	return false
}

// hasFollower reports whether a conflicting waiter stands behind r.
func (r *Request) hasFollower() bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		for c := m.Node.Line.First; c != nil; c = c.Next {
			if c.against(m.Mode, m.Counts) && Before(r, c.last().Req) {
				return true
			}
		}
	}
	return false
}

// HoldsAndWaitsBelow returns the flows to search for holders of something below n.
func (s *Namespace) HoldsAndWaitsBelow(n *Node, against lockmode.Set) []*FlowState {
	if against&n.Modes&lockmode.SetOf(lockmode.IS, lockmode.IX) == 0 || n.Kin == nil || n.Kin.Child == nil {
		return nil
	}
	return s.HoldsAndWaits
}

// Shows reports whether the flow holds one of modes at n, by a claim or for something below.
func (p *FlowState) Shows(n *Node, modes lockmode.Set) bool {
	own := p.At(n)
	for mode := lockmode.IS; mode <= lockmode.X; mode++ {
		if modes.Has(mode) && *own.Granted.Of(mode) > 0 {
			return true
		}
	}
	return false
}

// IsBetterVictim reports whether a is rather to be sacrificed than b.
func IsBetterVictim(a, b *Request) bool {
	if a.Encloses != b.Encloses {
		return b.Encloses
	}
	if a.Follows() != b.Follows() {
		return a.Follows()
	}
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if la, lb := a.FlowState.leaseCount(), b.FlowState.leaseCount(); la != lb {
		return la < lb
	}
	if a.Num != b.Num {
		return a.Num > b.Num
	}
	return a.Arrived() > b.Arrived() // waits for tasks have no numbers of their own
}
