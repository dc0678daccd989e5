package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// share is a mix of submissions: textual conflicts with the head, and those that are bad on the merged tree.
type share struct{ conflicts, bad float64 }

// result is one run of the model: landings an hour if a check takes a minute, and checks for each landing.
type result struct{ landings, checks float64 }

// model lets 1,000 waiting submissions through, and returns the mean of some runs.
func model(t testing.TB, c Config, s share) result {
	const waiting, runs = 1000, 4
	var sum result
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 3))
		queue, list := ids(waiting)
		bad, conflict := map[ID]bool{}, map[ID]bool{}
		for _, id := range list {
			conflict[id] = random.Float64() < s.conflicts
			bad[id] = random.Float64() < s.bad
		}
		w := world{
			conflicts: func(_ []ID, id ID) bool { return conflict[id] },
			fails:     func(tree []ID) bool { return slices.ContainsFunc(tree, func(id ID) bool { return bad[id] }) },
		}
		r := newRig(t, c, w, queue)
		minutes := r.run()
		for _, id := range r.landed {
			if bad[id] || conflict[id] {
				t.Fatalf("%s landed", id)
			}
		}
		sum.landings += float64(len(r.landed)) / minutes * 60 / runs
		sum.checks += float64(r.train.Stats().Checks) / float64(len(r.landed)) / runs
	}
	return sum
}

// The queues of the table, with 8 runners where there are several.
var queues = []struct {
	name   string
	config Config
}{
	{"serial", Config{MaxBatch: 1}},
	{"one batch of 8", Config{FirstBatch: 8, MaxBatch: 8}},
	{"train of single ones", Config{Runners: 8, MaxBatch: 1}},
	{"train", Config{Runners: 8}},
}

// With 8 runners and 2 % bad submissions a train lands ten times what a serial queue lands.
func TestTrainBeatsSerial(t *testing.T) {
	shares := []share{{0.05, 0.02}, {0.05, 0.05}, {0.10, 0.10}, {0.05, 0.20}}
	if testing.Short() {
		shares = shares[:1]
	}
	for _, s := range shares {
		line := fmt.Sprintf("conflicts %2.0f %%, bad %2.0f %%:", 100*s.conflicts, 100*s.bad)
		var results []result
		for _, q := range queues {
			got := model(t, q.config, s)
			results = append(results, got)
			line += fmt.Sprintf("  %s %.0f (%.1f)", q.name, got.landings, got.checks)
		}
		t.Log(line)
		serial, train := results[0], results[3]
		if s.bad == 0.02 && train.landings < 10*serial.landings {
			t.Errorf("bad 2 %%: %.0f landings an hour, a serial queue %.0f", train.landings, serial.landings)
		}
		// Where one submission in five is bad, batches cost up to a fifth.
		for i, r := range results[:3] {
			if train.landings < 0.8*r.landings {
				t.Errorf("bad %.0f %%: %.0f landings an hour, and with %s %.0f",
					100*s.bad, train.landings, queues[i].name, r.landings)
			}
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	queue, _ := ids(1000)
	r := newRig(b, Config{Runners: 8, FirstBatch: 32}, world{}, queue)
	r.step()
	for b.Loop() {
		r.train.Plan()
	}
}
