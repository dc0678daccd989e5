package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// FlowState is the unit that holds and waits: it never blocks itself. It is a flow, one thread
// of control inside a session, or a lease without a session together with its conversion. Other
// requests without a session are alone and have none.
type FlowState struct {
	Sess          *Session   // nil for that of an anonymous lease with a conversion
	Name          string     // "" without Sess
	next          *FlowState // in Session.Flows
	hashed        uint32
	Inherited     int16               // volatile: the highest rank of the waiters that it blocks; NoRank for none
	HoldsAndWaits bool                // it is in Namespace.HoldsAndWaits
	Suspected     bool                // volatile: it is in PendingWork.Suspects
	Heir          bool                // volatile, during a ranking: it waits, or waited, with an inherited rank
	Rising        bool                // volatile: it is in RankSearch.Risen
	resting       bool                // volatile: it is in Session.resting
	waiting       bool                // it is in Session.Waiting
	Leases        []*Request          // in no order
	Waits         []*Request          // in the order of their numbers, with alternatives instead of their parent
	Index         map[*Node]flowTally // of the nodes where it waits
}

func (p *FlowState) Hash() uint32 { return p.hashed }

func (p *FlowState) TableNext() **FlowState { return &p.next }

// several stands in node.hands for more than one flow, or none.
var several = &FlowState{}

// Join makes r a request of a flow.
func (r *Request) Join(f *FlowState) { r.FlowState = f }

// Flow returns the flow of request r, nil for an anonymous holder.
func (r *Request) Flow() *FlowState {
	if r.FlowState == nil || r.FlowState.Sess == nil {
		return nil
	}
	return r.FlowState
}

// IsOf reports whether r is of that flow of a session.
func (r *Request) IsOf(sess *Session, name string) bool {
	f := r.Flow()
	return f != nil && f.Sess == sess && f.Name == name
}

// AsParty returns the flow of a lease. A lease without a session gets a flow of its own, for it
// and its conversion.
func (r *Request) AsParty() *FlowState {
	if r.FlowState == nil {
		r.FlowState = &FlowState{Leases: []*Request{r}}
		r.Pos = 0
	}
	return r.FlowState
}

// compare orders flows: those of sessions by their sessions and names, then those of leases by
// their numbers.
func (p *FlowState) compare(q *FlowState) int {
	switch {
	case p.Sess == nil || q.Sess == nil:
		return cmp.Compare(p.number(), q.number())
	case p.Sess != q.Sess:
		return cmp.Compare(p.Sess.Num, q.Sess.Num)
	}
	return strings.Compare(p.Name, q.Name)
}

// waitsBefore returns the number of the flow's waits with lower numbers than the given one.
func (p *FlowState) waitsBefore(num uint64) int {
	i, _ := slices.BinarySearchFunc(p.Waits, num, func(w *Request, num uint64) int { return cmp.Compare(w.Num, num) })
	return i
}

// number returns the lease's number, for a flow without a session that has something; 0 for
// others.
func (p *FlowState) number() uint64 {
	switch {
	case p.Sess != nil:
		return 0
	case len(p.Leases) > 0:
		return p.Leases[0].Num
	}
	return p.Waits[0].Base.Num
}

// NS returns the namespace of the requests of a flow that has any.
func (p *FlowState) NS() *Namespace {
	if len(p.Leases) > 0 {
		return p.Leases[0].NS
	}
	return p.Waits[0].NS
}

// tear maintains the namespace's list of flows that hold and wait.
func (p *FlowState) tear() {
	torn := len(p.Leases) > 0 && len(p.Waits) > 0
	if torn == p.HoldsAndWaits {
		return
	}
	p.HoldsAndWaits = torn
	s := p.NS()
	i, _ := slices.BinarySearchFunc(s.HoldsAndWaits, p, (*FlowState).compare)
	by := 1
	if torn {
		s.HoldsAndWaits = slices.Insert(s.HoldsAndWaits, i, p)
	} else {
		s.HoldsAndWaits = slices.Delete(s.HoldsAndWaits, i, i+1)
		by = -1
	}
	// A search that iterates over the list continues with the next element.
	if x := s.Agenda.Search; x != nil && i < x.NextHolder {
		x.NextHolder += by
	}
	if k := &s.Ranking; k.Phase.GoesByHoldsAndWaits() && i < k.UpTo {
		k.UpTo += by
	}
}

// flowTally counts a flow's holdings and places in line at one key, by mode.
type flowTally struct {
	Granted lockmode.Counts
	Waits   lockmode.Counts
}

// against counts what of t would exclude a mode in other hands.
func (t *flowTally) against(mode interlock.Mode) (n int) {
	for m := lockmode.IS; m <= lockmode.X; m++ {
		if lockmode.Conflicts[mode].Has(m) {
			n += int(*t.Granted.Of(m) + *t.Waits.Of(m))
		}
	}
	return n
}

// A flow has an index of its tallies from manyRequests on, and none below fewRequests: most
// have one request at a time, and a look through few costs less than an index.
const (
	manyRequests = 16
	fewRequests  = 8
)

// At returns the flow's tally at n.
func (p *FlowState) At(n *Node) (t flowTally) {
	if p == nil {
		return t
	}
	if p.Index != nil {
		t = p.Index[n]
		if n.hands == p {
			t.Granted = n.granted
		}
		return t
	}
	for _, r := range p.Leases {
		if m := r.needAt(n); m != nil {
			*t.Granted.Of(m.Mode)++
		}
	}
	for _, r := range p.Waits {
		if m := r.needAt(n); m != nil {
			*t.Waits.Of(m.Mode)++
		}
	}
	return t
}

// holds reports whether t has any holding.
func (t flowTally) holds() bool { return t.Granted != lockmode.Counts{} }

// claims reports whether a lease of the flow in full force claims this very key. It looks at
// the leases of the flow, or at the holders of the key if they are fewer. If there are more
// than a step may look at, it trusts those that it has seen.
func (p *FlowState) claims(n *Node) bool {
	if n.First == nil || !p.At(n).holds() {
		return false
	}
	looks := n.NS.Agenda.objects
	if p.Index == nil || len(p.Leases) <= len(n.ByFence) {
		for i, l := range p.Leases {
			if i == StepObjects {
				return false
			}
			*looks++
			if m := l.needAt(n); m != nil && m.Claimed && l.Phase == Held {
				return true
			}
		}
		return false
	}
	i := 0
	for h := n.First; h != nil && i < StepObjects; h = h.Next {
		i++
		*looks++
		if h.Req.FlowState == p && h.Req.Phase == Held {
			return true
		}
	}
	return false
}

// waiting counts the places in line.
func (t *flowTally) waiting() (n int) {
	for _, w := range t.Waits {
		n += int(w)
	}
	return n
}

// add counts r's needs, held or waited for, in the index. Holdings of the flow alone are
// counted at the key.
func (p *FlowState) add(r *Request, waits bool, by uint32) {
	needs := r.Needs()
	for i := range needs {
		m := &needs[i]
		if !waits && m.Node.hands != several {
			continue
		}
		t := p.Index[m.Node]
		if waits {
			*t.Waits.Of(m.Mode) += by
		} else {
			*t.Granted.Of(m.Mode) += by
		}
		if t == (flowTally{}) {
			delete(p.Index, m.Node)
		} else {
			p.Index[m.Node] = t
		}
	}
}

// handTo records that a flow, nil for none, is about to hold something at n.
func (n *Node) handTo(p *FlowState) {
	switch {
	case p == nil:
		n.share()
	case n.hands == nil:
		n.hands = p
	case n.hands != p:
		n.share()
	}
}

// share records that more than one flow holds something at n.
func (n *Node) share() {
	if p := n.hands; p != nil && p.Index != nil {
		t := p.Index[n]
		t.Granted = n.granted
		p.Index[n] = t
	}
	n.hands = several
}

// Joined and parted update the state that depends on a flow's requests. They are called after r
// was put in leases or waits, or taken out.
func (p *FlowState) Joined(r *Request, waits bool) {
	if p.Sess != nil && !r.Follows() {
		p.Sess.Work++
	}
	if p.Sess != nil && waits {
		p.stand()
	}
	p.tear()
	if p.Index != nil {
		p.add(r, waits, 1)
	} else if len(p.Leases)+len(p.Waits) >= manyRequests {
		p.Index = map[*Node]flowTally{}
		for _, l := range p.Leases {
			p.add(l, false, 1)
		}
		for _, w := range p.Waits {
			p.add(w, true, 1)
		}
	}
}

func (p *FlowState) parted(r *Request, waits bool) {
	r.NS.Agenda.Relieved(p, r)
	if p.Sess != nil && !r.Follows() {
		p.Sess.Work--
	}
	if p.Sess != nil && waits {
		p.stand()
	}
	if p.Sess != nil && p.isIdle() {
		p.Sess.rest(p)
	}
	p.tear()
	if len(p.Leases)+len(p.Waits) < fewRequests {
		p.Index = nil
	} else if p.Index != nil {
		p.add(r, waits, ^uint32(0))
	}
}

// A rank is a priority, counted from 1 up, so that 0 is none and below all.
const (
	NoRank   = 0
	BaseRank = interlock.MaxPriority + 1 // of priority 0
)

// EntryCount counts the flow's places in line.
func (p *FlowState) EntryCount() (n int) {
	for _, w := range p.Waits {
		n += len(w.Wait.Entries())
	}
	return n
}

// Inherit sets the ranks of the waits of a flow.
func (p *FlowState) Inherit(rank int32) {
	p.Inherited = int16(rank)
	for _, w := range p.Waits {
		w.Wait.Rank = max(w.ownRank(), rank)
		for i := range w.Wait.Entries() {
			w.Wait.Entries()[i].fix()
		}
	}
}

// Raises reports whether a wait of the flow has a higher rank than its own priority.
func (p *FlowState) Raises() bool {
	return slices.ContainsFunc(p.Waits, func(w *Request) bool { return w.Wait.Rank > w.ownRank() })
}

// Lent returns the highest rank among the waiters for the flow's keys.
func (p *FlowState) Lent() (rank int32) {
	rank = NoRank
	for _, l := range p.Leases {
		rank = l.lentByFollowers(rank)
		for i := range l.Needs() {
			m := &l.Needs()[i]
			if m.Node.Line == nil {
				continue
			}
			for c := m.Node.Line.First; c != nil; c = c.Next {
				if lockmode.Conflicts[m.Mode].Has(c.Mode) {
					rank = c.root.highest(rank, p)
				}
			}
		}
	}
	return rank
}

// isIdle reports whether the flow neither holds nor waits.
func (p *FlowState) isIdle() bool { return len(p.Leases) == 0 && len(p.Waits) == 0 }

// stand keeps the session's list of flows that wait.
func (p *FlowState) stand() {
	waits := len(p.Waits) > 0
	if waits == p.waiting {
		return
	}
	p.waiting = waits
	s := p.Sess
	i, _ := slices.BinarySearchFunc(s.Waiting, p.Name, ByFlowName)
	if waits {
		s.Waiting = slices.Insert(s.Waiting, i, p)
	} else {
		s.Waiting = slices.Delete(s.Waiting, i, i+1)
	}
}

func ByFlowName(p *FlowState, name string) int { return strings.Compare(p.Name, name) }

func (p *FlowState) leaseCount() int {
	if p == nil {
		return 0
	}
	return len(p.Leases)
}

// LeasesToForfeit returns the leases of the flow that block the wait before it in a cycle, and
// which it loses as the victim, in the order of their fences. It looks at as many as a step
// may: a victim loses no more of them than fit in a step anyway.
func (p *FlowState) LeasesToForfeit(h SearchStep) (list []*Request) {
	if p == nil || h.Via == NoNeed {
		return nil
	}
	m := &h.Req().Needs()[h.Via]
	short := h.Req().CountsAgainst(m) == ShortOfPermits
	n := min(len(p.Leases), StepObjects)
	*m.Node.NS.Agenda.objects += n
	for _, l := range p.Leases[:n] {
		if l.Phase == Held && l.revokedFor(m, short) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *Request) int {
		if a.Fence < b.Fence {
			return -1
		}
		return 1
	})
	return list
}

// HoldsAgainst reports whether the flow holds something that blocks a need, which may be short
// of something.
func (p *FlowState) HoldsAgainst(m *Need, short shortage) bool {
	return p.Shows(m.Node, lockmode.Conflicts[m.Mode]) || short == ShortOfPermits && p.hasPermits(m.Node)
}

// hasPermits reports whether the flow holds permits of a key.
func (p *FlowState) hasPermits(n *Node) bool {
	return p != nil && slices.ContainsFunc(p.Leases, func(l *Request) bool {
		o := l.needAt(n)
		return o != nil && o.Counts == interlock.Permits
	})
}
