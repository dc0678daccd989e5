package engine

import (
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// stepRanks bounds the objects that a step examines to compute ranks: flows, their leases,
// their waits at each key, and the holders that block them. Those of one flow come on top.
const stepRanks = 200

func (e *Engine) rankBudgetSpent() bool { return e.ranks >= e.mostRanks }

// rerank continues to assign every wait of the namespace its rank, and its place in line.
func (e *Engine) rerank() {
	s := e.PendingWork.NS
	k := &s.Ranking
	if k.Phase == store.RankingDone {
		s.Unranked = false
		*k = store.RankSearch{Phase: store.RankingHeirs, Heirs: s.Heirs}
		s.Heirs = nil
	}
	for k.Phase != store.RankingDone {
		var p *store.FlowState
		switch {
		case e.rankBudgetSpent():
			return
		case k.Phase == store.RankingRisen && k.Risen.Len() > 0:
			p = k.Risen.Pop()
			p.Rising = false
		case k.Phase.GoesByHoldsAndWaits() && k.UpTo < len(s.HoldsAndWaits):
			p = s.HoldsAndWaits[k.UpTo]
			k.UpTo++
		case (k.Phase == store.RankingHeirs || k.Phase == store.RankingPlaces) && k.UpTo < len(k.Heirs):
			p = k.Heirs[k.UpTo]
			k.UpTo++
		default:
			k.Phase, k.UpTo = (k.Phase+1)%(store.RankingPlaces+1), 0
			continue
		}
		e.ranks++
		e.rankOne(k, p)
	}
	*k = store.RankSearch{}
}

// rankOne carries out a phase of a ranking for one flow.
func (e *Engine) rankOne(k *store.RankSearch, p *store.FlowState) {
	switch k.Phase {
	case store.RankingHeirs:
		e.ranks += p.EntryCount()
		p.Inherit(store.NoRank)
		p.Heir = true
	case store.RankingHoldsAndWaits:
		p.Inherited = store.NoRank
	// a waiter with a higher rank than before lends it to the holders that block it
	case store.RankingRise, store.RankingRisen:
		if !p.HoldsAndWaits {
			return
		}
		if rank := e.lent(p); rank > int32(p.Inherited) {
			e.ranks += p.EntryCount()
			p.Inherit(rank)
			e.eachHolder(p, k.Rise)
		}
	case store.RankingRaised:
		if !p.HoldsAndWaits || p.Inherited == store.NoRank || !p.Raises() {
			return
		}
		if s := p.NS(); !p.Heir {
			s.Heirs, k.Heirs, p.Heir = append(s.Heirs, p), append(k.Heirs, p), true
		} else {
			s.Heirs = append(s.Heirs, p)
		}
	case store.RankingPlaces:
		p.Heir = false
		e.replace(p)
	}
}

// eachHolder visits the flows that wait themselves and block the flow's waits as holders.
func (e *Engine) eachHolder(p *store.FlowState, visit func(*store.FlowState)) {
	for _, w := range p.Waits {
		if q := w.Wait.Holder(); q != nil && q != p && q.HoldsAndWaits {
			visit(q)
		}
		for i := range w.Needs() {
			n, against := w.Needs()[i].Node, lockmode.Conflicts[w.Needs()[i].Mode]
			if against&n.Modes == 0 {
				continue
			}
			for h := n.First; h != nil; h = h.Next {
				e.ranks++
				if q := h.Req.FlowState; q != nil && q != p && q.HoldsAndWaits && against.Has(h.Mode) {
					visit(q)
				}
			}
			for _, q := range p.NS().HoldsAndWaitsBelow(n, against) {
				e.ranks++
				if q != p && q.Shows(n, against) {
					visit(q)
				}
			}
		}
	}
}

// lent is FlowState.lent, counted.
func (e *Engine) lent(p *store.FlowState) int32 {
	for _, l := range p.Leases {
		e.ranks += len(l.Needs())
	}
	return p.Lent()
}

// replace moves the waits of a flow with changed ranks to their new places.
func (e *Engine) replace(p *store.FlowState) {
	var moved []*store.Request
	passes := false // some waiters may stand in another order
	for _, w := range p.Waits {
		old := w.Wait.Score
		if w.SetScore(); w.Wait.Score == old {
			continue
		}
		for i := range w.Wait.Entries() {
			e.ranks += 2
			x := &w.Wait.Entries()[i]
			x.Class.Remove(x)
			x.Class.Insert(x)
			passes = passes || w.Needs()[i].Node.Line.Length() > 1
		}
		if r := w.Whole(); len(moved) == 0 || moved[len(moved)-1] != r {
			r.Wait.Rank, r.Wait.Score = w.Wait.Rank, w.Wait.Score
			moved = append(moved, r)
		}
	}
	for _, r := range moved {
		e.Relieved(p, r)
		e.Changed(r) // it may stand behind others now
		if m := r.Barrier(); m != nil {
			e.ReadyClass(m.Node.Parties()) // and belong to another generation
		}
		e.watchAnywhere(r)
	}
	if passes {
		e.Suspect(p, nil)
	}
}
