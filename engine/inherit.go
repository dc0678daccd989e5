package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Priority inheritance.
//
// A party that holds what others wait for, and waits itself, waits with the highest
// priority among them, so that nobody of middling priority keeps back whom it
// blocks. Its own priority is the least. Only conflicts with holders count, not the
// order of a line. The rank of a wait is that priority; it decides the place in
// line, but never who is a deadlock's victim.
//
// Ranks are found anew from the base priorities when something has changed that
// they depend on: the least fixpoint, over the parties that hold and wait. A
// namespace in which nobody waits with a priority never does that.

// A rank is a priority, counted from 1 up, so that 0 is none and below all.
const (
	noRank   = 0
	baseRank = interlock.MaxPriority + 1 // of priority 0
)

func (r *request) ownRank() int32 { return int32(r.priority) + baseRank }

// ranking is the work of finding the ranks of a namespace anew, which may take several
// steps. It is done with what it finds when it comes to a party; whatever changes behind it
// has it done once more. Until it is done the lines stand as they stood before.
type ranking struct {
	phase rankingPhase
	heirs []*party                 // those of before, and then those of now as well
	risen collection.Queue[*party] // holders in the way of a party that rose: their ranks may rise, too
	upTo  int                      // in the list of the phase; in space.torn it is kept where it is: see tear
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

// goesByTorn reports whether the phase goes through space.torn.
func (p rankingPhase) goesByTorn() bool {
	return p == rankingTorn || p == rankingRise || p == rankingRaised
}

// stepRanks bounds the objects that a step looks at to find ranks: parties, their leases,
// their waits at each key, and the holders in their way. Those of one party come on top.
const stepRanks = 200

func (e *Engine) isRankTired() bool { return e.ranks >= e.mostRanks }

// rerank goes on with giving every wait of the namespace its rank, and its place in line.
func (e *Engine) rerank() {
	s := e.agenda.space
	k := &s.ranking
	if k.phase == rankingDone {
		s.unranked = false
		*k = ranking{phase: rankingHeirs, heirs: s.heirs}
		s.heirs = nil
	}
	for k.phase != rankingDone {
		var p *party
		switch {
		case e.isRankTired():
			return
		case k.phase == rankingRisen && k.risen.Len() > 0:
			p = k.risen.Pop()
			p.rising = false
		case k.phase.goesByTorn() && k.upTo < len(s.torn):
			p = s.torn[k.upTo]
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
	*k = ranking{}
}

// rankOne does what there is to do for one party in a phase of a ranking.
func (e *Engine) rankOne(k *ranking, p *party) {
	switch k.phase {
	case rankingHeirs:
		e.ranks += p.places()
		p.inherit(noRank)
		p.heir = true
	case rankingTorn:
		p.inherited = noRank
	case rankingRise, rankingRisen: // who waits with a higher rank than before lends it to those who hold what it waits for
		if !p.torn {
			return
		}
		if rank := e.lent(p); rank > int32(p.inherited) {
			e.ranks += p.places()
			p.inherit(rank)
			e.eachHolder(p, k.rise)
		}
	case rankingRaised:
		if !p.torn || p.inherited == noRank || !p.raises() {
			return
		}
		if s := p.space(); !p.heir {
			s.heirs, k.heirs, p.heir = append(s.heirs, p), append(k.heirs, p), true
		} else {
			s.heirs = append(s.heirs, p)
		}
	case rankingPlaces:
		p.heir = false
		e.replace(p)
	}
}

// rise notes that the rank of a party may rise.
func (k *ranking) rise(p *party) {
	if !p.rising {
		p.rising = true
		k.risen.Push(p)
	}
}

// eachHolder goes through those who hold and wait and are as holders in the way of the
// party's waits.
func (e *Engine) eachHolder(p *party, visit func(*party)) {
	for _, w := range p.waits {
		if q := w.wait.holder(); q != nil && q != p && q.torn {
			visit(q)
		}
		for i := range w.needs() {
			n, against := w.needs()[i].node, lockmode.Conflicts[w.needs()[i].mode]
			if against&n.modes == 0 {
				continue
			}
			for h := n.first; h != nil; h = h.next {
				e.ranks++
				if q := h.req.party; q != nil && q != p && q.torn && against.Has(h.mode) {
					visit(q)
				}
			}
			for _, q := range p.space().tornBelow(n, against) {
				e.ranks++
				if q != p && q.shows(n, against) {
					visit(q)
				}
			}
		}
	}
}

// places counts those in line that the party has.
func (p *party) places() (n int) {
	for _, w := range p.waits {
		n += len(w.wait.places())
	}
	return n
}

// inherit gives the waits of a party their ranks.
func (p *party) inherit(rank int32) {
	p.inherited = int16(rank)
	for _, w := range p.waits {
		w.wait.rank = max(w.ownRank(), rank)
		for i := range w.wait.places() {
			w.wait.places()[i].fix()
		}
	}
}

// raises reports whether a wait of the party has a higher rank than its own priority.
func (p *party) raises() bool {
	return slices.ContainsFunc(p.waits, func(w *request) bool { return w.wait.rank > w.ownRank() })
}

// lent is that of the party, counted.
func (e *Engine) lent(p *party) int32 {
	for _, l := range p.leases {
		e.ranks += len(l.needs())
	}
	return p.lent()
}

// lent returns the highest rank of those who wait for what the party holds.
func (p *party) lent() (rank int32) {
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

// highest gives the highest rank in a subtree of those that are not of a party, if
// it is above the given one.
func (p *place) highest(rank int32, except *party) int32 {
	if p == nil || p.top <= rank {
		return rank
	}
	if p.req.party != except {
		rank = max(rank, p.req.wait.rank)
	}
	return p.right.highest(p.left.highest(rank, except), except)
}

// replace puts the waits of a party whose ranks have changed in their new places.
func (e *Engine) replace(p *party) {
	var moved []*request
	passes := false // somebody may stand in another order
	for _, w := range p.waits {
		old := w.wait.score
		if w.setScore(); w.wait.score == old {
			continue
		}
		for i := range w.wait.places() {
			e.ranks += 2
			x := &w.wait.places()[i]
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
	if r.party == nil || r.space.ranked == 0 && r.priority >= 0 { // all others have the base rank
		return r.ownRank()
	}
	return max(r.ownRank(), r.party.lent())
}

func (s *space) isUnranked() bool { return s != nil && (s.unranked || s.ranking.phase != rankingDone) }

// disturb notes that ranks may have changed, because somebody has come into a line
// or left one, or because a party has more or less.
func (s *space) disturb() { s.unranked = s.unranked || s.ranked > 0 }
