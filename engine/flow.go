package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// flowState is the unit that holds and waits: it never blocks itself. It is a flow, one thread
// of control inside a session, or a lease without a session together with its conversion. Other
// requests without a session are alone and have none.
type flowState struct {
	sess          *session   // nil for that of a lease without a session
	name          string     // of a flow
	next          *flowState // of a flow, in session.flows
	hashed        uint32
	inherited     int16               // volatile: the highest rank of the waiters that it blocks; noRank for none
	holdsAndWaits bool                // is in namespace.holdsAndWaits
	suspected     bool                // volatile: stands in agenda.suspects
	heir          bool                // while ranks are found anew: it waits with another's, or did
	rising        bool                // volatile: stands in ranking.risen
	resting       bool                // volatile: a flow that stands in session.resting
	waiting       bool                // a flow that stands in session.waiting
	leases        []*request          // in no order
	waits         []*request          // in the order of their numbers; of a request for any of several its branches
	index         map[*node]flowTally // where it waits
}

func (p *flowState) Hash() uint32           { return p.hashed }
func (p *flowState) TableNext() **flowState { return &p.next }

// several stands in node.hands for more than one flow, or none.
var several = &flowState{}

// join makes r a request of a flow.
func (r *request) join(f *flowState) { r.party = f }

// flow returns the flow of request r, nil for an anonymous holder.
func (r *request) flow() *flowState {
	if r.party == nil || r.party.sess == nil {
		return nil
	}
	return r.party
}

// isOf reports whether r is of that flow of a session.
func (r *request) isOf(sess *session, name string) bool {
	f := r.flow()
	return f != nil && f.sess == sess && f.name == name
}

// asParty returns the flow of a lease. A lease without a session gets a flow of its own, for it
// and its conversion.
func (r *request) asParty() *flowState {
	if r.party == nil {
		r.party = &flowState{leases: []*request{r}}
		r.pos = 0
	}
	return r.party
}

// compare orders flows: those of sessions by their sessions and names, then those of leases by
// their numbers.
func (p *flowState) compare(q *flowState) int {
	switch {
	case p.sess == nil || q.sess == nil:
		return cmp.Compare(p.number(), q.number())
	case p.sess != q.sess:
		return cmp.Compare(p.sess.num, q.sess.num)
	}
	return strings.Compare(p.name, q.name)
}

// waitsBefore returns the number of the flow's waits with lower numbers than the given one.
func (p *flowState) waitsBefore(num uint64) int {
	i, _ := slices.BinarySearchFunc(p.waits, num, func(w *request, num uint64) int { return cmp.Compare(w.num, num) })
	return i
}

// number returns the lease's number, for a flow without a session that has something; 0 for
// others.
func (p *flowState) number() uint64 {
	switch {
	case p.sess != nil:
		return 0
	case len(p.leases) > 0:
		return p.leases[0].num
	}
	return p.waits[0].base.num
}

// ns returns the namespace of the requests of a flow that has any.
func (p *flowState) ns() *namespace {
	if len(p.leases) > 0 {
		return p.leases[0].ns
	}
	return p.waits[0].ns
}

// tear maintains the namespace's list of flows that hold and wait.
func (p *flowState) tear() {
	torn := len(p.leases) > 0 && len(p.waits) > 0
	if torn == p.holdsAndWaits {
		return
	}
	p.holdsAndWaits = torn
	s := p.ns()
	i, _ := slices.BinarySearchFunc(s.holdsAndWaits, p, (*flowState).compare)
	by := 1
	if torn {
		s.holdsAndWaits = slices.Insert(s.holdsAndWaits, i, p)
	} else {
		s.holdsAndWaits = slices.Delete(s.holdsAndWaits, i, i+1)
		by = -1
	}
	// A search that iterates over the list continues with the next element.
	if x := s.agenda.search; x != nil && i < x.nextHolder {
		x.nextHolder += by
	}
	if k := &s.ranking; k.phase.goesByTorn() && i < k.upTo {
		k.upTo += by
	}
}

// flowTally counts a flow's holdings and places in line at one key, by mode.
type flowTally struct {
	granted lockmode.Counts
	waits   lockmode.Counts
}

// against counts what of t would exclude a mode in other hands.
func (t *flowTally) against(mode interlock.Mode) (n int) {
	for m := lockmode.IS; m <= lockmode.X; m++ {
		if lockmode.Conflicts[mode].Has(m) {
			n += int(*t.granted.Of(m) + *t.waits.Of(m))
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

// at returns the flow's tally at n.
func (p *flowState) at(n *node) (t flowTally) {
	if p == nil {
		return t
	}
	if p.index != nil {
		t = p.index[n]
		if n.hands == p {
			t.granted = n.granted
		}
		return t
	}
	for _, r := range p.leases {
		if m := r.needAt(n); m != nil {
			*t.granted.Of(m.mode)++
		}
	}
	for _, r := range p.waits {
		if m := r.needAt(n); m != nil {
			*t.waits.Of(m.mode)++
		}
	}
	return t
}

// holds reports whether t has any holding.
func (t flowTally) holds() bool { return t.granted != lockmode.Counts{} }

// claims reports whether a lease of the flow in full force claims this very key. It looks at
// the leases of the flow, or at the holders of the key if they are fewer. If there are more
// than a step may look at, it trusts those that it has seen.
func (p *flowState) claims(n *node) bool {
	if n.first == nil || !p.at(n).holds() {
		return false
	}
	looks := n.ns.agenda.objects
	if p.index == nil || len(p.leases) <= len(n.byFence) {
		for i, l := range p.leases {
			if i == StepObjects {
				return false
			}
			*looks++
			if m := l.needAt(n); m != nil && m.claimed && l.phase == held {
				return true
			}
		}
		return false
	}
	i := 0
	for h := n.first; h != nil && i < StepObjects; h = h.next {
		i++
		*looks++
		if h.req.party == p && h.req.phase == held {
			return true
		}
	}
	return false
}

// waiting counts the places in line.
func (t *flowTally) waiting() (n int) {
	for _, w := range t.waits {
		n += int(w)
	}
	return n
}

// add counts r's needs, held or waited for, in the index. Holdings of the flow alone are
// counted at the key.
func (p *flowState) add(r *request, waits bool, by uint32) {
	needs := r.needs()
	for i := range needs {
		m := &needs[i]
		if !waits && m.node.hands != several {
			continue
		}
		t := p.index[m.node]
		if waits {
			*t.waits.Of(m.mode) += by
		} else {
			*t.granted.Of(m.mode) += by
		}
		if t == (flowTally{}) {
			delete(p.index, m.node)
		} else {
			p.index[m.node] = t
		}
	}
}

// handTo records that a flow, nil for none, is about to hold something at n.
func (n *node) handTo(p *flowState) {
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
func (n *node) share() {
	if p := n.hands; p != nil && p.index != nil {
		t := p.index[n]
		t.granted = n.granted
		p.index[n] = t
	}
	n.hands = several
}

// joined and parted update the state that depends on a flow's requests. They are called after r
// was put in leases or waits, or taken out.
func (p *flowState) joined(r *request, waits bool) {
	if p.sess != nil && !r.follows() {
		p.sess.work++
	}
	if p.sess != nil && waits {
		p.stand()
	}
	p.tear()
	if p.index != nil {
		p.add(r, waits, 1)
	} else if len(p.leases)+len(p.waits) >= manyRequests {
		p.index = map[*node]flowTally{}
		for _, l := range p.leases {
			p.add(l, false, 1)
		}
		for _, w := range p.waits {
			p.add(w, true, 1)
		}
	}
}

func (p *flowState) parted(r *request, waits bool) {
	r.ns.agenda.relieved(p, r)
	if p.sess != nil && !r.follows() {
		p.sess.work--
	}
	if p.sess != nil && waits {
		p.stand()
	}
	if p.sess != nil && p.isIdle() {
		p.sess.rest(p)
	}
	p.tear()
	if len(p.leases)+len(p.waits) < fewRequests {
		p.index = nil
	} else if p.index != nil {
		p.add(r, waits, ^uint32(0))
	}
}

func partyOf(r *request) FlowRef {
	p := FlowRef{Agent: r.agentName(), Flow: r.flowName()}
	if s := r.session(); s != nil {
		p.Session = s.name
	}
	if t := r.task; t != nil && r.phase == waiting {
		p.Task = t.id
	}
	return p
}
