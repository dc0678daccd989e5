package placement

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/search"
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
	from, to := search.Seeds(t, 1, 300, 1000)
	for first := from; first < to; first += part {
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

// TestOneChange makes one change at a time to servers at rest, and lets them come to rest again: exactly
// those shards move that have to.
func TestOneChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		w := newSimStage(seed)
		for range 1 + w.r.IntN(5) {
			w.join(simStep)
		}
		w.settle()
		for range 6 {
			w.change(func(most int) {
				if w.failed != "" || w.tally.Moves > most {
					t.Fatalf("seed %d: %d moves, want at most %d; %s", seed, w.tally.Moves, most, w.failed)
				}
			})
		}
	}
}

// change changes one thing and passes on how many moves that may cost.
func (w *simWorld) change(check func(most int)) {
	var up []*simServer
	for _, v := range w.servers {
		if v.up {
			up = append(up, v)
		}
	}
	v := up[w.r.IntN(len(up))]
	joins := (len(w.store.seats) + len(up)) / (len(up) + 1) // the share of one more, rounded up
	returns := (len(w.store.seats) + len(up) - 1) / len(up)
	most := 0
	kind := w.r.IntN(4)
	if len(up) == 1 {
		kind = 0
	}
	switch kind {
	case 0:
		w.join(w.now + simStep)
		most = joins
	case 1:
		most = v.holding()
		v.draining, v.leaveAt = true, w.now+time.Hour
	case 2:
		most = v.holding()
		v.up = false
	case 3:
		// All of its seats are free before it goes on.
		most = v.holding() + returns
		v.paused = w.now + seatTTL + 4*time.Second
		w.epoch++
	}
	w.epoch++
	w.tally.Moves = 0
	w.settle()
	w.epoch++
	check(most)
}

func (t *simTally) add(o simTally) {
	t.Disturbances += o.Disturbances
	t.Moves += o.Moves
	t.Gives += o.Gives
	t.Allowed += o.Allowed
	t.Longest = max(t.Longest, o.Longest)
}
