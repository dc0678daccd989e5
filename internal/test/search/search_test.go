package search

import "testing"

// The rounds of a night continue where the long form ends, without gaps.
func TestSeeds(t *testing.T) {
	long := uint64(1000)
	if testing.Short() {
		long = 8
	}
	for round, want := range map[string][2]uint64{"": {1, 1 + long}, "1": {1001, 2001}, "2": {2001, 3001}} {
		t.Setenv(Variable, round)
		from, to := Seeds(t, 1, 8, 1000)
		if got := [2]uint64{from, to}; got != want {
			t.Errorf("round %q: seeds %v, want %v", round, got, want)
		}
	}
	for round, want := range map[string][2]uint64{"1": {1001, 51_001}, "2": {51_001, 101_001}} {
		t.Setenv(Variable, round)
		from, to := SeedsOfNight(t, 1, 8, 1000, 50_000)
		if got := [2]uint64{from, to}; got != want {
			t.Errorf("round %q of its own size: seeds %v, want %v", round, got, want)
		}
	}
}
