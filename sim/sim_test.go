package sim_test

import (
	"testing"

	"github.com/interlockdev/interlock/sim"
)

// TestWorlds runs the seeds that every change has to survive.
func TestWorlds(t *testing.T) {
	const seeds = 400
	totals, failed := sim.RunMany(1, func(next uint64) bool { return next <= seeds }, sim.Options{})
	t.Logf("\n%v", totals)
	for _, err := range failed {
		t.Errorf("%v; repeat it with: go run ./cmd/interlock-sim -seed N", err)
	}
	if totals.Commands < 2_000_000 || totals.Recoveries < 2_000 {
		t.Errorf("only %d commands and %d recoveries", totals.Commands, totals.Recoveries)
	}
}

func BenchmarkWorld(b *testing.B) {
	for i := range b.N {
		if r := sim.Run(uint64(i+1), sim.Options{}); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
