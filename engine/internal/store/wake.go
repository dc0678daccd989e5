package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Which waiters are granted when something is returned.
//
// A waiter is watched at one key where it is blocked. When a key changes for the better (a
// holder ends, a waiter leaves), only the first watched waiter of each mode there is checked.
// If it is still blocked at this key, so is every one behind it in that mode, because the same
// holders and the same earlier waiters block them. If it is blocked at another key, its watch
// moves there. If nothing blocks it, it is granted. In the last two cases the next one of its
// mode is checked. So a release costs as much as it grants, however long the line is.
//
// Granting never helps other waiters: one that was behind a waiter is now behind a holder. That
// is why only ends and departures call changed. Tokens are different: a request for more than a
// bucket holds together with those ahead waits until they have theirs, which are then consumed.
//
// A waiter with a flow that itself holds or waits for something at the key that would block it
// in another flow is not blocked by the blockers of the others of its mode, so it is watched
// one by one (bucketIndex.WatchedAlone).

// Candidate is a watched waiter that a change may have helped, and the tree that it was the
// first watched one of. A check that does not find it still blocked there passes the change on
// to the next of that tree.
type Candidate struct {
	score Time
	Num   uint64
	Place *QueueEntry
	Node  *Node
}

// Less orders candidates as they stand in line, so that grants of one step get their fences in
// that order.
func (c Candidate) Less(o Candidate) bool {
	return c.score < o.score || c.score == o.score && c.Num < o.Num
}

// MarkReady makes a watched waiter a candidate, unless it is one.
func (st *State) MarkReady(p *QueueEntry) {
	if p != nil && !p.Ready {
		p.Ready = true
		st.Ready.Push(Candidate{p.Req.Wait.Score, p.Req.Num, p, p.Req.Needs()[p.Need].Node})
	}
}

// Changed marks those ready that the end of r, or its leaving the line, may have
// helped.
func (st *State) Changed(r *Request) {
	for way := range r.EachAlternative {
		st.changedAt(way.Needs())
	}
}

// changedAt marks the waiters ready that the end of the given needs may have helped.
func (st *State) changedAt(needs []Need) {
	if !st.Live {
		return
	}
	for i := range needs {
		st.Visited++
		for c := range needs[i].Facing {
			st.ReadyClass(c)
		}
	}
}

// Facing visits the buckets at the key of a need with waiters that may block its request, or be
// blocked by it.
func (m *Need) Facing(yield func(*bucket) bool) {
	if m.Node.Line == nil {
		return
	}
	for c := m.Node.Line.First; c != nil; c = c.Next {
		*m.Node.NS.Agenda.objects++
		if c.against(m.Mode, m.Counts) && !yield(c) {
			return
		}
	}
}

// against reports whether the waiters of the bucket and a holder or waiter with these modes may
// block each other.
func (c *bucket) against(mode, counts interlock.Mode) bool {
	return lockmode.Conflicts[mode].Has(c.Mode) || counts != 0 && counts == c.Counts
}

// ReadyClass marks the waiters of a bucket ready that a change at its key may have helped.
func (st *State) ReadyClass(c *bucket) {
	st.Visited += 1 + len(c.WatchedAlone)
	st.MarkReady(c.FirstWatched())
	for _, p := range c.WatchedAlone {
		st.MarkReady(p)
	}
}

// Blocker returns the index of the first need where r is blocked, or -1.
func (r *Request) Blocker() int { return r.FirstNeed(-1, (*Request).BlockedAt) }

// FirstNeed returns the index of the first of r's needs that holds accepts, or -1. The need at
// index before, if not -1, comes first.
func (r *Request) FirstNeed(before int, holds func(*Request, *Need) bool) int {
	needs := r.Needs()
	if before >= 0 && holds(r, &needs[before]) {
		return before
	}
	for i := range needs {
		if holds(r, &needs[i]) {
			return i
		}
	}
	return -1
}

// BlockedAt reports whether r must wait at one of its needs.
func (r *Request) BlockedAt(m *Need) bool {
	switch m.Counts {
	case 0:
		if m.LacksToken() {
			return true
		}
	case interlock.Permits:
		if r.Short(m) != Enough {
			return true
		}
	case interlock.Barrier:
		if !r.Gathered(m) {
			return true
		}
	}
	return r.lockedOutAt(m)
}

// lockedOutAt reports whether a holder or an earlier waiter blocks r at one of its needs.
func (r *Request) lockedOutAt(m *Need) bool {
	n := m.Node
	against := lockmode.Conflicts[m.Mode]
	return against&n.Modes != 0 && r.FlowState.blockedByOthers(n, against) || r.Earlier(m) != nil
}

// Earlier returns a waiter that goes before r at one of r's needs, or nil.
func (r *Request) Earlier(m *Need) *Request {
	against, l := lockmode.Conflicts[m.Mode], m.Node.Line
	if l == nil || l.modes&against == 0 {
		return nil
	}
	for c := l.First; c != nil; c = c.Next {
		*m.Node.NS.Agenda.objects++
		if !against.Has(c.Mode) || c.IsAsideFor(r) {
			continue
		}
		p := c.First()
		for p != nil && p.Req.SameParty(r) {
			p = p.Next()
		}
		if p != nil && Before(p.Req, r) {
			return p.Req
		}
	}
	return nil
}

// SameParty reports whether two requests, or a request and itself, are of one flow, so that
// neither ever blocks the other.
func (r *Request) SameParty(other *Request) bool {
	return r == other || r.FlowState != nil && r.FlowState == other.FlowState
}

// BlockedByOthers reports whether other flows hold n in one of modes.
func (p *FlowState) blockedByOthers(n *Node, modes lockmode.Set) bool {
	own := p.At(n)
	for mode := lockmode.IS; mode <= lockmode.X; mode++ {
		if modes.Has(mode) && *n.granted.Of(mode) > *own.Granted.Of(mode) {
			return true
		}
	}
	return false
}

// WatchAlone watches one by one those of the flow's places that r, which is new there, would
// block in another flow by one of its needs. Those that something else of the flow would block
// are so already.
func (p *FlowState) WatchAlone(r *Request, m *Need) {
	t := p.At(m.Node)
	for w := lockmode.IS; w <= lockmode.X; w++ {
		if *t.Waits.Of(w) == 0 || !lockmode.Conflicts[w].Has(m.Mode) {
			continue
		}
		other := t.against(w) - r.timesAt(m)
		if lockmode.Conflicts[w].Has(w) {
			other-- // the place itself
		}
		if other != 0 { // below 0: it is all there is
			continue
		}
		*m.Node.NS.Agenda.objects += len(p.Waits)
		for _, x := range p.Waits {
			if o := x.needAt(m.Node); o != nil && o.Mode == w {
				x.placeOf(o).watchAlone()
			}
		}
	}
}

// Refile watches one by one those of r's places where its flow has something else that would
// block it in another flow, and the flow's other places that r would block.
func (r *Request) Refile() {
	for way := range r.EachAlternative {
		for i := range way.Wait.Entries() {
			p, m := &way.Wait.Entries()[i], &way.Needs()[i]
			t := r.FlowState.At(m.Node)
			own := 0
			if lockmode.Conflicts[m.Mode].Has(m.Mode) {
				own = 1
			}
			if t.against(m.Mode) > own {
				p.watchAlone()
			}
			if r.FlowState != nil && !p.Duplicate {
				r.FlowState.WatchAlone(r, m)
			}
		}
	}
}

// placeOf returns the place that belongs to one of r's needs.
func (r *Request) placeOf(m *Need) *QueueEntry {
	for i := range r.Needs() {
		if &r.Needs()[i] == m {
			return &r.Wait.Entries()[i]
		}
	}
	return nil
}

// Watch watches r at the need with index i, and nowhere else.
func (st *State) Watch(r *Request, i int) {
	for j := range r.Wait.Entries() {
		r.Wait.Entries()[j].SetWatching(j == i)
	}
	st.ArmPool(r.Needs()[i].Node.Pool())
}

// WatchAnywhere puts a waiter's watch where it is blocked, or makes it ready when
// nothing blocks it.
func (st *State) WatchAnywhere(r *Request) {
	if r.Target != nil || r.Follows() {
		return // no key can help it
	}
	if r.Task != nil {
		if st.Look(r.Task, -1) < 0 {
			st.SetEligibility(r.Task, BlockedByOthers) // or nearly
			st.Watch(r, 0)
			st.MarkReady(&r.Wait.Entries()[0])
		}
		st.yieldToTask(r.Task)
		return
	}
	for way := range r.EachAlternative {
		i := way.Blocker()
		st.Watch(way, max(i, 0))
		if i < 0 {
			st.MarkReady(&way.Wait.Entries()[0])
		}
	}
}

// HeldMore updates the state for a new lease of a flow that also waits: its new edges may close
// a cycle, and where it also waits, it is no longer like others.
func (st *State) HeldMore(r *Request) {
	p := r.FlowState
	if p == nil || len(p.Waits) == 0 {
		return
	}
	for i := range r.Needs() {
		p.WatchAlone(r, &r.Needs()[i])
	}
	st.Suspect(p, nil)
}
