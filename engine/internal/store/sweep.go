package store

// Sweep goes through all leases of a session, or through its flows, a swath at a time, so
// that a step need not look at all of them. It may take several steps, between which
// leases end, and come: those that have come since are not looked at. Some may be looked
// at twice.
//
//	flows of the session   part 0 │ part 1 │ ...     a part is one chain of the table
//	leases of one flow     0 1 2 3 ... left ... n    from the last to the first: the seat of
//	                                                 one that ends is taken by the last
type Sweep struct {
	Part  int          // of session.flows: the next
	Flows []*FlowState // of the part before, that are left
	Left  int          // leases of the first of them that are left; -1: all

	Leases []SweptLease // the swath, in the order of the fences
	Lines  []*FlowState
}

// SweptLease is a lease of a swath.
type SweptLease struct {
	Req *Request
	Num uint64
}

// Passed records that the last lease needs no other look.
func (x *Sweep) Passed() { x.Leases = x.Leases[1:] }
