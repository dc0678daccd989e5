package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// simWorld is a store and some servers. One goroutine runs it in steps of a few milliseconds, and all
// chance comes from its seed.
type simWorld struct {
	r       *rand.Rand
	now     time.Duration
	store   *simStore
	servers []*simServer
	log     []string
	failed  string // the first broken invariant

	mixed    bool            // servers of several versions
	weighted bool            // servers of several weights
	gap      time.Duration   // between two disturbances, on the average
	members  []Member        // the living ones
	epoch    int             // the number of disturbances so far, and of changes of the members
	unowned  []time.Duration // by shard: since when
	given    []simGiven      // by shard
	tally    simTally
}

// simTally counts what happened in a run.
type simTally struct {
	Disturbances, Moves, Gives, Allowed int
	Longest                             time.Duration // without an owner
}

const simStep = 20 * time.Millisecond

// newSimStage has no servers.
func newSimStage(seed uint64) *simWorld {
	w := &simWorld{r: rand.New(rand.NewPCG(seed, 3))}
	shards := 1 + w.r.IntN(64)
	w.store = newSimStore(shards)
	w.unowned = make([]time.Duration, shards)
	w.given = make([]simGiven, shards)
	return w
}

// newSimWorld has servers that start one after the other.
func newSimWorld(seed uint64) *simWorld {
	w := newSimStage(seed)
	w.mixed, w.weighted = w.r.IntN(3) == 0, w.r.IntN(3) == 0
	w.gap = w.between(2*time.Second, 20*time.Second)
	for range 1 + w.r.IntN(9) {
		w.join(w.between(simStep, 10*time.Second))
	}
	return w
}

// join adds a server that starts at a time.
func (w *simWorld) join(at time.Duration) {
	v := &simServer{w: w, number: len(w.servers), weight: 1, reads: 1, restart: at}
	if w.weighted {
		v.weight = uint32(1 + w.r.IntN(4))
	}
	if w.mixed {
		v.reads = uint32(1 + w.r.IntN(3))
	}
	w.servers = append(w.servers, v)
	w.store.members = append(w.store.members, simMember{})
}

// run disturbs the servers for a time, then lets them come to rest.
func (w *simWorld) run(disturbed time.Duration) {
	for next := w.between(0, 2*w.gap); w.now < disturbed && w.failed == ""; {
		w.tick()
		if w.now >= next {
			next = w.now + w.between(0, 2*w.gap)
			w.disturb()
		}
	}
	w.heal()
	w.settle()
	if w.failed == "" {
		w.checkRest()
	}
}

// settle lets the servers come to rest.
func (w *simWorld) settle() {
	// A server rests for 30 s, is distrusted for a minute, and loses a shard each 5 s.
	limit := w.now + rest + distrust + time.Duration(len(w.store.seats)+2)*(givePause+time.Second)
	for quiet := w.now; w.failed == "" && w.now < quiet+15*time.Second; {
		moves := w.tally.Moves + w.tally.Gives
		w.tick()
		if w.now > limit {
			w.fail("the shards do not come to rest")
		}
		if moves != w.tally.Moves+w.tally.Gives || !w.even() {
			quiet = w.now
		}
	}
}

func (w *simWorld) tick() {
	w.now += simStep
	w.store.now = w.now
	for _, v := range w.servers {
		v.recover()
	}
	if m := w.store.readMembers(); !slices.Equal(m, w.members) {
		w.members = m
		w.epoch++
	}
	first := w.r.IntN(len(w.servers))
	for i := range w.servers {
		w.servers[(first+i)%len(w.servers)].tick()
	}
	w.checkOwners()
}

// disturb does something to one server.
func (w *simWorld) disturb() {
	v := w.servers[w.r.IntN(len(w.servers))]
	long := w.between(200*time.Millisecond, 15*time.Second)
	if !v.up {
		return
	}
	switch w.r.IntN(10) {
	case 0, 1:
		w.leaves(v)
		v.up = false
		if w.r.IntN(4) > 0 {
			v.restart = w.now + long
		}
		if w.mixed && w.r.IntN(2) == 0 {
			v.reads++
		}
		w.note("%s crashes", v.id)
	case 2, 3:
		w.epoch++
		v.paused = w.now + long
		w.note("%s stands still until %v", v.id, v.paused)
	case 4, 5:
		w.epoch++
		v.cut = w.now + long
		w.note("%s is cut off until %v", v.id, v.cut)
	case 6, 7:
		w.leaves(v)
		v.draining, v.leaveAt = true, w.now+time.Minute
		if w.r.IntN(4) > 0 {
			v.restart = w.now + 2*long
		}
		w.note("%s drains", v.id)
	case 8:
		w.epoch++
		v.unwilling = w.now + 4*long
		w.note("%s takes no seat until %v", v.id, v.unwilling)
	case 9:
		if len(w.servers) < 9 {
			w.join(w.now + simStep)
		}
	}
}

// heal ends all disturbances.
func (w *simWorld) heal() {
	w.note("all disturbances end")
	for _, v := range w.servers {
		v.paused, v.cut, v.unwilling = min(v.paused, w.now), min(v.cut, w.now), min(v.unwilling, w.now)
		v.restart, v.leaveAt = min(v.restart, w.now), w.now
	}
	w.epoch++
}

func (w *simWorld) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf("%.3f s: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
		w.note("FAILED: %s", w.failed)
	}
}
