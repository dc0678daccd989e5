package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is a target and the known fate of its submissions: what conflicts, and which trees pass.
type world struct {
	// conflicts reports whether id cannot be merged onto a tree; the tree is the list of all that it holds.
	conflicts func(tree []ID, id ID) bool
	// fails reports whether the checks of a tree fail.
	fails func(tree []ID) bool
	// flake reports whether this run of a check fails although its tree is good.
	flake func(tree []ID) bool
}

// serial is the naive model: one submission at a time, onto the head.
func (w world) serial(queue []ID) (landed []ID, back map[ID]Reason) {
	back = map[ID]Reason{}
	for _, id := range queue {
		switch tree := append(slices.Clone(landed), id); {
		case w.conflicts != nil && w.conflicts(landed, id):
			back[id] = Conflicts
		case w.fails != nil && w.fails(tree):
			back[id] = FailsCheck
		default:
			landed = tree
		}
	}
	return landed, back
}

// rig drives a train through a world, with a simulated clock. A check takes one minute.
type rig struct {
	t      testing.TB
	train  *Train
	world  world
	random *rand.Rand // nil: checks take exactly one minute
	landed []ID
	back   map[ID]Reason
	good   map[string]bool // trees that passed a check
	ends   []ending
	clock  float64
	merges int
	// mayLand is called before each landing that is settled.
	mayLand func(o Outcome)
}

// ending is a check that runs, with its end and all that its tree holds.
type ending struct {
	Check
	at   float64
	tree []ID
}

func newRig(t testing.TB, c Config, w world, queue []Submission) *rig {
	r := &rig{t: t, train: New(c), world: w, back: map[ID]Reason{}, good: map[string]bool{}}
	for _, s := range queue {
		r.train.Add(s)
	}
	return r
}

func ids(n int) (queue []Submission, list []ID) {
	for i := range n {
		id := ID(fmt.Sprintf("s%03d", i))
		queue = append(queue, Submission{ID: id, Place: uint64(i)})
		list = append(list, id)
	}
	return queue, list
}

func key(tree []ID) string { return fmt.Sprint(tree) }

// step carries out plans until nothing more can be done at this moment.
func (r *rig) step() {
	for range 100_000 {
		p := r.train.Plan()
		if len(p.Settle) == 0 && len(p.Start) == 0 && len(p.Cancel) == 0 {
			return
		}
		for _, o := range p.Settle {
			r.settle(o, p)
		}
		for _, number := range p.Cancel {
			r.train.Cancel(number)
			r.ends = slices.DeleteFunc(r.ends, func(e ending) bool { return e.Number == number })
		}
		if !r.merge(p.Start) {
			continue // a conflict was found: plan again
		}
		for _, c := range p.Start {
			r.train.Start(c)
			took := 1.0
			if r.random != nil {
				took = 0.5 + r.random.Float64()
			}
			tree := append(slices.Clone(r.landed), c.Chain...)
			r.ends = append(r.ends, ending{Check: c, at: r.clock + took, tree: tree})
		}
		if len(r.ends) > r.train.config.Runners {
			r.t.Fatalf("%d checks run on %d runners", len(r.ends), r.train.config.Runners)
		}
	}
	r.t.Fatalf("the plan never ends; %d wait", len(r.train.Waiting()))
}

// merge makes the trees of the chains, and reports the first conflict to the train.
func (r *rig) merge(checks []Check) bool {
	for _, c := range checks {
		for i, id := range c.Chain {
			r.merges++
			if r.world.conflicts != nil && r.world.conflicts(append(slices.Clone(r.landed), c.Chain[:i]...), id) {
				r.train.Conflict(c.Chain[:i], id)
				return false
			}
		}
	}
	return true
}

func (r *rig) settle(o Outcome, p Plan) {
	switch o.Reason {
	case Landed:
		if r.mayLand != nil {
			r.mayLand(o)
		}
		r.landed = append(r.landed, o.ID)
		tip := func() bool {
			at := slices.Index(p.Settle, o)
			return !slices.ContainsFunc(p.Settle[at+1:], func(o Outcome) bool { return o.Reason == Landed })
		}
		if !o.Apart && tip() && !r.good[key(r.landed)] {
			r.t.Errorf("%v landed and was never checked", r.landed)
		}
	default:
		r.back[o.ID] = o.Reason
	}
	r.train.Settle(o)
}

// run drives the train until the queue is empty, and returns the minutes that it took.
func (r *rig) run() float64 {
	r.step()
	for len(r.train.Waiting()) > 0 {
		if len(r.ends) == 0 {
			r.t.Fatalf("nothing runs, and %d wait", len(r.train.Waiting()))
		}
		r.finish()
	}
	return r.clock
}

// finish ends the checks that end next.
func (r *rig) finish() {
	next := slices.MinFunc(r.ends, func(a, b ending) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	}).at
	r.clock = next
	var done []ending
	r.ends = slices.DeleteFunc(r.ends, func(e ending) bool {
		if e.at == next {
			done = append(done, e)
		}
		return e.at == next
	})
	for _, e := range done {
		passed := r.world.fails == nil || !r.world.fails(e.tree)
		if passed && r.world.flake != nil && r.world.flake(e.tree) {
			passed = false
		}
		if passed {
			r.good[key(e.tree)] = true
		}
		r.train.Verdict(e.Number, passed)
		r.train.Verdict(e.Number, !passed) // a signal that arrives twice changes nothing
	}
	r.step()
}

func (r *rig) compare(queue []ID) {
	r.t.Helper()
	landed, back := r.world.serial(queue)
	if !slices.Equal(landed, r.landed) {
		r.t.Errorf("landed %v, want %v", r.landed, landed)
	}
	if fmt.Sprint(back) != fmt.Sprint(r.back) {
		r.t.Errorf("returned %v, want %v", r.back, back)
	}
	if len(r.train.running) != 0 && r.train.Plan().Start != nil {
		r.t.Errorf("an empty queue starts checks")
	}
}
