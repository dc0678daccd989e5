package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/internal/test/search"
)

// Every set of bad submissions among up to 8, with few and many runners and all sizes of batches: the train lands
// and returns what a queue does that checks one submission at a time.
func TestEveryFailurePattern(t *testing.T) {
	for n := 1; n <= 8; n++ {
		queue, list := ids(n)
		for _, runners := range []int{1, 2, 3, 8} {
			for _, batch := range []int{1, 2, 3, 4, 8} {
				for bad := range 1 << n {
					w := world{fails: func(tree []ID) bool {
						return slices.ContainsFunc(tree, func(id ID) bool { return bad>>slices.Index(list, id)&1 == 1 })
					}}
					r := newRig(t, Config{Runners: runners, FirstBatch: batch}, w, queue)
					r.run()
					r.compare(list)
					if t.Failed() {
						t.Fatalf("runners %d, batch %d, bad %b", runners, batch, bad)
					}
				}
			}
		}
	}
}

// Random worlds: submissions that are bad alone or only together with earlier ones, conflicts between pairs, checks
// that end in any order, submissions that arrive while others are checked.
func TestRandomWorlds(t *testing.T) {
	from, to := search.Seeds(t, 0, 1000, 3000)
	for seed := from; seed < to; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(40)
		queue, list := ids(n)
		var bad, pairs [][]ID
		pick := func() ID { return list[random.IntN(n)] }
		for range random.IntN(6) {
			bad = append(bad, [][]ID{{pick()}, {pick(), pick()}, {pick(), pick(), pick()}}[random.IntN(3)])
		}
		for range random.IntN(6) {
			pairs = append(pairs, []ID{pick(), pick()})
		}
		w := world{
			fails: func(tree []ID) bool {
				return slices.ContainsFunc(bad, func(set []ID) bool { return subset(set, tree) })
			},
			conflicts: func(tree []ID, id ID) bool {
				return slices.ContainsFunc(pairs, func(p []ID) bool {
					return p[1] == id && slices.Contains(tree, p[0])
				})
			},
		}
		early := random.IntN(n + 1)
		config := Config{Runners: 1 + random.IntN(10), FirstBatch: 1 + random.IntN(8), MaxBatch: 8}
		r := newRig(t, config, w, queue[:early])
		r.random = random
		r.step()
		for _, s := range queue[early:] {
			for len(r.ends) > 0 && random.IntN(3) == 0 {
				r.finish()
			}
			r.train.Add(s)
			r.step()
		}
		r.run()
		r.compare(list)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, config)
		}
	}
}

func subset(set, of []ID) bool {
	return !slices.ContainsFunc(set, func(id ID) bool { return !slices.Contains(of, id) })
}

// The same state has the same plan, and a plan that was carried out is empty.
func TestPlanIsAFunction(t *testing.T) {
	queue, _ := ids(40)
	r := newRig(t, Config{Runners: 8}, world{}, queue)
	a, b := r.train.Plan(), r.train.Plan()
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("two plans of one state:\n%v\n%v", a, b)
	}
	if want := "[s000 s001 s002 s003]"; len(a.Start) != 8 || fmt.Sprint(a.Start[0].Chain) != want {
		t.Errorf("%d checks, the first %v; want 8, the first %v", len(a.Start), a.Start[0].Chain, want)
	}
	r.step()
	if p := r.train.Plan(); len(p.Start)+len(p.Settle)+len(p.Cancel) != 0 {
		t.Errorf("the plan after its execution: %+v", p)
	}
}

// Each check fails the first time that a tree is tried, and passes afterwards: nothing goes back.
func TestFlakyChecksReturnNothing(t *testing.T) {
	for _, runners := range []int{1, 3, 8} {
		queue, list := ids(60)
		tried := map[string]bool{}
		w := world{flake: func(tree []ID) bool {
			first := !tried[key(tree)]
			tried[key(tree)] = true
			return first
		}}
		r := newRig(t, Config{Runners: runners}, w, queue)
		r.run()
		if !slices.Equal(r.landed, list) || len(r.back) != 0 {
			t.Errorf("%d runners: returned %v", runners, r.back)
		}
		if r.train.Stats().Flaky == 0 {
			t.Errorf("%d runners: flaky trees were not counted", runners)
		}
	}
}

// One bad submission goes back alone, while one check in ten is flaky.
func TestFlakyChecksReturnNoBystanders(t *testing.T) {
	returned, bystanders := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		queue, list := ids(30)
		bad := list[random.IntN(30)]
		w := world{
			fails: func(tree []ID) bool { return slices.Contains(tree, bad) },
			flake: func([]ID) bool { return random.IntN(10) == 0 },
		}
		r := newRig(t, Config{Runners: 8}, w, queue)
		r.run()
		for id := range r.back {
			if id == bad {
				returned++
			} else {
				bystanders++
			}
		}
	}
	if returned != 200 {
		t.Errorf("%d of 200 bad submissions went back", returned)
	}
	// A submission's own tree must fail twice: 1 % of the trees of one submission that are repeated at all.
	if bystanders > 10 {
		t.Errorf("%d bystanders of 5800 went back", bystanders)
	}
}

// The checks of one batch of 4 with a bad last submission, in order.
func TestLastSuspectIsNotRetested(t *testing.T) {
	queue, list := ids(4)
	w := world{fails: func(tree []ID) bool { return slices.Contains(tree, list[3]) }}
	r := newRig(t, Config{Runners: 4}, w, queue)
	r.run()
	r.compare(list)
	// The batch; then its prefixes of 1, 2 and 3, and its repetition; then nothing.
	if got := r.train.Stats().Checks; got != 5 || r.clock != 2 {
		t.Errorf("%d checks in %v minutes, want 5 in 2", got, r.clock)
	}
}

// A submission is repeated once before it goes back, and never without a repetition.
func TestRepetitionBeforeBlame(t *testing.T) {
	queue, list := ids(1)
	for repeats, want := range map[int]int{-1: 1, 0: 2, 1: 2, 3: 4} {
		r := newRig(t, Config{Repeats: repeats}, world{fails: func([]ID) bool { return true }}, queue)
		r.run()
		if got := r.train.Stats().Checks; got != want || r.back[list[0]] != FailsCheck {
			t.Errorf("repeats %d: %d checks, want %d; returned %v", repeats, got, want, r.back)
		}
	}
}

// A submission that conflicts with an earlier one waits for the earlier one's fate.
func TestConflictWaitsForTheEarlierOne(t *testing.T) {
	queue, list := ids(3)
	w := world{
		conflicts: func(tree []ID, id ID) bool { return id == list[1] && slices.Contains(tree, list[0]) },
		fails:     func(tree []ID) bool { return slices.Contains(tree, list[0]) },
	}
	r := newRig(t, Config{Runners: 2}, w, queue)
	r.run()
	r.compare(list)
	if !slices.Equal(r.landed, list[1:]) {
		t.Errorf("landed %v, want %v", r.landed, list[1:])
	}
}

// A returned submission that comes back with new content is again the first in line.
func TestPlaceIsKept(t *testing.T) {
	queue, list := ids(3)
	w := world{fails: func(tree []ID) bool { return slices.Contains(tree, list[0]) }}
	r := newRig(t, Config{FirstBatch: 1}, w, queue)
	r.step()
	for r.back[list[0]] == "" {
		r.finish()
	}
	r.train.Add(Submission{ID: "again", Place: 0})
	r.run()
	if want := []ID{"again", list[1], list[2]}; !slices.Equal(r.landed, want) {
		t.Errorf("landed %v, want %v", r.landed, want)
	}
}

func TestWithdraw(t *testing.T) {
	queue, list := ids(4)
	r := newRig(t, Config{Runners: 1}, world{}, queue)
	r.step()
	r.train.Withdraw(list[1])
	p := r.train.Plan()
	if len(p.Cancel) != 1 || len(p.Start) != 1 || len(p.Start[0].Chain) != 3 {
		t.Errorf("after a withdrawal: %+v", p)
	}
	r.run()
	if want := []ID{list[0], list[2], list[3]}; !slices.Equal(r.landed, want) {
		t.Errorf("landed %v, want %v", r.landed, want)
	}
}

// A broken machine fails every check: the queue stands still, and at most three submissions go back.
func TestBrokenHeadReturnsNothing(t *testing.T) {
	queue, list := ids(30)
	broken := true
	w := world{fails: func([]ID) bool { return broken }}
	r := newRig(t, Config{Runners: 4}, w, queue)
	r.step()
	for len(r.ends) > 0 {
		r.finish()
	}
	if !r.train.HeadFails() || len(r.back) > 3 {
		t.Fatalf("head fails: %v; %d went back, want at most 3", r.train.HeadFails(), len(r.back))
	}
	want := list[len(r.back):]
	broken = false
	r.train.Recheck()
	r.run()
	if !slices.Equal(r.landed, want) {
		t.Errorf("landed %v, want %v", r.landed, want)
	}
}

// A submission that repairs a broken head lands past those that fail because of it, and they land afterwards.
func TestRepairLandsFirst(t *testing.T) {
	queue, list := ids(8)
	repair := list[7]
	w := world{fails: func(tree []ID) bool { return !slices.Contains(tree, repair) }}
	r := newRig(t, Config{Runners: 4, FirstBatch: 1, MaxBatch: 1}, w, queue)
	r.run()
	if len(r.landed) < 5 || r.train.HeadFails() {
		t.Errorf("landed %v, returned %v, head fails: %v", r.landed, r.back, r.train.HeadFails())
	}
}

// The size grows with each batch that lands up to its limit, and is halved for each submission that is blamed.
func TestBatchSize(t *testing.T) {
	queue, list := ids(200)
	bad := list[150]
	w := world{fails: func(tree []ID) bool { return slices.Contains(tree, bad) }}
	r := newRig(t, Config{Runners: 1, FirstBatch: 2, MaxBatch: 9}, w, queue)
	r.mayLand = func(o Outcome) {
		if o.ID == list[149] && r.train.BatchSize() != 9 {
			t.Errorf("the size is %d, want 9", r.train.BatchSize())
		}
	}
	r.step()
	for r.back[bad] == "" {
		r.finish()
	}
	if got := r.train.BatchSize(); got != 4 {
		t.Errorf("after a failure the size is %d, want 4", got)
	}
}

// Equal places keep the order in which submissions came.
func TestEqualPlaces(t *testing.T) {
	train := New(Config{})
	for _, s := range []Submission{
		{ID: "a", Place: 2}, {ID: "b", Place: 1}, {ID: "c", Place: 2}, {ID: "d", Place: 1}, {ID: "a"},
	} {
		train.Add(s)
	}
	var got []ID
	for _, s := range train.Waiting() {
		got = append(got, s.ID)
	}
	if want := []ID{"b", "d", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
