package store

import "github.com/interlockdev/interlock/engine/internal/lockmode"

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

// StepRanks bounds the objects that a step examines to compute ranks: flows, their leases,
// their waits at each key, and the holders that block them. Those of one flow come on top.
const StepRanks = 200

type rankingPhase uint8

// GoesByHoldsAndWaits reports whether the phase iterates over namespace.HoldsAndWaits.
func (p rankingPhase) GoesByHoldsAndWaits() bool {
	return p == RankingHoldsAndWaits || p == RankingRise || p == RankingRaised
}

// Rise records that the rank of a flow may rise.
func (k *RankSearch) Rise(p *FlowState) {
	if !p.Rising {
		p.Rising = true
		k.Risen.Push(p)
	}
}

// Rerank continues to assign every wait of the namespace its rank, and its place in line.
func (st *State) Rerank() {
	s := st.PendingWork.NS
	k := &s.Ranking
	if k.Phase == RankingDone {
		s.Unranked = false
		*k = RankSearch{Phase: RankingHeirs, Heirs: s.Heirs}
		s.Heirs = nil
	}
	for k.Phase != RankingDone {
		var p *FlowState
		switch {
		case st.Ranks.IsSpent():
			return
		case k.Phase == RankingRisen && k.Risen.Len() > 0:
			p = k.Risen.Pop()
			p.Rising = false
		case k.Phase.GoesByHoldsAndWaits() && k.UpTo < len(s.HoldsAndWaits):
			p = s.HoldsAndWaits[k.UpTo]
			k.UpTo++
		case (k.Phase == RankingHeirs || k.Phase == RankingPlaces) && k.UpTo < len(k.Heirs):
			p = k.Heirs[k.UpTo]
			k.UpTo++
		default:
			k.Phase, k.UpTo = (k.Phase+1)%(RankingPlaces+1), 0
			continue
		}
		st.Ranks.Spent++
		st.rankOne(k, p)
	}
	*k = RankSearch{}
}

// rankOne carries out a phase of a ranking for one flow.
func (st *State) rankOne(k *RankSearch, p *FlowState) {
	switch k.Phase {
	case RankingHeirs:
		st.Ranks.Spent += p.EntryCount()
		p.Inherit(NoRank)
		p.Heir = true
	case RankingHoldsAndWaits:
		p.Inherited = NoRank
	// a waiter with a higher rank than before lends it to the holders that block it
	case RankingRise, RankingRisen:
		if !p.HoldsAndWaits {
			return
		}
		if rank := st.lent(p); rank > int32(p.Inherited) {
			st.Ranks.Spent += p.EntryCount()
			p.Inherit(rank)
			st.eachHolder(p, k.Rise)
		}
	case RankingRaised:
		if !p.HoldsAndWaits || p.Inherited == NoRank || !p.Raises() {
			return
		}
		if s := p.NS(); !p.Heir {
			s.Heirs, k.Heirs, p.Heir = append(s.Heirs, p), append(k.Heirs, p), true
		} else {
			s.Heirs = append(s.Heirs, p)
		}
	case RankingPlaces:
		p.Heir = false
		st.replace(p)
	}
}

// eachHolder visits the flows that wait themselves and block the flow's waits as holders.
func (st *State) eachHolder(p *FlowState, visit func(*FlowState)) {
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
				st.Ranks.Spent++
				if q := h.Req.FlowState; q != nil && q != p && q.HoldsAndWaits && against.Has(h.Mode) {
					visit(q)
				}
			}
			for _, q := range p.NS().HoldsAndWaitsBelow(n, against) {
				st.Ranks.Spent++
				if q != p && q.Shows(n, against) {
					visit(q)
				}
			}
		}
	}
}

// lent is FlowState.lent, counted.
func (st *State) lent(p *FlowState) int32 {
	for _, l := range p.Leases {
		st.Ranks.Spent += len(l.Needs())
	}
	return p.Lent()
}

// replace moves the waits of a flow with changed ranks to their new places.
func (st *State) replace(p *FlowState) {
	var moved []*Request
	passes := false // some waiters may stand in another order
	for _, w := range p.Waits {
		old := w.Wait.Score
		if w.SetScore(); w.Wait.Score == old {
			continue
		}
		for i := range w.Wait.Entries() {
			st.Ranks.Spent += 2
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
		st.Relieved(p, r)
		st.Changed(r) // it may stand behind others now
		if m := r.Barrier(); m != nil {
			st.ReadyClass(m.Node.Parties()) // and belong to another generation
		}
		st.WatchAnywhere(r)
	}
	if passes {
		st.Suspect(p, nil)
	}
}
