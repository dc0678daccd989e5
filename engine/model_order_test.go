package engine_test

import (
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// outOfOrder names the refusal of a request that breaks the ascending order of
// keys, where the namespace demands it: segment by segment, a flow may ask for a new key only if it
// comes after all that the flow holds or waits for.
func (m *model) outOfOrder(r *request) interlock.Code {
	if !m.settings[r.ns].StrictOrder {
		return ""
	}
	var last []string // by its segments
	has := map[interlock.Key]bool{}
	for _, q := range m.requests {
		if q.party() != r.party() || !q.holds() && q.phase != waiting {
			continue
		}
		for _, c := range q.claims {
			if path := segments(c.Key); slices.Compare(path, last) > 0 {
				last = path
			}
			has[c.Key] = has[c.Key] || q.holds()
		}
	}
	if slices.ContainsFunc(
		r.claims, func(c interlock.Claim) bool { return !has[c.Key] && slices.Compare(segments(c.Key), last) <= 0 },
	) {
		return interlock.CodeKeyOrder
	}
	return ""
}

func segments(key interlock.Key) []string { return strings.Split(string(key), "/") }
