package placement

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var simSeed = flag.Uint64("sim.seed", 0, "run this one seed of TestSimulation and print it; 0 for all")

// TestSimulation runs servers with planners over a store of seats through crashes, pauses, cuts, drains
// and joins. The invariants are in sim_check_test.go.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		w := newSimWorld(*simSeed)
		w.run(time.Minute)
		t.Logf("\n%s\n%+v", strings.Join(w.log, "\n"), w.tally)
		if w.failed != "" {
			t.Error(w.failed)
		}
		return
	}
	const part = uint64(50)
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 300
	}
	for first := uint64(1); first <= seeds; first += part {
		last := first + part - 1
		t.Run(fmt.Sprintf("seeds %d to %d", first, last), func(t *testing.T) {
			t.Parallel()
			var sum simTally
			for seed := first; seed <= last; seed++ {
				w := newSimWorld(seed)
				w.run(time.Minute)
				if w.failed != "" {
					t.Fatalf("seed %d: %s\nprint it with: go test ./placement -run TestSimulation -v -sim.seed %d",
						seed, w.failed, seed)
				}
				sum.add(w.tally)
			}
			t.Logf("%+v", sum)
		})
	}
}

func (t *simTally) add(o simTally) {
	t.Disturbances += o.Disturbances
	t.Moves += o.Moves
	t.Gives += o.Gives
	t.Allowed += o.Allowed
	t.Longest = max(t.Longest, o.Longest)
}
