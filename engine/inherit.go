package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
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

// rerank gives every wait of the namespace its rank, and its place in line.
func (e *Engine) rerank() {
	s := e.agenda.space
	s.unranked = false
	heirs := s.heirs
	for _, p := range heirs {
		p.inherit(noRank)
	}
	s.heirs = nil
	for _, p := range s.torn {
		p.inherited = noRank
	}
	for _, p := range heirs {
		p.heir = true
	}
	// Who waits with a higher rank than before lends it to those who hold what it
	// waits for.
	for raised := slices.Clone(s.torn); len(raised) > 0; raised = raised[1:] {
		if p := raised[0]; p.lent() > int32(p.inherited) {
			p.inherit(p.lent())
			raised = p.appendHolders(raised)
		}
	}
	for _, p := range s.torn {
		if p.inherited != noRank && p.raises() {
			if s.heirs = append(s.heirs, p); !p.heir {
				heirs, p.heir = append(heirs, p), true
			}
		}
	}
	for _, p := range heirs {
		p.heir = false
		e.replace(p)
	}
}

// appendHolders adds those who hold and wait and are as holders in the way of the
// party's waits.
func (p *party) appendHolders(list []*party) []*party {
	for _, w := range p.waits {
		if q := w.wait.holder(); q != nil && q != p && q.torn {
			list = append(list, q)
		}
		for i := range w.needs() {
			n, against := w.needs()[i].node, conflicts[w.needs()[i].mode]
			if against&n.modes == 0 {
				continue
			}
			for h := n.first; h != nil; h = h.next {
				if q := h.req.party; q != nil && q != p && q.torn && against.has(h.mode) {
					list = append(list, q)
				}
			}
			for _, q := range p.space().tornBelow(n, against) {
				if q != p && q.shows(n, against) {
					list = append(list, q)
				}
			}
		}
	}
	return list
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

// lent gives the highest rank of those who wait for what the party holds.
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
				if conflicts[m.mode].has(c.mode) {
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
	for _, w := range p.waits {
		old := w.wait.score
		if w.setScore(); w.wait.score == old {
			continue
		}
		for i := range w.wait.places() {
			x := &w.wait.places()[i]
			x.class.remove(x)
			x.class.insert(x)
		}
		if r := w.whole(); len(moved) == 0 || moved[len(moved)-1] != r {
			r.wait.rank, r.wait.score = w.wait.rank, w.wait.score
			moved = append(moved, r)
		}
	}
	for _, r := range moved {
		e.changed(r) // it may stand behind others now
		if m := r.barrier(); m != nil {
			e.readyClass(m.node.parties()) // and belong to another generation
		}
		e.watchAnywhere(r)
		e.suspect(p, r)
	}
}

// standing is the rank with which a request that is not in line yet would wait.
func (r *request) standing() int32 {
	if r.party == nil || r.space.ranked == 0 {
		return r.ownRank()
	}
	return max(r.ownRank(), r.party.lent())
}

func (s *space) isUnranked() bool { return s != nil && s.unranked }

// disturb notes that ranks may have changed, because somebody has come into a line
// or left one, or because a party has more or less.
func (s *space) disturb() { s.unranked = s.unranked || s.ranked > 0 }
