package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/internal/simdisk"
)

// Totals are the sizes of one run, or of many.
type Totals struct {
	Seeds      int
	Commands   int // that reached a server
	Answers    int // that reached a client
	Retries    int
	GivenUp    int // operations with an outcome that their client never learned
	Entries    int // of the journal
	Recoveries int // times that a server took the shard over
	Snapshots  int
	Unknown    int // appends with an unknown outcome
	Compared   int // times that a live engine was compared with a replay
	Simulated  time.Duration
	Faults     map[string]int
}

func (t *Totals) fault(kind string) {
	if t.Faults == nil {
		t.Faults = map[string]int{}
	}
	t.Faults[kind]++
}

// Add adds the totals of another run.
func (t *Totals) Add(o Totals) {
	t.Seeds += o.Seeds
	t.Commands += o.Commands
	t.Answers += o.Answers
	t.Retries += o.Retries
	t.GivenUp += o.GivenUp
	t.Entries += o.Entries
	t.Recoveries += o.Recoveries
	t.Snapshots += o.Snapshots
	t.Unknown += o.Unknown
	t.Compared += o.Compared
	t.Simulated += o.Simulated
	for kind, n := range o.Faults {
		if t.Faults == nil {
			t.Faults = map[string]int{}
		}
		t.Faults[kind] += n
	}
}

// Result is the result of one run.
type Result struct {
	Totals
	Hash uint64 // equal for two runs of one seed
	Err  error  // a *Violation, or nil
}

// Run is the run of a seed.
func Run(seed uint64, o Options) Result {
	if o.Commands == 0 {
		o.Commands = defaultCommands
	}
	w := &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x1e71))}
	w.story = &story{w: w, out: o.Story}
	w.plan = w.draw()
	w.story.tell("seed %d: %+v", seed, w.plan)
	for i := range w.plan.shards {
		l := &ledger{w: w, number: i, audit: newAudit(w)}
		if w.plan.disk {
			l.store = &disk{w: w, disk: simdisk.New()}
		} else {
			l.store = newRental(w, l)
		}
		w.ledgers = append(w.ledgers, l)
	}
	for i := range w.plan.hosts {
		w.hosts = append(w.hosts, newHost(w, i+1))
	}
	for i := range w.ledgers {
		w.hosts[i%len(w.hosts)].owners[i].start()
	}
	for i := range w.plan.agents {
		w.agents = append(w.agents, newAgent(w, i+1))
		w.clients = append(w.clients, w.agents[i].client)
	}
	w.prepare()
	w.trouble()
	for _, a := range w.agents {
		a.live()
	}
	w.runUntil(4*time.Hour, func() bool { return w.totals.Commands >= o.Commands })
	w.recover()
	w.totals.Seeds = 1
	w.totals.Simulated = w.now
	for _, l := range w.ledgers {
		w.story.mix(uint64(w.now), uint64(l.audit.tail()), uint64(w.totals.Commands))
	}
	return Result{Totals: w.totals, Hash: w.story.hash, Err: w.failed}
}

// tenant names the namespaces. Each name begins with those before it, so that a comparison
// of beginnings shows.
func tenant(i int) interlock.Namespace { return interlock.Namespace("space" + strings.Repeat("-2", i)) }

// prepare has an operator set up each namespace.
func (w *world) prepare() {
	w.calm = true
	for i := range w.plan.namespaces {
		c := &client{w: w, name: "operator", namespace: tenant(i), rng: w.rng.IntN}
		w.clients = append(w.clients, c)
		for _, build := range w.settings() {
			o := c.send("set up", build, func(eff *engine.Effect, _ interlock.At) {
				if eff.Outcome != engine.Done {
					w.fail(
						"set up", "%s of %s is refused: %s %s", fmt.Sprintf("%T", build()), c.namespace, eff.Code,
						prose.Sentence(eff.Message),
					)
				}
			})
			w.runUntil(time.Minute, func() bool { return o.answered })
		}
	}
	w.calm = false
}

// trouble begins the faults that come by the clock.
func (w *world) trouble() {
	p := w.plan
	some := func() *host { return w.hosts[w.rng.IntN(len(w.hosts))] }
	w.every(p.crash, func() {
		h := some()
		o := h.owners[w.rng.IntN(len(w.ledgers))]
		switch {
		case o.shard == nil:
			o.start() // another owner, perhaps beside one that lives
			w.totals.fault("takeover")
		case w.chance(0.2):
			h.stop()
		case len(w.ledgers) > 1 && w.chance(0.3):
			o.leave()
		default:
			w.totals.fault("crash")
			h.die("crashes", w.chance(0.5))
		}
	})
	w.every(p.crash/2, func() {
		for i, l := range w.ledgers {
			if l.served() == nil || len(w.hosts) > 1 && w.chance(0.2) {
				some().owners[i].start()
			}
		}
	})
	for _, l := range w.ledgers {
		if r, ok := l.store.(*rental); ok {
			w.every(p.loss/10, r.mark)
			w.every(p.loss, r.goBack)
		}
	}
	w.every(p.pause, func() { some().freeze(w.about(pick(w.rng, 200*time.Millisecond, 3*time.Second, 20*time.Second))) })
	w.every(p.partition, func() {
		h := some()
		if !p.disk && w.chance(0.5) {
			w.totals.fault("cut off from the engine")
			h.deaf = true
			w.after(w.about(3*time.Second), func() { h.deaf = false })
			return
		}
		w.totals.fault("partition")
		h.cut = true
		w.after(w.about(3*time.Second), func() { h.cut = false })
	})
	w.every(p.space, func() {
		w.totals.fault("disk full")
		l := w.ledgers[w.rng.IntN(len(w.ledgers))]
		l.store.full(true)
		w.after(w.about(3*time.Second), func() { l.store.full(false) })
	})
	w.every(6*time.Second, w.compare)
}

// compare compares every live engine with a replay.
func (w *world) compare() {
	for _, h := range w.hosts {
		for _, o := range h.owners {
			o.l.audit.compare(o)
		}
	}
}

// recover ends all faults and the agents' work, and checks that everything comes to an end.
func (w *world) recover() {
	if w.failed != nil {
		return
	}
	w.story.tell("no faults from here on, and no new work")
	w.calm, w.ending = true, true
	for _, l := range w.ledgers {
		l.store.full(false)
		l.store.settle()
	}
	for _, h := range w.hosts {
		h.cut, h.deaf = false, false
	}
	w.after(25*time.Second, func() {
		for i, l := range w.ledgers {
			for _, h := range w.hosts {
				if !l.owned() {
					h.owners[i].start()
				}
			}
		}
	})
	w.after(time.Minute, func() {
		for _, l := range w.ledgers {
			if o := l.served(); o != nil && o.shard.Parked() {
				w.fail("liveness", "a minute after the last fault, shard %d still waits for room", l.number)
			}
		}
	})
	for _, a := range w.agents {
		a.client.patient()
	}
	for _, l := range w.ledgers {
		quiet := func() bool { return l.served() != nil && l.audit.left0() == nil }
		if !w.runUntil(bound, quiet) && w.failed == nil {
			words := "no server serves"
			if r := l.audit.left0(); r != nil && l.served() != nil {
				words = fmt.Sprintf("%v is still there (since %v)", r, l.audit.time.Sub(r.since))
			}
			w.fail("liveness", "%v after the last fault, in shard %d %s", bound, l.number, words)
		}
	}
	w.runUntil(30*time.Second, func() bool { return false })
	w.compare()
}

// left0 returns a request that still waits or holds, or nil.
func (a *audit) left0() *request {
	for _, name := range slices.Sorted(maps.Keys(a.spaces)) {
		s := a.spaces[name]
		for _, list := range [][]*request{s.waiting, s.holding} {
			for _, r := range list {
				if !r.task || r.phase != held {
					return r
				}
			}
		}
	}
	return nil
}

// patient makes a client try again for as long as it takes.
func (c *client) patient() {
	for _, o := range c.open {
		o.patience = 1 << 20
	}
}

// String prints the totals for people.
func (t Totals) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "%d seeds, %d commands, %d answers, %.1f simulated hours\n", t.Seeds, t.Commands, t.Answers, t.Simulated.Hours(),
	)
	fmt.Fprintf(
		&b, "%d recoveries, %d journal entries, %d snapshots, %d comparisons with a replay\n", t.Recoveries, t.Entries,
		t.Snapshots, t.Compared,
	)
	fmt.Fprintf(
		&b, "%d commands sent again, %d given up, %d appends of unknown outcome\n", t.Retries, t.GivenUp, t.Unknown,
	)
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(&b, "%8d  %s\n", t.Faults[kind], kind)
	}
	return b.String()
}
