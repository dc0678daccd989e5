package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simengine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// rental is the journal of a shard in a simulated engine of others. Any number of hosts may open it, and the last one
// counts.
//
// A call of a journal takes no time of the world, so that one goroutine is enough. What may happen meanwhile happens
// in the pauses between the attempts of its requests: late requests are carried out, and other hosts take over.
type rental struct {
	w      *world
	l      *ledger
	engine *simengine.Driver
	opened map[*owner]*remote.Journal

	script   []simengine.Fault // what becomes of the next writes
	blind    int               // how many of the next reads get no answer
	attempts int               // further ones, before a request is given up
	rival    bool              // another host takes over in the next pause
	pausing  bool

	back    func(known bool) (before, after interlock.Index) // to an older state; nil before there is one
	marked  int                                              // the tenure then
	lost    bool                                             // since then no owner has begun
	noticed bool                                             // by the owner that lived
}

func newRental(w *world, l *ledger) *rental {
	return &rental{w: w, l: l, engine: simengine.New(w.plan.creates), opened: map[*owner]*remote.Journal{}}
}

func (r *rental) open(o *owner) (journal.Journal, error) {
	if r.lost && !r.noticed {
		// The owner that could have noticed it did not in time. An engine that goes back when no owner lives has to
		// report it by itself, as drivers demand.
		r.engine.Moved()
	}
	if r.w.chance(0.1) && !r.w.calm {
		r.w.totals.fault("take-over without an answer")
		r.script = []simengine.Fault{pick(r.w.rng, simengine.None, lost, answered, late)}
		r.script = append(r.script, pick(r.w.rng, lost, answered, late))
		r.attempts = r.w.rng.IntN(3)
	}
	defer r.disarm()
	j, err := remote.NewOn(r.engine.Via(func(method string) simengine.Fault { return r.fate(o, method) }), time.Hour,
		remote.Surroundings{Pause: r.pause, Word: r.word, Every: r.every}).Open(context.Background())
	if err != nil {
		return nil, err
	}
	r.opened[o] = j
	return j, nil
}

func (r *rental) word() string {
	r.w.ids++
	return fmt.Sprint("word-", r.w.ids)
}

// every calls do at once, and then by the clock of the world.
func (r *rental) every(ctx context.Context, d time.Duration, do func()) <-chan struct{} {
	do()
	var again func()
	again = func() {
		if ctx.Err() == nil {
			do()
			r.w.after(d, again)
		}
	}
	r.w.after(d, again)
	done := make(chan struct{})
	close(done)
	return done
}

// fate decides what becomes of a request.
func (r *rental) fate(o *owner, method string) simengine.Fault {
	if o.h.deaf {
		r.attempts = 0
		return simengine.Lost
	}
	switch method {
	case "head", "frames", "get":
		if r.blind > 0 {
			r.blind--
			return simengine.Lost
		}
		return simengine.None
	}
	if len(r.script) == 0 || r.lost {
		return simengine.None
	}
	f := r.script[0]
	r.script = r.script[1:]
	if f == simengine.Late {
		r.w.after(r.w.about(pick(r.w.rng, 5*time.Millisecond, 500*time.Millisecond, 5*time.Second, 20*time.Second)), r.land)
	}
	return f
}

// land carries out a request that is late.
func (r *rental) land() {
	if landed, done := r.engine.Land(); landed {
		r.w.totals.fault(map[bool]string{true: "late request carried out", false: "late request refused"}[done])
	}
}

// pause is between two attempts of a request.
func (r *rental) pause(context.Context, time.Duration) bool {
	if !r.pausing {
		r.pausing = true
		if r.w.chance(0.6) {
			r.land()
		}
		if r.rival {
			r.rival = false
			r.rivals()
		}
		r.pausing = false
	}
	if r.attempts == 0 {
		return false
	}
	r.attempts--
	return true
}

// rivals lets another host take the shard over.
func (r *rental) rivals() {
	script, attempts := r.script, r.attempts
	r.disarm()
	for _, h := range r.w.hosts {
		if o := h.owners[r.l.number]; o.shard == nil && !h.frozen && r.opened[o] == nil && !h.deaf {
			r.w.totals.fault("takeover between two attempts")
			o.start()
			break
		}
	}
	r.script, r.attempts = script, attempts
}

func (r *rental) excuses(err error) bool {
	return errors.Is(err, journal.ErrNoSpace) || errors.Is(err, journal.ErrFailed) || errors.Is(err, journal.ErrFenced) ||
		errors.Is(err, simengine.ErrNoAnswer)
}

// What becomes of a write.
const (
	lost     = simengine.Lost
	answered = simengine.Answered
	late     = simengine.Late
	full     = simengine.Full
)

// trips are the faults of an append.
var trips = []struct {
	name     string
	script   []simengine.Fault
	attempts int // further ones
	blind    int
	rival    bool
}{
	{name: "append lost once", script: []simengine.Fault{lost}, attempts: 2},
	{name: "append stored, answer lost once", script: []simengine.Fault{answered}, attempts: 2},
	{name: "append late and repeated", script: []simengine.Fault{late}, attempts: 2},
	{name: "append late twice", script: []simengine.Fault{late, late, answered}, attempts: 3},
	{name: "append lost", script: []simengine.Fault{lost, lost}, attempts: 1},
	{name: "append stored, answer lost", script: []simengine.Fault{answered}},
	{name: "append late", script: []simengine.Fault{late}},
	{name: "append stored, not to be read", script: []simengine.Fault{answered}, attempts: 1, blind: 1},
	{name: "append without space", script: []simengine.Fault{full}},
	{name: "append lost, then without space", script: []simengine.Fault{lost, full}, attempts: 1},
	{name: "append stored, then without space", script: []simengine.Fault{answered, full}, attempts: 1},
	{name: "append lost in a takeover", script: []simengine.Fault{lost}, attempts: 2, rival: true},
	{name: "append stored in a takeover", script: []simengine.Fault{answered}, attempts: 2, rival: true},
	{name: "append late in a takeover", script: []simengine.Fault{late}, attempts: 2, rival: true},
}

func (r *rental) arm(*owner) {
	t := trips[r.w.rng.IntN(len(trips))]
	r.w.totals.fault(t.name)
	r.script, r.blind, r.attempts, r.rival = t.script, t.blind, t.attempts, t.rival
}

// snapshotTrips are the faults of a snapshot. Its first write is mostly its only part, the second one names the newest
// snapshot, and the third one removes the one before.
var snapshotTrips = [][]simengine.Fault{
	{lost},
	{answered},
	{late},
	{simengine.None, lost},
	{simengine.None, answered},
	{simengine.None, late},
	{simengine.None, simengine.None, answered},
}

func (r *rental) armSnapshot(*owner) {
	r.w.totals.fault("snapshot without an answer")
	r.script, r.attempts = snapshotTrips[r.w.rng.IntN(len(snapshotTrips))], r.w.rng.IntN(3)
}

func (r *rental) disarm() { r.script, r.blind, r.attempts, r.rival = nil, 0, 0, false }

func (r *rental) dead(*owner) bool { return false }

func (r *rental) began() { r.lost, r.noticed = false, false }

func (r *rental) failed(_ *owner, err error) {
	if errors.Is(err, journal.ErrLost) {
		r.w.totals.fault("lost tail noticed by its owner")
		r.noticed = true
	}
}

func (r *rental) died(o *owner, _ bool) {
	if j := r.opened[o]; j != nil {
		_ = j.Close() // which sends nothing
		delete(r.opened, o)
	}
}

func (r *rental) full(full bool) { r.engine.SetLow(full) }

func (r *rental) settle() {
	r.disarm()
	for landed := true; landed; {
		landed, _ = r.engine.Land()
	}
}

// mark keeps the present state, to which the engine may go back.
func (r *rental) mark() {
	if !r.lost {
		r.back, r.marked = r.engine.Mark(), r.l.audit.tenures
	}
}

// goBack takes the engine back to the state that is kept, as a replica that is promoted with what it has. What was
// acknowledged since then is lost. It does not go back behind a take-over: the owner before would be the owner again,
// and until the later one writes, no comparison tells it that anything was lost.
func (r *rental) goBack() {
	if r.back == nil || r.lost || r.marked != r.l.audit.tenures {
		return
	}
	known := r.w.chance(0.3)
	before, after := r.back(known)
	r.back = nil
	if after >= before {
		return
	}
	r.w.totals.fault("tail lost")
	r.w.story.tell("shard %d loses entries %d to %d", r.l.number, after+1, before)
	r.lost, r.noticed = true, known
	r.l.audit.loses(after)
}
