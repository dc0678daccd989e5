package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/interlockdev/interlock/engine"
)

// Options are the settings of a run that are not of its seed. The zero value is right.
type Options struct {
	Commands int       // that the run has at least carried out; 0: 4,400
	Story    io.Writer // what happened, in words; nil: not written
	First    bool      // RunMany begins no further run after one that fails
}

const defaultCommands = 4_400

// world is one run.
type world struct {
	seed  uint64
	rng   *rand.Rand
	now   time.Duration // since the world began
	queue events
	order uint64 // of the events that were put into the queue

	plan    plan
	ledgers []*ledger // by shard
	hosts   []*host
	clients []*client
	agents  []*agent
	story   *story
	totals  Totals
	ids     uint64
	ticks   uint64 // looks at a stopwatch
	links   uint64

	calm   bool // no faults any more
	ending bool // the agents begin nothing new
	failed error
}

// epochStart is when the worlds begin, by a clock that is right.
const epochStart = engine.Time(1_900_000_000_000_000_000)

// plan is the random parameters of a whole run: how hard the world is.
type plan struct {
	disk        bool // the file journal on a simulated disk, else a journal in a simulated engine
	creates     bool // the engine can do no more than create what is not there
	shards      int
	hosts       int
	agents      int
	namespaces  int
	keys        int
	pace        time.Duration // between two actions of an agent, about
	latency     time.Duration // of the network, about
	drop        float64       // of messages
	duplicate   float64
	cut         float64 // of connections, for each message
	crash       time.Duration
	pause       time.Duration
	partition   time.Duration
	space       time.Duration // between two times in which the disk is full
	drift       float64       // clocks are fast or slow by up to this part
	boundary    float64       // the chance that a process dies at a boundary
	trouble     float64       // the chance that an append goes wrong
	snapshots   float64       // the chance that a snapshot goes wrong
	loss        time.Duration // between two times in which the engine loses what it has acknowledged
	snapshot    int64         // bytes between two snapshots
	keep        int64
	picture     int // events of a state that the owner takes a picture of
	tasks       bool
	tangled     bool // the agents wait for each other more than elsewhere
	credentials bool // the servers ask for credentials
	segment     int64
	turnCost    time.Duration
}

func (w *world) draw() plan {
	r := w.rng
	p := plan{
		disk: r.IntN(3) == 0, hosts: 1 + r.IntN(3), agents: 4 + r.IntN(20), namespaces: 1 + r.IntN(2), keys: 2 + r.IntN(6),
		pace:    pick[time.Duration](r, 20, 60, 150, 400) * time.Millisecond,
		latency: pick[time.Duration](r, 1, 5, 30) * time.Millisecond,
		drop:    pick(r, 0, 0.005, 0.03), duplicate: pick(r, 0, 0.01, 0.05), cut: pick(r, 0, 0.001, 0.005),
		crash: pick[time.Duration](r, 6, 12, 24) * time.Second, pause: pick[time.Duration](r, 0, 10, 30) * time.Second,
		partition: pick[time.Duration](r, 0, 15, 40) * time.Second,
		space:     pick[time.Duration](r, 0, 0, 20, 60) * time.Second, drift: pick(r, 0, 0.0005, 0.02),
		boundary: pick(r, 0, 0.0003, 0.001),
		snapshot: pick[int64](r, 16<<10, 64<<10, 200<<10, -1), keep: pick[int64](r, -1, 1<<30), tasks: r.IntN(2) == 0,
		turnCost: pick[time.Duration](r, 2, 20, 200) * time.Microsecond,
	}
	p.tangled, p.segment = r.IntN(4) == 0, pick[int64](r, 8<<10, 64<<10)
	p.picture = pick(r, 0, 50, -1)
	p.credentials = r.IntN(2) == 0
	p.shards, p.creates = pick(r, 1, 1, 2, 4), r.IntN(3) == 0
	p.trouble = pick(r, 0.002, 0.006, 0.02)
	p.snapshots = 0.5
	p.loss = pick[time.Duration](r, 0, 12, 40) * time.Second
	switch {
	case p.disk:
		p.hosts, p.shards, p.trouble, p.snapshots = min(p.hosts, 2), 1, p.boundary, 0.1
	case p.shards > 1:
		p.hosts, p.namespaces = 2+r.IntN(3), p.shards+r.IntN(3)
	}
	if p.creates {
		p.loss = 0 // a bucket keeps what it has
	}
	return p
}

// pick draws one of a few.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// about draws a duration between a half and three halves of d.
func (w *world) about(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d/2 + time.Duration(w.rng.Int64N(int64(d)))
}

// chance is true with probability p.
func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// id returns 128 bits that no other call returns.
func (w *world) id() (id [16]byte) {
	w.ids++
	for i := range 8 {
		id[i] = byte(w.rng.Uint32())
		id[8+i] = byte(w.ids >> (8 * (7 - i)))
	}
	return id
}

// after has do called when d has passed.
func (w *world) after(d time.Duration, do func()) {
	w.order++
	w.queue.push(event{at: w.now + max(d, 0), order: w.order, do: do})
}

// every has do called again and again, about each d, until the world is calm.
func (w *world) every(d time.Duration, do func()) {
	if d <= 0 {
		return
	}
	w.after(w.about(d), func() {
		if w.calm {
			return
		}
		do()
		w.every(d, do)
	})
}

// fail ends the run: rule is broken, and words are the evidence.
func (w *world) fail(rule, format string, args ...any) {
	if w.failed == nil {
		w.failed = &Violation{Seed: w.seed, Rule: rule, At: w.now, Words: fmt.Sprintf(format, args...)}
		w.story.tell("VIOLATION of %s: %s", rule, w.failed.(*Violation).Words)
		for _, l := range w.ledgers {
			l.audit.show(w.story)
		}
	}
}

// Violation is a rule that was broken.
type Violation struct {
	Seed  uint64
	Rule  string        // I1 to I20, rights, or liveness
	At    time.Duration // since the world began
	Words string        // the evidence
}

func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d at %v: %s: %s", v.Seed, v.At, v.Rule, v.Words)
}

// runUntil lets time pass until the condition holds, at most for d. It reports whether it did.
func (w *world) runUntil(d time.Duration, holds func() bool) bool {
	end := w.now + d
	for w.failed == nil {
		if holds() {
			return true
		}
		e, ok := w.queue.pop(end)
		if !ok {
			w.now = end
			return holds()
		}
		w.now = e.at
		e.do()
	}
	return false
}

// event is something that will happen.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

func (a event) before(b event) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// events is a heap: the earliest first, and of those of one moment the one that was put
// in first.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

// pop returns the earliest event unless it is after end.
func (h *events) pop(end time.Duration) (event, bool) {
	s := *h
	if len(s) == 0 || s[0].at > end {
		return event{}, false
	}
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], event{}
	s = s[:n]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(s[i]) {
			break
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
	return top, true
}
