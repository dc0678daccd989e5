package engine_test

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// outOfOrder names the refusal of a request that breaks the ascending order of
// keys, where the namespace demands it: a flow may ask for a new key only if it
// comes after all that the flow holds or waits for.
func (m *model) outOfOrder(r *request) interlock.Code {
	if !m.settings[r.ns].StrictOrder {
		return ""
	}
	var last interlock.Key
	has := map[interlock.Key]bool{}
	for _, q := range m.requests {
		if q.party() != r.party() || !q.holds() && q.phase != waiting {
			continue
		}
		for _, c := range q.claims {
			last = max(last, c.Key)
			has[c.Key] = has[c.Key] || q.holds()
		}
	}
	if slices.ContainsFunc(r.claims, func(c interlock.Claim) bool { return !has[c.Key] && c.Key <= last }) {
		return interlock.CodeKeyOrder
	}
	return ""
}
