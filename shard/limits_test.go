package shard

import "testing"

// TestLimitRows carries out every row of BenchmarkLimits once. A row with refused commands measures
// nothing.
func TestLimitRows(t *testing.T) {
	if testing.Short() {
		t.Skip("needs as much as the limits allow: the test without -short fills them")
	}
	for _, row := range limitRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, clock := row.open(t)
			defer s.Close(background)
			n := newNeighbour(t, s)
			n.clock = clock
			row.setUp(n)
			if row.prepare != nil {
				row.prepare(n)
			}
			row.again(n)
			n.rest()
		})
	}
}
