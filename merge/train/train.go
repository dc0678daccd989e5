package train

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// ID names one submission with one content. A submission that comes back with another content has another ID, so
// that no verdict of the old content counts for it.
type ID string

// Submission is a change that waits to land.
type Submission struct {
	ID ID
	// Place orders the queue, lowest first. A submission that was returned and comes back keeps its place. Ahead is set
	// for one that has taken the place of another one and stands before it: of several the lowest first. Equal ones keep
	// the order in which they were added.
	Place, Ahead uint64
	// After is a submission that this one builds on. It is in no chain without that one, until that one has landed. If
	// that one leaves the queue otherwise, this one waits until it is withdrawn.
	After ID
	// Impacts names what the change can affect, such as packages or build targets. It is read only if
	// Config.Lanes is set. No impacts mean that everything can be affected.
	Impacts []string
}

// Config sets the limits of a train. The zero value of each field means its default.
type Config struct {
	// Runners is how many checks run at a time (default 1).
	Runners int
	// FirstBatch is the batch size at the beginning (default 4).
	FirstBatch int
	// MaxBatch bounds the batch size (default 32). With 1 no batch is ever formed.
	MaxBatch int
	// Repeats is how often a failed tree is checked again before its submission is blamed (default 1; negative
	// means never, so that one flaky check sends an innocent submission back).
	Repeats int
	// Lanes lets submissions with disjoint impacts be checked beside each other. They then land without having
	// been checked together, which is the one exception to "the tree that was checked lands": see Outcome.Apart.
	Lanes bool
	// WholeEvery is how many landings that were not checked together may follow each other before the whole
	// head is checked (default 16). It is read only if Lanes is set.
	WholeEvery int
	// BlamesInRow is how many submissions may go back because of their checks with no check passing in between,
	// before the head itself is checked (default 3). So a broken machine does not empty the queue.
	BlamesInRow int
}

func (c Config) normal() Config {
	c.Runners = max(1, c.Runners)
	c.MaxBatch = cmp.Or(max(0, c.MaxBatch), 32)
	c.FirstBatch = min(cmp.Or(max(0, c.FirstBatch), 4), c.MaxBatch)
	c.WholeEvery = cmp.Or(max(0, c.WholeEvery), 16)
	c.BlamesInRow = cmp.Or(max(0, c.BlamesInRow), 3)
	switch {
	case c.Repeats == 0:
		c.Repeats = 1
	case c.Repeats < 0:
		c.Repeats = 0
	}
	return c
}

// Check is one run of the checks on the tree of a chain.
type Check struct {
	// Number identifies the run in Start, Cancel and Verdict. It is never used twice.
	Number uint64
	// Chain lists the submissions on top of the head at the time of the plan. It is empty for a check of the
	// whole head.
	Chain []ID
	// Repeat is set if this tree has failed before: another runner should take it.
	Repeat bool
	// batch is set if the chain ends a batch, and clear if it is a prefix of a failed one.
	batch bool
}

// Reason is why a submission leaves the queue.
type Reason string

// The reasons of an Outcome.
const (
	Landed     Reason = "landed"   // It lands on the target.
	Conflicts  Reason = "conflict" // It conflicts with the head, as it is when its turn comes.
	FailsCheck Reason = "checks"   // Its tree failed its checks.
	Refused    Reason = "refused"  // Its tree passed, and was refused where it should land.
)

// Outcome is the end of a submission's wait.
type Outcome struct {
	ID     ID
	Reason Reason
	// Apart is set on a landing with another tree than the checked one: another lane has landed since.
	Apart bool
}

// Plan is what to do next. Settle comes first: a plan with outcomes has no checks.
type Plan struct {
	// Settle lists outcomes in the order in which they must be made durable.
	Settle []Outcome
	// Start lists checks to start, the most useful first.
	Start []Check
	// Cancel lists the numbers of running checks that are no longer useful.
	Cancel []uint64
}

// Stats counts what happened since New.
type Stats struct {
	Landed, Conflicts, Failed int
	// Checks is how many verdicts arrived, late ones included.
	Checks int
	// Flaky is how many trees failed and then passed. Cleared is how many failed, and a longer chain passed.
	Flaky, Cleared int
	// Apart is how many landings were not checked together with the ones before them (lanes).
	Apart int
}

// Train is the state of one target's queue. Use New. It is not safe for concurrent use: one goroutine owns it.
type Train struct {
	config  Config
	order   []Submission
	after   map[ID]ID   // what submissions build on, as far as that has not landed
	held    map[ID]bool // by Hold
	facts   *node       // of the head; its descendants are chains
	running map[uint64]*run
	next    uint64
	size    int
	head    headCheck
	stats   Stats
}

// run is a check that was started.
type run struct {
	node  *node // the chain; nil for a check of the head, and once the chain cannot happen any more
	head  bool  // a check of the head
	apart bool  // another lane has landed since the start
	cover int   // of a check of the head: how many landings apart it covers
}

// New returns an empty train.
func New(c Config) *Train {
	c = c.normal()
	return &Train{
		config: c, after: map[ID]ID{}, facts: newNode(nil, ""), running: map[uint64]*run{}, next: 1, size: c.FirstBatch,
	}
}

// Add puts a submission into the queue. A second submission with the same ID is ignored.
func (t *Train) Add(s Submission) {
	if holds(t.order, s.ID) {
		return
	}
	at, _ := slices.BinarySearchFunc(t.order, s, func(o, s Submission) int {
		if ComparePlaces(o.Place, o.Ahead, s.Place, s.Ahead) <= 0 {
			return -1
		}
		return 1
	})
	t.order = slices.Insert(t.order, at, s)
	if s.After != "" {
		t.after[s.ID] = s.After
	}
}

// ComparePlaces orders two submissions by Place and Ahead.
func ComparePlaces(place, ahead, otherPlace, otherAhead uint64) int {
	return cmp.Or(cmp.Compare(place, otherPlace), cmp.Compare(ahead-1, otherAhead-1)) // 0 becomes the highest
}

// Hold sets which submissions must not land or go back now. While others wait, those alone are planned, in one lane;
// else the checks go on.
func (t *Train) Hold(held map[ID]bool) { t.held = held }

// Checking returns the submissions in chains that are being checked, or have passed and are held.
func (t *Train) Checking() map[ID]bool {
	ids := map[ID]bool{}
	t.facts.useful(ids)
	return ids
}

// Holds reports whether a submission is in the queue.
func (t *Train) Holds(id ID) bool { return holds(t.order, id) }

// Withdraw takes a submission out of the queue, with all that is known about chains with it. An unknown ID is
// ignored.
func (t *Train) Withdraw(id ID) { t.remove(id) }

// Conflict notes that id cannot be merged onto a chain: it conflicts textually. The chain lists submissions on top
// of the present head.
func (t *Train) Conflict(chain []ID, id ID) { t.facts.walk(chain).conflicts[id] = true }

// Refuse notes that the chain, which has passed, was refused where it should land, though another chain could land. It
// is cut like one that failed. A chain of one submission is not tried again.
func (t *Train) Refuse(chain []ID) { t.facts.walk(chain).refused = true }

// Start notes that a check of a plan has been started.
func (t *Train) Start(c Check) {
	t.next = max(t.next, c.Number+1)
	if len(c.Chain) == 0 {
		t.head.running++
		t.running[c.Number] = &run{head: true, cover: t.head.apart}
		return
	}
	n := t.facts.walk(c.Chain)
	n.batch = n.batch || c.batch
	n.running++
	t.running[c.Number] = &run{node: n}
}

// Cancel notes that a running check was ended without a verdict, for example because its runner died. The next
// plan starts it again if it is still useful.
func (t *Train) Cancel(number uint64) { t.end(number) }

// Verdict notes the end of a check. A number that is not running is ignored, so a verdict may arrive twice.
func (t *Train) Verdict(number uint64, passed bool) {
	r := t.end(number)
	if r == nil {
		return
	}
	t.stats.Checks++
	n := r.node
	switch {
	case r.head:
		t.headVerdict(r, passed)
	case n == nil:
	case passed:
		t.head.blames = 0
		n.apart = r.apart && (n.apart || n.passes == 0)
		n.passes++
		if n.passes == 1 && n.fails > 0 {
			t.stats.Flaky++
		}
	default:
		n.fails++
		if n.fails == 1 && n.passes > 0 {
			t.stats.Flaky++
		}
	}
}

// end takes a check from those that run, and returns nil if it is not among them.
func (t *Train) end(number uint64) *run {
	r := t.running[number]
	if r == nil {
		return nil
	}
	delete(t.running, number)
	if r.head {
		t.head.running--
	} else if r.node != nil {
		r.node.running--
	}
	return r
}

// Settle notes that an outcome of a plan is durable. Outcomes must be settled in the order of the plan. It panics
// if the submission does not wait, because the caller then has landed something that was not planned.
func (t *Train) Settle(o Outcome) {
	lane := t.laneOf(o.ID)
	if lane == nil {
		panic(fmt.Sprintf("train: settled %q, which does not wait", o.ID))
	}
	switch o.Reason {
	case Landed:
		t.land(o, lane)
	case FailsCheck, Refused:
		if o.Reason == FailsCheck {
			t.stats.Failed++
			t.head.blames++
		}
		t.size = max(1, t.size/2)
	case Conflicts:
		t.stats.Conflicts++
	}
	t.remove(o.ID)
}

// land moves the head by one submission. Facts about chains of the same lane that do not begin with it are void.
func (t *Train) land(o Outcome, lane []Submission) {
	t.stats.Landed++
	first := t.facts.walk([]ID{o.ID})
	if first.batch && first.passes > 0 {
		t.size = min(t.config.MaxBatch, t.size+1)
	}
	if first.fails > 0 && first.passes == 0 {
		t.stats.Cleared++
	}
	for _, r := range t.running {
		r.apart = r.apart || r.node != nil && !holds(lane, r.node.first())
	}
	t.facts = t.facts.advance(o.ID, lane)
	maps.DeleteFunc(t.after, func(_, base ID) bool { return base == o.ID })
	t.dropLost()
	switch {
	case o.Apart:
		t.stats.Apart++
		t.head.apart++
	case first.passes > 0: // this very tree has passed
		t.headPassed(t.head.apart)
		for _, r := range t.running {
			r.head = false
		}
		t.head.running = 0
	}
}

// remove takes a submission out of the queue, and the chains with it out of the facts.
func (t *Train) remove(id ID) {
	t.order = slices.DeleteFunc(t.order, func(s Submission) bool { return s.ID == id })
	delete(t.after, id)
	t.facts.prune(id)
	t.dropLost()
}

// dropLost marks the runs of chains that cannot happen any more.
func (t *Train) dropLost() {
	for _, r := range t.running {
		if r.node != nil && r.node.top() != t.facts {
			r.node = nil
		}
	}
}

// Waiting lists the queue in order.
func (t *Train) Waiting() []Submission { return slices.Clone(t.order) }

// BatchSize is the present size of a batch.
func (t *Train) BatchSize() int { return t.size }

// Stats returns the counts.
func (t *Train) Stats() Stats { return t.stats }
