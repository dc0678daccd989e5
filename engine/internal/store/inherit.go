package store

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
