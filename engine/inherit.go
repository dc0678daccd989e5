package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Priority inheritance.
//
// A flow that holds what others wait for, and waits itself, waits with the highest priority
// among them, so that waiters of medium priority cannot delay the waiters that it blocks. Its
// own priority is the least. Only conflicts with holders count, not the order of a line. The
// rank of a wait is that priority; it decides the place in line, but never the victim of a
// deadlock.
//
// Ranks are computed anew from the base priorities when something that they depend on has
// changed: the least fixpoint, over the flows that hold and wait. A namespace without waits
// that have a priority never does that.

// A rank is a priority, counted from 1 up, so that 0 is none and below all.
const (
	noRank   = 0
	baseRank = interlock.MaxPriority + 1 // of priority 0
)

func (r *request) ownRank() int32 { return int32(r.priority) + baseRank }

// rankSearch is the work of computing the ranks of a namespace, which may take several steps.
// Each flow is processed in its state at that moment; a later change of a processed flow
// repeats the work. Until it is done the lines stay as they were.
type rankSearch struct {
	phase rankingPhase
	heirs []*flowState                 // those of before, and then those of now as well
	risen collection.Queue[*flowState] // holders that block a flow that rose: their ranks may rise, too
	upTo  int                          // in the list of the phase; in namespace.holdsAndWaits it is kept where it is: see tear
}

type rankingPhase uint8

const (
	rankingDone rankingPhase = iota
	rankingHeirs
	rankingTorn
	rankingRise
	rankingRisen
	rankingRaised
	rankingPlaces
)

// goesByTorn reports whether the phase iterates over namespace.holdsAndWaits.
func (p rankingPhase) goesByTorn() bool {
	return p == rankingTorn || p == rankingRise || p == rankingRaised
}

// stepRanks bounds the objects that a step examines to compute ranks: flows, their leases,
// their waits at each key, and the holders that block them. Those of one flow come on top.
const stepRanks = 200

func (e *Engine) rankBudgetSpent() bool { return e.ranks >= e.mostRanks }

// rerank continues to assign every wait of the namespace its rank, and its place in line.
func (e *Engine) rerank() {
	s := e.pendingWork.ns
	k := &s.ranking
	if k.phase == rankingDone {
		s.unranked = false
		*k = rankSearch{phase: rankingHeirs, heirs: s.heirs}
		s.heirs = nil
	}
	for k.phase != rankingDone {
		var p *flowState
		switch {
		case e.rankBudgetSpent():
			return
		case k.phase == rankingRisen && k.risen.Len() > 0:
			p = k.risen.Pop()
			p.rising = false
		case k.phase.goesByTorn() && k.upTo < len(s.holdsAndWaits):
			p = s.holdsAndWaits[k.upTo]
			k.upTo++
		case (k.phase == rankingHeirs || k.phase == rankingPlaces) && k.upTo < len(k.heirs):
			p = k.heirs[k.upTo]
			k.upTo++
		default:
			k.phase, k.upTo = (k.phase+1)%(rankingPlaces+1), 0
			continue
		}
		e.ranks++
		e.rankOne(k, p)
	}
	*k = rankSearch{}
}

// rankOne carries out a phase of a ranking for one flow.
func (e *Engine) rankOne(k *rankSearch, p *flowState) {
	switch k.phase {
	case rankingHeirs:
		e.ranks += p.entryCount()
		p.inherit(noRank)
		p.heir = true
	case rankingTorn:
		p.inherited = noRank
	case rankingRise, rankingRisen: // a waiter with a higher rank than before lends it to the holders that block it
		if !p.holdsAndWaits {
			return
		}
		if rank := e.lent(p); rank > int32(p.inherited) {
			e.ranks += p.entryCount()
			p.inherit(rank)
			e.eachHolder(p, k.rise)
		}
	case rankingRaised:
		if !p.holdsAndWaits || p.inherited == noRank || !p.raises() {
			return
		}
		if s := p.ns(); !p.heir {
			s.heirs, k.heirs, p.heir = append(s.heirs, p), append(k.heirs, p), true
		} else {
			s.heirs = append(s.heirs, p)
		}
	case rankingPlaces:
		p.heir = false
		e.replace(p)
	}
}

// rise records that the rank of a flow may rise.
func (k *rankSearch) rise(p *flowState) {
	if !p.rising {
		p.rising = true
		k.risen.Push(p)
	}
}

// eachHolder visits the flows that wait themselves and block the flow's waits as holders.
func (e *Engine) eachHolder(p *flowState, visit func(*flowState)) {
	for _, w := range p.waits {
		if q := w.wait.holder(); q != nil && q != p && q.holdsAndWaits {
			visit(q)
		}
		for i := range w.needs() {
			n, against := w.needs()[i].node, lockmode.Conflicts[w.needs()[i].mode]
			if against&n.modes == 0 {
				continue
			}
			for h := n.first; h != nil; h = h.next {
				e.ranks++
				if q := h.req.party; q != nil && q != p && q.holdsAndWaits && against.Has(h.mode) {
					visit(q)
				}
			}
			for _, q := range p.ns().tornBelow(n, against) {
				e.ranks++
				if q != p && q.shows(n, against) {
					visit(q)
				}
			}
		}
	}
}

// entryCount counts the flow's places in line.
func (p *flowState) entryCount() (n int) {
	for _, w := range p.waits {
		n += len(w.wait.entries())
	}
	return n
}

// inherit sets the ranks of the waits of a flow.
func (p *flowState) inherit(rank int32) {
	p.inherited = int16(rank)
	for _, w := range p.waits {
		w.wait.rank = max(w.ownRank(), rank)
		for i := range w.wait.entries() {
			w.wait.entries()[i].fix()
		}
	}
}

// raises reports whether a wait of the flow has a higher rank than its own priority.
func (p *flowState) raises() bool {
	return slices.ContainsFunc(p.waits, func(w *request) bool { return w.wait.rank > w.ownRank() })
}

// lent is flowState.lent, counted.
func (e *Engine) lent(p *flowState) int32 {
	for _, l := range p.leases {
		e.ranks += len(l.needs())
	}
	return p.lent()
}

// lent returns the highest rank among the waiters for the flow's keys.
func (p *flowState) lent() (rank int32) {
	rank = noRank
	for _, l := range p.leases {
		rank = l.lentByFollowers(rank)
		for i := range l.needs() {
			m := &l.needs()[i]
			if m.node.line == nil {
				continue
			}
			for c := m.node.line.first; c != nil; c = c.next {
				if lockmode.Conflicts[m.mode].Has(c.mode) {
					rank = c.root.highest(rank, p)
				}
			}
		}
	}
	return rank
}

// highest returns the highest rank in a subtree of places of other flows, if it is above the
// given one.
func (p *queueEntry) highest(rank int32, except *flowState) int32 {
	if p == nil || p.top <= rank {
		return rank
	}
	if p.req.party != except {
		rank = max(rank, p.req.wait.rank)
	}
	return p.right.highest(p.left.highest(rank, except), except)
}

// replace moves the waits of a flow with changed ranks to their new places.
func (e *Engine) replace(p *flowState) {
	var moved []*request
	passes := false // some waiters may stand in another order
	for _, w := range p.waits {
		old := w.wait.score
		if w.setScore(); w.wait.score == old {
			continue
		}
		for i := range w.wait.entries() {
			e.ranks += 2
			x := &w.wait.entries()[i]
			x.class.remove(x)
			x.class.insert(x)
			passes = passes || w.needs()[i].node.line.length() > 1
		}
		if r := w.whole(); len(moved) == 0 || moved[len(moved)-1] != r {
			r.wait.rank, r.wait.score = w.wait.rank, w.wait.score
			moved = append(moved, r)
		}
	}
	for _, r := range moved {
		e.relieved(p, r)
		e.changed(r) // it may stand behind others now
		if m := r.barrier(); m != nil {
			e.readyClass(m.node.parties()) // and belong to another generation
		}
		e.watchAnywhere(r)
	}
	if passes {
		e.suspect(p, nil)
	}
}

// standing is the rank with which a request that is not in line yet would wait.
func (r *request) standing() int32 {
	if r.party == nil || r.ns.ranked == 0 && r.priority >= 0 { // all others have the base rank
		return r.ownRank()
	}
	return max(r.ownRank(), r.party.lent())
}

func (s *namespace) isUnranked() bool {
	return s != nil && (s.unranked || s.ranking.phase != rankingDone)
}

// disturb marks the ranks as outdated, because a waiter has joined or left a line, or a flow
// holds more or less.
func (s *namespace) disturb() { s.unranked = s.unranked || s.ranked > 0 }
