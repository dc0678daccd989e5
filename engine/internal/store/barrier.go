package store

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// A barrier: parties that wait for each other.
//
// The requests for a barrier form one bucket of the key's line. When all its parties have
// arrived, no lease of an earlier set is held, and nothing else blocks any of them, the first
// of them are admitted together, in one step and so in one entry of the journal. That is a
// generation, and their leases are its set. A holder that arrives again joins the line once
// more, ahead of newcomers; when all of the set have, the next generation opens.
//
//	Acquire ─┐                              ┌─ Arrive ─┐
//	Acquire ─┼─► generation 1: three leases ┼─ Arrive ─┼─► generation 2: the same leases ...
//	Acquire ─┘                              └─ Arrive ─┘
//
// A generation that loses a party before it opens is broken: its other waiters are refused in
// the same step. A set that has lost a lease cannot open again. Newcomers wait until the last
// lease of a set is over.
//
// A barrier waits neither for a holder nor for a waiter, but for an absent party. So a waiter
// that only absence blocks is watched at the key, and the last party to arrive opens the
// barrier. If something else blocks one party of the generation, that party is watched at its
// blocker.

// Gathering returns r's need of a key that it uses together with others, as a party of a
// barrier or a member of a partitioned key; or nil.
func (r *Request) Gathering() *Need {
	if n := len(r.Needs()); n > 0 && r.Needs()[n-1].Counts > interlock.Permits {
		return &r.Needs()[n-1] // it is the only claim
	}
	return nil
}

// Barrier returns r's need of a barrier, or nil.
func (r *Request) Barrier() *Need {
	if m := r.Gathering(); m != nil && m.Counts == interlock.Barrier {
		return m
	}
	return nil
}

// Parties returns the bucket of the waiters for the barrier at n, or nil.
func (n *Node) Parties() *bucket {
	if n.Line == nil {
		return nil
	}
	for c := n.Line.First; c != nil; c = c.Next {
		if c.Counts == interlock.Barrier {
			return c
		}
	}
	return nil
}

// SizeOf returns the number of parties of the barrier at n, or of the parts into which n is
// divided; 0 if neither is in use.
func (n *Node) SizeOf(mode interlock.Mode) uint32 {
	if n.Line != nil {
		for c := n.Line.First; c != nil; c = c.Next {
			if c.Counts == mode {
				return c.First().Count
			}
		}
	}
	for h := n.First; h != nil && (n.gang > 0 || n.Divided != nil); h = h.Next {
		if h.Counts == mode {
			return h.Req.CountOf(h)
		}
	}
	return 0
}

// Gathered reports whether the generation to which r would belong is complete. r
// may be on trial and not in line yet.
func (r *Request) Gathered(m *Need) bool {
	size, c := int(r.CountOf(m)), m.Node.Parties()
	if r.Base != nil {
		return c != nil && c.len() >= size && c.nth(size-1).Req.Base != nil
	}
	if m.Node.gang > 0 {
		return false
	}
	there, ahead := 0, 0
	if c != nil {
		there, ahead = c.len(), c.CountBefore(r)
	}
	if r.Phase != Waiting {
		there++
	}
	return there >= size && ahead < size
}

// GatheredAt returns the waiters of r's generation. If r waits for the first time, or is about
// to, they are the first newcomers, provided r is one of them; if r is a lease, or arrives
// again, those of its set that have arrived.
func (r *Request) GatheredAt(m *Need) (list []*Request) {
	c := m.Node.Parties()
	if c == nil {
		return nil
	}
	size, again := int(r.CountOf(m)), r.Base != nil || r.Phase > Waiting
	if r.Phase < Waiting {
		size--
	}
	for p := c.First(); p != nil && len(list) < size; p = p.Next() {
		if (p.Req.Base != nil) == again {
			list = append(list, p.Req)
		}
	}
	if r.Phase == Waiting && !slices.Contains(list, r) {
		return nil
	}
	return list
}

// LockedOut returns the index of the first need where anything but absent parties blocks r, or
// -1.
func (r *Request) LockedOut() int { return r.FirstNeed(-1, (*Request).lockedOutAt) }

// Opens reports whether r, which is not in line yet, is the last party that its barrier waits
// for, and nothing else blocks it.
func (r *Request) Opens() bool {
	m := r.Barrier()
	if m == nil || r.Blocker() >= 0 {
		return false
	}
	for _, w := range r.GatheredAt(m) {
		if w.LockedOut() >= 0 {
			return false
		}
	}
	return true
}

// BrokenBarrier is a waiter in a generation that has lost a party, and the cause of the loss.
type BrokenBarrier struct {
	Req  *Request
	Num  uint64 // of the request of the party that was lost
	Who  string // its agent
	What string // why it is lost
}

// Absent returns the leases that are known to keep r waiting at a barrier: those of its set
// that have not arrived again, or of an earlier set. For other modes it returns none.
func (r *Request) Absent(m *Need) (list []*Request) {
	if m.Counts != interlock.Barrier {
		return nil
	}
	for h := m.Node.First; h != nil && m.Node.gang > 0; h = h.Next {
		if h.Counts == interlock.Barrier && (r.Base == nil || h.Req.Conversion == nil) {
			list = append(list, h.Req)
		}
	}
	return list
}

// Generation returns how often the barrier at n has opened, if a set holds it; otherwise 0.
func (n *Node) Generation() uint64 {
	if n == nil || n.gang == 0 {
		return 0
	}
	return n.ofSet().Req.Generation
}

// Broken reports whether the set that holds the barrier at n has lost a party. Then
// it can never open again.
func (n *Node) Broken() bool {
	if n == nil || n.gang == 0 {
		return false
	}
	h := n.ofSet()
	return n.membersLeft() < h.Req.CountOf(h)
}

// ofSet returns a claim of the set that holds the barrier at n; there is one.
func (n *Node) ofSet() *Need {
	h := n.First
	for h.Counts != interlock.Barrier {
		h = h.Next
	}
	return h
}

// NextGeneration returns the generation in which a waiting party is admitted; 0 for a request
// that is not at a barrier.
func (r *Request) NextGeneration() uint64 {
	switch {
	case r.Barrier() == nil:
		return 0
	case r.Base != nil:
		return r.Base.Generation + 1
	}
	return 1
}

// setGeneration records the generation that admitted r, if it is a party.
func (r *Request) setGeneration(generation uint64) {
	if generation != 0 {
		d := *r.RequestDetail
		d.Generation = generation
		r.SetDetails(d)
	}
}

// There returns the lease or the wait that already makes r's flow a party or a member there, or
// nil.
func (r *Request) There(m *Need) *Request {
	if r.FlowState.At(m.Node) == (flowTally{}) {
		return nil
	}
	*r.NS.Agenda.objects += len(r.FlowState.Leases) + len(r.FlowState.Waits)
	for _, list := range [][]*Request{r.FlowState.Leases, r.FlowState.Waits} {
		for _, x := range list {
			if o := x.Gathering(); o != nil && o.Node == m.Node && o.Counts == m.Counts && x.Phase != InGrace {
				return x
			}
		}
	}
	return nil
}

// membersLeft counts the leases of the set at n that are in their holders' hands.
func (n *Node) membersLeft() (count uint32) {
	for h := n.First; h != nil; h = h.Next {
		if h.Counts == interlock.Barrier && h.Req.Phase != InGrace && h.Req.Phase != Closed {
			count++
		}
	}
	return count
}
